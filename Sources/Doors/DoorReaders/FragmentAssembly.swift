// SPDX-License-Identifier: GPL-3.0-or-later

/// Reassembles the fragments of long extended advertisements. Bluetooth Core, Vol 4, Part E, 7.7.65.13.
///
/// Memory is bounded: when too many advertisements are incomplete, the oldest one is dropped.
package struct FragmentAssembly: Sendable {
    /// Advertisements that may be incomplete at the same time.
    package static let maximumPending = 16

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

    /// Passes every report to `body` at once. The last fragment is passed with the data of all fragments; the others
    /// are passed as `.more`, for their signal strength.
    package mutating func add(
        _ report: AdvertisingReport,
        _ data: Span<UInt8>,
        adapter: Int,
        _ body: (AdvertisingReport, Span<UInt8>) -> Void
    ) {
        // Legacy advertisements, which have no set, are never fragmented.
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
            // No valid advertisement is that long, so the data is not decoded.
            report.part = .more
            return body(report, data)
        }
        for index in data.indices { entry.data.append(data[index]) }
        if report.part == .more {
            if pending.count == Self.maximumPending { pending.removeFirst() }
            pending.append(entry)
            return body(report, data)
        }
        // When the controller has lost the end, the complete structures before it are used.
        let end = report.part == .cut ? Self.completeStructures(entry.data.span) : entry.data.count
        report.part = .whole
        body(report, entry.data.span.extracting(0..<end))
    }

    private static func completeStructures(_ data: Span<UInt8>) -> Int {
        var end = 0
        AdvertisingData.forEach(in: data) { _, value in end = value.upperBound }
        return end
    }
}
