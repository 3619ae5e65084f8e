// SPDX-License-Identifier: GPL-3.0-or-later
import Testing
import Text

@testable import OSDP

/// A peripheral, and a panel in the hand of a test.
final class Line {
    let device: OSDPPeripheral
    var now: Int64 = 1000
    var effects: [OSDPPeripheral.Effect] = []
    var sequence: UInt8 = 0
    var session: OSDPSession?
    static let key = OSDPKey(Secret(0x10...0x1F))

    init(_ change: (inout OSDPPeripheral.Settings) -> Void = { _ in }) {
        var settings = OSDPPeripheral.Settings()
        settings.key = Self.key
        change(&settings)
        device = OSDPPeripheral(settings)
    }

    /// Sends bytes, and returns the bytes of the answer.
    func send(_ bytes: [UInt8]) -> [UInt8]? {
        take(device.receive(bytes, at: now))
    }

    /// A command in the secure channel.
    func sealed(_ code: UInt8, _ data: [UInt8] = []) throws -> OSDPFrame {
        let frame = try session?.seal(frame(code, data))
        return try #require(frame)
    }

    /// Keeps the effects, and returns the bytes that were sent.
    @discardableResult
    func take(_ new: [OSDPPeripheral.Effect]) -> [UInt8]? {
        effects += new
        return new.compactMap { if case .send(let bytes) = $0 { bytes } else { nil } }.last
    }

    func frame(_ code: UInt8, _ data: [UInt8] = [], block: [UInt8] = []) -> OSDPFrame {
        OSDPFrame(
            address: device.settings.address,
            isReply: false,
            sequence: sequence,
            securityBlock: block,
            code: code,
            data: data
        )
    }

    /// Sends the next command of the panel, and returns code and data of the answer.
    func command(_ code: UInt8, _ data: [UInt8] = [], block: [UInt8] = []) throws -> (UInt8, [UInt8]) {
        var frame = frame(code, data, block: block)
        if block.isEmpty, let session { frame = try session.seal(frame) }
        sequence = sequence % 3 + 1
        return try read(send(frame.bytes))
    }

    func read(_ bytes: [UInt8]?) throws -> (UInt8, [UInt8]) {
        let sent = try #require(bytes)
        let answer = try #require(OSDPFrame(Array(sent.dropFirst())))
        guard let type = answer.blockType, type >= 0x15 else { return (answer.code, answer.data) }
        let data = try session?.open(answer)
        return (answer.code, try #require(data))
    }

    /// Opens the secure channel.
    func connect(_ key: OSDPKey? = Line.key) throws {
        sequence = 0
        session = nil
        let random: [UInt8] = [1, 2, 3, 4, 5, 6, 7, 8]
        let key = try #require(key)
        let type: UInt8 = key.isDefault ? 0 : 1
        let (code, data) = try command(0x76, random, block: [0x11, type])
        try #require(code == 0x76 && data.count == 32)
        let new = try OSDPSession(key, panel: random, peripheral: Array(data[8..<16]))
        #expect(new.clientCryptogram == Array(data[16...]))
        let (second, mac) = try command(0x77, new.serverCryptogram, block: [0x13, type])
        try #require(second == 0x78 && mac == new.initialMAC)
        session = new
    }

    func present(_ id: Int, age: Int64? = 0, isAsked: Bool = false) {
        let card = OSDPCard(id: id, bits: 26, bytes: [0xBB, 0x03, 0x21, 0x80], isAsked: isAsked)
        take(device.present(card, age: age, at: now))
    }

    /// What has become of the cards, in order.
    var outcomes: [String] {
        effects.compactMap { if case .ended(let card, let outcome) = $0 { "\(card) \(outcome)" } else { nil } }
    }

    var notes: [String] { effects.compactMap { if case .note(let text) = $0 { text } else { nil } } }
}

private let poll: UInt8 = 0x60
private let raw: [UInt8] = [0, 0, 26, 0, 0xBB, 0x03, 0x21, 0x80]

@Suite("The peripheral of OSDP")
struct OSDPPeripheralTests {
    @Test("a card is told once, in the secure channel, and confirmed by the next command")
    func card() throws {
        let line = Line()
        try line.connect()
        line.present(1)
        #expect(try line.command(poll) == (0x50, raw))
        #expect(line.outcomes.isEmpty)
        #expect(try line.command(poll) == (0x40, []))
        #expect(line.outcomes == ["1 confirmed"])
    }

    @Test("no card number is on the line in clear")
    func encrypted() throws {
        let line = Line()
        try line.connect()
        line.present(1)
        let sealed = try line.sealed(poll)
        let answer = try #require(line.send(sealed.bytes))
        let number: [UInt8] = [0xBB, 0x03, 0x21, 0x80]
        #expect(!answer.indices.contains { answer[$0...].starts(with: number) })
    }

    @Test("without the secure channel a panel gets no card, only ID, CAP and the first poll")
    func required() throws {
        let line = Line()
        line.present(1)
        #expect(try line.command(poll) == (0x40, []))
        #expect(try line.command(poll) == (0x41, [6]))
        #expect(try line.command(0x61, [0]).0 == 0x45)
        #expect(try line.command(0x62, [0]).0 == 0x46)
        #expect(try line.command(0x69, [UInt8](repeating: 0, count: 14)) == (0x41, [6]))
        line.now += 5000
        line.take(line.device.expire(at: line.now))
        #expect(line.outcomes == [#"1 dropped("the panel has opened no secure channel")"#])
    }

    @Test("with security = optional, a card is told in clear as well")
    func optional() throws {
        let line = Line { $0.security = .optional }
        line.present(1)
        #expect(try line.command(poll) == (0x50, raw))
        try line.connect()
        line.present(2)
        #expect(try line.command(poll) == (0x50, raw))
    }

    @Test("a repeated command gets the same bytes, and the card is not told again")
    func repeated() throws {
        let line = Line()
        try line.connect()
        line.present(1)
        line.present(2)
        let sealed = try line.sealed(poll)
        let first = try #require(line.send(sealed.bytes))
        for _ in 0..<3 { #expect(line.send(sealed.bytes) == first) }
        line.sequence = line.sequence % 3 + 1
        #expect(try line.read(first) == (0x50, raw))
        #expect(try line.command(poll) == (0x50, raw))
        #expect(try line.command(poll) == (0x40, []))
        #expect(line.outcomes == ["1 confirmed", "2 confirmed"])
    }

    @Test("a panel that begins anew after the answer does not get the card again: it is unconfirmed")
    func unconfirmed() throws {
        let line = Line()
        try line.connect()
        line.present(1)
        _ = try line.command(poll)
        try line.connect()
        #expect(try line.command(poll) == (0x40, []))
        #expect(line.outcomes == ["1 unconfirmed"])
    }

    @Test("a longer silence that a panel has asked for ends with its connection")
    func keepActive() throws {
        let line = Line()
        try line.connect()
        // KEEPACTIVE for a minute.
        #expect(try line.command(0xA7, [0x60, 0xEA]) == (0x40, []))
        line.now += 60_000
        line.take(line.device.expire(at: line.now))
        #expect(line.device.link == .secure)
        line.take(line.device.lineLost())
        try line.connect()
        line.now += 8000
        line.take(line.device.expire(at: line.now))
        #expect(line.device.link == .silent)
    }

    @Test("a panel that falls silent, and a line that is lost, leave the card unconfirmed", arguments: [true, false])
    func silence(_ isSilent: Bool) throws {
        let line = Line()
        try line.connect()
        line.present(1)
        _ = try line.command(poll)
        line.now += OSDPPeripheral.silence
        line.take(isSilent ? line.device.expire(at: line.now) : line.device.lineLost())
        #expect(line.outcomes == ["1 unconfirmed"])
        #expect(line.device.link == .silent)
    }

    @Test("a connection is kept by frames in the secure channel, and gives way after 8 seconds without one")
    func givesWay() throws {
        let line = Line()
        line.device.lineOpened(at: line.now)
        for _ in 0..<3 {
            _ = try line.command(poll)
            line.now += 2000
            #expect(!line.device.givesWay(at: line.now))
        }
        line.now += 2000
        #expect(line.device.givesWay(at: line.now), "who has no key keeps nobody out")
        try line.connect()
        line.now += OSDPPeripheral.silence - 1
        _ = try line.command(poll)
        line.now += OSDPPeripheral.silence - 1
        #expect(!line.device.givesWay(at: line.now))
        #expect(line.device.givesWay(at: line.now + 1))
    }

    @Test("where no secure channel is required, each frame keeps the connection")
    func keepsWay() throws {
        let line = Line { $0.security = .optional }
        line.device.lineOpened(at: line.now)
        line.now += OSDPPeripheral.silence - 1
        _ = try line.command(poll)
        line.now += OSDPPeripheral.silence - 1
        #expect(!line.device.givesWay(at: line.now) && line.device.givesWay(at: line.now + 1))
    }

    @Test("a card waits as long as the settings say, and is dropped with a reason")
    func wait() throws {
        let line = Line { $0.wait = 2000 }
        line.present(1)
        #expect(line.device.deadline == 3000)
        line.take(line.device.expire(at: 2999))
        #expect(line.outcomes.isEmpty)
        line.take(line.device.expire(at: 3000))
        #expect(line.outcomes == [#"1 dropped("the panel was silent")"#])
        // Who waits sees that the card is not passed on.
        #expect(line.device.display.lights == [.init(color: 1, otherColor: 0, on: 100, off: 100)])
        line.take(line.device.expire(at: 4000))
        #expect(line.device.deadline == nil)
    }

    @Test(
        "the time since the tap counts: an old card, and one of which nobody knows how old it is, are not told",
        arguments: [
            (25_000, #"1 dropped("it was 25 seconds ago")"#), (5000, #"1 dropped("it was 5 seconds ago")"#),
            (nil, #"1 dropped("nobody knows how long ago it was")"#),
        ] as [(Int64?, String)]
    )
    func oldTap(_ age: Int64?, _ outcome: String) throws {
        let line = Line()
        try line.connect()
        line.present(1, age: age)
        #expect(line.outcomes == [outcome])
        // Who waits sees that the card is not passed on.
        #expect(line.device.display.lights == [.init(color: 1, otherColor: 0, on: 100, off: 100)])
        #expect(try line.command(poll) == (0x40, []))
        // The next one is told.
        line.present(2)
        #expect(try line.command(poll) == (0x50, raw))
    }

    @Test("a card waits for the rest of its time, also behind a newer one")
    func restOfTime() throws {
        let line = Line()
        try line.connect()
        line.present(1)
        line.present(2, age: 4000)
        #expect(line.device.deadline == line.now + 1000)
        line.now += 1000
        line.take(line.device.expire(at: line.now))
        #expect(line.outcomes == [#"2 dropped("the panel has not asked")"#])
        #expect(try line.command(poll) == (0x50, raw))
        #expect(try line.command(poll) == (0x40, []))
        #expect(line.outcomes.last == "1 confirmed")
    }

    @Test("after a standstill of the program the panel asks before any deadline was seen: no old card is told")
    func standstill() throws {
        let line = Line()
        try line.connect()
        line.present(1)
        line.now += 6000
        #expect(try line.command(poll) == (0x40, []))
        #expect(line.outcomes == [#"1 dropped("the panel has not asked")"#])
    }

    @Test("an answer with a card is repeated only as long as the card may wait", arguments: [6000, 25_000])
    func oldRepeat(_ pause: Int64) throws {
        let line = Line()
        try line.connect()
        line.present(1)
        let sealed = try line.sealed(poll)
        let first = try #require(line.send(sealed.bytes))
        line.now += 1000
        #expect(line.send(sealed.bytes) == first)
        line.now += pause
        line.session = nil
        #expect(try line.read(line.send(sealed.bytes)) == (0x41, [4]))
        #expect(line.outcomes == ["1 unconfirmed"])
        try line.connect()
        #expect(try line.command(poll) == (0x40, []))
    }

    @Test("more cards than may wait are dropped with a reason")
    func tooMany() {
        let line = Line()
        for id in 0...OSDPPeripheral.mostCards { line.present(id) }
        #expect(line.outcomes == [#"16 dropped("too many cards wait for the panel")"#])
    }

    @Test(
        "a reader that ends leaves no card unsaid",
        arguments: [(true, "1 unconfirmed"), (false, #"1 dropped("badged-osdp ends")"#)]
    )
    func ends(_ isAnswered: Bool, _ outcome: String) throws {
        let line = Line()
        try line.connect()
        line.present(1)
        if isAnswered { _ = try line.command(poll) }
        line.present(2)
        line.take(line.device.end("badged-osdp ends"))
        #expect(line.outcomes == [outcome, #"2 dropped("badged-osdp ends")"#])
        line.take(line.device.end("badged-osdp ends"))
        #expect(line.outcomes.count == 2)
    }

    @Test(
        "a panel that begins anew each second, with and without the secure channel first, gets each card once at most",
        arguments: [true, false]
    )
    func restless(_ asksFirst: Bool) throws {
        let line = Line()
        var arrived = 0
        for id in 1...60 {
            line.sequence = 0
            line.session = nil
            if asksFirst { #expect(try line.command(poll).0 == 0x40) }
            try line.connect()
            line.present(id)
            if try line.command(poll).0 == 0x50 { arrived += 1 }
            line.now += 1000
            line.take(line.device.expire(at: line.now))
        }
        line.take(line.device.lineLost())
        #expect(arrived == 60)
        #expect(line.outcomes == (1...60).map { "\($0) unconfirmed" })
    }

    @Test(
        "a line that is stuck loses no card unsaid, keeps little, and works again afterwards",
        arguments: [[0x00], [0xFF], [0x53], [0x53, 0x00, 0xFF, 0x03], [0xFF, 0x53, 0x00, 0x08, 0x00, 0x04, 0x60]]
            as [[UInt8]]
    )
    func stuck(_ pattern: [UInt8]) throws {
        let line = Line()
        try line.connect()
        line.present(1)
        _ = try line.command(poll)
        line.present(2)
        let piece = Array(repeating: pattern, count: 100 / pattern.count).flatMap(\.self)
        for _ in 0..<1000 {
            line.now += 10
            #expect(line.send(piece) == nil)
            line.take(line.device.expire(at: line.now))
        }
        #expect(Set(line.outcomes) == ["1 unconfirmed", #"2 dropped("the panel has not asked")"#])
        #expect(line.device.link == .silent)
        line.now += 1000
        try line.connect()
        line.present(3)
        #expect(try line.command(poll) == (0x50, raw))
    }

    @Test(
        "what is shown while the panel is silent is what the settings say, and no output changes by it",
        arguments: [
            (.keep, [.init(color: 2, otherColor: 0, on: 0, off: 0)], ["Welcome", ""], 2),
            (.dark, [.dark], ["Out of order", ""], 3),
            (.blink, [.init(color: 3, otherColor: 0, on: 200, off: 1800)], ["Out of order", ""], 3),
        ] as [(OSDPDisplay.Silence, [OSDPDisplay.Light], [String], Int)]
    )
    func silent(_ silence: OSDPDisplay.Silence, _ lights: [OSDPDisplay.Light], _ text: [String], _ sounds: Int) throws {
        let line = Line {
            $0.silence = silence
            $0.silenceText = "Out of order"
            $0.rows = 2
            $0.outputs = 2
        }
        let atStart: [OSDPDisplay.Light] = silence == .keep ? [.dark] : lights
        #expect(line.device.display.lights == atStart)
        try line.connect()
        #expect(line.device.display.lights == [.dark] && line.device.display.text == ["", ""])
        var beeps = 0
        func show() throws {
            #expect(try line.command(0x69, [0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 5, 0, 2, 0]).0 == 0x40)
            #expect(try line.command(0x6B, [0, 1, 0, 1, 1, 7] + Array("Welcome".utf8)).0 == 0x40)
            #expect(try line.command(0x68, [0, 2, 0, 0]).0 == 0x40)
            // Without an end.
            #expect(try line.command(0x6A, [0, 2, 1, 1, 0]).0 == 0x40)
            if line.device.takeBeep() != nil { beeps += 1 }
        }
        try show()
        line.now += OSDPPeripheral.silence
        line.take(line.device.expire(at: line.now))
        #expect(line.device.link == .silent)
        #expect(line.device.display.lights == lights && line.device.display.text == text)
        #expect(line.device.display.outputs == [true, false])
        if let beep = line.device.takeBeep() {
            beeps += 1
            #expect(beep.on == 0)
        }
        // A tap blinks all the same.
        line.take(line.device.refuse(at: line.now))
        #expect(line.device.display.lights == [.init(color: 1, otherColor: 0, on: 100, off: 100)])
        line.take(line.device.expire(at: line.now + 1000))
        try line.connect()
        #expect(line.device.display.lights == [.init(color: 2, otherColor: 0, on: 0, off: 0)])
        #expect(line.device.display.text == ["Welcome", ""])
        try show()
        #expect(beeps == sounds)
    }

    @Test(
        "PKOC over OSDP is refused, said, and the panel gets on with numbers",
        arguments: [
            // Next transaction, and authentication, of PKOC over OSDP 1.63.
            "1a9021e315000000" + "1500" + "4c10000102030405060708090a0b0c0d0e0ffd03",
            "1a9021e1060000000600" + "00015c020100", "1a9021",
        ]
    )
    func pkocOverOSDP(_ message: String) throws {
        let line = Line()
        try line.connect()
        line.present(1)
        #expect(try line.command(0x80, Hex.decode(message) ?? []) == (0x41, [3]))
        #expect(line.notes == ["the panel wants to check PKOC itself: refused, it gets numbers"])
        #expect(try line.command(poll) == (0x50, raw))
    }

    @Test("a wrong MAC closes the secure channel, and the card in flight is unconfirmed")
    func wrongMAC() throws {
        let line = Line()
        try line.connect()
        line.present(1)
        _ = try line.command(poll)
        var forged = try line.sealed(poll)
        forged.mac[3] ^= 0x80
        #expect(try line.read(line.send(forged.bytes)) == (0x41, [6]))
        #expect(line.device.link == .clear)
        #expect(line.outcomes == ["1 unconfirmed"])
    }

    @Test("a frame in clear changes nothing in a secure channel")
    func clearFrame() throws {
        let line = Line()
        try line.connect()
        line.present(1)
        _ = try line.command(poll)
        #expect(try line.read(line.send(line.frame(poll).bytes)) == (0x41, [6]))
        #expect(line.outcomes.isEmpty)
        #expect(try line.command(poll) == (0x40, []))
        #expect(line.outcomes == ["1 confirmed"])
        #expect(line.device.link == .secure)
    }

    @Test("a skipped sequence number is refused, and the panel goes on with the right one")
    func skipped() throws {
        let line = Line()
        try line.connect()
        var frame = line.frame(poll)
        frame.sequence = frame.sequence % 3 + 1
        #expect(try line.read(line.send(frame.bytes)) == (0x41, [4]))
        #expect(try line.command(poll) == (0x40, []))
    }

    @Test("a panel that goes on from before a restart of the reader is refused, and begins anew")
    func strangerSequence() throws {
        let line = Line()
        line.sequence = 2
        #expect(try line.command(poll) == (0x41, [4]))
        try line.connect()
    }

    @Test("answers of other readers, other addresses and their cards are ignored")
    func others() throws {
        let line = Line()
        try line.connect()
        let before = line.effects.count
        let reply = OSDPFrame(address: 0, isReply: true, sequence: line.sequence, code: 0x50, data: raw)
        let other = OSDPFrame(address: 5, isReply: false, sequence: 0, code: poll)
        #expect(line.send(reply.bytes) == nil)
        #expect(line.send(other.bytes) == nil)
        #expect(line.effects.count == before)
        #expect(try line.command(poll) == (0x40, []))
    }

    @Test("a panel with another key, and a replayed cryptogram, get no secure channel")
    func wrongKey() throws {
        let line = Line()
        let random: [UInt8] = [1, 2, 3, 4, 5, 6, 7, 8]
        let (_, data) = try line.command(0x76, random, block: [0x11, 1])
        let key = try #require(Line.key)
        let right = try OSDPSession(key, panel: random, peripheral: Array(data[8..<16]))
        // The handshake begins anew with other random bytes of the reader.
        _ = try line.command(0x76, random, block: [0x11, 1])
        #expect(try line.command(0x77, right.serverCryptogram, block: [0x13, 1]) == (0x41, [5]))
        // One attempt for each handshake.
        #expect(try line.command(0x77, right.serverCryptogram, block: [0x13, 1]) == (0x41, [6]))
        #expect(line.device.link == .clear)
        #expect(line.notes == ["the panel has another key: no secure channel"])
    }

    @Test("a panel that stays at the sequence 0, as libosdp-conformance does, opens the secure channel")
    func sequenceStays() throws {
        let line = Line()
        let random: [UInt8] = [1, 2, 3, 4, 5, 6, 7, 8]
        let (_, data) = try line.command(0x76, random, block: [0x11, 1])
        let new = try OSDPSession(try #require(Line.key), panel: random, peripheral: Array(data[8..<16]))
        line.sequence = 0
        let finish = line.frame(0x77, new.serverCryptogram, block: [0x13, 1])
        #expect(try line.read(line.send(finish.bytes)) == (0x78, new.initialMAC))
        line.session = new
        line.sequence = 1
        #expect(try line.command(poll) == (0x40, []))
        #expect(line.device.link == .secure)
        // Later the same frame begins anew, and there is no handshake that it could finish.
        #expect(try line.read(line.send(finish.bytes)) == (0x41, [6]))
        #expect(line.device.link == .clear)
    }

    @Test("SCBK-D is refused outside of the install mode, also when a key is set")
    func defaultKey() throws {
        for key in [Line.key, nil] {
            let line = Line { $0.key = key }
            #expect(try line.command(0x76, [1, 2, 3, 4, 5, 6, 7, 8], block: [0x11, 0]) == (0x41, [5]))
            #expect(line.notes == ["the panel asks for the key of the installation: refused"])
        }
    }

    @Test("in the install mode a panel sets a key; the mode ends, and until then no card is told")
    func install() throws {
        let line = Line { $0.key = nil }
        line.device.install(until: 60_000)
        try line.connect(.installation)
        #expect(line.device.link == .installing)
        line.present(1)
        #expect(try line.command(poll) == (0x40, []))
        let sealed = try line.sealed(0x75, [1, 16] + Array(0x20...0x2F))
        line.sequence = line.sequence % 3 + 1
        #expect(line.send(sealed.bytes) == nil)
        let stored = line.effects.compactMap { if case .storeKey(let key) = $0 { key } else { nil } }
        #expect(stored.first?.withBytes { Array($0) } == Array(0x20...0x2F))
        #expect(try line.read(line.take(line.device.keyStored(true, at: line.now))) == (0x40, []))
        #expect(line.device.installsUntil == nil)
        // The old key does not count any more, neither now nor later.
        #expect(line.device.link == .clear)
        line.sequence = 0
        line.session = nil
        #expect(try line.command(0x76, [1, 2, 3, 4, 5, 6, 7, 8], block: [0x11, 0]) == (0x41, [5]))
        try line.connect(stored.first)
        #expect(try line.command(poll) == (0x50, raw))
    }

    @Test("the install mode ends by itself, and says so")
    func installEnds() throws {
        let line = Line { $0.key = nil }
        line.device.install(until: 2000)
        try line.connect(.installation)
        line.take(line.device.expire(at: 2000))
        #expect(line.device.link == .clear)
        #expect(line.notes == ["the install mode has ended; no key was set"])
        line.sequence = 0
        line.session = nil
        #expect(try line.command(0x76, [1, 2, 3, 4, 5, 6, 7, 8], block: [0x11, 0]) == (0x41, [5]))
    }

    @Test("a key that cannot be stored is refused, and the old one stays")
    func keyNotStored() throws {
        let line = Line()
        try line.connect()
        let sealed = try line.sealed(0x75, [1, 16] + Array(0x20...0x2F))
        line.sequence = line.sequence % 3 + 1
        #expect(line.send(sealed.bytes) == nil)
        #expect(try line.read(line.take(line.device.keyStored(false, at: line.now))) == (0x41, [9]))
        try line.connect()
    }

    @Test(
        "KEYSET is refused in clear, for other keys, for the key that everybody knows, and for zeros",
        arguments: [
            ([1, 15] + Array(0x20...0x2E), 2), ([2, 16] + Array(0x20...0x2F), 2), ([1, 16] + Array(0x30...0x3F), 9),
            ([1, 16] + [UInt8](repeating: 0, count: 16), 9), ([], 6),
        ] as [([UInt8], UInt8)]
    )
    func wrongKeySet(_ data: [UInt8], _ reason: UInt8) throws {
        let line = Line()
        try line.connect()
        #expect(try line.command(0x75, data) == (0x41, [reason]))
        #expect(line.notes == (reason == 9 ? ["the panel wants to set SCBK-D, or a key of equal bytes: refused"] : []))
        line.session = nil
        line.sequence = 0
        #expect(try line.command(0x75, [1, 16] + Array(0x20...0x2F)) == (0x41, [6]))
    }

    @Test("security = off refuses every secure channel")
    func off() throws {
        let line = Line { $0.security = .off }
        #expect(try line.command(0x76, [1, 2, 3, 4, 5, 6, 7, 8], block: [0x11, 1]) == (0x41, [5]))
        line.present(1)
        #expect(try line.command(poll) == (0x50, raw))
    }

    @Test("capabilities say what is there")
    func capabilities() throws {
        let rich = Line { $0.outputs = 2 }
        #expect(
            try rich.command(0x62, [0]).1
                == [
                    2, 2, 2, 3, 1, 0, 4, 4, 1, 5, 2, 1, 6, 1, 1, 8, 1, 0, 9, 1, 0, 10, 0, 4, 11, 0, 4, 13, 0, 1, 16, 2,
                    0,
                ]
        )
        let poor = Line {
            $0.security = .off
            $0.leds = 0
            $0.hasBuzzer = false
            $0.rows = 0
        }
        #expect(try poor.command(0x62, [0]).1 == [3, 1, 0, 8, 1, 0, 10, 0, 4, 11, 0, 4, 13, 0, 1, 16, 2, 0])
        #expect(try poor.command(0x69, [UInt8](repeating: 0, count: 14)) == (0x41, [9]))
        #expect(try poor.command(0x6A, [0, 2, 1, 1, 1]) == (0x41, [9]))
        #expect(try poor.command(0x6B, [0, 1, 0, 1, 1, 1, 0x41]) == (0x41, [9]))
        #expect(try poor.command(0x68, [0, 2, 0, 0]) == (0x41, [9]))
    }

    @Test("status commands are answered with what is there")
    func status() throws {
        let line = Line { $0.outputs = 2 }
        try line.connect()
        #expect(try line.command(0x64) == (0x48, [0, 0]))
        #expect(try line.command(0x65) == (0x49, []))
        #expect(try line.command(0x67) == (0x4B, [1]))
        line.take(line.device.setReading(true, at: line.now))
        #expect(try line.command(0x67) == (0x4B, [0]))
        #expect(try line.command(0x68, [1, 2, 0, 0]) == (0x40, []))
        #expect(try line.command(0x66) == (0x4A, [0, 1]))
    }

    @Test(
        "commands of a wrong length and unknown commands are refused",
        arguments: [
            (0x60, [1], 2), (0x61, [], 2), (0x69, [1], 2), (0x69, [], 2), (0x6A, [0], 2),
            (0x6B, [0, 1, 0, 1, 1, 9], 2),
            (0x68, [0, 1], 2), (0x6E, [0], 2), (0x80, [1, 2, 3], 3), (0xA1, [1], 3), (0x00, [], 3),
        ] as [(UInt8, [UInt8], UInt8)]
    )
    func wrongCommands(_ code: UInt8, _ data: [UInt8], _ reason: UInt8) throws {
        let line = Line()
        try line.connect()
        #expect(try line.command(code, data) == (0x41, [reason]))
        #expect(try line.command(poll) == (0x40, []))
    }

    @Test("address and baud rate change only if the settings allow it")
    func communication() throws {
        let wish: [UInt8] = [9, 0x00, 0xC2, 0x01, 0x00]
        let strict = Line()
        try strict.connect()
        #expect(try strict.command(0x6E, wish) == (0x54, [0, 0x80, 0x25, 0, 0]))
        #expect(strict.device.settings.address == 0)
        let lenient = Line { $0.acceptsCommunication = true }
        try lenient.connect()
        #expect(try lenient.command(0x6E, wish) == (0x54, wish))
        #expect((lenient.device.settings.address, lenient.device.settings.baud) == (9, 115_200))
        #expect(try lenient.command(0x6E, [9, 1, 0, 0, 0]) == (0x54, wish))
    }

    @Test("LEDs show what the panel says, and go back by themselves")
    func lights() throws {
        let line = Line()
        try line.connect()
        // Red for ever; then green for two seconds, blinking.
        #expect(try line.command(0x69, [0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 5, 0, 1, 1]).0 == 0x40)
        #expect(line.device.display.lights.map(\.color) == [1])
        #expect(try line.command(0x69, [0, 0, 2, 3, 2, 2, 0, 20, 0, 0, 0, 0, 0, 0]).0 == 0x40)
        #expect(line.device.display.lights == [.init(color: 2, otherColor: 0, on: 300, off: 200)])
        #expect(line.device.deadline == line.now + 2000)
        line.now += 2000
        line.take(line.device.expire(at: line.now))
        #expect(line.device.display.lights.map(\.color) == [1])
        #expect(try line.command(0x69, [0, 1, 0, 0, 0, 0, 0, 0, 0, 1, 5, 0, 1, 1]) == (0x41, [9]))
    }

    @Test("text is shown, wrapped, cut and limited, and foreign bytes are shown as ?")
    func text() throws {
        let line = Line { $0.rows = 2 }
        try line.connect()
        func text(_ control: UInt8, _ seconds: UInt8, _ row: UInt8, _ column: UInt8, _ text: String) throws -> UInt8 {
            let bytes = Array(text.utf8)
            return try line.command(0x6B, [0, control, seconds, row, column, UInt8(bytes.count)] + bytes).0
        }
        #expect(try text(1, 0, 1, 3, "Hall\u{7}") == 0x40)
        #expect(line.device.display.text == ["  Hall?", ""])
        #expect(try text(4, 3, 1, 31, "abcd") == 0x40)
        #expect(line.device.display.text == ["  Hall?" + String(repeating: " ", count: 23) + "ab", "cd"])
        line.now += 3000
        line.take(line.device.expire(at: line.now))
        #expect(line.device.display.text == ["  Hall?", ""])
        for (row, column) in [(0, 1), (3, 1), (1, 0), (1, 33)] as [(UInt8, UInt8)] {
            #expect(try text(1, 0, row, column, "x") == 0x41)
        }
    }

    @Test("outputs are timed, and a sound is told once")
    func outputs() throws {
        let line = Line { $0.outputs = 1 }
        try line.connect()
        #expect(try line.command(0x68, [0, 5, 10, 0]).0 == 0x40)
        #expect(line.device.display.outputs == [true])
        line.now += 1000
        line.take(line.device.expire(at: line.now))
        #expect(line.device.display.outputs == [false])
        #expect(try line.command(0x6A, [0, 2, 2, 1, 3]).0 == 0x40)
        #expect(line.device.takeBeep() == .init(on: 200, off: 100, count: 3))
        #expect(line.device.takeBeep() == nil)
    }

    @Test("a refused tap blinks for a second")
    func refusal() {
        let line = Line()
        line.take(line.device.refuse(at: line.now))
        #expect(line.device.display.lights == [.init(color: 1, otherColor: 0, on: 100, off: 100)])
        line.take(line.device.expire(at: line.now + 1000))
        #expect(line.device.display.lights.map(\.color) == [0])
    }

    @Test("an idle reader waits for nothing but its panel")
    func idle() throws {
        let line = Line()
        #expect(line.device.deadline == nil)
        try line.connect()
        #expect(line.device.deadline == line.now + OSDPPeripheral.silence)
    }
}
