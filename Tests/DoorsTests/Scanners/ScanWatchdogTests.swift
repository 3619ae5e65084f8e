// SPDX-License-Identifier: GPL-3.0-or-later
import DoorReaders
import Scanners
import Testing

@Suite("ScanWatchdog", .timeLimit(.minutes(5))) struct ScanWatchdogTests {
    /// The steps during a silence, such as "20000 renew".
    private func steps(_ watchdog: inout ScanWatchdog, from start: Milliseconds, to end: Milliseconds) -> [String] {
        var steps: [String] = []
        while let next = watchdog.nextCheck, next <= end {
            let now = max(next, start)
            if let step = watchdog.check(at: now) { steps.append("\(now) \(step)") }
        }
        return steps
    }

    @Test("while advertisements are received, no step is taken")
    func working() {
        var watchdog = ScanWatchdog(timeout: 20_000)
        watchdog.setListening(true, at: 0)
        for now in stride(from: Milliseconds(0), through: 300_000, by: 10_000) {
            let (hasRecovered, step) = (watchdog.received(at: now), watchdog.check(at: now))
            #expect(!hasRecovered)
            #expect(step == nil)
        }
        #expect(watchdog.nextCheck == 320_000)
    }

    @Test("after the timeout all steps are taken within 20 seconds")
    func allSteps() {
        var watchdog = ScanWatchdog(timeout: 20_000)
        watchdog.setListening(true, at: 0)
        _ = watchdog.received(at: 1000)
        let steps = steps(&watchdog, from: 1000, to: 40_000)
        let expected = [
            "21000 probe", "23000 renew", "27000 restart", "31000 reopen", "35000 powerCycle", "39000 usbReset",
        ]
        #expect(steps == expected)
        #expect(watchdog.silentSince == 1000)
        let hasRecovered = watchdog.received(at: 41_000)
        #expect(hasRecovered)
        #expect(watchdog.silentSince == nil)
        #expect(watchdog.nextCheck == 61_000)
    }

    @Test("an advertisement during the probe ends the suspicion without a report")
    func probe() {
        var watchdog = ScanWatchdog(timeout: 20_000)
        watchdog.setListening(true, at: 0)
        let step = watchdog.check(at: 20_000)
        #expect(step == .probe)
        #expect((watchdog.isSuspected, watchdog.silentSince) == (true, nil))
        let wasReported = watchdog.received(at: 21_500)
        #expect(!wasReported)
        #expect(watchdog.nextCheck == 41_500)
    }

    @Test("without an earlier advertisement the adapter is not switched off, and the pauses grow to five minutes")
    func neverReceived() {
        var watchdog = ScanWatchdog(timeout: 20_000)
        watchdog.setListening(true, at: 0)
        let steps = steps(&watchdog, from: 0, to: 3_000_000)
        #expect(steps.prefix(4) == ["20000 probe", "22000 renew", "26000 restart", "30000 reopen"])
        #expect(!steps.contains { $0.hasSuffix("powerCycle") })
        let renewals = steps.filter { $0.hasSuffix("renew") }.compactMap { Int($0.split(separator: " ")[0]) }
        #expect(
            zip(renewals.dropFirst(), renewals).map { $0 - $1 }.prefix(5) == [17_000, 32_000, 92_000, 312_000, 312_000]
        )
    }

    @Test("the time in which the radio does not listen does not count, and the time before does")
    func notListening() {
        var watchdog = ScanWatchdog(timeout: 20_000)
        #expect(watchdog.nextCheck == nil)
        watchdog.setListening(true, at: 0)
        watchdog.setListening(false, at: 5000)
        #expect(watchdog.nextCheck == nil)
        watchdog.setListening(true, at: 50_000)
        #expect(watchdog.nextCheck == 65_000)
    }

    @Test(
        "a radio that stops listening now and then is checked as soon as it has listened for the timeout",
        arguments: [(1, 12_000), (1, 8000), (400, 6000), (5000, 1000), (19_000, 19_000)]
            as [(Milliseconds, Milliseconds)],
        [false, true]
    )
    func flickering(_ times: (gap: Milliseconds, listening: Milliseconds), hasReceived: Bool) {
        var watchdog = ScanWatchdog(timeout: 20_000)
        var (now, listened): (Milliseconds, Milliseconds) = (0, 0)
        watchdog.setListening(true, at: now)
        if hasReceived { _ = watchdog.received(at: now) }
        while listened + times.listening < 20_000 {
            (now, listened) = (now + times.listening, listened + times.listening)
            let step = watchdog.check(at: now)
            #expect(step == nil)
            watchdog.setListening(false, at: now)
            now += times.gap
            watchdog.setListening(true, at: now)
        }
        #expect(watchdog.nextCheck == now + 20_000 - listened)
        let step = watchdog.check(at: now + 20_000 - listened)
        #expect(step == .probe)
    }

    @Test("a step that is not possible is followed by the next one at once")
    func skipped() {
        var watchdog = ScanWatchdog(timeout: 20_000)
        watchdog.setListening(true, at: 0)
        let first = watchdog.check(at: 20_000)
        watchdog.skipStep(at: 20_000)
        let second = watchdog.check(at: 20_000)
        #expect((first, second) == (.probe, .renew))
        #expect(watchdog.silentSince == 0)
    }
}
