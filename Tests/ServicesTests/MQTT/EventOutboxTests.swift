// SPDX-License-Identifier: GPL-3.0-or-later
import Foundation
import Host
import TestSupport
import Testing
import Text

@testable import MQTT

/// A broker in the test: it takes messages, and acknowledges those that the test wants.
private final class Broker {
    struct Message {
        let id: Int32
        let topic: String
        let content: JSON
    }

    private(set) var messages: [Message] = []
    private(set) var open: [Message] = []
    var result: BrokerConnection.Sent?

    func publish(_ topic: String, _ payload: [UInt8], _ retain: Bool, _ expiry: Int?) -> BrokerConnection.Sent {
        if let result { return result }
        guard let content = try? JSON(payload) else { return .failed }
        let message = Message(id: Int32(messages.count + 1), topic: topic, content: content)
        messages.append(message)
        open.append(message)
        return .sent(message.id)
    }

    /// Answers to everything that was sent.
    func answer(
        _ outbox: EventOutbox,
        at now: Int64,
        first count: Int = .max,
        reason: (Message) -> UInt8 = { _ in 0 }
    ) {
        for message in open.prefix(count) {
            open.removeFirst()
            outbox.acknowledged(message.id, BrokerPacket.Reason(reason(message)), at: now)
        }
    }

    /// The connection has ended.
    func drop() { open = [] }

    var sequences: [Int] { messages.compactMap { $0.content["sequence"]?.int } }
}

@Suite("What badged-mqtt publishes, with a clock of the test", .timeLimit(.minutes(20)))
struct OutboxTests {
    private let folder: TemporaryFolder
    private let broker = Broker()

    init() throws { folder = try TemporaryFolder() }

    private func outbox(limit: Int = 100, change: (inout MQTTConfiguration) -> Void = { _ in }) throws -> EventOutbox {
        var configuration = MQTTConfiguration()
        (configuration.name, configuration.folder, configuration.limit) = ("door", folder.path, limit)
        change(&configuration)
        return EventOutbox(configuration, try EventStore(folder: folder.path, limit: limit))
    }

    private static func limits(_ change: (inout BrokerLimits) -> Void) -> BrokerLimits {
        var limits = BrokerLimits()
        change(&limits)
        return limits
    }

    private static func taps(_ numbers: ClosedRange<Int>, at time: Int64 = 1) -> [MailboxInput] {
        numbers.map { number in
            .event(.credential, number: number, run: 1, time: time, [.init("reader", .string("Desk"))])
        }
    }

    @Test("a month of taps with the broker away: queue, file and tables have a bound, and every loss is told")
    func month() throws {
        let outbox = try outbox(limit: 1000)
        // A tap each half minute or every five minutes, and what badged tells besides.
        let (day, pause): (Int, Int64) = FullTables.areWanted ? (2880, 30_000) : (288, 300_000)
        var now: Int64 = 0
        var largest = 0
        for hour in 0..<24 * 30 {
            let first = hour * day / 24 + 1
            var inputs = Self.taps(first...first + day / 24 - 1, at: 1_700_000_000_000 + now)
            inputs.append(.document(.readers, [.init("readers", .array([.string(String(hour))]))], isUrgent: true))
            inputs.append(.document(.health, [.init("checks", .array([.string(String(hour))]))], isUrgent: false))
            outbox.process(inputs, at: now)
            outbox.tidy(at: now)
            #expect(outbox.queue.waiting <= 1000)
            now += pause * Int64(day / 24)
            for name in ["queue.db", "queue.db-wal"] {
                let path = folder.path + "/" + name
                largest = max(largest, try FileManager.default.attributesOfItem(atPath: path)[.size] as? Int ?? .max)
            }
        }
        let all = 30 * day
        #expect(largest < 3 << 20, "\(largest)")
        #expect(outbox.queue.last(.credential) == all && outbox.queue.lost(.credential) == all - 1000)
        // The broker comes back.
        outbox.begin(session: "s", limits: BrokerLimits(), at: now)
        while outbox.queue.waiting > 0 {
            outbox.pump(at: now, broker.publish)
            #expect(broker.open.count <= 20)
            broker.answer(outbox, at: now)
            now += 1
        }
        #expect(broker.sequences == Array(all - 999...all))
        let gaps = broker.messages.flatMap { $0.content["gap"]?.array ?? [] }.compactMap(Gap.init)
        #expect(gaps.compactMap(\.missed).reduce(0, +) == all - 1000)
        var told = IndexSet()
        for gap in gaps { told.insert(integersIn: (gap.from ?? 0)...(gap.to ?? 0)) }
        #expect(told == IndexSet(integersIn: 1...all - 1000))
        // Of the documents only the newest content was kept.
        let readers = broker.messages.filter { $0.topic.hasSuffix("/readers") }
        #expect(readers.map { $0.content["readers"]?.array?.first?.string } == [String(24 * 30 - 1)])
    }

    @Test("state has the packages, and the hashes of both settings, which the name of the host does not change")
    func settings() throws {
        func state(_ settings: String) throws -> JSON {
            let outbox = try outbox { configuration in
                var errors: [StartError] = []
                configuration.read(Array(settings.utf8), "m.conf", &errors)
                #expect(errors.isEmpty)
            }
            var daemon = DaemonState()
            (daemon.isConnected, daemon.settings, daemon.packages) = (true, "abcd", ["pcscd": "1"])
            outbox.process([.daemon(daemon)], at: 0)
            outbox.begin(session: "s", limits: BrokerLimits(), at: 0)
            outbox.pump(at: 0, broker.publish)
            return try #require(broker.messages.last { $0.topic.hasSuffix("/state") }).content
        }
        let first = try state("[publish]\nhost=a\nheartbeat=60")
        #expect(first["settings"]?["badged"]?.string == "abcd" && first["packages"]?["pcscd"]?.string == "1")
        #expect(first["settings"]?["mqtt"]?.string?.count == 16)
        #expect(try state("[publish]\nheartbeat = 60\nhost=b")["settings"] == first["settings"])
        #expect(try state("[publish]\nheartbeat=61")["settings"] != first["settings"])
    }

    @Test("a broker that acknowledges nothing is left after two minutes, and the window comes again in order")
    func stuck() throws {
        let outbox = try outbox()
        outbox.process(Self.taps(1...50), at: 0)
        outbox.begin(session: "a", limits: BrokerLimits(), at: 0)
        outbox.pump(at: 0, broker.publish)
        #expect(broker.open.count == 20 && broker.messages.first?.topic == "badged/1/door/state")
        #expect(outbox.deadline(at: 0) <= 120_001)
        #expect(!outbox.isStuck(at: 119_000) && outbox.isStuck(at: 120_001))
        outbox.end()
        #expect(outbox.deadline(at: 1) == .max)
        let count = broker.sequences.count
        outbox.begin(session: "b", limits: Self.limits { $0.receiveMaximum = 1 }, at: 200_000)
        broker.answer(outbox, at: 200_000)
        for now in 200_000..<200_200 {
            outbox.pump(at: Int64(now), broker.publish)
            broker.answer(outbox, at: Int64(now))
        }
        #expect(Array(broker.sequences.dropFirst(count)) == Array(1...50))
    }

    @Test("a full window waits for the broker, whatever else is due")
    func full() throws {
        let outbox = try outbox { $0.isHomeAssistantEnabled = true }
        outbox.process(Self.taps(1...50), at: 0)
        outbox.begin(session: "a", limits: Self.limits { $0.receiveMaximum = 1 }, at: 0)
        // The discovery is due later.
        outbox.pump(at: -1, broker.publish)
        #expect(broker.open.count == 1)
        outbox.process([.document(.readers, [.init("readers", .array([]))], isUrgent: true)], at: 0)
        #expect(outbox.deadline(at: 20_000) == 120_000)
        broker.answer(outbox, at: 20_000, first: 1)
        #expect(outbox.deadline(at: 20_000) <= 20_000)
    }

    @Test("a refused event is held and tried once a second; the ones after it wait")
    func refused() throws {
        let outbox = try outbox()
        outbox.process(Self.taps(1...3), at: 0)
        outbox.begin(session: "a", limits: BrokerLimits(), at: 0)
        outbox.pump(at: 0, broker.publish)
        broker.answer(outbox, at: 0) { $0.topic.hasSuffix("credential") ? 0x87 : 0 }
        #expect(outbox.fault?.contains("refuses events of credential") == true)
        for now in stride(from: Int64(100), to: 5000, by: 100) {
            outbox.pump(at: now, broker.publish)
            broker.answer(outbox, at: now) { $0.topic.hasSuffix("credential") ? 0x87 : 0 }
        }
        #expect(broker.sequences == [1, 2, 3, 1, 1, 1, 1])
        for now in stride(from: Int64(6000), to: 7000, by: 100) {
            outbox.pump(at: now, broker.publish)
            broker.answer(outbox, at: now)
        }
        #expect(broker.sequences.suffix(3) == [1, 2, 3] && outbox.fault == nil && outbox.queue.waiting == 0)
    }

    @Test("a queue that overflows, with the broker and without it: every event arrives, or is counted once")
    func overflow() throws {
        let outbox = try outbox(limit: 50)
        var (now, last): (Int64, Int) = (0, 0)
        for round in 0..<300 {
            outbox.process(Self.taps(last + 1...last + 7, at: now), at: now)
            last += 7
            switch round % 50 {
            case 10:
                outbox.begin(session: "a", limits: BrokerLimits(), at: now)
                broker.drop()
            case 40: outbox.end()
            default: break
            }
            if (10..<40).contains(round % 50) {
                outbox.pump(at: now, broker.publish)
                broker.answer(outbox, at: now, first: round % 5)
            }
            now += 100
            #expect(outbox.queue.waiting <= 50)
        }
        outbox.begin(session: "b", limits: BrokerLimits(), at: now)
        broker.drop()
        while outbox.queue.waiting > 0 {
            outbox.pump(at: now, broker.publish)
            broker.answer(outbox, at: now)
            now += 1000
        }
        // The losses before the last event are told with the next one.
        outbox.process(Self.taps(last + 1...last + 1, at: now), at: now)
        outbox.pump(at: now, broker.publish)
        var events: [Int: JSON] = [:]
        for message in broker.messages where message.topic.hasSuffix("/credential") {
            events[try #require(message.content["sequence"]?.int)] = message.content
        }
        let missed = events.values.flatMap { $0["gap"]?.array ?? [] }.compactMap { $0["missed"]?.int }.reduce(0, +)
        #expect(events.count + missed == last + 1 && missed > 500, "\(events.count) of \(last + 1), \(missed) missed")
        #expect(outbox.queue.lost(.credential) == missed && outbox.queue.lastLoss == "credential: the queue is full")
    }

    @Test("an opening does not wait behind all credentials", arguments: [1, 2, 20])
    func turns(window: Int) throws {
        let outbox = try outbox()
        outbox.process(Self.taps(1...100), at: 0)
        outbox.process([.event(.opening, number: 1, run: 1, time: 1, [])], at: 0)
        outbox.begin(session: "a", limits: Self.limits { $0.receiveMaximum = window }, at: 0)
        for now in 0..<10 {
            outbox.pump(at: Int64(now), broker.publish)
            broker.answer(outbox, at: Int64(now))
        }
        let events = broker.messages.filter { $0.content["sequence"] != nil }
        #expect(events.prefix(2).contains { $0.topic.hasSuffix("/opening") })
        #expect(
            events.filter { $0.topic.hasSuffix("/credential") }.compactMap { $0.content["sequence"]?.int }
                == Array(1..<events.count)
        )
    }

    @Test("an event that is too large for the broker tells the gaps that it had")
    func gapsOfRefused() throws {
        let outbox = try outbox()
        outbox.process([.gap(nil, .daemonAway, since: 1, until: 2)] + Self.taps(1...1), at: 0)
        outbox.begin(session: "a", limits: BrokerLimits(), at: 0)
        outbox.pump(at: 0, broker.publish)
        broker.answer(outbox, at: 0) { $0.topic.hasSuffix("credential") ? 0x95 : 0 }
        outbox.process(Self.taps(2...2), at: 0)
        outbox.pump(at: 0, broker.publish)
        let gaps = broker.messages.last?.content["gap"]?.array?.compactMap { $0["reason"]?.string } ?? []
        #expect(Set(gaps) == ["daemonAway", "tooLarge"])
    }

    @Test("many events that are too large for the broker are dropped in parts, with few commits")
    func manyTooLarge() throws {
        let outbox = try outbox(limit: 1000)
        outbox.process(Self.taps(1...250), at: 0)
        outbox.begin(session: "a", limits: BrokerLimits(), at: 0)
        broker.result = .tooLarge
        var waiting: [Int] = []
        repeat {
            outbox.pump(at: 0, broker.publish)
            waiting.append(outbox.queue.waiting)
        } while outbox.deadline(at: 0) <= 0
        #expect(waiting == [150, 50, 0])
        // The file forgets the last ones within a second, and not each by itself.
        #expect(outbox.queue.hasDone && outbox.deadline(at: 0) <= 1000)
        outbox.tidy(at: 1000)
        #expect(!outbox.queue.hasDone)
        broker.result = nil
        outbox.process(Self.taps(251...251), at: 1000)
        outbox.pump(at: 1000, broker.publish)
        let gaps = broker.messages.last?.content["gap"]?.array ?? []
        #expect(gaps.compactMap { $0["missed"]?.int }.reduce(0, +) == 250)
    }

    @Test("events that badged-mqtt was too slow for are told in the log, in --status and in a gap")
    func tooSlow() throws {
        let outbox = try outbox()
        outbox.process(Self.taps(1...1) + Self.taps(5...5), at: 0)
        #expect(outbox.queue.lastLoss?.contains("could not keep up") == true)
        outbox.begin(session: "a", limits: BrokerLimits(), at: 0)
        outbox.pump(at: 0, broker.publish)
        #expect(broker.messages.last?.content["gap"]?.array?.first?["missed"]?.int == 3)
    }

    @Test("what the broker limits is in state, and a document that is too large is a fault")
    func limits() throws {
        let outbox = try outbox()
        outbox.begin(session: "a", limits: Self.limits { ($0.maximumQoS, $0.keepAlive) = (0, 10) }, at: 0)
        outbox.pump(at: 0, broker.publish)
        let state = try #require(broker.messages.first).content["broker"]
        #expect(state?["maximumQoS"]?.int == 0 && state?["keepAlive"]?.int == 10)
        #expect(state?["retainAvailable"] == .bool(true) && state?["maximumPacketSize"] == .null)
        broker.result = .tooLarge
        outbox.process([.document(.readers, [.init("readers", .array([]))], isUrgent: true)], at: 0)
        outbox.pump(at: 1000, broker.publish)
        #expect(outbox.fault == "the document readers is larger than the broker allows")
    }

    @Test("acknowledged events are kept for as many days as wanted, and found by their number")
    func kept() throws {
        let outbox = try outbox { $0.keptDays = 2 }
        outbox.process(Self.taps(1...5), at: 0)
        outbox.begin(session: "a", limits: BrokerLimits(), at: 0)
        outbox.pump(at: 0, broker.publish)
        broker.answer(outbox, at: 0)
        let journal = EventJournal(folder: folder.path, days: 2) { true }
        // Twice the same, as after a kill.
        journal.add("badged/1/door/credential", Array(#"{"epoch":"\#(outbox.queue.epoch)","sequence":5}"#.utf8))
        var lines: [String] = []
        try journal.lines(from: 4) { lines.append($0) }
        #expect(lines.count == 2 && lines.allSatisfy { $0.hasPrefix("badged/1/door/credential {") })
        let kept = folder.path + "/kept"
        journal.add("t", Array("{}".utf8), now: EventStore.now + 3 * 86_400_000)
        #expect(try FileManager.default.contentsOfDirectory(atPath: kept).count == 1)
        EventJournal(folder: folder.path, days: 0).prune()
        #expect(try FileManager.default.contentsOfDirectory(atPath: kept).isEmpty)
    }

    @Test("events that cannot be read are told, after all others")
    func unreadable() throws {
        let journal = EventJournal(folder: folder.path, days: 2) { true }
        func kept() throws -> [String] {
            var lines: [String] = []
            try journal.lines(from: 1) { lines.append($0) }
            return lines
        }
        #expect(try kept() == [])
        let event = #"t {"epoch":"e","sequence":1}"#
        journal.prune()
        try folder.write("kept/2000-01-01.events", Array((event + "\n").utf8))
        #expect(try kept() == [event])
        mkdir(folder.path + "/kept/2000-01-02.events", 0o700)
        var lines: [String] = []
        let error = #expect(throws: StartError.self) { try journal.lines(from: 1) { lines.append($0) } }
        #expect(error?.message.contains("2000-01-02.events") == true && lines == [event])
        let elsewhere = EventJournal(folder: folder.path + "/nothing", days: 2) { true }
        #expect(throws: StartError.self) { try elsewhere.lines(from: 1) { _ in } }
    }

    @Test("an event after one that was written in part is found")
    func torso() throws {
        let journal = EventJournal(folder: folder.path, days: 2) { true }
        journal.prune()
        let first = Array(#"t {"epoch":"e","sequence":1}"#.utf8)
        _ = try folder.write(
            "kept/\(CalendarDay(of: Int(EventStore.now / 1000)).text).events",
            Array(first.dropLast(3))
        )
        journal.add("t", Array(#"{"epoch":"e","sequence":2}"#.utf8))
        journal.add("t", Array(#"{"epoch":"e","sequence":3}"#.utf8))
        var lines: [String] = []
        try journal.lines(from: 1) { lines.append($0) }
        #expect(lines == [2, 3].map { #"t {"epoch":"e","sequence":\#($0)}"# })
    }

    @Test("events stay although the clock is wrong for a while, and as many files as with a right one")
    func wrongClock() throws {
        let journal = EventJournal(folder: folder.path, days: 2) { false }
        let (now, day) = (EventStore.now, Int64(86_400_000))
        func kept(_ journal: EventJournal) throws -> [Int] {
            var lines: [String] = []
            try journal.lines(from: 1) { lines.append($0) }
            return lines.compactMap { try? JSON(Array($0.utf8.dropFirst(2)))["sequence"]?.int }
        }
        for (index, days) in [0, 1, 1500, 2, 3].enumerated() {
            let event = #"{"epoch":"e","sequence":\#(index + 1)}"#
            journal.add("t", Array(event.utf8), now: now + Int64(days) * day)
            if index == 2 { #expect(try kept(journal) == [1, 2, 3]) }
        }
        #expect(try kept(journal) == [2, 4, 5, 3])
        // The clock is right again.
        let right = EventJournal(folder: folder.path, days: 2) { true }
        right.prune(now + 4 * day)
        #expect(try kept(right) == [4, 5, 3])
    }

    @Test("new settings count from the next connection on")
    func reload() throws {
        let outbox = try outbox()
        outbox.process(Self.taps(1...50), at: 0)
        var new = outbox.configuration
        (new.name, new.limit, new.folder) = ("gate", 20, "/elsewhere")
        outbox.reload(new)
        #expect(outbox.configuration.folder == folder.path)
        outbox.process(Self.taps(51...51), at: 0)
        outbox.begin(session: "a", limits: BrokerLimits(), at: 0)
        outbox.pump(at: 0, broker.publish)
        #expect(broker.messages.allSatisfy { $0.topic.hasPrefix("badged/1/gate/") })
        let state = try #require(broker.messages.first?.content["queue"])
        #expect((state["waiting"]?.int, state["limit"]?.int, state["oldest"]?.int) == (20, 20, 1))
    }
}
