// SPDX-License-Identifier: GPL-3.0-or-later
import DoorReaders
import Glibc
import Host
import TestSupport
import Testing

@Suite("ReaderTracker", .timeLimit(.minutes(5))) struct TrackerTests {
    /// Records the changes that a tracker reports, such as "appeared seos-C0:...".
    private final class Recorder {
        var lines: [String] = []
        func attach(_ tracker: ReaderTracker) {
            tracker.observer = { change, reader in
                switch change {
                case .appeared: self.lines.append("appeared \(reader.id)")
                case .lost: self.lines.append("lost \(reader.id)")
                case .updated: break
                }
            }
        }
    }

    private let tracker = ReaderTracker()
    private let recorder = Recorder()

    init() { recorder.attach(tracker) }

    private let any = ScanFilter(lockServiceCodes: [], profiles: Set(ReaderProfile.allCases))

    @Test("a reader appears with its first advertisement, is lost after ten seconds, and appears again")
    func appearance() {
        #expect(tracker.nextSweep == nil)
        tracker.receive(Adverts.seos(), from: .door(1), -60, at: 0)
        #expect(recorder.lines == ["appeared seos-C0:00:00:00:00:01"])
        tracker.sweep(at: 10_000)
        #expect(recorder.lines.count == 1)
        tracker.sweep(at: 10_001)
        #expect(recorder.lines.last == "lost seos-C0:00:00:00:00:01")
        #expect(tracker.readers(any, activeOnly: true, at: 10_001).isEmpty)
        #expect(tracker.readers(any, activeOnly: false, at: 10_001).count == 1)
        tracker.receive(Adverts.seos(), from: .door(1), -60, at: 20_000)
        #expect(recorder.lines.last == "appeared seos-C0:00:00:00:00:01")
        #expect(recorder.lines.count == 3)
    }

    @Test("a lost reader is removed after some time, and then no sweep is due")
    func removal() throws {
        tracker.receive(Adverts.seos(), from: .door(1), -60, at: 0)
        var sweeps = 0
        while let next = tracker.nextSweep, sweeps < 100 {
            tracker.sweep(at: next)
            sweeps += 1
        }
        #expect(sweeps <= 4)
        #expect(tracker.readers.isEmpty)
    }

    @Test("a reader that advertises every five seconds is lost after twenty seconds")
    func slowReader() {
        for now in stride(from: Milliseconds(0), through: 50_000, by: 5000) {
            tracker.receive(Adverts.seos(), from: .door(1), -60, at: now)
        }
        #expect(tracker.readers.first?.interval == 5000)
        #expect(tracker.readers(any, activeOnly: true, at: 70_000).count == 1)
        #expect(tracker.readers(any, activeOnly: true, at: 70_001).isEmpty)
    }

    @Test("mean and median use samples of the last three seconds and need at least two")
    func statistics() throws {
        for (index, rssi) in [-90, -50, -60, -70, -61, -62].enumerated() {
            tracker.receive(Adverts.seos(), from: .door(1), Int8(rssi), at: Milliseconds(index) * 500)
        }
        let signal = try #require(tracker.readers.first).signal
        #expect(signal.last == -62)
        #expect(signal.list(at: 2500) == [-62, -61, -70])
        #expect(signal.mean(at: 2500) == (-62.0 - 61 - 70) / 3)
        #expect(signal.median(at: 2500) == -61)
        #expect(signal.freshCount(at: 2500) == 6)
        #expect(signal.list(at: 5000) == [-62, -61])
        #expect(signal.mean(at: 5000) == -61.5)
        #expect(signal.mean(at: 5400) == nil)
        #expect(signal.list(at: 5501).isEmpty)
        #expect(signal.history == [-62, -61, -70, -60, -50, -90])
    }

    @Test("the average rises with a time constant of 0.5 s and falls with 2.5 s, for any number of reports")
    func average() {
        let share = 1 - exp(-1.0)
        for count in [1, 10, 25] {
            var rising = SignalTrack(-80, at: 0), falling = SignalTrack(-60, at: 0)
            for index in 1...count {
                rising.add(-60, at: Milliseconds(500 * index / count))
                falling.add(-80, at: Milliseconds(2500 * index / count))
            }
            #expect(abs(rising.average - (-80 + 20 * share)) < 0.001, "\(count) reports")
            #expect(abs(falling.average - (-60 - 20 * share)) < 0.001, "\(count) reports")
        }
        // After a gap of three seconds the average starts again.
        var silent = SignalTrack(-90, at: 0)
        silent.add(-50, at: 3001)
        #expect(silent.average == -50)
    }

    @Test("the history has at most fifty values")
    func history() throws {
        for index in 0..<120 {
            tracker.receive(Adverts.seos(), from: .door(1), Int8(-index / 2), at: Milliseconds(index) * 10)
        }
        let signal = try #require(tracker.readers.first).signal
        #expect(signal.history.count == 50)
        #expect(signal.history.first == -59)
        #expect(signal.history.last == -35)
    }

    @Test("an advertisement without a signal strength is decoded, but is no sample")
    func noStrength() throws {
        tracker.receive(Adverts.seos(), from: .door(1), nil, at: 0)
        #expect(tracker.readers.isEmpty)
        tracker.receive(Adverts.seos(), from: .door(1), -60, at: 0)
        tracker.receive(Adverts.structure(0x09, Array("Lobby".utf8)), from: .door(1), nil, at: 20_000)
        let reader = try #require(tracker.readers.first)
        #expect(reader.name == "Lobby")
        #expect(reader.adverts == 1)
        #expect(reader.lastSeen == 0)
    }

    @Test("name, code, types and limits stay when a later advertisement does not contain them")
    func valuesStay() throws {
        tracker.receive(Adverts.seos(7, name: "Lobby"), from: .door(1), -60, at: 0)
        tracker.receive(
            Adverts.seosCompany(mask: 0x06, limits: [-71, -51, -72]),
            from: .door(1),
            -60,
            isScanResponse: true,
            at: 1
        )
        tracker.receive(Adverts.seos(7), from: .door(1), -60, at: 100)
        let reader = try #require(tracker.readers.first)
        #expect(reader.name == "Lobby")
        #expect(reader.lockServiceCodes == [7])
        #expect(reader.openingTypes == [.motion, .seamless])
        #expect(reader.limit(.motion) == .init(-72, .advert))
        #expect(reader.limit(.seamless) == .init(-71, .advert))
        #expect(reader.limit(.applicationSpecific) == .init(-80, .default))
    }

    @Test("an advertised limit is clamped, a configured limit is not, and sensitivity shifts both")
    func limits() {
        let far = DecodedAdvertisement.Limits(proximity: -100, motion: -1)
        #expect(RangeLimits().limit(.proximity, advertised: far) == .init(-65, .advert))
        #expect(RangeLimits().limit(.motion, advertised: far) == .init(-25, .advert))
        #expect(RangeLimits().limit(.motion, advertised: nil) == .init(-74, .default))
        var configuration = RadioConfiguration()
        (configuration.limits, configuration.sensitivity) = (["proximity": -99], .high)
        let configured = RangeLimits(configuration)
        #expect(configured.limit(.proximity, advertised: far) == .init(-105, .config))
        #expect(configured.limit(.motion, advertised: nil) == .init(-80, .default))
        (configuration.limits, configuration.sensitivity) = ([:], .low)
        #expect(RangeLimits(configuration).limit(.motion, advertised: nil) == .init(-68, .default))
    }

    @Test(
        "a reader enters the range at the limit with two samples and leaves it below the hysteresis or without samples"
    )
    func range() throws {
        tracker.receive(Adverts.seos(), from: .door(1), -40, at: 0)
        let reader = try #require(tracker.readers.first)
        #expect(reader.inRange == [])
        tracker.receive(Adverts.seos(), from: .door(1), -40, at: 100)
        #expect(reader.inRange == [.proximity, .motion])
        // Below the limit of proximity by less than the hysteresis.
        tracker.receive(Adverts.seos(), from: .door(1), -57, from: 200, to: 30_000)
        #expect(reader.inRange == [.proximity, .motion])
        tracker.receive(Adverts.seos(), from: .door(1), -62, from: 30_100, to: 60_000)
        #expect(reader.inRange == .motion)
        tracker.sweep(at: 63_000)
        #expect(reader.inRange == .motion)
        tracker.sweep(at: 63_001)
        #expect(reader.inRange == [])
    }

    @Test(
        "a reader of constant strength stays in range while the radio pauses, and leaves it when it is gone afterwards"
    )
    func pauses() throws {
        func isClosest(at now: Milliseconds) -> Bool {
            if case .reader = tracker.closest(for: .motion, any, at: now) { true } else { false }
        }
        func sweep(until end: Milliseconds) {
            while let due = tracker.nextSweep, due <= end { tracker.sweep(at: due) }
        }
        for cycle in 0..<20 {
            let start = Milliseconds(cycle) * 12_000
            tracker.setPaused(false, at: start)
            for now in stride(from: start + 50, to: start + 8000, by: 200) {
                sweep(until: now)
                #expect(cycle == 0 || isClosest(at: now), "\(now)")
                tracker.receive(Adverts.seos(), from: .door(1), -60, at: now)
            }
            tracker.setPaused(true, at: start + 8000)
            for now in stride(from: start + 8000, to: start + 12_000, by: 200) {
                sweep(until: now)
                #expect(isClosest(at: now), "\(now)")
            }
        }
        let reader = try #require(tracker.readers.first)
        #expect((195...205).contains(try #require(reader.interval)))
        #expect(reader.mean(at: 239_900) == -60)
        // The last sample is 150 ms older than the pause.
        tracker.setPaused(false, at: 240_000)
        sweep(until: 242_840)
        #expect(isClosest(at: 242_840))
        sweep(until: 243_100)
        #expect(!isClosest(at: 243_100))
        #expect(reader.inRange == [])
        sweep(until: 249_840)
        #expect(recorder.lines == ["appeared seos-C0:00:00:00:00:01"])
        sweep(until: 250_100)
        #expect(recorder.lines.last == "lost seos-C0:00:00:00:00:01")
    }

    @Test("while the radio reports a sender once in ten seconds, a reader is lost after four of these intervals")
    func repeatedReports() {
        tracker.setRepeatInterval(10_900)
        tracker.receive(Adverts.seos(), from: .door(1), -60, at: 0)
        func sweep(until end: Milliseconds) {
            while let due = tracker.nextSweep, due <= end { tracker.sweep(at: due) }
        }
        sweep(until: 43_600)
        #expect(recorder.lines.count == 1)
        sweep(until: 44_000)
        #expect(recorder.lines.last == "lost seos-C0:00:00:00:00:01")
    }

    @Test("the closest reader is found, or the reason why there is none")
    func closest() throws {
        func reason(_ type: OpeningType, at now: Milliseconds) -> String {
            switch tracker.closest(for: type, any, at: now) {
            case .reader(let reader): reader.id
            case .none(let absence): absence.rawValue
            }
        }
        #expect(reason(.motion, at: 0) == "none")
        tracker.receive(Adverts.seos(), from: .door(1), -80, from: 0, to: 1000)
        #expect(reason(.motion, at: 1000) == "outOfRange")
        #expect(reason(.seamless, at: 1000) == "notSupported")
        tracker.receive(Adverts.seos(), from: .door(2), -60, from: 1000, to: 2000)
        #expect(reason(.motion, at: 2000) == "seos-C0:00:00:00:00:02")
        #expect(reason(.proximity, at: 2000) == "outOfRange")
        // A beacon that is nearer is not a door reader.
        tracker.receive(Adverts.ibeacon([UInt8](repeating: 1, count: 16)), from: .door(3), -30, from: 1000, to: 2000)
        #expect(reason(.motion, at: 2000) == "seos-C0:00:00:00:00:02")
        let reader = try #require(tracker.readers.first { $0.id.hasSuffix("02") })
        tracker.opened(reader, at: 2000)
        #expect(reason(.motion, at: 2100) == "coolingDown")
        tracker.receive(Adverts.seos(), from: .door(2), -60, from: 2100, to: 4300)
        #expect(reason(.motion, at: 4200) == "seos-C0:00:00:00:00:02")
        #expect(reason(.motion, at: 7400) == "outOfRange")
        #expect(reason(.motion, at: 30_000) == "none")
    }

    @Test("a filter of codes applies to Seos-style readers, filters of profiles and opening types to all")
    func filters() throws {
        tracker.receive(Adverts.seos(2), from: .door(1), -60, at: 0)
        tracker.receive(Adverts.seos(33), from: .door(2), -61, at: 0)
        tracker.receive(Adverts.seosCompany(mask: 0x04, limits: [-70, -50]), from: .door(3), -62, at: 0)
        tracker.receive(Adverts.aliro(group: 1, subGroup: 2), from: .door(4), -63, at: 0)
        tracker.receive(Adverts.ibeacon([UInt8](repeating: 1, count: 16)), from: .door(5), -64, at: 0)
        func matching(_ filter: ScanFilter) -> [UInt64] {
            tracker.readers(filter, activeOnly: true, at: 0).map { $0.address.bits & 0xFF }
        }
        #expect(matching(ScanFilter()) == [1, 4])
        #expect(matching(ScanFilter(lockServiceCodes: [33])) == [2, 4])
        #expect(matching(ScanFilter(lockServiceCodes: [])) == [1, 2, 3, 4])
        #expect(matching(ScanFilter(openingTypes: .seamless, lockServiceCodes: [])) == [3, 4])
        #expect(matching(ScanFilter(profiles: [.ibeacon])) == [5])
        #expect(matching(any) == [1, 2, 3, 4, 5])
    }

    @Test(
        "a reader keeps all its lock service codes, and each of them passes a filter"
    )
    func severalCodes() throws {
        tracker.receive(Adverts.seos(2), from: .door(1), -60, at: 0)
        tracker.receive(Adverts.seos(33), from: .door(1), -60, isScanResponse: true, at: 1)
        tracker.receive(Adverts.seos(7) + Adverts.seos(8), from: .door(2), -61, at: 1)
        func matching(_ code: Int) -> [UInt64] {
            tracker.readers(ScanFilter(lockServiceCodes: [code]), activeOnly: true, at: 1).map {
                $0.address.bits & 0xFF
            }
        }
        #expect([2, 33, 7, 8, 9].map(matching) == [[1], [1], [2], [2], []])
        let reader = try #require(tracker.readers(any, activeOnly: true, at: 1).first)
        #expect(reader.lockServiceCodes == [2, 33])
        tracker.receive(Adverts.seos(2), from: .door(1), -60, at: 100)
        #expect(reader.lockServiceCodes == [2, 33])
        // Forged advertisements cannot make the list grow without bound.
        for code in UInt32(100)..<200 { tracker.receive(Adverts.seos(code), from: .door(1), -60, at: 101) }
        #expect(reader.lockServiceCodes == Array(192...199))
    }

    @Test("a later fragment makes no reader and changes the profile of none, and its sender is counted")
    func continuations() throws {
        var report = AdvertisingReport(address: .door(1), rssi: -60)
        report.isContinuation = true
        for round in Milliseconds(0)..<9 {
            tracker.receive([2, 1, 6], from: .door(1), -60, at: round * 100)
            tracker.receive(report, Adverts.seos(name: "Lobby").span, adapter: 0, at: round * 100 + 1)
        }
        #expect(tracker.readers.isEmpty)
        #expect((tracker.counters.fragments, tracker.fragmentedSenders) == (9, 0))
        tracker.receive(report, Adverts.seos().span, adapter: 0, at: 1000)
        #expect(tracker.fragmentedSenders == 1)
        // A sender with two kinds of advertisements is a reader as soon as one of them comes alone.
        tracker.receive(Adverts.seos(), from: .door(1), -60, at: 2000)
        #expect(tracker.fragmentedSenders == 0)
        // Then a later fragment adds what it says, but does not change what the reader is.
        tracker.receive(report, Adverts.seos(name: "Lobby").span, adapter: 0, at: 2001)
        tracker.receive(report, Adverts.aliro(group: 1, subGroup: 2).span, adapter: 0, at: 2002)
        let reader = try #require(tracker.readers.first)
        #expect((reader.profile, reader.name, reader.adverts) == (.seos, "Lobby", 3))
        #expect(tracker.readers.count == 1)
    }

    @Test("advertisements of phones and those without a profile are counted and not stored")
    func privacy() {
        tracker.receive([2, 0x01, 0x06], from: .door(1), -60, at: 0)
        tracker.receive(Adverts.structure(0x09, Array("Seos".utf8)), from: .passing(1), -60, at: 0)
        tracker.receive(Adverts.ibeacon(hex("0000980000001000800000177a000002")), from: .passing(2), -40, at: 0)
        #expect(tracker.readers.isEmpty)
        #expect(tracker.nextSweep == nil)
        #expect(tracker.counters.unmatched == 2)
        #expect(tracker.counters.phones == 1)
    }

    // MARK: Identity

    @Test("an Aliro reader is the same reader under every address")
    func aliroIdentity() throws {
        tracker.receive(Adverts.aliro(group: 1, subGroup: 2), from: .passing(1), -60, at: 0)
        tracker.receive(Adverts.aliro(group: 1, subGroup: 2), from: .passing(2), -60, at: 100)
        tracker.receive(Adverts.aliro(group: 1, subGroup: 3), from: .passing(3), -60, at: 100)
        #expect(recorder.lines == ["appeared aliro-0101010101010101-0002", "appeared aliro-0101010101010101-0003"])
        #expect(tracker.readers.first { $0.adverts == 2 }?.address == .passing(2))
    }

    @Test("a named reader keeps its id when its address changes, but two such readers at the same time are different")
    func fingerprint() {
        tracker.receive(Adverts.seos(2, name: "Lobby"), from: .passing(1), -60, at: 0)
        tracker.receive(Adverts.seos(2, name: "Lobby"), from: .passing(2), -60, at: 3001)
        #expect(recorder.lines == ["appeared seos-2-Lobby"])
        for now in stride(from: Milliseconds(3100), through: 3900, by: 200) {
            tracker.receive(Adverts.seos(2, name: "Lobby"), from: .passing(3), -60, at: now)
            tracker.receive(Adverts.seos(2, name: "Lobby"), from: .passing(2), -60, at: now + 50)
        }
        #expect(recorder.lines == ["appeared seos-2-Lobby", "appeared seos-passing-2"])
        #expect(tracker.readers.count == 2)
        // While one of them is received no more for a moment, the other one does not take its place.
        tracker.receive(Adverts.seos(2, name: "Lobby"), from: .passing(3), -60, from: 4000, to: 9000)
        #expect(recorder.lines.count == 2)
        #expect(tracker.readers.map(\.address) == [.passing(2), .passing(3)])
    }

    @Test(
        "a motionless reader stays in range and is the only one while its address changes, also with a late name",
        arguments: [0, 1, 300, 1500] as [Milliseconds]
    )
    func rotation(delay: Milliseconds) throws {
        let (tracker, recorder) = (ReaderTracker(), Recorder())
        tracker.receive(Adverts.seos(2, name: "Lobby"), from: .passing(0), -60, at: 0)
        recorder.attach(tracker)
        var questions = 0
        tracker.wantsNames = { questions += 1 }
        let name = Adverts.structure(0x09, Array("Lobby".utf8))
        let reader = try #require(tracker.readers.first)
        for round in 1...12 {
            let (start, address) = (Milliseconds(round) * 5000, DeviceAddress.passing(UInt64(round)))
            for now in stride(from: start, to: start + 5000, by: 250) {
                while let due = tracker.nextSweep, due <= now { tracker.sweep(at: due) }
                tracker.receive(Adverts.seos(2), from: address, -60, at: now)
                if now - start >= delay - 1 {
                    tracker.receive(name, from: address, -60, isScanResponse: true, at: now + min(delay, 1))
                }
                #expect(round == 1 || reader.inRange.contains(.motion), "\(now)")
            }
            #expect(reader.address == address)
        }
        #expect(recorder.lines.isEmpty)
        #expect(tracker.readers.count == 1)
        #expect(questions == 12)
    }

    @Test("without a unique name, every changing address is a new reader")
    func ephemeral() {
        tracker.receive(Adverts.seos(2, name: "Seos"), from: .passing(1), -60, at: 0)
        tracker.receive(Adverts.seos(2, name: "Seos"), from: .passing(2), -60, at: 5000)
        #expect(recorder.lines == ["appeared seos-passing-1", "appeared seos-passing-2"])
    }

    @Test("a name that is received later identifies a known reader")
    func lateName() {
        let name = Adverts.structure(0x09, Array("Lobby".utf8))
        tracker.receive(Adverts.seos(2), from: .passing(1), -60, at: 0)
        tracker.receive(name, from: .passing(1), -60, isScanResponse: true, at: 1)
        tracker.receive(Adverts.seos(2), from: .passing(2), -60, at: 4000)
        tracker.receive(name, from: .passing(2), -60, isScanResponse: true, at: 4001)
        #expect(recorder.lines == ["appeared seos-passing-1"])
        #expect(tracker.readers.map(\.address) == [.passing(2)])
        #expect(tracker.readers.map(\.number) == [1])
        #expect(tracker.readers.map(\.adverts) == [4])
    }

    @Test("a sender that may be a known reader is held for two seconds at most, and only so many are")
    func held() {
        let (tracker, recorder) = (ReaderTracker(), Recorder())
        tracker.receive(Adverts.seos(2, name: "Lobby"), from: .passing(0), -60, at: 0)
        recorder.attach(tracker)
        tracker.receive(Adverts.seos(2), from: .passing(1), -60, at: 100)
        // Another code is another reader, so this reader is reported at once.
        tracker.receive(Adverts.seos(3), from: .passing(2), -60, at: 100)
        #expect(recorder.lines == ["appeared seos-passing-2"])
        tracker.receive(Adverts.seos(2), from: .passing(1), -61, at: 1000)
        tracker.sweep(at: 2100)
        #expect(recorder.lines.count == 1)
        tracker.sweep(at: 2101)
        #expect(recorder.lines.last == "appeared seos-passing-3")
        #expect(tracker.readers.first { $0.number == 3 }?.signal.history == [-61, -60])
        for number in UInt64(100)..<200 { tracker.receive(Adverts.seos(2), from: .passing(number), -60, at: 3000) }
        #expect(tracker.readers.count == 3 + 36)
    }

    // MARK: Adapters

    @Test("another adapter represents a reader after a second with 6 dB more, or when the first receives nothing")
    func adapters() throws {
        for now in stride(from: Milliseconds(0), through: 5000, by: 100) {
            tracker.receive(Adverts.seos(), from: .door(1), -70, adapter: 0, at: now)
            tracker.receive(Adverts.seos(), from: .door(1), -65, adapter: 1, at: now)
        }
        let reader = try #require(tracker.readers.first)
        #expect(reader.adapter == 0)
        for now in stride(from: Milliseconds(5100), through: 12_000, by: 100) {
            tracker.receive(Adverts.seos(), from: .door(1), -70, adapter: 0, at: now)
            tracker.receive(Adverts.seos(), from: .door(1), -60, adapter: 1, at: now)
        }
        #expect(reader.adapter == 1)
        for now in stride(from: Milliseconds(12_100), through: 16_000, by: 100) {
            tracker.receive(Adverts.seos(), from: .door(1), -70, adapter: 0, at: now)
        }
        #expect(reader.adapter == 0)
        #expect(reader.signal.last == -70)
    }

    @Test("removing an adapter removes the readers that no other adapter has received")
    func adapterRemoved() {
        let (tracker, recorder) = (ReaderTracker(), Recorder())
        tracker.receive(Adverts.seos(), from: .door(1), -70, adapter: 0, at: 0)
        tracker.receive(Adverts.seos(), from: .door(1), -70, adapter: 1, at: 0)
        tracker.receive(Adverts.seos(), from: .door(2), -70, adapter: 1, at: 0)
        recorder.attach(tracker)
        tracker.remove(adapter: 1)
        #expect(recorder.lines == ["lost seos-C0:00:00:00:00:02"])
        #expect(tracker.readers.map(\.adapter) == [0])
    }
}
