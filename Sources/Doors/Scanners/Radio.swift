// SPDX-License-Identifier: GPL-3.0-or-later
package import Concurrency
package import DoorReaders

/// One scan for all clients: adds their wishes up, hands out what is heard, watches over the scan, and climbs the ladder
/// of recovery when it goes silent. Nothing runs, and nothing wakes up, while nobody scans.
@Loop package final class Radio {
    /// A client that scans. Held until `remove`.
    @Loop package protocol Listener: AnyObject {
        var demand: ScanDemand { get }
        func readerChanged(_ change: ReaderTracker.Change, _ reader: DoorReader, at now: Milliseconds)
        /// One advertisement as it was heard, before it is sorted.
        func heard(_ report: AdvertisingReport, _ data: Span<UInt8>, adapter: Int)
        /// `Radio.state` says something else.
        func radioChanged()
        /// When it wants to be called although nothing has happened; nil: never.
        var nextTurn: Milliseconds? { get }
        func turn(at now: Milliseconds)
    }

    /// What SCAN tells.
    package struct State: Sendable, Equatable {
        package var isListening = false
        package var backend: String?
        package var adapters: [RadioAdapter] = []
        /// What is wrong, and since when.
        package var error: String?
        package var errorSince: Milliseconds?
    }

    package private(set) var tracker: ReaderTracker
    /// When the last advertisement of anything was heard in this scan.
    package private(set) var lastHeard: Milliseconds?
    package private(set) var state = State()
    package var log: @Loop (String) -> Void = { _ in }

    private let makeTracker: () -> ReaderTracker
    private let clock: any RadioClock
    /// Ways to the radio, best first; what never works is left out.
    private var scanners: [any Scanner]
    private let allScanners: [any Scanner]
    private var listeners: [ObjectIdentifier: any Listener] = [:]
    private var demand: ScanDemand?
    private var watch: ScanWatch
    /// Where several adapters listen: one may be silent while others hear.
    private var adapterWatches: [Int: ScanWatch] = [:]
    /// So long nothing was heard at all, and an adapter that is still silent is no exception.
    private static let lull: Milliseconds = 5000

    package init(
        scanners: [any Scanner],
        clock: any RadioClock,
        silence: Milliseconds = 20_000,
        tracker: @escaping () -> ReaderTracker
    ) {
        (self.scanners, allScanners, self.clock) = (scanners, scanners, clock)
        (makeTracker, self.tracker) = (tracker, tracker())
        watch = ScanWatch(patience: silence)
        clock.onAlarm = { [weak self] in self?.alarm() }
        for scanner in scanners { scanner.observer = self }
    }

    package var now: Milliseconds { clock.now }

    /// Names of the ways to the radio, best first.
    package var names: [String] { allScanners.map(\.name) }

    // MARK: Wishes

    package func add(_ listener: any Listener) {
        listeners[ObjectIdentifier(listener)] = listener
        wishesChanged()
    }

    package func remove(_ listener: any Listener) {
        guard listeners.removeValue(forKey: ObjectIdentifier(listener)) != nil else { return }
        wishesChanged()
    }

    /// The demand of a listener, or when it wants its turn, is another one.
    package func wishesChanged() {
        let wanted = ScanDemand.union(listeners.values.map(\.demand))
        if wanted != demand {
            demand = wanted
            if let wanted {
                if tracker.observer == nil { attach() }
                scanners.first?.scan(wanted)
            } else {
                end()
            }
        }
        update()
        schedule()
    }

    private func attach() {
        tracker.observer = { [weak self] change, reader in
            guard let self else { return }
            let now = self.clock.now
            for listener in self.listeners.values { listener.readerChanged(change, reader, at: now) }
        }
    }

    private func end() {
        scanners.first?.stop()
        // What failed may work the next time.
        scanners = allScanners
        tracker.observer = nil
        tracker.removeAll()
        tracker = makeTracker()
        lastHeard = nil
        watch.reset()
        adapterWatches = [:]
    }

    /// For the end of the process: the radio is given back.
    package func stop() {
        listeners = [:]
        wishesChanged()
    }

    /// Returns when every adapter that recovery has switched off is on again.
    package func settle() async { for scanner in allScanners { await scanner.settle() } }

    // MARK: Time

    private var appointment: Milliseconds?

    private func schedule() {
        var times = [tracker.nextSweep] + listeners.values.map(\.nextTurn)
        if demand != nil {
            times.append(watch.nextCheck)
            // While nobody hears anything, no adapter is an exception.
            if !watch.isSuspected { times += adapterWatches.values.map(\.nextCheck) }
        }
        appointment = times.compactMap { $0 }.min()
        clock.setAlarm(appointment)
    }

    /// A listener has something to do by then.
    package func wake(by time: Milliseconds) {
        if let appointment, appointment <= time { return }
        appointment = time
        clock.setAlarm(time)
    }

    private func alarm() {
        let now = clock.now
        if let due = tracker.nextSweep, due <= now { tracker.sweep(at: now) }
        for listener in listeners.values { if let due = listener.nextTurn, due <= now { listener.turn(at: now) } }
        if demand != nil { watchOver(now) }
        schedule()
    }

    private func watchOver(_ now: Milliseconds) {
        while let step = watch.check(at: now) {
            guard let scanner = scanners.first else { break }
            if scanner.recover(step, adapter: nil) {
                log("the scan by \(scanner.name) is silent; recovery: \(step)")
                break
            }
            watch.skipped(at: now)
        }
        if !watch.isSuspected { for number in adapterWatches.keys.sorted() { watchOver(adapter: number, now) } }
        update()
    }

    private func watchOver(adapter number: Int, _ now: Milliseconds) {
        while let step = adapterWatches[number]?.check(at: now) {
            guard let scanner = scanners.first else { return }
            if scanner.recover(step, adapter: number) {
                return log("hci\(number) is silent while others hear; recovery: \(step)")
            }
            adapterWatches[number]?.skipped(at: now)
        }
    }

    /// Each adapter that listens is watched, where there are others to compare it with.
    private func watchAdapters(_ adapters: [RadioAdapter], _ now: Milliseconds) {
        let isPresent = Set(adapters.map(\.number))
        adapterWatches = adapterWatches.filter { isPresent.contains($0.key) }
        for adapter in adapters where adapter.isListening || adapterWatches[adapter.number] != nil {
            let new = ScanWatch(patience: watch.patience, isOnAir: true)
            adapterWatches[adapter.number, default: new].listening(adapter.isListening, at: now)
        }
        if adapterWatches.count < 2 { adapterWatches = [:] }
    }

    /// Adapters that hear nothing though others do, and the longest time since when.
    private var silentAdapters: (names: String, since: Milliseconds)? {
        let silent = adapterWatches.filter { $0.value.silentSince != nil }
        guard let since = silent.values.compactMap(\.silentSince).min() else { return nil }
        return (silent.keys.sorted().map { "hci\($0)" }.joined(separator: ", "), since)
    }

    // MARK: State

    private func update() {
        let scanner = scanners.first
        var new = State()
        if demand != nil, let scanner {
            let status = scanner.status
            new.isListening = status.isListening
            new.backend = scanner.name
            new.adapters = status.adapters
            new.error = status.fault.map(Self.text)
            if new.error == nil, let since = watch.silentSince {
                new.error = "nothing is heard any more, though the radio says that it listens"
                new.errorSince = since
            } else if new.error == nil, let silent = silentAdapters {
                new.error = "\(silent.names) hears nothing any more, though others do"
                new.errorSince = silent.since
            }
        } else if demand != nil {
            new.error = "there is no way to the radio"
        }
        if new.error != nil, new.errorSince == nil {
            new.errorSince = new.error == state.error ? state.errorSince : clock.now
        }
        guard new != state else { return }
        if let error = new.error, error != state.error { log("no scan: \(error)") }
        state = new
        for listener in listeners.values { listener.radioChanged() }
    }

    private static func text(_ fault: ScannerFault) -> String {
        if fault.kind == .adapter, let blocked = RFKill.bluetooth() { return "\(fault.text): \(blocked.advice)" }
        return "\(fault.text): \(fault.advice)"
    }

    /// A line of GET_HEALTH.
    package struct Check: Sendable, Equatable {
        package var name: String
        package var ok: Bool
        package var advice: String?
        /// While somebody scans: since it went wrong.
        package var errorAgo: Milliseconds?
    }

    /// What is to be said of the radio now. While nobody scans it is looked at once, for this answer; nothing is started
    /// for that, and nothing is kept.
    package func checks() async -> [Check] {
        if demand == nil {
            if examination == nil { examination = Task { @Loop in await self.examine() } }
            let fault = await examination?.value
            examination = nil
            // Meanwhile somebody may have begun to scan, who knows better.
            if demand == nil { return allScanners.isEmpty ? [] : Self.checks(fault) }
        }
        return scanChecks
    }

    /// Clients that ask at the same time share one look.
    private var examination: Task<ScannerFault?, Never>?

    /// What stands in the way of the first way to the radio that could work here.
    private func examine() async -> ScannerFault? {
        var fault: ScannerFault?
        for scanner in allScanners {
            fault = await scanner.examine().fault
            guard demand == nil, fault?.isFinal == true else { break }
        }
        return fault
    }

    private static func checks(_ fault: ScannerFault?) -> [Check] {
        ["bluetooth", "bluetoothAccess", "bluetoothAdapter"].map { name in
            let isWrong = fault?.kind.rawValue == name
            let blocked = isWrong && fault?.kind == .adapter ? RFKill.bluetooth() : nil
            return Check(name: name, ok: !isWrong, advice: isWrong ? blocked?.advice ?? fault?.advice : nil)
        }
    }

    private var scanChecks: [Check] {
        guard let scanner = scanners.first else { return [] }
        let fault = scanner.status.fault
        var checks = Self.checks(fault)
        var silence: String?
        if fault?.kind == .scan {
            silence = fault?.advice
        } else if fault == nil, let since = watch.silentSince {
            let seconds = (clock.now - since) / 1000
            silence = "nothing was heard for \(seconds) s: is a reader near, is the adapter all right?"
        } else if fault == nil, let silent = silentAdapters {
            let seconds = (clock.now - silent.since) / 1000
            silence = "\(silent.names) heard nothing for \(seconds) s while others did: plug it in again"
        }
        checks.append(Check(name: "bluetoothScan", ok: silence == nil, advice: silence))
        if let since = state.errorSince {
            for index in checks.indices where !checks[index].ok { checks[index].errorAgo = clock.now - since }
        }
        let malformed = scanner.status.malformed
        let report =
            malformed == 0 ? nil : "\(malformed) messages could not be read: report this with the system's versions"
        checks.append(Check(name: "bluetoothMessages", ok: malformed == 0, advice: report))
        return checks
    }
}

// MARK: What scanners say

extension Radio: ScannerObserver {
    package func heard(_ report: AdvertisingReport, _ data: Span<UInt8>, adapter: Int) {
        guard demand != nil else { return }
        let now = clock.now
        if let last = lastHeard, now - last > Self.lull {
            for number in adapterWatches.keys { adapterWatches[number]?.excuse(at: now) }
        }
        lastHeard = now
        let wasSuspected = watch.isSuspected
        let isAdapterBack = adapterWatches[adapter]?.heard(at: now) == true
        let isBack = watch.heard(at: now)
        if isBack || isAdapterBack {
            log(isBack ? "the scan hears again" : "hci\(adapter) hears again")
            update()
        }
        if wasSuspected { schedule() }
        for listener in listeners.values { listener.heard(report, data, adapter: adapter) }
        let sweep = tracker.nextSweep
        tracker.hear(report, data, adapter: adapter, at: now)
        // Most of what is heard changes no appointment.
        if tracker.nextSweep != sweep { schedule() }
    }

    package func scannerChanged(_ scanner: any Scanner) {
        guard demand != nil, scanner === scanners.first else { return }
        if scanner.status.fault?.isFinal == true, scanners.count > 1 {
            log("\(scanner.name) does not work here: \(scanner.status.fault?.text ?? "")")
            scanner.stop()
            scanners.removeFirst()
            if let demand { scanners.first?.scan(demand) }
        }
        watch.listening(scanners.first?.status.isListening ?? false, at: clock.now)
        watchAdapters(scanners.first?.status.adapters ?? [], clock.now)
        update()
        schedule()
    }

    package func adapterGone(_ adapter: Int) {
        tracker.forget(adapter: adapter)
        schedule()
    }
}
