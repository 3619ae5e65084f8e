// SPDX-License-Identifier: Apache-2.0
package import Text

/// One message to a client. A message that is sent from two places has a type of its own; the others are written in
/// place, as a `WrittenMessage`.
package protocol Message {
    /// The name of the messages of this type.
    static var name: StaticString { get }
    /// The name of the message, `msg`.
    var msg: StaticString { get }
    /// Whether the message contains a secret, such as words. Its bytes are wiped when they are sent.
    var isSecret: Bool { get }
    /// The most bytes that a message with a secret has; memory for them is reserved.
    var secretCapacity: Int { get }
    /// Writes the members other than `msg` and `request`, in an order that is easy to read.
    func write(to object: inout JSONWriter, _ level: APILevel)
}

extension Message {
    package var isSecret: Bool { false }
    /// A text of 256 bytes with escapes, and 24 words.
    package var secretCapacity: Int { 4096 }
    package var msg: StaticString { Self.name }

    /// Writes the message as one compact object, without a line end.
    ///
    /// `request` is the member of the command that the message answers, as the client wrote it.
    package func encode(to writer: inout JSONWriter, _ level: APILevel, request: UnsafeRawBufferPointer? = nil) {
        writer.object { object in
            object.key("msg")
            object.string(msg.description)
            write(to: &object, level)
            guard let request else { return }
            object.key("request")
            object.raw(request)
        }
    }
}

/// A message that is written in place.
package struct WrittenMessage: Message {
    package static var name: StaticString { "" }
    package let msg: StaticString
    package let isSecret: Bool
    private let body: (inout JSONWriter) -> Void

    package init(
        _ msg: StaticString,
        isSecret: Bool = false,
        _ body: @escaping (inout JSONWriter) -> Void = { _ in }
    ) {
        self.msg = msg
        self.isSecret = isSecret
        self.body = body
    }

    package func write(to object: inout JSONWriter, _ level: APILevel) { body(&object) }
}

/// The levels 1 to 3 of the SDK's protocol. docs/protocol.md, API levels.
package enum APILevel: Int, Sendable, CaseIterable, Comparable {
    case one = 1
    case two, three

    package static func < (left: APILevel, right: APILevel) -> Bool { left.rawValue < right.rawValue }
}
