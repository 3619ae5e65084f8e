// SPDX-License-Identifier: GPL-3.0-or-later
import DoorReaders

/// Recognises later fragments of extended advertisements.
///
/// The kernel reports each fragment as an advertisement of its own, cut to its complete structures, and does not say
/// that it is a fragment. So the fragments cannot be joined here. The fragments of one advertisement follow each other
/// at once, while a sender waits at least 20 ms between two advertisements.
struct ContinuationFilter {
    private struct Sender {
        let address: DeviceAddress
        let adapter: Int
        let start: Milliseconds
        /// The beginning of the advertisement.
        let head: UInt32
    }

    /// The last advertisement of each sender; the newest one is last.
    private var senders: [Sender] = []
    /// Senders that are compared at the same time.
    private static let capacity = 32
    /// The fragments of an advertisement arrive within this time: the kernel's packets are read in batches.
    private static let duration: Milliseconds = 30

    /// Whether the report is a later fragment: it has another beginning than the advertisement right before. A scan
    /// response is never a fragment.
    mutating func isContinuation(
        _ report: AdvertisingReport,
        _ data: Span<UInt8>,
        adapter: Int,
        at now: Milliseconds
    ) -> Bool {
        guard !report.isScanResponse else { return false }
        senders.removeAll { now - $0.start > Self.duration }
        let head = Self.head(data)
        if let last = senders.last(where: { $0.address == report.address && $0.adapter == adapter }) {
            return last.head != head
        }
        if senders.count == Self.capacity { senders.removeFirst() }
        senders.append(Sender(address: report.address, adapter: adapter, start: now, head: head))
        return false
    }

    /// The first four bytes of the first structure.
    private static func head(_ data: Span<UInt8>) -> UInt32 {
        guard data.count > 0 else { return 0 }
        return (0..<min(data.count, 1 + Int(data[0]), 4)).reduce(0) { $0 << 8 | UInt32(data[$1]) }
    }
}
