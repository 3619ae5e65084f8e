// SPDX-License-Identifier: GPL-3.0-or-later
package import Concurrency
import DoorReaders
package import Scanners

/// Scans through bluetoothd: as any user, beside everybody else who uses the adapters.
///
/// Discovery with a filter that lets every change of strength through, and monitors beside it where the service takes
/// them. Everything the service says comes by one match; what is there already is asked for once per owner of its name.
@Loop package final class BlueZScanner: Scanner {
    package nonisolated let name = "bluez"
    package weak var observer: (any ScannerObserver)?
    package private(set) var status = ScannerStatus()

    /// Times in milliseconds.
    package struct Timing: Sendable {
        /// In power saving the adapter discovers for so long, then leaves the radio to others for so long.
        package var on: Int64 = 8000
        package var off: Int64 = 4000
        /// First pause before a refused start or a lost connection is tried again; doubled up to half a minute.
        package var retry: Int64 = 1000
        /// A discovery without a filter.
        package var probe: Int64 = ScanWatchdog.probeTime
        package var cycles = PowerCycles.Timing()

        package init() {}
    }

    private let place: SystemBus.Place
    private let timing: Timing
    private let mayDisconnect: Bool
    /// They go on after the scan.
    let cycles: PowerCycles
    private var demand: ScanDemand?
    private var bus: SystemBus?
    /// Unique name of bluetoothd, once its objects are known.
    private var owner: String?
    private var adapters: [String: BlueZAdapter] = [:]
    private var discoveries: [String: BlueZDiscovery] = [:]
    private var devices = BlueZDevices()
    private var monitors: BlueZMonitorRegistration?
    private var fault: ScannerFault?
    private var malformed = 0
    private var failures = 0
    private lazy var duty = BlueZDuty(on: timing.on, off: timing.off) { [weak self] in self?.dutyTurns() }
    private var retryAlarm: Loop.Alarm?
    private static let longestPause: Int64 = 30_000

    /// - Parameters:
    ///   - address: of the bus; nil: the system's.
    ///   - mayDisconnect: an adapter may be switched off and on although devices are connected to it.
    ///   - timing: tests have less of it.
    package init(address: String? = nil, mayDisconnect: Bool = false, timing: Timing = Timing()) {
        place = .address(address ?? SystemBus.standardAddress)
        (self.mayDisconnect, self.timing) = (mayDisconnect, timing)
        cycles = PowerCycles(timing: timing.cycles)
    }

    /// On a socket whose other end plays the bus, once; for tests.
    package init(connection: Int32) {
        place = .connection(connection)
        (mayDisconnect, timing) = (false, Timing())
        cycles = PowerCycles()
    }

    // MARK: Scanner

    package func scan(_ demand: ScanDemand) {
        let old = self.demand
        self.demand = demand
        guard old != nil else { return open() }
        if old?.mode != demand.mode { setDuty() }
        if old?.profiles != demand.profiles { monitors?.renew(demand.profiles) }
    }

    package func stop() {
        demand = nil
        // The service ends what belongs to a connection that goes.
        bus?.close()
        forgetEverything()
        duty.reset()
        (retryAlarm, fault, failures, malformed) = (nil, nil, 0, 0)
        status = ScannerStatus()
    }

    package func restorePower() async { await cycles.restorePower() }

    package func inspect() async -> ScannerStatus {
        await BlueZLook.status(place, hasAdapter: HostAdapters.anyExists())
    }

    package func recover(_ step: RecoveryStep, adapter number: Int?) -> Bool {
        let isForAll = number == nil
        guard demand != nil, owner != nil else { return isForAll && step == .reopen && reopen() }
        let chosen = adapters.values.filter { isForAll || $0.number == number }
        guard !chosen.isEmpty else { return false }
        let discoveries = chosen.filter(\.isPowered).compactMap { self.discoveries[$0.path] }
        switch step {
        case .probe:
            // Not in the pause of power saving; the next one comes after the probe.
            duty.holdOn()
            for discovery in discoveries { discovery.probe(for: timing.probe) }
        case .renew: for discovery in discoveries { discovery.renewFilter() }
        case .restart: if !duty.isPausing { for discovery in discoveries { discovery.restart() } }
        // That would take the radio away from those that hear.
        case .reopen: return isForAll && reopen()
        case .powerCycle: return cyclePower(chosen.filter(\.isPowered))
        }
        return true
    }

    private func cyclePower(_ adapters: [BlueZAdapter]) -> Bool {
        // Somebody else's connection cannot be made a second time.
        guard case .address(let address) = place else { return false }
        for adapter in adapters {
            let power = BlueZPower(address, adapter.path)
            cycles.begin(adapter.number, power, mayDisconnect: mayDisconnect) { self.demand != nil }
        }
        return true
    }

    private func reopen() -> Bool {
        bus?.close()
        forgetEverything()
        open()
        return true
    }

    // MARK: Connection

    private func open() {
        do throws(SystemBus.Failure) {
            let bus = try SystemBus(place)
            bus.onMessage = { [weak self] message in self?.take(message) }
            bus.onEnd = { [weak self] in self?.connectionLost() }
            self.bus = bus
            monitors = BlueZMonitorRegistration(bus, demand?.profiles ?? []) { [weak self] path in
                guard let discovery = self?.discoveries[path], discovery.state == .on else { return }
                discovery.restart()
            }
            match("type='signal',sender='\(BlueZName.service)'")
            match("type='signal',sender='\(BlueZName.bus)',member='NameOwnerChanged',arg0='\(BlueZName.service)'")
            askForObjects()
        } catch {
            switch error {
            case .noLibrary:
                fail(BlueZFault.noLibrary)
            case .system: connectionLost()
            }
        }
    }

    private func match(_ rule: String) {
        bus?.call(BlueZName.bus, BlueZName.busPath, BlueZName.bus, "AddMatch") { $0.append(rule) }
    }

    private func connectionLost() {
        forgetEverything()
        fail(BlueZFault.noBus)
        retryLater()
    }

    private func forgetEverything() {
        for adapter in adapters.values { observer?.adapterRemoved(adapter.number) }
        (bus, monitors, owner, adapters, discoveries, devices) = (nil, nil, nil, [:], [:], BlueZDevices())
    }

    private func retryLater() {
        guard demand != nil else { return }
        let pause = min(timing.retry << Int64(min(failures, 10)), Self.longestPause)
        failures += 1
        if retryAlarm == nil { retryAlarm = Loop.Alarm { [weak self] in self?.retry() } }
        retryAlarm?.set(after: pause)
    }

    private func retry() {
        guard demand != nil else { return }
        guard bus != nil else { return open() }
        guard owner != nil else { return askForObjects() }
        // In the pause of power saving they wait for its end.
        if !duty.isPausing { for discovery in discoveries.values { discovery.retry() } }
    }

    /// What is there, with everything that was said before the match was in place.
    private func askForObjects() {
        bus?.ask(BlueZName.service, "/", BlueZName.objects, "GetManagedObjects") { [weak self] answer in
            self?.takeObjects(answer)
        }
    }

    private func takeObjects(_ answer: BusMessage?) {
        guard demand != nil else { return }
        guard let answer, answer.kind == .return else {
            fail(BlueZFault.refused(answer))
            return retryLater()
        }
        (owner, failures, fault) = (answer.sender, 0, nil)
        do throws(BusMessage.Malformed) {
            try answer.each("{oa{sa{sv}}}") { () throws(BusMessage.Malformed) in
                try answer.enter("e", "oa{sa{sv}}") { () throws(BusMessage.Malformed) in
                    try readInterfaces(of: try answer.string("o"), answer, isNew: false)
                }
            }
        } catch {
            fail(BlueZFault.unknownForm)
        }
        update()
    }

    private func readInterfaces(of path: String, _ message: BusMessage, isNew: Bool) throws(BusMessage.Malformed) {
        var takesMonitors = false
        try message.interfaces { name throws(BusMessage.Malformed) in
            switch name {
            case BlueZName.adapter:
                var adapter = adapters[path] ?? BlueZAdapter(path: path)
                try adapter.read(message)
                adapters[path] = adapter
                begin(path)
            case BlueZName.device:
                var device = BlueZDevice()
                try device.read(message)
                // The strength of a device that was there already is from an unknown time.
                if !isNew { device.rssi = nil }
                tell(device, path)
            case BlueZMonitors.manager:
                takesMonitors = true
                try message.skip("a{sv}")
            default: try message.skip("a{sv}")
            }
        }
        if takesMonitors, adapters[path] != nil, demand != nil { monitors?.register(path) }
    }

    // MARK: Signals

    private func take(_ message: BusMessage) {
        // Anybody may send a signal to a single receiver, past all matches.
        guard message.sender == owner || message.sender == BlueZName.bus else { return }
        if message.kind == .call {
            monitors?.answer(message)
            return
        }
        do throws(BusMessage.Malformed) {
            switch (message.interface, message.member) {
            case (BlueZName.properties, "PropertiesChanged"): try propertiesChanged(message)
            case (BlueZName.objects, "InterfacesAdded"):
                try readInterfaces(of: try message.string("o"), message, isNew: true)
                update()
            case (BlueZName.objects, "InterfacesRemoved"): try removed(message)
            case (BlueZName.bus, "NameOwnerChanged") where message.sender == BlueZName.bus: try ownerChanged(message)
            default: break
            }
        } catch {
            malformed += 1
            status.malformed = malformed
        }
    }

    private func propertiesChanged(_ message: BusMessage) throws(BusMessage.Malformed) {
        let path = message.path
        switch try message.string() {
        case BlueZName.device:
            var device = devices[path]
            try device.read(message)
            tell(device, path)
        case BlueZName.adapter:
            guard var adapter = adapters[path] else { return }
            let wasPowered = adapter.isPowered
            try adapter.read(message)
            if wasPowered, !adapter.isPowered { discoveries[path]?.lost() }
            adapters[path] = adapter
            if adapter.isPowered, !wasPowered { begin(path) }
            update()
        default: break
        }
    }

    private func removed(_ message: BusMessage) throws(BusMessage.Malformed) {
        let path = try message.string("o")
        try message.each("s") { () throws(BusMessage.Malformed) in
            switch try message.string() {
            case BlueZName.device: devices.remove(path)
            case BlueZName.adapter:
                discoveries[path] = nil
                monitors?.forget(path)
                guard let adapter = adapters.removeValue(forKey: path) else { return }
                observer?.adapterRemoved(adapter.number)
            default: break
            }
        }
        update()
    }

    private func ownerChanged(_ message: BusMessage) throws(BusMessage.Malformed) {
        guard try message.string() == BlueZName.service else { return }
        _ = try message.string()
        let new = try message.string()
        guard new != owner else { return }
        for adapter in adapters.values { observer?.adapterRemoved(adapter.number) }
        (owner, adapters, discoveries, devices) = (nil, [:], [:], BlueZDevices())
        monitors?.forgetAll()
        if new.isEmpty {
            fail(BlueZFault.serviceEnded)
        } else {
            askForObjects()
        }
    }

    private func tell(_ device: BlueZDevice, _ path: String) {
        guard let text = device.address, let address = DeviceAddress(text, isRandom: device.isRandom) else { return }
        devices.keep(device, at: path)
        guard let rssi = device.rssi, demand != nil else { return }
        let report = AdvertisingReport(address: address, rssi: Int8(clamping: rssi))
        let adapter = path.lastIndex(of: "/").flatMap { adapters[String(path[..<$0])]?.number }
        observer?.received(report, device.advertisingData.span, adapter: adapter ?? 0)
    }

    // MARK: Discovery

    private func begin(_ path: String) {
        guard demand != nil, let adapter = adapters[path], adapter.isPowered, let bus else { return }
        if discoveries[path] == nil {
            let new = BlueZDiscovery(bus, path)
            new.onOutcome = { [weak self] outcome in self?.started(path, outcome) }
            discoveries[path] = new
        }
        if !duty.isPausing { discoveries[path]?.start() }
        setDuty()
    }

    private func started(_ path: String, _ outcome: BlueZDiscovery.Outcome) {
        guard demand != nil else { return }
        switch outcome {
        case .started: if duty.isPausing { discoveries[path]?.end() }
        case .notReady: adapters[path]?.isPowered = false
        case .refused: retryLater()
        }
        update()
    }

    /// The rhythm of power saving, or none.
    private func setDuty() { if demand?.mode == .powerSaving { duty.begin() } else { duty.end() } }

    private func dutyTurns() {
        for path in adapters.keys {
            if duty.isPausing { discoveries[path]?.end() } else { begin(path) }
        }
        if !duty.isPausing { for discovery in discoveries.values { discovery.retry() } }
    }

    // MARK: Status

    private func fail(_ fault: ScannerFault) {
        self.fault = fault
        update()
    }

    private func update() {
        var new = ScannerStatus()
        let running = adapters.values.filter(\.isPowered)
        new.adapters = adapters.values.sorted { $0.path < $1.path }.map { adapter in
            let isOn = discoveries[adapter.path]?.state == .on
            return adapter.shown(isListening: adapter.isPowered && (isOn || duty.isPausing))
        }
        new.isListening = new.adapters.contains(where: \.isListening)
        new.malformed = malformed
        new.fault = fault ?? (owner == nil ? nil : adapterFault(running))
        guard new != status else { return }
        status = new
        observer?.scannerChanged(self)
    }

    private func adapterFault(_ running: [BlueZAdapter]) -> ScannerFault? {
        if adapters.isEmpty { return .noAdapter }
        if running.isEmpty { return .adapterOff }
        if running.allSatisfy({ discoveries[$0.path]?.state == .refused }) {
            return BlueZFault.refusesScan
        }
        return nil
    }
}
