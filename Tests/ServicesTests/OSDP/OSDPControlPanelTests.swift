// SPDX-License-Identifier: GPL-3.0-or-later
import Testing
import Text

@testable import OSDP

/// A control panel with readers of our own, and a line between them that a test disturbs.
private final class Wall {
    let panel: OSDPControlPanel
    var readers: [OSDPPeripheral]
    var now: Int64 = 0
    var reads: [(member: Int, bytes: [UInt8])] = []
    /// For each of `reads`, when the card was read at the earliest.
    var since: [Int64] = []
    var links: [(member: Int, link: OSDPControlPanel.Link, fault: OSDPControlPanel.Fault?)] = []
    var outcomes: [String] = []
    var ignored: [String] = []
    /// Changes what is on the line; nil: it is lost.
    var disturb: ([UInt8]) -> [UInt8]? = { $0 }
    private var inbox: [[UInt8]] = []

    static let key = OSDPKey(Secret(0x10...0x1F))

    init(
        _ count: Int,
        readerSecurity: OSDPPeripheral.Security = .required,
        security: OSDPPeripheral.Security = .required,
        key: OSDPKey? = Wall.key
    ) {
        readers = (0..<count).map { index in
            var settings = OSDPPeripheral.Settings()
            settings.address = UInt8(index)
            settings.key = Wall.key
            settings.security = readerSecurity
            return OSDPPeripheral(settings)
        }
        let members = (0..<count).map {
            OSDPControlPanel.Member(name: "r\($0)", address: UInt8($0), security: security, key: key)
        }
        panel = OSDPControlPanel(members, baud: 115_200, at: 0)
    }

    private func take(_ effects: [OSDPControlPanel.Effect]) {
        for effect in effects {
            switch effect {
            case .send(let bytes): inbox.append(bytes)
            case .read(let member, _, let bytes, _, let since):
                reads.append((member, bytes))
                self.since.append(since)
            case .link(let member, let link, let fault): links.append((member, link, fault))
            case .ignored(_, let reason): ignored.append(reason)
            }
        }
    }

    /// Runs until `end`, with the clock of the deadlines.
    func run(until end: Int64) {
        if panel.deadline == nil { take(panel.lineOpened(at: now)) }
        while let next = panel.deadline, next <= end || !inbox.isEmpty {
            if inbox.isEmpty { now = max(now, next) }
            take(panel.expire(at: now))
            while !inbox.isEmpty {
                let command = inbox.removeFirst()
                now += 1
                guard let heard = disturb(command) else { continue }
                for reader in readers {
                    for effect in reader.receive(heard, at: now) {
                        if case .ended(let card, let outcome) = effect { outcomes.append("\(card) \(outcome)") }
                        guard case .send(let bytes) = effect, let answer = disturb(bytes) else { continue }
                        take(panel.receive(answer, at: now))
                    }
                }
            }
        }
        now = max(now, end)
    }

    /// A reader says something that nobody has asked for.
    func say(_ bytes: [UInt8]) { take(panel.receive(bytes, at: now)) }

    /// The line is away for this time.
    func lose(for milliseconds: Int64, meanwhile: () -> Void = {}) {
        inbox = []
        take(panel.lineLost(at: now))
        now += milliseconds
        meanwhile()
        take(panel.lineOpened(at: now))
    }

    func present(_ id: Int, at reader: Int) {
        _ = readers[reader].present(
            OSDPCard(id: id, bits: 32, bytes: [0, 0, UInt8(id >> 8), UInt8(id & 0xFF)]),
            at: now
        )
    }
}

@Suite("The control panel of OSDP")
struct OSDPControlPanelTests {
    @Test("all readers of a line come up with the secure channel, and each card arrives once")
    func several() {
        let wall = Wall(3)
        wall.run(until: 2000)
        #expect(wall.links.map(\.link) == [.secure, .secure, .secure])
        for id in 1...9 { wall.present(id, at: id % 3) }
        wall.run(until: 8000)
        #expect(Set(wall.reads.map { $0.bytes[3] }) == Set(1...9))
        #expect(wall.reads.count == 9)
        #expect(wall.reads.allSatisfy { Int($0.bytes[3]) % 3 == $0.member })
    }

    @Test("a connection is kept by answers to polls, and not by a reader with another key", arguments: [true, false])
    func givesWay(_ hasKey: Bool) {
        let wall = Wall(1, key: hasKey ? Wall.key : OSDPKey(Secret(0x20...0x2F)))
        wall.run(until: OSDPPeripheral.silence - 1)
        #expect(!wall.panel.givesWay(at: wall.now))
        wall.run(until: 60_000)
        #expect(wall.panel.givesWay(at: wall.now) == !hasKey)
        #expect(wall.links.contains { $0.link == .secure } == hasKey)
    }

    @Test("an idle reader is polled twice a second, and an active one twenty times")
    func intervals() {
        let wall = Wall(1)
        var polls = 0
        wall.disturb = { bytes in
            polls += bytes[2] & 0x80 == 0 ? 1 : 0
            return bytes
        }
        wall.run(until: 2000)
        polls = 0
        wall.run(until: 12_000)
        #expect((18...21).contains(polls))
        wall.present(1, at: 0)
        wall.run(until: 13_000)
        polls = 0
        wall.run(until: 15_000)
        #expect((35...41).contains(polls))
    }

    @Test("a card is as old as the answer before, also after a standstill")
    func ageOfCard() throws {
        let wall = Wall(1)
        wall.run(until: 2000)
        wall.present(1, at: 0)
        wall.run(until: 3000)
        #expect(wall.since.first.map { (1400...2010).contains($0) } == true, "\(wall.since)")
        // The program stands still: a reader keeps its card until it is asked.
        wall.run(until: 20_000)
        wall.now += 25_000
        wall.present(2, at: 0)
        wall.run(until: wall.now + 100)
        #expect(wall.since.last.map { $0 <= 20_000 } == true, "\(wall.since)")
    }

    @Test("a card that a reader kept while the line was away is told once, as old as the last answer before")
    func keptCard() throws {
        let wall = Wall(2)
        wall.run(until: 2000)
        wall.lose(for: 3000) { wall.present(1, at: 1) }
        wall.run(until: 60_000)
        #expect(wall.links.map(\.link) == [.secure, .secure, .silent, .silent, .secure, .secure])
        #expect(wall.reads.map(\.bytes) == [[0, 0, 0, 1]])
        #expect(wall.since.allSatisfy { $0 <= 2000 }, "\(wall.since)")
    }

    @Test("a card that a reader kept before the first connection may be as old as the start of the machine")
    func oldCard() {
        let wall = Wall(1)
        wall.now = 50_000
        wall.present(1, at: 0)
        wall.run(until: 52_000)
        #expect(wall.since == [0])
        wall.present(2, at: 0)
        wall.run(until: 54_000)
        #expect(wall.since.count == 2 && wall.since.last.map { $0 > 50_000 } == true, "\(wall.since)")
    }

    @Test("a card that a reader tells again, because the line was lost after it, is not told twice")
    func repeatedCard() {
        let wall = Wall(1)
        wall.run(until: 2000)
        wall.present(1, at: 0)
        wall.disturb = { bytes in
            // Nothing follows the answer with the card.
            wall.reads.isEmpty ? bytes : nil
        }
        while wall.reads.isEmpty { wall.run(until: wall.now + 1) }
        wall.disturb = { $0 }
        wall.lose(for: 1000) { wall.present(1, at: 0) }
        wall.run(until: wall.now + 3000)
        #expect(wall.reads.count == 1)
        #expect(wall.ignored == ["a card was dropped: the same one was told just before the connection was lost"])
        // The person holds the card to the reader once more.
        wall.present(1, at: 0)
        wall.run(until: wall.now + 3000)
        #expect(wall.reads.count == 2 && wall.ignored.count == 1)
    }

    @Test("the same card is told again if the reader has answered in between, before the line was lost")
    func sameCard() {
        let wall = Wall(1)
        wall.run(until: 2000)
        wall.present(1, at: 0)
        wall.run(until: 4000)
        wall.lose(for: 1000) { wall.present(1, at: 0) }
        wall.run(until: 8000)
        #expect(wall.reads.count == 2 && wall.ignored.isEmpty)
    }

    @Test("a reader that is away is tried again, more and more rarely, and comes back")
    func away() {
        let wall = Wall(1)
        var commands = 0
        wall.disturb = { _ in
            commands += 1
            return nil
        }
        wall.run(until: 600_000)
        #expect(wall.links.map(\.link) == [.silent])
        #expect(wall.links.first?.fault == .noAnswer)
        #expect(commands < 120)
        wall.disturb = { $0 }
        wall.run(until: 640_000)
        #expect(wall.links.last?.link == .secure)
    }

    @Test("a line that is gone is not polled, and that alone is its fault")
    func lostLine() {
        let wall = Wall(2)
        #expect(wall.panel.deadline == nil)
        wall.run(until: 2000)
        wall.links = []
        wall.lose(for: 60_000) {
            #expect(wall.panel.deadline == nil)
            #expect(wall.panel.expire(at: wall.now).isEmpty)
        }
        wall.run(until: wall.now + 2000)
        #expect(wall.links.map(\.fault) == [.lineGone, .lineGone, nil, nil])
        #expect(wall.links.suffix(2).allSatisfy { $0.link == .secure })
    }

    @Test("a reader that says BUSY without end leaves the line to the others, and this is told")
    func busy() {
        let wall = Wall(2)
        wall.run(until: 2000)
        wall.links = []
        let busy = OSDPFrame(address: 0, isReply: true, sequence: 0, code: OSDPReply.busy).bytes
        wall.disturb = { bytes in bytes[2] == 0x80 ? busy : bytes }
        for round in 0..<100 {
            if round == 40 { wall.present(1, at: 1) }
            wall.say(busy)
            wall.run(until: wall.now + 90)
        }
        #expect(wall.links.map(\.member) == [0] && wall.links.first?.fault == .busy, "\(wall.links)")
        #expect(wall.reads.map(\.member) == [1])
        wall.disturb = { $0 }
        wall.run(until: wall.now + 40_000)
        #expect(wall.links.last?.link == .secure)
    }

    @Test("a reader that is busy for a second is waited for, and no card is lost")
    func shortlyBusy() {
        let wall = Wall(1)
        wall.run(until: 2000)
        wall.present(1, at: 0)
        let busy = OSDPFrame(address: 0, isReply: true, sequence: 0, code: OSDPReply.busy).bytes
        wall.disturb = { bytes in bytes[2] == 0x80 ? busy : bytes }
        wall.run(until: 3500)
        wall.disturb = { $0 }
        wall.run(until: 5000)
        #expect(wall.reads.count == 1 && wall.links.map(\.link) == [.secure], "\(wall.links)")
    }

    @Test("a reader with another key is not polled in clear")
    func otherKey() {
        let wall = Wall(1, key: OSDPKey(Secret(0x40...0x4F)))
        wall.run(until: 20_000)
        #expect(wall.links.map(\.link) == [.silent])
        #expect(wall.links.first?.fault == .otherKey)
        wall.present(1, at: 0)
        wall.run(until: 40_000)
        #expect(wall.reads.isEmpty)
    }

    @Test("a reader without a secure channel is read only if the settings say so")
    func clearReaders() {
        let strict = Wall(1, readerSecurity: .off)
        strict.present(1, at: 0)
        strict.run(until: 20_000)
        #expect(strict.reads.isEmpty)
        let lenient = Wall(1, readerSecurity: .off, security: .optional)
        lenient.present(1, at: 0)
        lenient.run(until: 4000)
        #expect(lenient.links.map(\.link) == [.clear])
        #expect(lenient.reads.count == 1)
        let keyless = Wall(1, readerSecurity: .optional, security: .optional, key: nil)
        keyless.run(until: 4000)
        #expect(keyless.links.map(\.link) == [.clear])
    }

    @Test("a reader in clear that has heard nothing for a while, and refuses polls, is read again")
    func forgetfulReader() {
        let wall = Wall(1, readerSecurity: .off, security: .off, key: nil)
        wall.run(until: 2000)
        // For a reader the connection has ended: it waits for the sequence number 0.
        wall.now += 9000
        wall.run(until: wall.now + 2000)
        #expect(wall.links.map(\.link) == [.clear, .silent, .clear])
        #expect(wall.links.map(\.fault) == [nil, .commandRefused, nil])
        wall.present(1, at: 0)
        wall.run(until: wall.now + 2000)
        #expect(wall.reads.map(\.bytes) == [[0, 0, 0, 1]])
    }

    @Test(
        "a reader that requires the secure channel is not said to be read in clear",
        arguments: [OSDPPeripheral.Security.off, .optional]
    )
    func strictReader(_ security: OSDPPeripheral.Security) {
        let wall = Wall(1, security: security, key: security == .off ? nil : Wall.key)
        if security == .optional {
            // It refuses CHLNG, since it has no key.
            wall.readers[0] = OSDPPeripheral(OSDPPeripheral.Settings())
        }
        wall.run(until: 20_000)
        #expect(wall.links.map(\.link) == [.silent])
        #expect(wall.links.first?.fault == .needsSecurity)
        #expect(wall.panel.givesWay(at: wall.now))
    }

    @Test("an answer of another reader, an old answer and a forged one are no cards")
    func strangers() throws {
        let wall = Wall(1)
        wall.run(until: 2000)
        let forged: [UInt8] = [0, 0, 8, 0, 0x77]
        for (address, sequence) in [(5, 1), (0, 0), (0, 1), (0, 2), (0, 3)] as [(UInt8, UInt8)] {
            let frame = OSDPFrame(address: address, isReply: true, sequence: sequence, code: 0x50, data: forged)
            _ = wall.panel.receive(frame.bytes, at: wall.now)
        }
        wall.run(until: 4000)
        #expect(wall.reads.isEmpty)
        #expect(wall.links.last?.link == .secure)
    }

    @Test(
        "an answer that is not passed on is told, and the reader stays",
        arguments: [
            (0x50, [0, 0, 9, 0, 0x77], "a card was dropped: its answer breaks the form"),
            (0x50, [0, 0, 0, 0], "a card was dropped: its answer breaks the form"), (0x50, [], "a card was dropped"),
            (0x50, [0, 0, 1, 4] + [UInt8](repeating: 1, count: 129), "a card was dropped: its answer breaks the form"),
            (0x51, [0, 0, 2, 0x31, 0x32], "a card was dropped: characters (FMT) are not supported"),
            (0x53, [0, 4, 0x31, 0x32, 0x33, 0x34], "keys of its keypad are not passed on"),
        ] as [(UInt8, [UInt8], String)]
    )
    func ignored(_ code: UInt8, _ data: [UInt8], _ reason: String) {
        let wall = Wall(1, readerSecurity: .off, security: .off, key: nil)
        wall.run(until: 2000)
        var isTold = false
        wall.disturb = { bytes in
            guard !isTold, var answer = OSDPFrame(Array(bytes.dropFirst())), answer.isReply else { return bytes }
            isTold = true
            answer.code = code
            answer.data = data
            return answer.bytes
        }
        wall.run(until: 4000)
        #expect(wall.ignored.count == 1 && wall.ignored.first?.hasPrefix(reason) == true, "\(wall.ignored)")
        #expect(wall.reads.isEmpty)
        #expect(wall.links.map(\.link) == [.clear])
    }

    @Test("a thousand cards over a line that drops and flips bytes: none is wrong, double or lost unsaid")
    func noise() {
        let wall = Wall(1)
        var random = SystemRandomNumberGenerator()
        wall.run(until: 2000)
        wall.disturb = { bytes in
            switch UInt8.random(in: 0..<100, using: &random) {
            case 0..<3: return nil
            case 3..<6:
                var changed = bytes
                changed[Int.random(in: 0..<bytes.count, using: &random)] ^= 1 << UInt8.random(in: 0..<8, using: &random)
                return changed
            case 6..<8: return Array(bytes.dropLast(Int.random(in: 1..<bytes.count, using: &random)))
            case 8..<10: return [0xFF, 0x53, 0x00] + bytes
            default: return bytes
            }
        }
        for id in 1...1000 {
            wall.present(id, at: 0)
            wall.run(until: wall.now + 300)
        }
        wall.disturb = { $0 }
        wall.run(until: wall.now + 60_000)
        let ids = wall.reads.map { Int($0.bytes[2]) << 8 | Int($0.bytes[3]) }
        #expect(Set(ids).count == ids.count)
        #expect(ids.allSatisfy { (1...1000).contains($0) })
        let ended = wall.outcomes.compactMap { Int($0.split(separator: " ")[0]) }
        #expect(ended.sorted() == Array(1...1000))
        let confirmed = Set(wall.outcomes.filter { $0.hasSuffix("confirmed") && !$0.hasSuffix("unconfirmed") })
        #expect(confirmed.allSatisfy { ids.contains(Int($0.split(separator: " ")[0]) ?? 0) })
        #expect(confirmed.count > 900)
    }
}
