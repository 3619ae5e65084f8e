// SPDX-License-Identifier: GPL-3.0-or-later
package import Concurrency
package import DoorReaders
package import Text

/// The owner of the radio, which knows of the scan, of openings and of sessions with phones. An adapter serves one opening
/// or session at a time. While it connects, the scan leaves the radio to it; as long as it lasts, recovery does not switch
/// the adapter off.
@Loop package final class RadioOwner {
    /// What an adapter serves besides the scan.
    package enum Use: Sendable {
        case opening
        case session

        /// Such as `opens another reader`.
        package var text: Phrase {
            switch self {
            case .opening: "opens another reader"
            case .session: "is connected to a phone"
            }
        }
    }

    /// The scan that shares the adapters; nil: there is none.
    package weak var scan: (any RadioScan)?
    private var uses: [Int: Use] = [:]
    /// Those who wait for an adapter.
    private var line: [Waiter] = []
    /// The connections that are being established, by adapter.
    private var reservations: [Int: Int] = [:]

    package init() {}

    // MARK: Uses

    /// Begins a use of an adapter, until `end`.
    /// - Returns: what the adapter serves already; nil when the use has begun.
    package func begin(_ use: Use, on adapter: Int) -> Use? {
        if let other = uses[adapter] { return other }
        uses[adapter] = use
        return nil
    }

    /// Begins a use of the first of these adapters that is free, as soon as one is, in the order of the callers.
    /// - Returns: the adapter; nil: none was free in time, or the task was cancelled.
    package func wait(for use: Use, onOneOf adapters: [Int], within limit: Milliseconds) async -> Int? {
        if let free = adapters.first(where: { begin(use, on: $0) == nil }) { return free }
        guard limit > 0 else { return nil }
        let waiter = Waiter(use: use, adapters: adapters)
        line.append(waiter)
        let alarm = Loop.Alarm { waiter.turn.fill(nil) }
        alarm.set(after: limit)
        let adapter = await waiter.turn.value(whenCancelled: nil)
        alarm.cancel()
        line.removeAll { $0.turn === waiter.turn }
        return adapter
    }

    /// Ends a use. The adapter belongs to the next in line who wants it, at once: tasks may go on in another order.
    package func end(on adapter: Int) {
        uses[adapter] = nil
        let next = line.first { $0.adapters.contains(adapter) && $0.turn.fill(adapter) }
        if let next { uses[adapter] = next.use }
    }

    private struct Waiter {
        let use: Use
        let adapters: [Int]
        /// The adapter; nil: none was free in time.
        let turn = OneShot<Int?>()
    }

    /// Whether an adapter serves an opening or a session; nil: any adapter.
    package func isInUse(_ adapter: Int?) -> Bool {
        guard let adapter else { return !uses.isEmpty || !reservations.isEmpty }
        return uses[adapter] != nil || reservations[adapter] != nil
    }

    // MARK: Connections

    /// Leaves the radio of an adapter to a connection that is being established, until `release`.
    package func reserve(_ adapter: Int) {
        reservations[adapter, default: 0] += 1
        if reservations[adapter] == 1 { scan?.reserve(adapter, true) }
    }

    /// Returns when the scan has left the radio of a reserved adapter, so that another discovery may start.
    package func waitUntilLeft(_ adapter: Int, within limit: Milliseconds) async {
        await scan?.waitUntilLeft(adapter, within: limit)
    }

    package func release(_ adapter: Int) {
        guard let count = reservations[adapter] else { return }
        reservations[adapter] = count > 1 ? count - 1 : nil
        if count == 1 { scan?.reserve(adapter, false) }
    }

    /// Whether the scan lets bluetoothd find devices on an adapter, until `reserve`.
    package func searches(_ adapter: Int) -> Bool {
        reservations[adapter] == nil && scan?.searches(adapter) == true
    }

    /// Whether a scan reads from bluetoothd what devices advertise.
    package var readsDevices: Bool { scan?.readsDevices ?? false }

    /// Lets the system connect to a device as soon as it advertises, until `endConnection`; false when it cannot.
    package func beginConnection(to address: DeviceAddress, adapter: Int) async -> Bool {
        await scan?.beginConnection(to: address, adapter: adapter) ?? false
    }

    package func endConnection(to address: DeviceAddress, adapter: Int) {
        scan?.endConnection(to: address, adapter: adapter)
    }
}

/// A scan that leaves the radio to connections.
@Loop package protocol RadioScan: AnyObject {
    /// Leaves the radio of an adapter to a connection, or takes it back: no discovery runs on it meanwhile.
    func reserve(_ adapter: Int, _ isReserved: Bool)

    /// Returns when the discovery that `reserve` ends has ended, or after the limit. bluetoothd 5.66 and 5.82 never answer a
    /// StartDiscovery that comes before the answer to the StopDiscovery of another connection to the bus.
    func waitUntilLeft(_ adapter: Int, within limit: Milliseconds) async

    /// Whether the scan lets bluetoothd find devices on an adapter, until `reserve`. Ends a pause of the scan.
    func searches(_ adapter: Int) -> Bool

    /// Whether this scan, or the next one, reads from bluetoothd what devices advertise. Once it has connected to a device,
    /// bluetoothd lists the services of the device in place of the advertised ones, until it forgets the device.
    var readsDevices: Bool { get }

    /// Lets the system connect to a device as soon as it advertises. `endConnection` must be called when it is connected,
    /// or not wanted any more.
    /// - Returns: false when this scan cannot.
    func beginConnection(to address: DeviceAddress, adapter: Int) async -> Bool

    /// Ends what `beginConnection` began. A connection stays.
    func endConnection(to address: DeviceAddress, adapter: Int)
}
