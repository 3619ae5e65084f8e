// SPDX-License-Identifier: GPL-3.0-or-later
package import Text
package import Wire

/// A question for a secret of the card in a reader: the members of an ENTER message.
package struct SecretQuestion: Sendable {
    /// The number of the prompt in the connection.
    let number: Int
    let reader: ReaderState
    /// The user of the workflow; nil for a workflow without users.
    let userID: String?
    /// The tries that are left; nil if the message does not contain them.
    let retryCounter: Int?
    /// What was wrong with the last value.
    let error: String?

    package init(
        number: Int,
        reader: ReaderState,
        userID: String? = nil,
        retryCounter: Int? = nil,
        error: String?
    ) {
        (self.number, self.reader, self.userID) = (number, reader, userID)
        (self.retryCounter, self.error) = (retryCounter, error)
    }
}

/// A message that asks for a secret of the card in a reader.
package protocol EnterMessage: Message {
    var question: SecretQuestion { get }
}

extension EnterMessage {
    package func write(to object: inout JSONWriter, _ level: APILevel) {
        if let error = question.error { object.member("error", error) }
        if let userID = question.userID { object.member("userId", userID) }
        if let retryCounter = question.retryCounter { object.member("retryCounter", retryCounter) }
        object.member("question", question.number)
        object.object("reader") { question.reader.write(to: &$0, level) }
    }
}

package struct EnterPINMessage: EnterMessage {
    package static let name: StaticString = "ENTER_PIN"
    package let question: SecretQuestion

    package init(question: SecretQuestion) { self.question = question }
}

package struct EnterNewPINMessage: EnterMessage {
    package static let name: StaticString = "ENTER_NEW_PIN"
    package let question: SecretQuestion

    package init(question: SecretQuestion) { self.question = question }
}

package struct EnterPUKMessage: EnterMessage {
    package static let name: StaticString = "ENTER_PUK"
    package let question: SecretQuestion

    package init(question: SecretQuestion) { self.question = question }
}
