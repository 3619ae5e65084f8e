// SPDX-License-Identifier: Apache-2.0
import Text

/// A message from badged as a typed value. Each kind of message has a type of its own; tell them apart with
/// `switch event.message { case let reader as Reader: ... }`. docs/protocol.md describes the messages.
public protocol ServerMessage: Sendable, Equatable {
    /// Why badged refused a command, where the message says so; nil for any other message.
    var refusal: ClientError? { get }
}

extension ServerMessage {
    public var refusal: ClientError? { nil }
}

/// A message type that `MessageTable` finds by name.
protocol NamedMessage: ServerMessage {
    /// The values of `msg` that this type reads, such as `READER_LIST`.
    static var names: [String] { get }
    /// Whether a member `error` turns the message into a `Refusal`. Usually true.
    static var errorIsRefusal: Bool { get }
    /// Reads the members of the message. Throws for a member that is missing or has the wrong type.
    init(_ json: JSON) throws(Malformed)
}

extension NamedMessage {
    static var errorIsRefusal: Bool { true }
}

/// A message with a secret, which must not be logged.
protocol SecretMessage: NamedMessage {}

extension JSON {
    /// The value of a member that a message must have.
    func required<Value>(_ member: String, as read: (JSON) -> Value?) throws(Malformed) -> Value {
        guard let value = self[member].flatMap(read) else { throw Malformed(member) }
        return value
    }

    /// The member `question` of a command that answers the prompt with this number; none without a number.
    static func question(_ number: Int?) -> [Member] {
        number.map { [Member("question", .number(String($0)))] } ?? []
    }

    /// The strings of an array; nil for any other value.
    var strings: [String]? { array?.compactMap(\.string) }
}

/// badged did not carry out a command: ACCESS_DENIED, BAD_STATE, UNKNOWN_COMMAND, INVALID, INTERNAL_ERROR, and any
/// other message that has only an `error`.
public struct Refusal: ServerMessage, NamedMessage {
    static let names = ["ACCESS_DENIED", "BAD_STATE", "INTERNAL_ERROR", "INVALID", "UNKNOWN_COMMAND"]
    static let errorIsRefusal = false

    /// `msg`.
    public var name: String
    /// The name of the command, or the reason in the words of the protocol.
    public var error: String
    /// ACCESS_DENIED: the permissions that the command needs and the user has not, and those that the user has.
    public var missing: [String] = []
    public var granted: [String] = []

    public init(name: String, error: String) { (self.name, self.error) = (name, error) }

    init(_ json: JSON) throws(Malformed) {
        self.init(name: json["msg"]?.string ?? "", error: try json.required("error", as: \.string))
        missing = json["missing"]?.strings ?? []
        granted = json["granted"]?.strings ?? []
    }

    /// The refusal as the error that typed commands throw.
    public var reason: ClientError {
        switch name {
        case "ACCESS_DENIED": .accessDenied(command: error, missing: missing, granted: granted)
        case "BAD_STATE": .badState(command: error)
        case "UNKNOWN_COMMAND": .unknownCommand(error)
        default: .refused(error)
        }
    }

    public var refusal: ClientError? { reason }
}

/// A message whose name this library does not know; `Event.json` has all of it.
public struct UnknownMessage: ServerMessage {
    public var name: String

    public init(name: String) { self.name = name }
}

/// A known message whose `member` is missing or has the wrong type.
public struct UnreadableMessage: ServerMessage {
    /// `msg`; empty when the message has no name.
    public var name: String
    public var member: String

    public init(name: String, member: String) { (self.name, self.member) = (name, member) }
}
