// SPDX-License-Identifier: GPL-3.0-or-later
import Server
import Text
import Wire

/// PAUSE asks the user to place the card better. The client answers CONTINUE.
struct PausePrompt: AcknowledgedPrompt {
    static let acknowledgement = "CONTINUE"
    let cause: String

    var name: String { "PAUSE" }

    func message(_ number: Int, to session: Session, error: String?) -> any Message { PauseMessage(cause: cause) }
}

struct PauseMessage: Message {
    static let name: StaticString = "PAUSE"
    let cause: String

    func write(to object: inout JSONWriter, _ level: APILevel) { object.member("cause", cause) }
}
