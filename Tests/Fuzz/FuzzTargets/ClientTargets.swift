// SPDX-License-Identifier: GPL-3.0-or-later
import BadgedClient
import BadgedSDKWrapper
import Text

/// A line of a server, read by both modules of the client library.
@Sendable func serverMessage(_ input: UnsafeRawBufferPointer) {
    guard let event = try? Event(input) else { return }
    require(event.text == String(decoding: input, as: UTF8.self), "the text differs")
    switch event.message {
    case let message as UnknownMessage: require(message.name == event.name, "the name differs")
    case let message as UnreadableMessage: require(message.name == event.name, "the name differs")
    case let message as Advertisement:
        require(message.data.count * 2 == event.json["data"]?.string?.utf8.count, "the length of the data differs")
    case let question as SecretQuestion: require(event.name == question.kind.question, "the question differs")
    case let question as MPinQuestion: require(event.json["factor"]?.int == question.factor, "the factor differs")
    case let request as WalletRequest: require(!request.facts.isEmpty, "a request shows nothing")
    case let data as DataToVerify: require(!data.facts.isEmpty, "data show nothing")
    case let wallet as PaperWallet: require(event.tellsSecret && wallet.number == event.json["question"]?.int, "words")
    default: break
    }
    if let refusal = event.message.refusal { require(!refusal.advice.isEmpty, "a refusal without advice") }
    for member in ["error", "message"] {
        let english = event.json.text(member, translatedBy: { _ in nil })
        require(english.map { Array($0.utf8) } == event.json[member]?.string.map { Array($0.utf8) }, "the text differs")
    }
    event.json.deliver(to: Nobody())
}

/// Callbacks that do nothing.
private final class Nobody: WorkflowCallbacks {}
