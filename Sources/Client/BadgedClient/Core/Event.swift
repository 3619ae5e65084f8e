// SPDX-License-Identifier: Apache-2.0
public import Text

/// One message from badged.
public struct Event: Sendable {
    /// The message as a typed value.
    public let message: any ServerMessage
    /// The whole message, with the members that this library does not know.
    public let json: JSON
    /// The whole message as badged sent it: one line, without its end.
    public let text: String

    /// `msg`; empty when the message has none.
    public var name: String { json["msg"]?.string ?? "" }

    /// Whether this is the direct answer to a command.
    public var isAnswer: Bool { json["request"] != nil }

    /// Whether this answers a line that badged could not read, so that it does not know its `request`.
    var isAboutUnreadLine: Bool { name == "INVALID" && !isAnswer }

    /// Whether this is the direct answer to the command that was sent under `id`.
    public func answers(_ id: RequestID) -> Bool { json["request"]?.string == id.text }

    /// Whether the message contains a secret, such as the words of a wallet. Do not log such a message.
    public var tellsSecret: Bool { MessageTable.type(name) is any SecretMessage.Type }

    package init(_ line: UnsafeRawBufferPointer) throws(ClientError) {
        json = try translating({ (error: Malformed) in ClientError.malformed(.noJSON(error.text)) }, JSON(line))
        guard json.members != nil else { throw .malformed(.noObject) }
        text = String(decoding: line, as: UTF8.self)
        message = MessageTable.read(json)
    }
}

/// Identifies a command and its direct answer: `request` on the wire.
public struct RequestID: Sendable, Hashable {
    package let text: String
}
