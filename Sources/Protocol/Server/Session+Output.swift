// SPDX-License-Identifier: GPL-3.0-or-later
import Host
import Text

/// The messages to the client.
extension Session {
    func answer(_ message: some Message, to call: Call) { answer(message, call.command.request) }

    func answer(_ message: some Message, to command: Command) { answer(message, command.request) }

    /// Sends the direct answer to a command whose line is no longer in the buffer.
    package func answer(_ message: some Message, to request: SavedRequest) {
        guard let text = request.text else { return answer(message, nil) }
        text.withUnsafeBytes { answer(message, $0) }
    }

    func answer(_ message: some Message, _ request: UnsafeRawBufferPointer?) {
        guard !hasLeft else { return }
        encode(message, request)
        outbox.append(answer: writer.bytes)
        writer.removeAll()
        flush()
        leaveIfTooLarge()
    }

    /// Sends a message that is not an answer. While the client has a backlog, only the newest message of each `key` is
    /// kept.
    package func push(_ message: some Message, coalescing key: String? = nil) {
        guard !hasLeft else { return }
        let isKept = append(message, coalescing: key)
        server.droppedMessages += outbox.takeReplaced() + (isKept ? 0 : 1)
        guard isKept else {
            log(.warning, "\(name) does not read and is disconnected")
            return close("the client does not read")
        }
        flush()
        leaveIfTooLarge()
    }

    /// Sends a message as `push` does, unless the client is slow to read. For messages of which a client may miss some.
    /// - Returns: false when the message was not sent.
    package func offer(_ message: some Message) -> Bool {
        guard !hasLeft else { return false }
        guard !outbox.isFull else {
            server.droppedMessages += 1
            return false
        }
        push(message)
        return true
    }

    private func append(_ message: some Message, coalescing key: String?) -> Bool {
        guard message.isSecret else {
            encode(message, nil)
            defer { writer.removeAll() }
            return outbox.append(event: writer.bytes, coalescing: key)
        }
        writer.prepareForSecret(message.secretCapacity)
        message.encode(to: &writer, level)
        defer { writer.wipe() }
        return outbox.append(event: writer.bytes, coalescing: nil)
    }

    private func encode(_ message: some Message, _ request: UnsafeRawBufferPointer?) {
        writer.removeAll()
        message.encode(to: &writer, level, request: request)
    }
}

/// The `request` of a command, copied because the line is valid only while it is handled.
package struct SavedRequest: Sendable {
    fileprivate let text: [UInt8]?

    init(_ command: Command) { text = command.request.map { Array($0) } }
}
