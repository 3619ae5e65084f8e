// SPDX-License-Identifier: Apache-2.0
package import Text

/// One message to a client. Each message has its own type, next to the code that sends the message.
package protocol Message {
    /// The name of the message, `msg`.
    static var name: StaticString { get }
    /// Whether the message contains a secret, such as words. Its bytes are wiped when they are sent.
    static var isSecret: Bool { get }
    /// Writes the members other than `msg` and `request`, in an order that is easy to read.
    func write(to object: inout JSONWriter, _ level: APILevel)
}

extension Message {
    package static var isSecret: Bool { false }

    /// Writes the message as one compact object, without a line end.
    ///
    /// `request` is the member of the command that the message answers, as the client wrote it.
    package func encode(to writer: inout JSONWriter, _ level: APILevel, request: UnsafeRawBufferPointer? = nil) {
        writer.object { object in
            object.key("msg")
            object.string(Self.name.description)
            write(to: &object, level)
            guard let request else { return }
            object.key("request")
            object.raw(request)
        }
    }
}
