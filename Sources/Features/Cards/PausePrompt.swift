// SPDX-License-Identifier: GPL-3.0-or-later
import Server
import Text
import Wire

/// PAUSE: the user has to lay the card down better, and say so with CONTINUE.
struct PausePrompt: Prompt {
    let cause: String

    var name: String { "PAUSE" }

    func message(_ number: Int, to session: Session, error: String?) -> any Message { PauseMessage(cause: cause) }

    typealias Answer = Void
}

struct PauseMessage: Message {
    static let name: StaticString = "PAUSE"
    let cause: String

    func write(to object: inout JSONWriter, _ level: APILevel) { object.member("cause", cause) }
}
