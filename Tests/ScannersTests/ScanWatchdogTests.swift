// SPDX-License-Identifier: GPL-3.0-or-later
import DoorReaders
import Scanners
import Testing

@Suite("The watch over a scan") struct ScanWatchdogTests {
    /// What it orders in so many milliseconds of silence, as "20000 renew".
    private func orders(_ watch: inout ScanWatchdog, from start: Milliseconds, to end: Milliseconds) -> [String] {
        var orders: [String] = []
        while let next = watch.nextCheck, next <= end {
            let now = max(next, start)
            if let step = watch.check(at: now) { orders.append("\(now) \(step)") }
        }
        return orders
    }

    @Test("while something is heard nothing is ordered")
    func alive() {
        var watch = ScanWatchdog(timeout: 20_000)
        watch.setListening(true, at: 0)
        for now in stride(from: Milliseconds(0), through: 300_000, by: 10_000) {
            let (hasRecovered, step) = (watch.received(at: now), watch.check(at: now))
            #expect(!hasRecovered)
            #expect(step == nil)
        }
        #expect(watch.nextCheck == 320_000)
    }

    @Test("silence is noticed after its patience, and the whole ladder is climbed within 20 seconds")
    func ladder() {
        var watch = ScanWatchdog(timeout: 20_000)
        watch.setListening(true, at: 0)
        _ = watch.received(at: 1000)
        let orders = orders(&watch, from: 1000, to: 40_000)
        #expect(orders == ["21000 probe", "23000 renew", "27000 restart", "31000 reopen", "35000 powerCycle"])
        #expect(watch.silentSince == 1000)
        let hasRecovered = watch.received(at: 41_000)
        #expect(hasRecovered)
        #expect(watch.silentSince == nil)
        #expect(watch.nextCheck == 61_000)
    }

    @Test("what the probe hears ends the suspicion before anything is said")
    func probe() {
        var watch = ScanWatchdog(timeout: 20_000)
        watch.setListening(true, at: 0)
        let step = watch.check(at: 20_000)
        #expect(step == .probe)
        #expect((watch.isSuspected, watch.silentSince) == (true, nil))
        let wasSaid = watch.received(at: 21_500)
        #expect(!wasSaid)
        #expect(watch.nextCheck == 41_500)
    }

    @Test("where nothing was ever heard the adapter is left alone, and the pauses grow to five minutes")
    func neverHeard() {
        var watch = ScanWatchdog(timeout: 20_000)
        watch.setListening(true, at: 0)
        let orders = orders(&watch, from: 0, to: 3_000_000)
        #expect(orders.prefix(4) == ["20000 probe", "22000 renew", "26000 restart", "30000 reopen"])
        #expect(!orders.contains { $0.hasSuffix("powerCycle") })
        let renewals = orders.filter { $0.hasSuffix("renew") }.compactMap { Int($0.split(separator: " ")[0]) }
        #expect(
            zip(renewals.dropFirst(), renewals).map { $0 - $1 }.prefix(5) == [17_000, 32_000, 92_000, 312_000, 312_000]
        )
    }

    @Test("a radio that does not even say that it listens is not its business")
    func notListening() {
        var watch = ScanWatchdog(timeout: 20_000)
        #expect(watch.nextCheck == nil)
        watch.setListening(true, at: 0)
        watch.setListening(false, at: 5000)
        #expect(watch.nextCheck == nil)
        watch.setListening(true, at: 50_000)
        #expect(watch.nextCheck == 70_000)
    }

    @Test("a step that cannot be taken costs no time")
    func skipped() {
        var watch = ScanWatchdog(timeout: 20_000)
        watch.setListening(true, at: 0)
        let first = watch.check(at: 20_000)
        watch.skipStep(at: 20_000)
        let second = watch.check(at: 20_000)
        #expect((first, second) == (.probe, .renew))
        #expect(watch.silentSince == 0)
    }
}
