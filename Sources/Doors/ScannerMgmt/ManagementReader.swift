// SPDX-License-Identifier: GPL-3.0-or-later
import Concurrency
import Host

/// Reads the management socket in batches with pauses between them, because waking up costs more than processing a
/// packet.
@Loop final class ManagementReader {
    /// Milliseconds between two batches.
    private static let interval: Int64 = 15
    /// After this many packets other work of the loop has its turn.
    private static let largestBatch = 128

    private let socket: ManagementSocket
    /// Receives each packet, until `end`.
    private let onPacket: @Loop (Span<UInt8>) -> Void
    /// Called when the other end was closed, which happens only in tests.
    private let onClose: @Loop () -> Void
    private var registration: Loop.Registration?
    private var alarm: Loop.Alarm?

    init(
        _ socket: ManagementSocket,
        onPacket: @escaping @Loop (Span<UInt8>) -> Void,
        onClose: @escaping @Loop () -> Void
    ) {
        self.socket = socket
        self.onPacket = onPacket
        self.onClose = onClose
    }

    var isReading: Bool { registration != nil }

    /// Starts reading; packets from before are discarded.
    func begin() throws(SystemError) {
        guard registration == nil else { return }
        socket.drain()
        registration = try Loop.watch(socket.descriptor, .read) { [weak self] _ in self?.readBatch() }
        alarm = Loop.Alarm { [weak self] in self?.readBatch() }
    }

    /// Stops reading; the kernel drops packets when the socket is full.
    func end() {
        registration?.cancel()
        registration = nil
        alarm = nil
    }

    private func readBatch() {
        var buffer = [UInt8](repeating: 0, count: ManagementSocket.longestPacket)
        var count = 0
        while isReading, count < Self.largestBatch, let length = socket.receive(&buffer) {
            guard length > 0 else {
                end()
                return onClose()
            }
            onPacket(buffer.span.extracting(0..<length))
            count += 1
        }
        // After an empty batch the next packet is read when it arrives.
        registration?.change(count == 0 ? .read : [])
        if count > 0 { alarm?.set(after: count < Self.largestBatch ? Self.interval : 0) }
    }
}
