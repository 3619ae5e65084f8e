// SPDX-License-Identifier: Apache-2.0
public import Text
import Wire

/// One message from badged. Nothing of it is dropped: members that this library does not know are in `json`.
public struct Event: Sendable, Equatable {
    public let message: ServerMessage
    /// The whole message.
    public let json: JSON
    /// The whole message as it came, one line.
    public let text: String

    /// `msg`; empty when it has none.
    public var name: String { json["msg"]?.string ?? "" }

    /// Whether this is the direct answer to a command.
    public var isAnswer: Bool { json["request"] != nil }

    /// Whether this is the direct answer to the command that was sent under `id`.
    public func answers(_ id: RequestID) -> Bool { json["request"]?.string == id.text }

    package init(_ line: UnsafeRawBufferPointer) throws(ClientError) {
        do throws(JSONError) {
            json = try JSON(line)
        } catch {
            throw .malformed(error.message)
        }
        guard json.members != nil else { throw .malformed("a line is not an object") }
        text = String(decoding: line, as: UTF8.self)
        message = ServerMessage(json)
    }
}

/// The mark by which a command's direct answer is known again: `request` on the wire.
public struct RequestID: Sendable, Hashable {
    package let text: String
}
