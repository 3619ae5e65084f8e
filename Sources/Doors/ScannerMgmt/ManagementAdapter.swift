// SPDX-License-Identifier: GPL-3.0-or-later
import Concurrency
import DoorReaders
import Scanners

/// The scan on one adapter of the kernel: a monitor of advertisements and, at times, a discovery.
@Loop final class ManagementAdapter {
    enum DiscoveryState {
        case off
        /// The kernel has not answered the start yet.
        case starting
        case on
    }

    let index: UInt16
    /// nil until the kernel has answered Read Controller Information.
    var address: String?
    private(set) var isPowered = false
    private var hasLowEnergy = false
    private var isSuspended = false
    /// The handle of the monitor; nil: there is none.
    private var monitor: UInt16?
    /// The monitor is replaced by another one, which the kernel has not added yet.
    private var isRenewing = false
    /// The kernel has not answered the command to add a monitor yet.
    private(set) var isAddingMonitor = false
    /// How often in a row the kernel has refused a monitor.
    private var refusals = 0
    /// Why the kernel refuses monitors again and again; nil: it does not.
    private(set) var refusal: UInt8?
    /// The refusals that are no fault: while bluetoothd begins to use an adapter, the kernel is busy.
    private static let passingRefusals = 2
    private(set) var discovery = DiscoveryState.off
    /// The adapter shall receive on the coded PHY, and does not.
    private(set) var lacksCodedPHY = false
    /// The PHYs before the scan; nil: they were not changed.
    private var ownPHYs: PHYs?
    private let send: @Loop (ManagementCommand) -> Bool

    init(_ index: UInt16, send: @escaping @Loop (ManagementCommand) -> Bool) { (self.index, self.send) = (index, send) }

    /// The adapter can scan.
    var isReady: Bool { isOn && !isSuspended }

    private var isOn: Bool { isPowered && hasLowEnergy }

    /// The adapter as SCAN shows it.
    var shown: RadioAdapter {
        RadioAdapter(
            name: "hci\(index)",
            address: address ?? "",
            isPowered: isPowered,
            isListening: isReady && (monitor != nil || isRenewing)
        )
    }

    /// The kernel reports the current settings.
    /// - Returns: true when the adapter was switched on.
    func settingsChanged(_ settings: ManagementSettings) -> Bool {
        let wasOn = isOn
        isPowered = settings.isPowered
        hasLowEnergy = settings.hasLowEnergy
        // Switching off ends a discovery, but not a monitor.
        if !isOn {
            discovery = .off
            monitorsAccepted()
        }
        return isOn && !wasOn
    }

    /// The kernel has switched the adapter after a command of this process. Only the answer to the command reports
    /// this, and an adapter that is off for a moment is not reported to clients.
    /// - Returns: true when the adapter was switched on.
    func powerSwitched(_ settings: ManagementSettings) -> Bool {
        discovery = .off
        guard settings.isPowered else { return false }
        isPowered = false
        return settingsChanged(settings)
    }

    func suspend() { isSuspended = true }

    func resume(_ patterns: [AdvertisementPattern]) {
        isSuspended = false
        renewMonitor(patterns)
    }

    // MARK: Monitor

    /// Adds a monitor, unless there is one or the adapter is off.
    func addMonitor(_ patterns: [AdvertisementPattern]) {
        guard isOn, monitor == nil, !isAddingMonitor else { return }
        isAddingMonitor = send(.addMonitor(index, patterns))
    }

    /// Replaces the monitor.
    func renewMonitor(_ patterns: [AdvertisementPattern]) {
        if let monitor { _ = send(.removeMonitor(index, handle: monitor)) }
        lostMonitor(patterns)
    }

    /// The kernel has added a monitor.
    func monitorAdded(_ handle: UInt16) {
        // The answer to an earlier command has come late.
        if let monitor, monitor != handle { _ = send(.removeMonitor(index, handle: monitor)) }
        isAddingMonitor = false
        isRenewing = false
        monitor = handle
        monitorsAccepted()
    }

    /// The kernel has refused a monitor, which is a fault when this is repeated. Until then the adapter counts as listening
    /// if it did so before.
    func monitorRefused(_ status: UInt8) {
        isAddingMonitor = false
        refusals += 1
        guard refusals > Self.passingRefusals else { return }
        isRenewing = false
        refusal = status
    }

    private func monitorsAccepted() {
        refusals = 0
        refusal = nil
    }

    /// The kernel has removed a monitor, or all monitors when the handle is 0. The monitor of this process is added
    /// again.
    func monitorRemoved(_ handle: UInt16, _ patterns: [AdvertisementPattern]) {
        guard let monitor, handle == 0 || handle == monitor else { return }
        lostMonitor(patterns)
    }

    private func lostMonitor(_ patterns: [AdvertisementPattern]) {
        isRenewing = monitor != nil
        monitor = nil
        addMonitor(patterns)
    }

    // MARK: Discovery

    func startDiscovery() {
        guard isOn, discovery == .off, send(.startDiscovery(index)) else { return }
        discovery = .starting
    }

    /// The kernel has answered the start. A refusal means that another program runs a discovery, whose results the
    /// kernel reports to all programs.
    func discoveryStarted(_ isStarted: Bool) { discovery = isStarted ? .on : .off }

    /// The kernel has answered the stop. A new start may have been sent meanwhile.
    func discoveryStopped() { if discovery == .on { discovery = .off } }

    func stopDiscovery() {
        guard discovery == .on else { return }
        discovery = .off
        _ = send(.stopDiscovery(index))
    }

    // MARK: Coded PHY

    /// Asks for the PHYs of the adapter, and selects the coded one if the adapter has it.
    func useCodedPHY() {
        guard !send(.getPHY(index)) else { return }
        lacksCodedPHY = true
    }

    /// The kernel has answered with the PHYs; nil: it has refused.
    func learnedPHY(_ phys: PHYs?) {
        guard let phys, phys.hasCoded else {
            lacksCodedPHY = true
            return
        }
        if phys.isCodedSelected {
            lacksCodedPHY = false
        } else {
            lacksCodedPHY = !send(.setPHY(index, phys.withCoded))
            if !lacksCodedPHY { ownPHYs = ownPHYs ?? phys }
        }
    }

    /// The kernel has answered the selection.
    /// - Returns: true when the adapter uses other PHYs from now on.
    func changedPHY(_ isSuccess: Bool) -> Bool {
        lacksCodedPHY = !isSuccess
        if !isSuccess { ownPHYs = nil }
        return isSuccess
    }

    // MARK: End

    /// Releases the adapter at the end of the scan.
    func stop() {
        if let ownPHYs { _ = send(.setPHY(index, ownPHYs.selected)) }
        if discovery != .off { _ = send(.stopDiscovery(index)) }
        if let monitor { _ = send(.removeMonitor(index, handle: monitor)) }
    }
}
