// SPDX-License-Identifier: GPL-3.0-or-later
import BadgedClient
import BadgedSDKWrapper
import Text

/// A line from whoever listens at badged's socket, as both modules of the library read it.
@Sendable func serverMessage(_ input: UnsafeRawBufferPointer) {
    guard let event = try? Event(input) else { return }
    require(event.text == String(decoding: input, as: UTF8.self), "the text is another one")
    switch event.message {
    case let message as UnknownMessage: require(message.name == event.name, "another name")
    case let message as UnreadableMessage: require(message.name == event.name, "another name")
    case let message as Advertisement:
        require(message.data.count * 2 == event.json["data"]?.string?.utf8.count, "data of another length")
    case let question as SecretQuestion: require(event.name == question.kind.question, "another question")
    default: break
    }
    if let refusal = event.message.refusal { require(!refusal.advice.isEmpty, "a refusal without advice") }
    event.json.deliver(to: Nobody())
}

/// Has the empty callbacks.
private final class Nobody: WorkflowCallbacks {}
