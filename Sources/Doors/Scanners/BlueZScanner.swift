// SPDX-License-Identifier: GPL-3.0-or-later
import Bluetooth
package import Concurrency
package import DoorReaders
package import Host

/// Scans through bluetoothd, which needs no privileges and shares the adapters with other programs.
///
/// The scan is a discovery whose filter passes every change of the signal strength, with monitors of advertisements
/// where bluetoothd supports them. The scanner reads the objects of bluetoothd once and follows its signals from then
/// on.
@Loop package final class BlueZScanner: Scanner {
    package nonisolated let name = "bluez"
    package weak var observer: (any ScannerObserver)?
    package internal(set) var status = ScannerStatus()

    /// Times in milliseconds.
    package struct Timing: Sendable {
        /// Discovery and pause in the mode power saving.
        package var on: Int64 = 8000
        package var off: Int64 = 4000
        /// First pause before a refused start or a lost connection is tried again; see `retryLater`.
        package var retry: Int64 = 1000
        /// Discovery without a filter in the recovery step `probe`.
        package var probe: Int64 = ScanWatchdog.probeTime
        package var cycles = PowerCycles.Timing()

        package init() {}
    }

    let place: SystemBus.Place
    let timing: Timing
    private let configuration: RadioConfiguration
    /// Power cycles continue after the end of the scan.
    let cycles: PowerCycles
    var demand: ScanDemand?
    var bus: SystemBus?
    /// The unique bus name of bluetoothd; nil until its objects were read.
    var owner: String?
    /// Adapters and their discoveries by object path.
    var adapters: [String: BlueZAdapter] = [:]
    /// Adapters that badged.conf leaves out of the scan.
    var unused: [String: BlueZAdapter] = [:]
    var discoveries: [String: BlueZDiscovery] = [:]
    var devices = BlueZDevices()
    /// Numbers of the adapters whose radio is left to a connection.
    private var reserved: Set<Int> = []
    var monitors: BlueZMonitorRegistration?
    var fault: ScannerFault?
    var malformed = 0
    /// The devices whose properties are being read.
    var reading: Set<String> = []
    static let maximumReading = 16
    /// The time in which the discovery does not pause.
    let time = ListeningTime()
    /// The clock; tests replace it.
    var now: @Loop () -> Milliseconds = { Loop.now }
    /// Failed attempts since the last success.
    var failures = 0
    var retryAlarm: Loop.Alarm?
    /// The scans that were stopped and whose discoveries are being ended, and how long this may take in milliseconds.
    private var leaving = 0 { didSet { waiters.check() } }
    private let waiters = Waiters()
    private static let leavingTime: Milliseconds = 25_000
    private lazy var dutyCycle = BlueZDutyCycle(on: timing.on, off: timing.off) { [weak self] in
        self?.dutyCycleChanged()
    }

    /// Creates a scanner on the bus with this address; nil: the system's bus. Tests use shorter times.
    package init(
        address: String? = nil,
        _ configuration: RadioConfiguration = RadioConfiguration(),
        timing: Timing = Timing()
    ) {
        place = .address(address ?? SystemBus.standardAddress)
        self.configuration = configuration
        self.timing = timing
        cycles = PowerCycles(timing: timing.cycles)
    }

    /// Creates a scanner on a connected socket, for tests that play the bus. It cannot connect again.
    package init(connection: Int32) {
        place = .connection(connection)
        configuration = RadioConfiguration()
        timing = Timing()
        cycles = PowerCycles()
    }

    // MARK: Scanner

    package func scan(_ demand: ScanDemand) {
        let old = self.demand
        self.demand = demand
        guard let old else { return open() }
        if old.mode != demand.mode { setDutyCycle() }
        if old.profiles != demand.profiles { monitors?.renew(demand.profiles) }
    }

    package func stop() {
        demand = nil
        if let bus { leave(bus) }
        forgetObjects()
        dutyCycle.reset()
        time.setPaused(false, at: now())
        retryAlarm = nil
        fault = nil
        failures = 0
        malformed = 0
        status = ScannerStatus()
    }

    /// Ends the discoveries, and then closes the connection, with which bluetoothd ends the monitors and all else.
    private func leave(_ bus: SystemBus) {
        let running = discoveries.values.filter { $0.state == .on }
        guard !running.isEmpty else { return bus.close() }
        bus.onMessage = nil
        bus.onEnd = nil
        for discovery in running { discovery.end() }
        leaving += 1
        Task { @Loop in
            for discovery in running { await discovery.waitUntilStopped(within: Self.leavingTime) }
            bus.close()
            leaving -= 1
        }
    }

    package func restorePower() async { await cycles.restorePower() }

    package func inspect() async -> ScannerStatus {
        var status = await BlueZInspection.status(place, hasAdapter: HostAdapters.anyExists())
        status.choose(rules)
        return status
    }

    package func recover(_ step: RecoveryStep, adapter number: Int?) -> Bool {
        let isForAll = number == nil
        guard demand != nil, owner != nil else { return isForAll && step == .reopen && reopen() }
        let chosen = adapters.values.filter { isForAll || $0.number == number }
        guard !chosen.isEmpty else { return false }
        let discoveries = chosen.filter(\.isPowered).compactMap { self.discoveries[$0.path] }
        switch step {
        case .probe:
            dutyCycle.extend()
            for discovery in discoveries { discovery.probe(for: timing.probe) }
        case .renew:
            for discovery in discoveries { discovery.renewFilter() }
        case .restart:
            if !dutyCycle.isPausing {
                for adapter in chosen where adapter.isPowered && !isReserved(adapter.path) {
                    self.discoveries[adapter.path]?.restart()
                }
            }
        case .reopen:
            // A new connection would interrupt the adapters that work.
            return isForAll && reopen()
        case .powerCycle: return cyclePower(chosen.filter(\.isPowered)) { _, power, _ in power }
        case .usbReset:
            guard configuration.mayResetUSB else { return false }
            let devices = chosen.filter { USBReset.Device(adapter: $0.name) != nil }
            return !devices.isEmpty
                && cyclePower(devices) { adapter, power, powerOf in
                    USBReset.Device(adapter: adapter.name).map { USBReset($0, power, powerOf: powerOf) } ?? power
                }
        }
        return true
    }

    // MARK: Connections

    package let readsDevices = true

    package func searches(_ adapter: Int) -> Bool {
        guard let path = adapters.values.first(where: { $0.number == adapter && $0.isPowered })?.path else {
            return false
        }
        dutyCycle.extend()
        switch discoveries[path]?.state {
        case .on, .starting: return true
        case .off, .refused, .unanswered, nil: return false
        }
    }

    package func reserve(_ adapter: Int, _ isReserved: Bool) {
        if isReserved { reserved.insert(adapter) } else { reserved.remove(adapter) }
        for path in adapters.values.filter({ $0.number == adapter }).map(\.path) {
            if isReserved {
                discoveries[path]?.end()
            } else {
                startDiscovery(path)
                discoveries[path]?.retry()
            }
        }
    }

    package func waitUntilLeft(_ adapter: Int, within limit: Milliseconds) async {
        await waiters.wait(within: limit) { self.leaving == 0 }
        for path in adapters.values.filter({ $0.number == adapter }).map(\.path) {
            await discoveries[path]?.waitUntilStopped(within: limit)
        }
    }

    private func isReserved(_ path: String) -> Bool { adapters[path].map { reserved.contains($0.number) } ?? false }

    /// Switches adapters off and on; `make` returns what switches the power of an adapter, from its plain power switch.
    private func cyclePower(
        _ adapters: [BlueZAdapter],
        _ make: (BlueZAdapter, any PowerSwitch, @escaping @Loop (Int) -> any PowerSwitch) -> any PowerSwitch
    ) -> Bool {
        // A second connection is not possible over a socket that was passed in.
        guard case .address(let address) = place else { return false }
        for adapter in adapters {
            let power = make(adapter, BlueZPower(address, adapter.path)) { BlueZPower(address, "/org/bluez/hci\($0)") }
            cycles.begin(adapter.number, power, mayDisconnect: configuration.mayDisconnect) { self.demand != nil }
        }
        return true
    }

    // MARK: Discovery

    /// Starts the discovery of an adapter that was found or switched on.
    func startDiscovery(_ path: String) {
        guard demand != nil, let adapter = adapters[path], adapter.isPowered, let bus else { return }
        if discoveries[path] == nil {
            let discovery = BlueZDiscovery(bus, path)
            discovery.onOutcome = { [weak self] outcome in self?.discoveryAnswered(path, outcome) }
            discoveries[path] = discovery
        }
        if !dutyCycle.isPausing, !isReserved(path) { discoveries[path]?.start() }
        setDutyCycle()
    }

    private func discoveryAnswered(_ path: String, _ outcome: BlueZDiscovery.Outcome) {
        guard demand != nil else { return }
        switch outcome {
        case .started:
            failures = 0
            if dutyCycle.isPausing || isReserved(path) { discoveries[path]?.end() }
        case .notReady: adapters[path]?.isPowered = false
        case .refused: retryLater()
        }
        update()
    }

    /// Starts the refused discoveries again. During a pause they start at its end.
    func retryDiscoveries() {
        guard !dutyCycle.isPausing else { return }
        for (path, discovery) in discoveries where !isReserved(path) { discovery.retry() }
    }

    private func setDutyCycle() { if demand?.mode == .powerSaving { dutyCycle.begin() } else { dutyCycle.end() } }

    private func dutyCycleChanged() {
        time.setPaused(dutyCycle.isPausing, at: now())
        for path in adapters.keys {
            if dutyCycle.isPausing { discoveries[path]?.end() } else { startDiscovery(path) }
        }
        retryDiscoveries()
        update()
    }

    // MARK: Status

    var rules: AdapterRules { configuration.adapters }

    /// The kernel starts its scan again after 10.3 to 10.9 s; before that a controller that drops repeated
    /// advertisements reports no sender again.
    private static let repeatInterval: Milliseconds = 10_900

    func fail(_ fault: ScannerFault) {
        self.fault = fault
        update()
    }

    func update() {
        var new = ScannerStatus()
        new.adapters = adapters.values.sorted { $0.path < $1.path }.map { adapter in
            let isResting = dutyCycle.isPausing || isReserved(adapter.path)
            let isListening = discoveries[adapter.path]?.isListening(isResting: isResting) == true
            return adapter.shown(isListening: adapter.isPowered && isListening)
        }
        new.isListening = new.adapters.contains(where: \.isListening)
        new.isPausing = dutyCycle.isPausing && new.isListening
        let listening = adapters.values.filter(\.isPowered).compactMap { discoveries[$0.path] }
        if listening.contains(where: { $0.repeatResult != .passes }) { new.repeatInterval = Self.repeatInterval }
        new.unused = sortedUnused
        // bluetoothd has no setting for it.
        if configuration.usesCodedPHY { new.withoutCodedPHY = new.adapters.map(\.name) }
        new.malformed = malformed
        new.fault = fault ?? (owner == nil ? nil : adapterFault)
        guard new != status else { return }
        status = new
        observer?.scannerChanged(self)
    }

    private var sortedUnused: [RadioAdapter] { unused.values.sorted { $0.path < $1.path }.map { $0.shown() } }

    private var adapterFault: ScannerFault? {
        if adapters.isEmpty { return unused.isEmpty ? .noAdapter : .notNamed(rules, sortedUnused) }
        let powered = adapters.values.filter(\.isPowered)
        if powered.isEmpty { return .adapterOff }
        let failed = powered.filter { discoveries[$0.path]?.failure != nil }
        if failed.count == powered.count {
            let isAnswered = failed.contains { discoveries[$0.path]?.failure == .refused }
            return isAnswered ? BlueZFault.refusesScan() : BlueZFault.noAnswer
        }
        if !failed.isEmpty { return BlueZFault.refusesScan(failed.map(\.name).sorted()) }
        let dropping = powered.filter { discoveries[$0.path]?.repeatResult == .drops }
        return dropping.isEmpty ? nil : BlueZFault.dropsRepeats(dropping.map(\.name).sorted())
    }
}
