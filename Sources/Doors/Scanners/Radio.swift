// SPDX-License-Identifier: GPL-3.0-or-later
package import Bluetooth
package import Concurrency
package import DoorReaders
package import Host
package import Text

/// The scan for door readers, which all clients share: combines their demands, tracks the readers, and recovers a scan
/// that receives nothing. While no client scans, no scan runs and no alarm is set.
@Loop package final class Radio {
    /// A client that scans. `Radio` holds the listener until `remove`.
    @Loop package protocol Listener: AnyObject {
        var demand: ScanDemand { get }
        func readerChanged(_ change: ReaderTracker.Change, _ reader: DoorReader, at now: Milliseconds)
        /// An advertisement was received; called before the tracker processes it.
        func received(_ report: AdvertisingReport, _ data: Span<UInt8>, adapter: Int)
        func radioStateChanged()
        /// When `deadlinePassed` must be called; nil: never.
        var nextDeadline: Milliseconds? { get }
        func deadlinePassed(at now: Milliseconds)
    }

    /// The state in the message SCAN.
    package struct State: Sendable, Equatable {
        package var isListening = false
        package var backend: String?
        package var adapters: [RadioAdapter] = []
        package var error: Phrase?
        package var errorSince: Milliseconds?
    }

    package private(set) var tracker: ReaderTracker
    private var identityKeys: [IdentityKey] = []
    package private(set) var state = State()
    package var log: @Loop (String) -> Void = { _ in }

    let configuration: RadioConfiguration
    let clock: any RadioClock
    /// In order of preference.
    let allScanners: [any Scanner]
    /// Without those that reported a permanent fault in this scan, or in the last one. The first one is used.
    private(set) var scanners: [any Scanner]
    private var listeners: [ObjectIdentifier: any Listener] = [:]
    private(set) var demand: ScanDemand?
    let silenceMonitor: SilenceMonitor
    /// The advertisements that were received by each scanner.
    package private(set) var received: [String: Int] = [:]
    private let owner: RadioOwner
    /// Finds connections that no opening owns; nil: none are made.
    package var connections: (any ReaderConnections)?
    /// When connections that were left behind are looked for.
    private var nextLook: Milliseconds?
    /// The steps of recovery that were taken.
    package private(set) var restarts = 0
    /// The inspection in progress. Clients that ask for the health at the same time share it.
    var inspection: Task<ScannerStatus?, Never>?

    /// Creates a radio whose scanners are used in order of preference, and leave their adapters to the uses of the owner.
    package init(
        scanners: [any Scanner],
        clock: any RadioClock,
        owner: RadioOwner = RadioOwner(),
        configuration: RadioConfiguration = RadioConfiguration()
    ) {
        self.scanners = scanners
        allScanners = scanners
        self.clock = clock
        self.owner = owner
        self.configuration = configuration
        tracker = ReaderTracker(configuration: configuration)
        silenceMonitor = SilenceMonitor(timeout: Milliseconds(configuration.silence) * 1000)
        clock.onAlarm = { [weak self] in self?.alarm() }
        for scanner in scanners { scanner.observer = self }
        owner.scan = self
    }

    package var now: Milliseconds { clock.now }

    /// The names of the scanners, in order of preference.
    package var names: [String] { allScanners.map(\.name) }

    /// When the last advertisement was received in this scan.
    package var lastReceived: Milliseconds? { silenceMonitor.lastReceived }

    // MARK: Listeners

    /// Adds a client. The first one starts the scan; a further one can change its demand.
    package func add(_ listener: any Listener) {
        listeners[ObjectIdentifier(listener)] = listener
        listenersChanged()
    }

    /// Removes a client. The scan ends with the last one, and all readers are forgotten.
    package func remove(_ listener: any Listener) {
        guard listeners.removeValue(forKey: ObjectIdentifier(listener)) != nil else { return }
        listenersChanged()
    }

    private func listenersChanged() {
        let wanted = ScanDemand.union(listeners.values.map(\.demand))
        if wanted != demand {
            if demand == nil {
                // A scanner that failed may work in the next scan.
                scanners = allScanners
                endLeftConnections()
                // Once more for what is being connected now.
                if connections != nil { nextLook = clock.now + Self.connectionTime }
            }
            demand = wanted
            if let wanted {
                if tracker.observer == nil { observeTracker() }
                scanners.first?.scan(wanted)
            } else {
                endScan()
            }
        }
        updateState()
        schedule()
    }

    private func observeTracker() {
        tracker.observer = { [weak self] change, reader in
            guard let self else { return }
            let now = self.clock.now
            for listener in self.listeners.values { listener.readerChanged(change, reader, at: now) }
        }
        tracker.wantsNames = { [weak self] in self?.scanners.first?.requestScanResponses() }
    }

    private func endScan() {
        scanners.first?.stop()
        addresses = [:]
        removed = [:]
        listeningUntil = nil
        nextLook = nil
        tracker.observer = nil
        tracker.wantsNames = nil
        tracker = ReaderTracker(configuration: configuration)
        tracker.use(identityKeys)
        silenceMonitor.reset()
    }

    /// Ends the scan at the end of the process.
    package func stop() {
        listeners = [:]
        listenersChanged()
    }

    /// Returns when every adapter that recovery has switched off is on again.
    package func restorePower() async { for scanner in allScanners { await scanner.restorePower() } }

    /// Replaces the identity resolving keys of readers.
    package func use(_ keys: [IdentityKey]) {
        identityKeys = keys
        tracker.use(keys)
    }

    // MARK: Time

    /// A state of the system this short is not reported: services restart, and scans are started again.
    private static let flicker: Milliseconds = 2000
    /// dB that are added to the signal strengths of an adapter, by number.
    private var offsets: [Int: Int] = [:]
    /// The addresses of the adapters, by number.
    private var addresses: [Int: String] = [:]
    /// The adapters that were removed, and when their readers are forgotten.
    private var removed: [Int: Milliseconds] = [:]
    /// Until when a radio that does not listen, without a fault, is reported as listening.
    private var listeningUntil: Milliseconds?

    private var alarmTime: Milliseconds?

    private func schedule() {
        let times = [
            tracker.nextSweep, demand == nil ? nil : silenceMonitor.nextCheck, listeningUntil, removed.values.min(),
            nextLook,
        ]
        alarmTime = (times + listeners.values.map(\.nextDeadline)).compactMap(\.self).min()
        clock.setAlarm(alarmTime)
    }

    /// Sets the alarm to `time` unless it is due earlier.
    package func scheduleAlarm(by time: Milliseconds) {
        if let alarmTime, alarmTime <= time { return }
        alarmTime = time
        clock.setAlarm(time)
    }

    private func alarm() {
        let now = clock.now
        if let due = tracker.nextSweep, due <= now { tracker.sweep(at: now) }
        for listener in listeners.values {
            if let due = listener.nextDeadline, due <= now { listener.deadlinePassed(at: now) }
        }
        forgetAdapters { number, due in due <= now }
        if let look = nextLook, look <= now {
            nextLook = nil
            endLeftConnections()
        }
        if demand != nil { checkSilence(now) }
        schedule()
    }

    private func checkSilence(_ now: Milliseconds) {
        guard let scanner = scanners.first else { return }
        for line in silenceMonitor.check(at: now, recover: { recover(scanner, $0, $1) }) {
            log("\(scanner.name): \(line)")
        }
        updateState()
    }

    private func recover(_ scanner: any Scanner, _ step: RecoveryStep, _ adapter: Int?) -> Bool {
        // An adapter that is switched off loses its opening or session.
        if step == .powerCycle || step == .usbReset, owner.isInUse(adapter) { return false }
        let isTaken = scanner.recover(step, adapter: adapter)
        if isTaken { restarts += 1 }
        return isTaken
    }

    /// Forgets the readers of removed adapters.
    private func forgetAdapters(where isGone: (Int, Milliseconds) -> Bool) {
        for (number, due) in removed where isGone(number, due) {
            removed[number] = nil
            tracker.remove(adapter: number)
            silenceMonitor.remove(number)
        }
    }

    // MARK: State

    /// Whether the radio listens, as clients see it.
    private func isListening(_ status: ScannerStatus) -> Bool {
        if status.isListening || status.fault != nil || !state.isListening {
            listeningUntil = nil
            return status.isListening
        }
        let until = listeningUntil ?? clock.now + Self.flicker
        listeningUntil = until > clock.now ? until : nil
        return listeningUntil != nil
    }

    private func updateState() {
        var new = State()
        if demand != nil, let scanner = scanners.first {
            new.isListening = isListening(scanner.status)
            new.backend = scanner.name
            new.adapters = scanner.status.adapters
            if let fault = scanner.status.fault {
                new.error = "\(fault.text): \(Self.advice(fault))"
            } else if let silence = silenceMonitor.silence {
                new.error =
                    silence.adapters.isEmpty
                    ? "no advertisements are received, although the radio listens"
                    : "no advertisements are received by \(silence.names), although other adapters receive some"
                new.errorSince = silence.since
            }
        } else {
            listeningUntil = nil
            if demand != nil { new.error = "badged has no scanner" }
        }
        if new.error != nil, new.errorSince == nil {
            new.errorSince = new.error == state.error ? state.errorSince : clock.now
        }
        guard new != state else { return }
        if let error = new.error, error != state.error { log("\(new.isListening ? "scan" : "no scan"): \(error)") }
        state = new
        for listener in listeners.values { listener.radioStateChanged() }
    }

    /// The advice of a fault; when rfkill blocks the adapter, how to unblock it.
    static func advice(_ fault: ScannerFault) -> Phrase {
        fault.kind == .adapter ? RFKill.bluetooth()?.advice ?? fault.advice : fault.advice
    }
}

// MARK: Scanner events

extension Radio: ScannerObserver {
    package func received(_ raw: AdvertisingReport, _ data: Span<UInt8>, adapter: Int) {
        guard demand != nil else { return }
        if let name = scanners.first?.name { received[name, default: 0] += 1 }
        let now = clock.now
        if let line = silenceMonitor.received(adapter: adapter, at: now) {
            log(line)
            updateState()
        }
        for listener in listeners.values { listener.received(raw, data, adapter: adapter) }
        var report = raw
        if let offset = offsets[adapter], let rssi = raw.rssi {
            report.rssi = Int8(min(max(Int(rssi) + offset, -127), 20))
        }
        tracker.receive(report, data, adapter: adapter, at: now)
        // An alarm that is too early is harmless.
        for time in [tracker.nextSweep, silenceMonitor.nextCheck] {
            if let time { scheduleAlarm(by: time) }
        }
    }

    package func scannerChanged(_ scanner: any Scanner) {
        guard let demand, scanner === scanners.first else { return }
        if let fault = scanner.status.fault, fault.isPermanent, scanners.count > 1 {
            log("\(scanner.name) does not work on this host: \(fault.text)")
            scanner.stop()
            scanners.removeFirst()
            scanners.first?.scan(demand)
        }
        let status = scanners.first?.status ?? ScannerStatus()
        tracker.setPaused(status.isPausing, at: clock.now)
        tracker.setRepeatInterval(status.repeatInterval)
        offsets = [:]
        for adapter in status.adapters {
            offsets[adapter.number] = configuration.offsets.first { $0.key.names(adapter) }?.value
        }
        // An adapter that is back continues; another one with its number does not.
        for adapter in status.adapters where !adapter.address.isEmpty {
            let known = addresses.updateValue(adapter.address, forKey: adapter.number)
            guard removed[adapter.number] != nil else { continue }
            if known == adapter.address {
                removed[adapter.number] = nil
            } else {
                forgetAdapters { number, _ in number == adapter.number }
            }
        }
        silenceMonitor.statusChanged(status, at: clock.now)
        updateState()
        schedule()
    }

    package func deviceConnected(_ address: DeviceAddress, adapter: Int) {
        guard connections != nil, demand != nil else { return }
        nextLook = clock.now + Self.connectionTime
        schedule()
    }

    package func adapterRemoved(_ adapter: Int) {
        removed[adapter] = clock.now + Self.flicker
        schedule()
    }
}

/// The time and one alarm. Tests use a clock that they advance.
@Loop package protocol RadioClock: AnyObject {
    var now: Milliseconds { get }
    /// Called when the alarm is due.
    var onAlarm: (@Loop () -> Void)? { get set }
    /// Sets the alarm in place of the previous one; nil cancels the alarm.
    func setAlarm(_ time: Milliseconds?)
}

/// CLOCK_MONOTONIC, read once per round of the loop.
@Loop package final class MonotonicClock: RadioClock {
    package var onAlarm: (@Loop () -> Void)?
    private var alarm: Loop.Alarm?

    package init() { alarm = Loop.Alarm { [weak self] in self?.onAlarm?() } }

    package var now: Milliseconds { Loop.now }

    package func setAlarm(_ time: Milliseconds?) {
        if let time { alarm?.set(after: max(time - now, 1)) } else { alarm?.cancel() }
    }
}
