// SPDX-License-Identifier: GPL-3.0-or-later

/// Puts the fragments of long extended advertisements together. Bluetooth Core, Vol 4, Part E, 7.7.65.13.
///
/// Bounded: who sends beginnings without ends costs others theirs, oldest first, and no more memory.
package struct FragmentAssembly: Sendable {
    /// Advertisements that are in parts at the same time.
    package static let mostPending = 16

    private struct Pending: Sendable {
        var address: DeviceAddress
        var adapter: Int
        var set: UInt8
        var isScanResponse: Bool
        var data: [UInt8] = []
    }

    /// Oldest first.
    private var pending: [Pending] = []

    package init() {}

    /// Gives every report on at once: one that is a fragment for its strength alone, and the last with all data.
    package mutating func take(
        _ report: AdvertisingReport,
        _ data: Span<UInt8>,
        adapter: Int,
        _ body: (AdvertisingReport, Span<UInt8>) -> Void
    ) {
        // Nearly all advertisements are in one piece, and none is waited for. Legacy ones always are.
        guard let set = report.advertisingSet, report.part != .whole || !pending.isEmpty else {
            return body(report, data)
        }
        let place = pending.firstIndex {
            ($0.address, $0.adapter) == (report.address, adapter) && $0.set == set
                && $0.isScanResponse == report.isScanResponse
        }
        if place == nil, report.part == .whole { return body(report, data) }
        var entry =
            place.map { pending.remove(at: $0) }
            ?? Pending(address: report.address, adapter: adapter, set: set, isScanResponse: report.isScanResponse)
        var report = report
        guard entry.data.count + data.count <= AdvertisingData.maximumLength else {
            // No advertisement is that long: what came belongs to none.
            report.part = .more
            return body(report, data)
        }
        for index in data.indices { entry.data.append(data[index]) }
        if report.part == .more {
            if pending.count == Self.mostPending { pending.removeFirst() }
            pending.append(entry)
            return body(report, data)
        }
        // Where the controller has lost the end, what is whole before it counts.
        let end = report.part == .cut ? Self.wholeStructures(entry.data.span) : entry.data.count
        report.part = .whole
        body(report, entry.data.span.extracting(0..<end))
    }

    private static func wholeStructures(_ data: Span<UInt8>) -> Int {
        var end = 0
        AdvertisingData.forEach(in: data) { _, value in end = value.upperBound }
        return end
    }
}
