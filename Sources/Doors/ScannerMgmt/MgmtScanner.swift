// SPDX-License-Identifier: GPL-3.0-or-later
package import Concurrency
import DoorReaders
package import Scanners

/// Scans through the kernel's management socket: a monitor of advertisements, which listens without being heard, and
/// short windows of discovery in which readers are asked for the rest of what they have to say.
///
/// Every report comes with its raw data and strength. Without a controller that filters itself the kernel passes all
/// advertisements on, also those that match no pattern. bluetoothd removes the monitors of others whenever it takes an
/// adapter over: then they are added again.
@Loop package final class MgmtScanner: Scanner {
    package nonisolated let name = "mgmt"
    package weak var observer: (any ScannerObserver)?
    package private(set) var status = ScannerStatus()

    /// Milliseconds.
    package struct Timing: Sendable {
        /// Window and pause of discovery.
        package var performance: (window: Int64, pause: Int64) = (2000, 8000)
        package var powerSaving: (window: Int64, pause: Int64) = (1000, 59_000)
        /// Pause before something that was refused is tried again.
        package var retry: Int64 = 1000
        /// A window of discovery that is opened to hear whether there is anything.
        package var probe: Int64 = ScanWatchdog.probeTime
        /// Until a kernel that does not answer a look is taken for hung.
        package var look: Int64 = 2000
        /// Until an answer that is waited for after the scan, too, is taken for lost; a controller that hangs takes seconds.
        package var answer: Int64 = 10_000
        package var cycles = PowerCycles.Timing()

        package init() {}
    }

    private typealias Code = ManagementCommand.Code
    private typealias Status = ManagementCommand.Status

    private let socket: ManagementSocket?
    private let timing: Timing
    private let mayDisconnect: Bool
    private var demand: ScanDemand?
    private var adapters: [UInt16: ManagementAdapter] = [:]
    private var reader: ManagementReader?
    private var windowAlarm: Loop.Alarm?
    private var retryAlarm: Loop.Alarm?
    private var isWindow = false
    private var fault: ScannerFault?
    private var hasList = false
    private var malformed = 0
    private weak var look: ManagementLook?
    private let power: ManagementPower?
    /// They go on after the scan.
    let cycles: PowerCycles
    /// Adapters to which a monitor is being added that is no longer wanted: it has no handle yet by which to remove it.
    private var unwantedMonitors: Set<UInt16> = []
    private var unwantedAlarm: Loop.Alarm?
    private let waiters = Waiters()

    /// - Parameters:
    ///   - socket: opened with CAP_NET_ADMIN; nil: there is none, so this way does not work.
    ///   - mayDisconnect: an adapter may be switched off and on although devices are connected to it.
    ///   - timing: tests have less of it.
    package init(socket: ManagementSocket?, mayDisconnect: Bool = false, timing: Timing = Timing()) {
        (self.socket, self.mayDisconnect, self.timing) = (socket, mayDisconnect, timing)
        power = socket.map { ManagementPower($0, patience: timing.answer) }
        cycles = PowerCycles(timing: timing.cycles)
        cycles.onIdle = { [weak self] in self?.rest() }
        reader = socket.map { socket in
            ManagementReader(
                socket,
                onPacket: { [weak self] packet in self?.take(packet) },
                onLoss: { [weak self] in self?.lost() }
            )
        }
    }

    // MARK: Scanner

    package func scan(_ demand: ScanDemand) {
        let old = self.demand
        self.demand = demand
        if old != nil {
            if old?.mode != demand.mode { beginWindow() }
            guard old?.profiles != demand.profiles else { return }
            for index in adapters.keys { renewMonitor(index) }
            return
        }
        guard let reader else { return fail(Self.noSocket) }
        look?.end()
        do throws(SystemError) {
            try reader.begin()
        } catch {
            return fail(ScannerFault(.service, error.description, advice: "restart badged.service", isPermanent: true))
        }
        windowAlarm = Loop.Alarm { [weak self] in self?.windowTurns() }
        retryAlarm = Loop.Alarm { [weak self] in self?.retry() }
        send(.readIndexList)
    }

    package func stop() {
        for (index, adapter) in adapters {
            if adapter.isDiscovering || adapter.isStarting { send(.stopDiscovery(index)) }
            if let handle = adapter.monitor { send(.removeMonitor(index, handle: handle)) }
            if adapter.isAddingMonitor { unwantedMonitors.insert(index) }
        }
        if !unwantedMonitors.isEmpty {
            unwantedAlarm = Loop.Alarm { [weak self] in self?.forgetUnwanted() }
            unwantedAlarm?.set(after: timing.answer)
        }
        (windowAlarm, retryAlarm) = (nil, nil)
        (demand, fault, hasList, isWindow, malformed) = (nil, nil, false, false, 0)
        adapters = [:]
        status = ScannerStatus()
        reader?.slowDown()
        rest()
    }

    package func restorePower() async {
        await cycles.restorePower()
        await waiters.wait { self.unwantedMonitors.isEmpty }
    }

    /// After the scan nothing is read, unless the kernel owes answers.
    private func rest() {
        defer { waiters.check() }
        guard demand == nil, !cycles.isActive, unwantedMonitors.isEmpty else { return }
        reader?.end()
    }

    private func forgetUnwanted() {
        unwantedMonitors = []
        rest()
    }

    private static let noSocket = ScannerFault(
        .access,
        "no management socket of the kernel",
        advice: "AmbientCapabilities=CAP_NET_ADMIN in badged.service",
        isPermanent: true
    )

    package func inspect() async -> ScannerStatus {
        guard let socket else { return ScannerStatus(fault: Self.noSocket) }
        // The socket has one reader.
        if cycles.isActive { return ScannerStatus(fault: .adapterOff) }
        await waiters.wait { self.reader?.isReading != true || self.demand != nil }
        if demand != nil { return status }
        return await ManagementLook.status(socket, patience: timing.look) { look = $0 }
    }

    package func recover(_ step: RecoveryStep, adapter number: Int?) -> Bool {
        let chosen = adapters.keys.filter { number == nil || Int($0) == number }
        guard demand != nil, !chosen.isEmpty else { return false }
        switch step {
        // A discovery is told of everything, whatever the monitors ask for.
        case .probe: openWindow(chosen, for: timing.probe)
        case .renew: for index in chosen { renewMonitor(index) }
        case .restart:
            for index in chosen where adapters[index]?.isDiscovering == true {
                adapters[index]?.isDiscovering = false
                send(.stopDiscovery(index))
            }
            for index in chosen { renewMonitor(index) }
            openWindow(chosen, for: rhythm.window)
        // A new socket would have no rights any more.
        case .reopen: return false
        case .powerCycle: for index in chosen { cyclePower(index) }
        }
        return true
    }

    private func cyclePower(_ index: UInt16) {
        guard let power = power?.power(of: index) else { return }
        cycles.begin(Int(index), power, mayDisconnect: mayDisconnect) { self.demand != nil }
    }

    @discardableResult private func send(_ command: ManagementCommand) -> Bool {
        if socket?.send(command) == true { return true }
        if demand != nil { retryAlarm?.set(after: timing.retry) }
        return false
    }

    private func retry() {
        guard demand != nil else { return }
        guard hasList else {
            send(.readIndexList)
            return
        }
        for (index, adapter) in adapters where adapter.monitor == nil { addMonitor(index, adapter) }
    }

    // MARK: Events

    private func take(_ packet: Span<UInt8>) {
        let event = ManagementEvent(packet)
        if case .answer(let command, let index, let status, let result) = event {
            power?.answered(command, index, status, result)
            if answeredLate(command, index, status, result) { return }
        }
        guard demand != nil else { return }
        guard let event else {
            malformed += 1
            status.malformed = malformed
            return
        }
        if case .deviceFound(let index, let report, let data) = event {
            observer?.received(report, packet.extracting(data), adapter: Int(index))
        } else {
            take(event)
        }
    }

    private func lost() {
        power?.end()
        unwantedMonitors = []
        waiters.check()
        guard demand != nil else { return }
        fail(ScannerFault(.service, "the kernel's Bluetooth is gone", advice: "modprobe bluetooth"))
    }

    /// The answer to what was asked for a scan that has ended meanwhile.
    private func answeredLate(_ command: UInt16, _ index: UInt16, _ status: UInt8, _ result: [UInt8]) -> Bool {
        guard command == Code.addPatternsMonitor, unwantedMonitors.remove(index) != nil else { return false }
        if status == Status.success, let handle = Self.handle(result) { send(.removeMonitor(index, handle: handle)) }
        rest()
        return true
    }

    private static func handle(_ result: [UInt8]) -> UInt16? {
        result.count >= 2 ? UInt16(result[0]) | UInt16(result[1]) << 8 : nil
    }

    private func take(_ event: ManagementEvent) {
        switch event {
        case .answer(let command, let index, let status, let result): answered(command, index, status, result)
        case .indexAdded(let index):
            adapters[index] = ManagementAdapter()
            send(.readInfo(index))
        case .indexRemoved(let index):
            if adapters.removeValue(forKey: index) != nil { observer?.adapterRemoved(Int(index)) }
        case .newSettings(let index, let settings): take(settings, of: index)
        case .monitorRemoved(let index, let handle):
            guard let adapter = adapters[index], adapter.monitor != nil, handle == 0 || handle == adapter.monitor else {
                return
            }
            adapters[index]?.monitor = nil
            addMonitor(index, adapter)
        case .suspended(let index): adapters[index]?.isSuspended = true
        case .resumed(let index):
            adapters[index]?.isSuspended = false
            renewMonitor(index)
        case .deviceFound, .other: return
        }
        update()
    }

    private func answered(_ command: UInt16, _ index: UInt16, _ status: UInt8, _ result: [UInt8]) {
        switch command {
        case Code.readIndexList: takeList(status, result)
        case Code.readInfo: takeInfo(index, status, result)
        case Code.addPatternsMonitor: monitorAdded(index, status, result)
        case Code.startDiscovery:
            // Busy: somebody else discovers, and everybody hears what is found.
            adapters[index]?.isStarting = false
            adapters[index]?.isDiscovering = status == Status.success
            if status == Status.success, !isWindow { endDiscovery(index) }
        case Code.stopDiscovery: adapters[index]?.isDiscovering = false
        case Code.setPowered: switched(index, status, result)
        default: return
        }
    }

    /// By us, off or on again. The kernel tells its settings to everybody else, and to us only here.
    private func switched(_ index: UInt16, _ status: UInt8, _ result: [UInt8]) {
        guard adapters[index] != nil else { return }
        guard status == Status.success, let settings = ManagementAdapterInfo.settings(result) else {
            send(.readInfo(index))
            return
        }
        // With the power goes the discovery. That the adapter is off for a moment is no news.
        adapters[index]?.isDiscovering = false
        guard settings & 1 == 1 else { return }
        adapters[index]?.isPowered = false
        take(settings, of: index)
    }

    private func takeList(_ status: UInt8, _ result: [UInt8]) {
        guard status == Status.success, result.count >= 2 else {
            fail(ScannerFault(.service, "the kernel does not name its adapters", advice: "modprobe bluetooth"))
            retryAlarm?.set(after: timing.retry)
            return
        }
        hasList = true
        for index in ManagementAdapterInfo.list(status, result) {
            if adapters[index] == nil { adapters[index] = ManagementAdapter() }
            send(.readInfo(index))
        }
    }

    private func takeInfo(_ index: UInt16, _ status: UInt8, _ result: [UInt8]) {
        guard let info = ManagementAdapterInfo(status, result), adapters[index] != nil else { return }
        adapters[index]?.address = info.address
        take(info.settings, of: index)
    }

    /// Bit 0: powered; bit 9: Low Energy.
    private func take(_ settings: UInt32, of index: UInt16) {
        guard var adapter = adapters[index] else { return }
        let wasReady = adapter.isPowered && adapter.hasLowEnergy
        adapter.isPowered = settings & 1 != 0
        adapter.hasLowEnergy = settings & 1 << 9 != 0
        let isReady = adapter.isPowered && adapter.hasLowEnergy
        // A monitor survives that the adapter is off; a discovery does not.
        if !isReady { adapter.isDiscovering = false }
        adapters[index] = adapter
        guard isReady, !wasReady else { return }
        addMonitor(index, adapter)
        beginWindow()
    }

    // MARK: Monitor

    private func addMonitor(_ index: UInt16, _ adapter: ManagementAdapter) {
        guard adapter.isPowered, adapter.hasLowEnergy, !adapter.isAddingMonitor, adapters[index]?.monitor == nil else {
            return
        }
        adapters[index]?.isAddingMonitor = true
        send(.addMonitor(index, AdvertisementPattern.patterns(for: demand?.profiles ?? [])))
    }

    private func renewMonitor(_ index: UInt16) {
        guard let adapter = adapters[index] else { return }
        if let handle = adapter.monitor { send(.removeMonitor(index, handle: handle)) }
        adapters[index]?.monitor = nil
        addMonitor(index, adapter)
    }

    private func monitorAdded(_ index: UInt16, _ status: UInt8, _ result: [UInt8]) {
        adapters[index]?.isAddingMonitor = false
        switch (status, Self.handle(result)) {
        case (Status.success, let handle?):
            adapters[index]?.monitor = handle
            fault = nil
        case (Status.permissionDenied, _):
            let advice = "AmbientCapabilities=CAP_NET_ADMIN in badged.service"
            fail(ScannerFault(.access, "the kernel refuses to scan", advice: advice, isPermanent: true))
        case (Status.unknownCommand, _), (Status.notSupported, _):
            let advice = "[ble] backend = bluez, or a kernel from 5.8 on"
            fail(ScannerFault(.scan, "the kernel knows no monitors", advice: advice, isPermanent: true))
        default:
            let advice = "another program may hold the adapter"
            fault = ScannerFault(.scan, "the kernel adds no monitor (status \(status))", advice: advice)
            retryAlarm?.set(after: timing.retry)
        }
    }

    // MARK: Windows of discovery

    private var rhythm: (window: Int64, pause: Int64) {
        demand?.mode == .performance ? timing.performance : timing.powerSaving
    }

    private func beginWindow() { openWindow(Array(adapters.keys), for: rhythm.window) }

    private func openWindow(_ chosen: [UInt16], for time: Int64) {
        isWindow = true
        for index in chosen {
            guard let adapter = adapters[index], adapter.isPowered, adapter.hasLowEnergy, !adapter.isDiscovering,
                !adapter.isStarting
            else { continue }
            adapters[index]?.isStarting = send(.startDiscovery(index))
        }
        windowAlarm?.set(after: time)
    }

    private func windowTurns() {
        guard isWindow else { return beginWindow() }
        isWindow = false
        for index in adapters.keys { endDiscovery(index) }
        windowAlarm?.set(after: rhythm.pause)
    }

    private func endDiscovery(_ index: UInt16) {
        guard adapters[index]?.isDiscovering == true else { return }
        adapters[index]?.isDiscovering = false
        send(.stopDiscovery(index))
    }

    // MARK: Status

    private func fail(_ fault: ScannerFault) {
        self.fault = fault
        update()
    }

    private func update() {
        var new = ScannerStatus()
        new.adapters = adapters.sorted { $0.key < $1.key }.map { index, adapter in
            RadioAdapter(
                name: "hci\(index)",
                address: adapter.address ?? "",
                isPowered: adapter.isPowered,
                isListening: adapter.isReady && adapter.monitor != nil
            )
        }
        let ready = adapters.values.filter(\.isReady)
        new.isListening = new.adapters.contains(where: \.isListening)
        new.malformed = malformed
        new.fault = fault ?? (hasList ? adapterFault(ready.isEmpty) : nil)
        guard new != status else { return }
        status = new
        observer?.scannerChanged(self)
    }

    private func adapterFault(_ isNoneReady: Bool) -> ScannerFault? {
        if adapters.isEmpty { return .noAdapter }
        guard isNoneReady, adapters.values.allSatisfy({ $0.address != nil }) else { return nil }
        return .adapterOff
    }
}
