// SPDX-License-Identifier: GPL-3.0-or-later
import Concurrency
import DoorReaders

/// Watches a scan for silence: the scan as a whole, and each adapter where several listen. Runs the recovery steps.
@Loop final class SilenceMonitor {
    /// What receives nothing.
    struct Silence {
        /// Numbers of adapters, in order; empty: the whole scan.
        var adapters: [Int]
        /// When an advertisement was received last.
        var since: Milliseconds

        /// Such as "hci0, hci1".
        var names: String { adapters.map { "hci\($0)" }.joined(separator: ", ") }
    }

    /// Of a time in which no adapter received anything, only this part counts against an adapter. Planned pauses do not
    /// count.
    private static let commonSilence: Milliseconds = 5000

    private var scan: ScanWatchdog
    /// The adapters that have listened in this scan. Where several listen, each is compared with the others.
    private var adapters: [Int: ScanWatchdog] = [:]
    /// Numbers of the adapters that the host has now.
    private var present: Set<Int> = []
    private(set) var lastReceived: Milliseconds?
    /// The time of the last advertisement, plus the planned pauses since then.
    private var quietSince: Milliseconds?
    private var pausingSince: Milliseconds?

    init(timeout: Milliseconds) { scan = ScanWatchdog(timeout: timeout) }

    /// Must be called when the scan has ended.
    func reset() {
        scan.reset()
        adapters = [:]
        present = []
        lastReceived = nil
        quietSince = nil
        pausingSince = nil
    }

    func statusChanged(_ status: ScannerStatus, at now: Milliseconds) {
        scan.setListening(status.isListening, at: now)
        if let begin = pausingSince, !status.isPausing { quietSince = quietSince.map { $0 + now - begin } }
        pausingSince = status.isPausing ? pausingSince ?? now : nil
        present = Set(status.adapters.map(\.number))
        let listening = Set(status.adapters.filter(\.isListening).map(\.number))
        for number in listening.union(adapters.keys) {
            let new = ScanWatchdog(timeout: scan.timeout, hasReceived: true)
            adapters[number, default: new].setListening(listening.contains(number), at: now)
        }
    }

    /// The adapter was removed. The same number may later belong to another one.
    func remove(_ adapter: Int) { adapters[adapter] = nil }

    /// Empty unless several adapters listen.
    private var compared: [Int: ScanWatchdog] {
        let chosen = adapters.filter { present.contains($0.key) && ($0.value.isListening || $0.value.isSuspected) }
        return chosen.count < 2 ? [:] : chosen
    }

    /// Must be called for every advertisement.
    /// - Returns: a line for the log when the advertisement ends a reported silence.
    func received(adapter: Int, at now: Milliseconds) -> String? {
        if let quietSince, now - quietSince > Self.commonSilence {
            for number in adapters.keys { adapters[number]?.forgive(now - quietSince - Self.commonSilence) }
        }
        lastReceived = now
        quietSince = now
        let isAdapterBack = adapters[adapter]?.received(at: now) == true
        if scan.received(at: now) { return "the scan receives advertisements again" }
        return isAdapterBack ? "hci\(adapter) receives advertisements again" : nil
    }

    /// When `check` must be called.
    var nextCheck: Milliseconds? {
        var next = scan.nextCheck
        // While the whole scan is silent, no adapter is compared with the others.
        guard !scan.isSuspected else { return next }
        for watchdog in compared.values {
            if let check = watchdog.nextCheck { next = min(next ?? check, check) }
        }
        return next
    }

    /// Takes the steps that are due. `recover` takes a step for one adapter or, with nil, for all; it returns false
    /// when the step is not possible.
    /// - Returns: lines for the log.
    func check(at now: Milliseconds, recover: (RecoveryStep, Int?) -> Bool) -> [String] {
        var log: [String] = []
        while let step = scan.check(at: now) {
            if recover(step, nil) {
                log.append("the scan receives nothing; recovery: \(step)")
                break
            }
            scan.skipStep(at: now)
        }
        for number in compared.keys.sorted() where !scan.isSuspected {
            while let step = adapters[number]?.check(at: now) {
                if recover(step, number) {
                    log.append("hci\(number) receives nothing, but others do; recovery: \(step)")
                    break
                }
                adapters[number]?.skipStep(at: now)
            }
        }
        return log
    }

    /// nil while the scan and all adapters work.
    var silence: Silence? {
        if let since = scan.silentSince { return Silence(adapters: [], since: since) }
        let silent = compared.filter { $0.value.silentSince != nil }
        guard let since = silent.values.compactMap(\.silentSince).min() else { return nil }
        return Silence(adapters: silent.keys.sorted(), since: since)
    }
}
