// SPDX-License-Identifier: GPL-3.0-or-later
import Server
import Text
import Wire

/// PAUSE asks the user to place the card better. The client answers CONTINUE.
struct PausePrompt: AcknowledgedPrompt {
    static let acknowledgement = "CONTINUE"
    let cause: String

    var name: StaticString { "PAUSE" }

    func message(_ number: Int, to session: Session, error: String?) -> any Message {
        WrittenMessage(name) { $0.member("cause", cause) }
    }
}
