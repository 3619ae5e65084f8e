// SPDX-License-Identifier: GPL-3.0-or-later
import Concurrency

/// Reads the management socket: each packet as it comes, or, while many come, all that are there now and then.
@Loop final class ManagementReader {
    private let socket: ManagementSocket
    /// Gets each packet, until `end`.
    private let onPacket: @Loop (Span<UInt8>) -> Void
    /// The other end, which only tests have, is gone.
    private let onLoss: @Loop () -> Void
    private var registration: Loop.Registration?
    private var packets = ManagementPackets()
    private var pace = FetchPace()
    /// The end of a pause between two fetches; nil: there are none.
    private var alarm: Loop.Alarm?
    /// So often all that is there is fetched before others get their turn.
    private static let atOnce = 4

    init(
        _ socket: ManagementSocket,
        onPacket: @escaping @Loop (Span<UInt8>) -> Void,
        onLoss: @escaping @Loop () -> Void
    ) {
        (self.socket, self.onPacket, self.onLoss) = (socket, onPacket, onLoss)
    }

    var isReading: Bool { registration != nil }

    /// Reads from now on; many packets in fetches with pauses.
    func begin() throws(SystemError) {
        if registration == nil {
            // What has piled up is old.
            socket.drain(&packets)
            registration = try Loop.watch(socket.descriptor, .read) { [weak self] _ in self?.fetch() }
        }
        alarm = Loop.Alarm { [weak self] in self?.fetch() }
    }

    /// Few packets will come any more; none of them is to wait.
    func slowDown() {
        (alarm, pace) = (nil, FetchPace())
        registration?.change(.read)
    }

    /// Reads no more, so nothing wakes up; the kernel drops what nobody reads.
    func end() {
        registration?.cancel()
        (registration, alarm, packets, pace) = (nil, nil, ManagementPackets(), FetchPace())
    }

    private func fetch() {
        var count = 0
        for _ in 0..<Self.atOnce {
            socket.receive(&packets)
            count += packets.count
            take(packets)
            guard isReading else { return }
            guard packets.isFull else { break }
        }
        guard let alarm else { return }
        pace.fetched(count, at: Loop.now)
        registration?.change(pace.isResting ? [] : .read)
        if pace.isResting { alarm.set(after: packets.isFull ? 0 : FetchPace.pause) }
    }

    private func take(_ packets: ManagementPackets) {
        for index in 0..<packets.count where isReading {
            let range = packets.range(index)
            guard !range.isEmpty else {
                end()
                return onLoss()
            }
            onPacket(packets.bytes.span.extracting(range))
        }
    }
}
