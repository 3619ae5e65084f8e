// SPDX-License-Identifier: GPL-3.0-or-later
package import Concurrency
package import DoorReaders
package import Host
package import Scanners
import Text

/// Scans through the kernel's management socket: a monitor receives advertisements passively all the time, and short
/// windows of discovery request scan responses.
///
/// Every report has the raw data and the signal strength. When the controller cannot filter, the kernel reports all
/// advertisements, also those that match no pattern. bluetoothd removes the monitors of other programs when it starts
/// to use an adapter; this scanner adds its monitor again.
@Loop package final class MgmtScanner: Scanner {
    package nonisolated let name = "mgmt"
    package weak var observer: (any ScannerObserver)?
    package internal(set) var status = ScannerStatus()

    /// Times in milliseconds.
    package struct Timing: Sendable {
        /// Windows of discovery and the pauses between them, by the mode of the scan.
        package var performance: (window: Int64, pause: Int64) = (2000, 8000)
        package var powerSaving: (window: Int64, pause: Int64) = (1000, 59_000)
        /// Pause before a refused command is repeated.
        package var retry: Int64 = 1000
        /// Window of discovery of the recovery step `probe`.
        package var probe: Int64 = ScanWatchdog.probeTime
        /// Shortest time between two windows that `requestScanResponses` opens. Forged advertisements can cause
        /// requests.
        package var request: Int64 = 10_000
        /// Time until an inspection without an answer fails.
        package var inspection: Int64 = 2000
        /// Time until an answer counts as lost. A controller that hangs needs seconds.
        package var answer: Int64 = 10_000
        package var cycles = PowerCycles.Timing()

        package init() {}
    }

    private let socket: ManagementSocket?
    private(set) var reader: ManagementReader?
    let power: ManagementPower?
    let timing: Timing
    private let configuration: RadioConfiguration
    /// Power cycles continue after the end of the scan.
    let cycles: PowerCycles
    var demand: ScanDemand?
    var adapters: [UInt16: ManagementAdapter] = [:]
    /// Adapters that badged.conf leaves out of the scan.
    var unused: [UInt16: RadioAdapter] = [:]
    /// The kernel has answered with the list of adapters.
    var hasList = false
    var fault: ScannerFault?
    var malformed = 0
    var continuations = ContinuationFilter()
    /// A window of discovery is open.
    var isWindowOpen = false
    private var windowAlarm: Loop.Alarm?
    /// When `requestScanResponses` may open a window again.
    private var nextRequest: Int64 = 0
    var retryAlarm: Loop.Alarm?
    /// Adapters whose radio is left to a connection.
    private var reserved: Set<UInt16> = []
    private weak var inspection: ManagementInspection?
    /// Adapters for which a command to add a monitor was unanswered at the end of the scan. The answer has the handle
    /// with which the monitor is removed.
    var unwantedMonitors: Set<UInt16> = []
    private var unwantedAlarm: Loop.Alarm?
    /// A command of the scan that the kernel answers.
    struct Request: Hashable {
        let command: UInt16
        let adapter: UInt16
    }

    /// The commands that were not answered yet, and until when an answer is awaited.
    var unanswered: [Request: Milliseconds] = [:] { didSet { if unanswered != oldValue { setAnswerAlarm() } } }
    private var answerAlarm: Loop.Alarm?
    let waiters = Waiters()

    /// Creates a scanner. Without a socket it has a permanent fault. Tests use shorter times.
    package init(
        socket: ManagementSocket?,
        _ configuration: RadioConfiguration = RadioConfiguration(),
        timing: Timing = Timing()
    ) {
        self.socket = socket
        self.configuration = configuration
        self.timing = timing
        power = socket.map { ManagementPower($0, timeout: timing.answer) }
        cycles = PowerCycles(timing: timing.cycles)
        reader = socket.map { socket in
            ManagementReader(
                socket,
                onPacket: { [weak self] packet in self?.handle(packet) },
                onClose: { [weak self] in self?.socketClosed() }
            )
        }
        cycles.onIdle = { [weak self] in self?.stopReadingWhenDone() }
    }

    // MARK: Scanner

    package func scan(_ demand: ScanDemand) {
        let old = self.demand
        self.demand = demand
        if let old {
            if old.mode != demand.mode { openWindow(adapters.values, for: rhythm.window) }
            if old.profiles != demand.profiles { for adapter in adapters.values { adapter.renewMonitor(patterns) } }
            return
        }
        guard let reader else { return fail(Self.noSocket) }
        inspection?.end()
        do throws(SystemError) {
            try reader.begin()
        } catch {
            return fail(
                ScannerFault(
                    .service,
                    Phrase(verbatim: error.description),
                    advice: "restart badged.service",
                    isPermanent: true
                )
            )
        }
        windowAlarm = Loop.Alarm { [weak self] in self?.windowAlarmDue() }
        retryAlarm = Loop.Alarm { [weak self] in self?.retry() }
        answerAlarm = Loop.Alarm { [weak self] in self?.findLostAnswers() }
        send(.readIndexList)
    }

    package func stop() {
        for adapter in adapters.values {
            adapter.stop()
            if adapter.isAddingMonitor { unwantedMonitors.insert(adapter.index) }
        }
        if !unwantedMonitors.isEmpty {
            unwantedAlarm = Loop.Alarm { [weak self] in
                self?.unwantedMonitors = []
                self?.stopReadingWhenDone()
            }
            unwantedAlarm?.set(after: timing.answer)
        }
        // The answer may not be read after the scan.
        power?.abandon(ManagementCommand.Code.addDevice)
        windowAlarm = nil
        retryAlarm = nil
        answerAlarm = nil
        unanswered = [:]
        demand = nil
        fault = nil
        hasList = false
        isWindowOpen = false
        malformed = 0
        adapters = [:]
        unused = [:]
        status = ScannerStatus()
        stopReadingWhenDone()
    }

    package func restorePower() async {
        await cycles.restorePower()
        await waiters.wait { self.unwantedMonitors.isEmpty }
    }

    /// Stops reading after the scan, when no answer is outstanding.
    func stopReadingWhenDone() {
        defer { waiters.check() }
        guard demand == nil, !cycles.isActive, unwantedMonitors.isEmpty else { return }
        reader?.end()
    }

    private static let noSocket = ScannerFault(
        .access,
        "there is no management socket for Bluetooth",
        advice: "systemctl restart badged; badged.service needs badged-bluetooth as ExecStartPre=",
        isPermanent: true
    )

    package func inspect() async -> ScannerStatus {
        guard let socket else { return ScannerStatus(fault: Self.noSocket) }
        if cycles.isActive { return ScannerStatus(fault: .adapterOff) }
        // The inspection reads the socket itself.
        await waiters.wait { self.reader?.isReading != true || self.demand != nil }
        if demand != nil { return status }
        var status = await ManagementInspection.status(socket, timeout: timing.inspection) { inspection = $0 }
        status.choose(rules)
        return status
    }

    package func recover(_ step: RecoveryStep, adapter number: Int?) -> Bool {
        let chosen = adapters.values.filter { number == nil || Int($0.index) == number }
        guard demand != nil, !chosen.isEmpty else { return false }
        switch step {
        case .probe:
            // A discovery reports all advertisements, also those that match no pattern.
            openWindow(chosen, for: timing.probe)
        case .renew:
            for adapter in chosen { adapter.renewMonitor(patterns) }
        case .restart:
            for adapter in chosen {
                adapter.stopDiscovery()
                adapter.renewMonitor(patterns)
            }
            openWindow(chosen, for: rhythm.window)
        case .reopen:
            // The process has given up the capability that a new socket needs.
            return false
        case .powerCycle:
            for adapter in chosen {
                if let power = power?.power(of: adapter.index) { cycle(adapter, power) }
            }
        case .usbReset:
            let devices = chosen.compactMap { adapter in
                USBReset.Device(adapter: "hci\(adapter.index)").map { (adapter, $0) }
            }
            guard configuration.mayResetUSB, !devices.isEmpty, let power else { return false }
            for (adapter, device) in devices {
                cycle(
                    adapter,
                    USBReset(device, power.power(of: adapter.index)) { power.power(of: UInt16(clamping: $0)) }
                )
            }
        }
        return true
    }

    private func cycle(_ adapter: ManagementAdapter, _ power: any PowerSwitch) {
        cycles.begin(Int(adapter.index), power, mayDisconnect: configuration.mayDisconnect) { self.demand != nil }
    }

    package func requestScanResponses() {
        guard demand != nil, !isWindowOpen, Loop.now >= nextRequest else { return }
        nextRequest = Loop.now + timing.request
        openWindow(adapters.values, for: timing.powerSaving.window)
    }

    // MARK: Connections

    package func reserve(_ adapter: Int, _ isReserved: Bool) {
        guard let index = UInt16(exactly: adapter) else { return }
        if isReserved { reserved.insert(index) } else { reserved.remove(index) }
        guard let adapter = adapters[index] else { return }
        // The monitor goes on, and the kernel connects between its advertisements.
        if isReserved {
            adapter.stopDiscovery()
        } else if isWindowOpen {
            adapter.startDiscovery()
        }
    }

    func isReserved(_ index: UInt16) -> Bool { reserved.contains(index) }

    package func beginConnection(to address: DeviceAddress, adapter: Int) async -> Bool {
        // Without a scan nobody reads the answer.
        guard demand != nil, let index = UInt16(exactly: adapter), let power else { return false }
        guard let answer = await power.ask(.addDevice(index, address)) else {
            // Without an answer the device may be in the list of the kernel.
            endConnection(to: address, adapter: adapter)
            return false
        }
        return answer.status == ManagementCommand.Status.success
    }

    package func endConnection(to address: DeviceAddress, adapter: Int) {
        if let index = UInt16(exactly: adapter) { _ = socket?.send(.removeDevice(index, address)) }
    }

    // MARK: Commands

    /// Sends a command of the scan; a failure is repeated by `retry`.
    @discardableResult func send(_ command: ManagementCommand) -> Bool {
        if socket?.send(command) == true {
            if demand != nil, command.needsAnswer {
                let request = Request(command: command.code, adapter: command.adapter)
                unanswered[request] = Loop.now + timing.answer
            }
            return true
        }
        if demand != nil { retryAlarm?.set(after: timing.retry) }
        return false
    }

    private func setAnswerAlarm() {
        if let next = unanswered.values.min() {
            answerAlarm?.set(after: max(next - Loop.now, 0))
        } else {
            answerAlarm?.cancel()
        }
    }

    private func findLostAnswers() {
        for (request, _) in unanswered.filter({ $0.value <= Loop.now }) {
            unanswered[request] = nil
            answerLost(request)
        }
        setAnswerAlarm()
    }

    private func retry() {
        guard demand != nil else { return }
        guard hasList else {
            send(.readIndexList)
            return
        }
        for adapter in adapters.values { adapter.addMonitor(patterns) }
    }

    var rules: AdapterRules { configuration.adapters }
    var usesCodedPHY: Bool { configuration.usesCodedPHY }

    var patterns: [AdvertisementPattern] { AdvertisementPattern.patterns(for: demand?.profiles ?? []) }

    // MARK: Windows of discovery

    var rhythm: (window: Int64, pause: Int64) {
        demand?.mode == .performance ? timing.performance : timing.powerSaving
    }

    func openWindow(_ chosen: some Sequence<ManagementAdapter>, for time: Int64) {
        isWindowOpen = true
        for adapter in chosen where !reserved.contains(adapter.index) { adapter.startDiscovery() }
        windowAlarm?.set(after: time)
    }

    private func windowAlarmDue() {
        guard isWindowOpen else { return openWindow(adapters.values, for: rhythm.window) }
        isWindowOpen = false
        for adapter in adapters.values { adapter.stopDiscovery() }
        windowAlarm?.set(after: rhythm.pause)
    }

    // MARK: Status

    func fail(_ fault: ScannerFault) {
        self.fault = fault
        update()
    }

    func update() {
        var new = ScannerStatus()
        new.adapters = adapters.values.sorted { $0.index < $1.index }.map(\.shown)
        new.isListening = new.adapters.contains(where: \.isListening)
        new.unused = sortedUnused
        new.withoutCodedPHY = adapters.values.filter(\.lacksCodedPHY).map { "hci\($0.index)" }.sorted()
        new.malformed = malformed
        new.fault = fault ?? (hasList ? adapterFault : nil)
        guard new != status else { return }
        status = new
        observer?.scannerChanged(self)
    }

    private var sortedUnused: [RadioAdapter] { unused.values.sorted { $0.number < $1.number } }

    /// The kernel refuses monitors of these adapters again and again.
    private static func refusesMonitor(_ adapters: [String], _ status: UInt8) -> ScannerFault {
        let reason: Phrase =
            switch status {
            case ManagementCommand.Status.busy: "another command for the adapter does not end"
            case ManagementCommand.Status.noResources: "there are too many monitors"
            case ManagementCommand.Status.timeout: "there is no answer"
            default: "status \(status) of the kernel's management interface"
            }
        return ScannerFault(
            .scan,
            "the kernel adds no advertisement monitor to \(adapters.joined(separator: ", ")): \(reason)",
            advice: "systemctl restart bluetooth; if this does not help, unplug the adapter, then plug it in"
        )
    }

    private var adapterFault: ScannerFault? {
        if adapters.isEmpty { return unused.isEmpty ? .noAdapter : .notNamed(rules, sortedUnused) }
        let refusing = adapters.values.filter { $0.isReady && $0.refusal != nil }.sorted { $0.index < $1.index }
        if let status = refusing.first?.refusal {
            return Self.refusesMonitor(refusing.map { "hci\($0.index)" }, status)
        }
        let isKnown = adapters.values.allSatisfy { $0.address != nil }
        return isKnown && !adapters.values.contains(where: \.isReady) ? .adapterOff : nil
    }
}
