// SPDX-License-Identifier: GPL-3.0-or-later
package import Bluetooth
package import Concurrency
package import DoorReaders

/// A backend that scans for advertisements. A new backend is one target with one type that conforms to this protocol,
/// and one line in the program that creates it.
@Loop package protocol Scanner: RadioScan {
    /// The name in INFO, SCAN and logs, such as `bluez`.
    nonisolated var name: String { get }

    /// Receives advertisements and changes of the status. Must be set before the first `scan`.
    var observer: (any ScannerObserver)? { get set }

    var status: ScannerStatus { get }

    /// Starts the scan, or changes its demand. A failure appears in `status`; the scanner tries again by itself.
    func scan(_ demand: ScanDemand)

    /// Stops the scan and releases what it uses of the radio. An adapter that recovery has switched off is still
    /// switched on again.
    func stop()

    /// Returns when every adapter that recovery has switched off is on again. Is called after `stop`, at the end of the
    /// process.
    func restorePower() async

    /// Returns the status that a scan would have, without a scan. Must not be called during a scan.
    func inspect() async -> ScannerStatus

    /// Requests scan responses for a moment, if the scanner does not do so all the time. They contain names.
    func requestScanResponses()

    /// Takes a recovery step for one adapter or, with nil, for all adapters.
    /// - Returns: false when the backend has no such step or must not take it now.
    func recover(_ step: RecoveryStep, adapter: Int?) -> Bool
}

extension Scanner {
    package func requestScanResponses() {}
    package func reserve(_ adapter: Int, _ isReserved: Bool) {}
    package func waitUntilLeft(_ adapter: Int, within limit: Milliseconds) async {}
    package var readsDevices: Bool { false }
    package func searches(_ adapter: Int) -> Bool { false }
    package func beginConnection(to address: DeviceAddress, adapter: Int) async -> Bool { false }
    package func endConnection(to address: DeviceAddress, adapter: Int) {}
}

/// Receives the results of a scanner.
@Loop package protocol ScannerObserver: AnyObject {
    /// An advertisement was received. `data` is empty when the scanner knows only a new signal strength. `data` is
    /// valid during the call.
    func received(_ report: AdvertisingReport, _ data: Span<UInt8>, adapter: Int)

    /// A device is connected, whoever asked for it.
    func deviceConnected(_ address: DeviceAddress, adapter: Int)

    /// `status` has changed.
    func scannerChanged(_ scanner: any Scanner)

    /// An adapter was removed. The same number may later belong to another adapter, or to this one again: a service
    /// restarts, and a bus enumerates its devices again.
    func adapterRemoved(_ adapter: Int)
}

extension ScannerObserver {
    package func deviceConnected(_ address: DeviceAddress, adapter: Int) {}
}

/// The steps against a scan that receives nothing, in the order in which they are taken.
package enum RecoveryStep: Int, Sendable, CaseIterable {
    /// Scans without a filter for `ScanWatchdog.probeTime`.
    case probe
    /// Sets filters or monitors again.
    case renew
    /// Stops and starts the scan.
    case restart
    /// Connects to the service again.
    case reopen
    /// Switches the adapter off and on; not while other programs have connections, unless this is configured.
    case powerCycle
    /// Resets the USB device of the adapter, if this is configured.
    case usbReset
}

/// What clients want from the scan.
package struct ScanDemand: Sendable, Equatable {
    package enum Mode: String, Sendable, CaseIterable {
        /// Pauses active scanning most of the time, so that other programs can use the radio.
        case powerSaving
        case performance
    }

    package var mode: Mode
    package var profiles: Set<ReaderProfile>
    /// Empty: all codes.
    package var lockServiceCodes: Set<Int>

    package init(
        mode: Mode = .powerSaving,
        profiles: Set<ReaderProfile> = ReaderProfile.doors,
        lockServiceCodes: Set<Int> = []
    ) {
        self.mode = mode
        self.profiles = profiles
        self.lockServiceCodes = lockServiceCodes
    }

    /// The demand that satisfies all `demands`; nil when there is none.
    package static func union(_ demands: some Sequence<ScanDemand>) -> ScanDemand? {
        demands.reduce(nil) { (result: ScanDemand?, next) in
            guard var result else { return next }
            if next.mode == .performance { result.mode = .performance }
            result.profiles.formUnion(next.profiles)
            let wantsAllCodes = result.lockServiceCodes.isEmpty || next.lockServiceCodes.isEmpty
            result.lockServiceCodes = wantsAllCodes ? [] : result.lockServiceCodes.union(next.lockServiceCodes)
            return result
        }
    }
}
