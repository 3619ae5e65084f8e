// SPDX-License-Identifier: GPL-3.0-or-later
import TestSupport
import Testing
import Text

@testable import OSDP

private let poll: UInt8 = 0x60
private let manufacturer: UInt8 = 0x80
private let reply: UInt8 = 0x90

/// AUTH_REQUEST of the worked example, without its code: P1, P2, version, reader identifier, transaction, number 3.
private let request = hex(
    "00015c0201004d20000102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1f4c10000102030405060708090a0b0c0d0e0f"
        + "fd03"
)
private let transaction = hex("000102030405060708090a0b0c0d0e0f")
private let key = [0x04] + [UInt8](repeating: 0x11, count: 64)
private let signature = [UInt8](repeating: 0x22, count: 64)

/// The data of MFG for a part of a message.
private func part(
    _ bytes: [UInt8],
    total: Int? = nil,
    at offset: Int = 0,
    count: Int? = nil,
    code: UInt8 = 0xE1
) -> [UInt8] {
    let numbers = [total ?? bytes.count, offset, count ?? bytes.count]
    return PanelPKOC.vendor + [code] + numbers.flatMap { [UInt8($0 & 0xFF), UInt8($0 >> 8)] } + bytes
}

@Suite("The messages of PKOC over OSDP")
struct PanelPKOCTests {
    @Test("the worked example of AUTH_REQUEST is read, in any order, with or without a reader identifier")
    func example() throws {
        let question = try PanelPKOC.Question(request)
        #expect(question.transaction == transaction && question.sequence == 3)
        let other = try PanelPKOC.Question(hex("0001") + [0x4C, 16] + transaction + hex("4d005c020101"))
        #expect(other.transaction == transaction && other.sequence == nil)
    }

    @Test(
        "a question that is malformed is refused with its byte",
        arguments: [
            ("", PanelPKOC.Fault.missing), ("00", .missing), ("0001", .missing), ("0001fd03", .missing),
            ("00015c020100", .missing), ("00014c10000102030405060708090a0b0c0d0e0f", .missing),
            ("00025c0201004c10000102030405060708090a0b0c0d0e0f", .invalid),
            ("00015c0202004c10000102030405060708090a0b0c0d0e0f", .invalid),
            ("00015c0101004c10000102030405060708090a0b0c0d0e0f", .outOfBounds),
            ("00015c0201004c00", .noData),
            // 17, 32 and 33 bytes have another meaning to cards.
            ("00015c0201004c11000102030405060708090a0b0c0d0e0f10", .invalid),
            ("00015c0201004c0f000102030405060708090a0b0c0d0e", .invalid),
            ("00015c0201004c20" + String(repeating: "07", count: 32), .invalid),
            ("00015c0201004c21" + String(repeating: "07", count: 33), .invalid),
            ("00015c0201004c10000102030405060708090a0b0c0d0e", .outOfBounds),
            ("00015c0201004c10000102030405060708090a0b0c0d0e0ffd", .outOfBounds),
            ("00015c0201004c10000102030405060708090a0b0c0d0e0f4d01aa", .invalid),
            ("00015c0201004c10000102030405060708090a0b0c0d0e0f4cff", .outOfBounds),
            ("00015c0201005c0201004c10000102030405060708090a0b0c0d0e0f", .invalid),
            ("00015a005c0201004c10000102030405060708090a0b0c0d0e0f", .invalid),
            ("0001fb01005c0201004c10000102030405060708090a0b0c0d0e0f", .invalid),
            ("0001fa005c0201004c10000102030405060708090a0b0c0d0e0f", .invalid),
        ]
    )
    func malformed(_ row: (text: String, fault: PanelPKOC.Fault)) {
        #expect(throws: row.fault) { try PanelPKOC.Question(hex(row.text)) }
    }

    @Test("a message comes in parts of any length", arguments: [1, 7, 59, 60])
    func parts(count: Int) throws {
        var parts = PanelPKOC.Parts()
        var whole: [UInt8]?
        for start in stride(from: 0, to: request.count, by: count) {
            #expect(whole == nil)
            let bytes = Array(request[start..<min(request.count, start + count)])
            whole = try parts.add(part(bytes, total: request.count, at: start))
        }
        #expect(whole == request)
    }

    @Test(
        "parts that overlap, leave a gap, are empty, lie about a length or belong to nothing are refused",
        arguments: [
            (part(request, total: 65_535), PanelPKOC.Fault.partOutOfBounds),
            (part(request, total: 0), .partOutOfBounds), (part(request, total: 129), .partOutOfBounds),
            (part(request, total: 59), .partOutOfBounds), (part([], total: 60), .partOutOfBounds),
            (part([1], total: 60, at: 60), .partOutOfBounds), (part([1], total: 60, at: 65_535), .partOutOfBounds),
            (part([1], total: 60, count: 65_535), .partOutOfBounds),
            (part([1, 2], total: 60, count: 1), .partOutOfBounds), (part([1], total: 60, at: 5), .outOfSequence),
        ]
    )
    func hostileParts(_ row: (data: [UInt8], fault: PanelPKOC.Fault)) throws {
        var parts = PanelPKOC.Parts()
        #expect(throws: row.fault) { try parts.add(row.data) }
        // After the error nothing is left of the parts before.
        for second in [row.data, part([1], total: 60, at: 2), part([1], total: 60, at: 4)] {
            parts = PanelPKOC.Parts()
            #expect(try parts.add(part([9, 9, 9], total: 60)) == nil)
            #expect(throws: PanelPKOC.Fault.self) { try parts.add(second) }
            #expect(throws: PanelPKOC.Fault.outOfSequence) { try parts.add(part([9], total: 60, at: 3)) }
            #expect(try parts.add(part(request)) == request)
        }
    }

    @Test("parts of two messages with different lengths are not put together")
    func mixed() throws {
        var parts = PanelPKOC.Parts()
        #expect(try parts.add(part([1, 2], total: 60)) == nil)
        #expect(throws: PanelPKOC.Fault.outOfSequence) { try parts.add(part([3], total: 61, at: 2)) }
    }
}

@Suite("A panel that asks cards itself")
struct PanelInquiryTests {
    /// A line with the secure channel, and a card of which the panel was told.
    private static func told(_ id: Int = 1) throws -> Line {
        let line = Line { $0.asksCards = true }
        line.take(line.device.setReading(true, at: line.now))
        try line.connect()
        line.present(id, isAsked: true)
        #expect(try line.command(poll) == (reply, hex("1a9021e0fc065c0201004d00")))
        return line
    }

    private static func asked(_ line: Line) -> [String] {
        line.effects.compactMap { effect in
            if case .ask(let card, let transaction) = effect { "\(card) \(Hex.encode(transaction))" } else { nil }
        }
    }

    /// Polls until there is nothing more, and returns the answers.
    private static func fetch(_ line: Line) throws -> [[UInt8]] {
        var all: [[UInt8]] = []
        while case let (code, data) = try line.command(0x60), code == reply { all.append(data) }
        return all
    }

    @Test("the panel is told of the card, asks it, and gets key and signature in parts that it can take")
    func whole() throws {
        for size in [nil, 128, 160, 1024] as [Int?] {
            let line = try Self.told()
            if let size { #expect(try line.command(0x7B, [UInt8(size & 0xFF), UInt8(size >> 8)]).0 == 0x40) }
            #expect(try line.command(manufacturer, part(request)) == (0x40, []))
            #expect(Self.asked(line) == ["1 \(Hex.encode(transaction))"])
            #expect(try line.command(0x60) == (0x40, []))
            line.take(line.device.answer(1, (key, signature), at: line.now))
            let answers = try Self.fetch(line)
            #expect(answers.count == (size == 1024 ? 1 : 2), "\(size ?? 0)")
            var message: [UInt8] = []
            for answer in answers {
                #expect(answer.starts(with: hex("1a9021e2")) && (answer.count / 16 + 1) * 16 + 15 <= size ?? 128)
                let numbers = [4, 6, 8].map { Int(answer[$0]) | Int(answer[$0 + 1]) << 8 }
                #expect(numbers == [135, message.count, answer.count - 10])
                message += answer[10...]
            }
            #expect(message == [0x5A, 65] + key + [0x9E, 64] + signature + [0xFD, 3])
            #expect(line.outcomes == ["1 confirmed"])
        }
    }

    @Test("by default PKOC over OSDP is refused, and the card is told as a number", arguments: [0xE1, 0xE3])
    func off(code: UInt8) throws {
        let line = Line()
        try line.connect()
        line.present(1)
        #expect(try line.command(manufacturer, part(request, code: code)) == (0x41, [3]))
        #expect(try line.command(poll).0 == 0x50)
        #expect(line.notes == ["the panel wants to check PKOC itself: refused, it gets numbers"])
    }

    @Test("MFG of other vendors, and messages that a panel does not send, are refused", arguments: [0, 1])
    func otherVendors(_ index: Int) throws {
        let line = index == 0 ? Line() : try Self.told()
        if index == 0 { try line.connect() }
        #expect(try line.command(manufacturer, hex("0a0017e1") + part(request).dropFirst(4)) == (0x41, [3]))
        for code in [0xE0, 0xE2, 0xE3, 0xE4, 0xFE, 0x00] as [UInt8] {
            #expect(try line.command(manufacturer, part(request, code: code)) == (0x41, [3]))
        }
        for data in [[], [0x1A], PanelPKOC.vendor] { #expect(try line.command(manufacturer, data) == (0x41, [3])) }
        #expect(Self.asked(line).isEmpty)
    }

    @Test("a question without a card, a second one, and one after the answer are refused")
    func once() throws {
        let empty = Line { $0.asksCards = true }
        try empty.connect()
        #expect(try empty.command(manufacturer, part(request)) == (0x41, [9]))
        let line = try Self.told()
        #expect(try line.command(manufacturer, part(request)) == (0x40, []))
        #expect(try line.command(manufacturer, part(request)) == (0x41, [9]))
        line.take(line.device.answer(1, (key, signature), at: line.now))
        #expect(try line.command(manufacturer, part(request)) == (0x41, [9]))
        #expect(try Self.fetch(line).count == 2)
        #expect(try line.command(manufacturer, part(request)) == (0x41, [9]))
        #expect(Self.asked(line).count == 1 && Self.asked(empty).isEmpty)
        #expect(line.outcomes == ["1 confirmed"])
    }

    @Test("a question in a frame that is repeated is asked once, and a question in clear not at all")
    func replayed() throws {
        let line = try Self.told()
        let clear = line.frame(manufacturer, part(request))
        #expect(try line.read(line.send(clear.bytes)) == (0x41, [6]))
        let sealed = try line.sealed(manufacturer, part(request)).bytes
        line.sequence = line.sequence % 3 + 1
        let first = try #require(line.send(sealed))
        #expect(line.send(sealed) == first)
        #expect(Self.asked(line).count == 1)
        // Later it has the wrong place, and then the wrong MAC.
        #expect(try line.read(first) == (0x40, []))
        #expect(try line.command(0x60).0 == 0x40)
        _ = line.send(sealed)
        #expect(Self.asked(line).count == 1)
    }

    @Test(
        "a malformed question ends the matter: the next poll hears why, and the card is dropped",
        arguments: [
            (part(request, total: 65_535), 9), (part([1], total: 60, at: 4), 8), (part(hex("0001")), 4),
            (part(hex("00015c0201004c00")), 6), (part(Array(request.dropLast(2)) + [0x5A, 0]), 7),
        ] as [([UInt8], UInt8)]
    )
    func fault(_ row: (data: [UInt8], fault: UInt8)) throws {
        let line = try Self.told()
        #expect(try line.command(manufacturer, row.data) == (0x40, []))
        #expect(try Self.fetch(line) == [hex("1a9021fe") + [row.fault]])
        #expect(try line.command(manufacturer, part(request)) == (0x41, [9]))
        #expect(Self.asked(line).isEmpty)
        #expect(line.outcomes.count == 1 && line.outcomes[0].hasPrefix("1 dropped"))
    }

    @Test("MFG that is too short for a part is refused, and the panel may still ask")
    func short() throws {
        let line = try Self.told()
        #expect(try line.command(manufacturer, PanelPKOC.vendor + [0xE1]) == (0x41, [2]))
        #expect(try line.command(manufacturer, part([])) == (0x41, [2]))
        #expect(try line.command(manufacturer, part(request)) == (0x40, []))
        #expect(Self.asked(line).count == 1)
    }

    @Test("a question that never ends, a panel that never asks, and a card that never answers end with the time")
    func late() throws {
        for asks in [nil, part([0], total: 60), part(request)] as [[UInt8]?] {
            let line = try Self.told()
            if let asks { #expect(try line.command(manufacturer, asks) == (0x40, [])) }
            line.now += 4999
            #expect(try line.command(poll) == (0x40, []))
            #expect(line.device.deadline == 6000)
            line.now += 1
            #expect(try Self.fetch(line) == [hex("1a9021fe02")])
            #expect(line.outcomes.count == 1 && line.outcomes[0].hasPrefix("1 dropped"))
            // An answer that comes now is for nobody.
            line.take(line.device.answer(1, (key, signature), at: line.now))
            #expect(try Self.fetch(line).isEmpty)
            #expect(line.outcomes.count == 1)
        }
    }

    @Test("a card that leaves before it has signed, and an answer of another card")
    func left() throws {
        let line = try Self.told()
        #expect(try line.command(manufacturer, part(request)) == (0x40, []))
        line.take(line.device.answer(2, (key, signature), at: line.now))
        #expect(try Self.fetch(line).isEmpty)
        line.take(line.device.answer(1, nil, at: line.now))
        #expect(try Self.fetch(line) == [hex("1a9021fe02")])
        #expect(line.outcomes == [#"1 dropped("the card has not signed for the panel")"#])
        #expect(line.device.display.lights[0].color == 1)
    }

    @Test("other cards wait until the matter is over, and are told then")
    func otherCards() throws {
        let line = try Self.told()
        line.present(2)
        line.present(3, isAsked: true)
        #expect(try line.command(poll) == (0x40, []))
        #expect(try line.command(manufacturer, part(request)) == (0x40, []))
        line.take(line.device.answer(1, (key, signature), at: line.now))
        for _ in 0..<2 { #expect(try line.command(poll).0 == reply) }
        #expect(try line.command(poll).0 == 0x50)
        #expect(try line.command(poll) == (reply, hex("1a9021e0fc065c0201004d00")))
        #expect(line.outcomes == ["1 confirmed", "2 confirmed"])
    }

    @Test(
        "a panel that begins anew, is silent, or loses its line gets nothing more of the answer",
        arguments: ["begin", "challenge", "MAC", "silence", "line", "end"],
        [0, 1, 2]
    )
    func restart(how: String, parts: Int) throws {
        let line = try Self.told()
        #expect(try line.command(manufacturer, part(request)) == (0x40, []))
        line.take(line.device.answer(1, (key, signature), at: line.now))
        for _ in 0..<parts { #expect(try line.command(poll).0 == reply) }
        switch how {
        case "begin": try line.connect()
        case "challenge":
            let challenge = line.frame(0x76, [1, 2, 3, 4, 5, 6, 7, 8], block: [0x11, 1])
            _ = line.send(challenge.bytes)
        case "MAC":
            var sealed = try line.sealed(poll)
            sealed.mac[0] ^= 1
            _ = line.send(sealed.bytes)
        case "silence":
            line.now += 8000
            line.take(line.device.expire(at: line.now))
        case "line": line.take(line.device.lineLost())
        default: line.take(line.device.end("badged-osdp ends"))
        }
        try line.connect()
        #expect(try line.command(poll) == (0x40, []))
        #expect(try line.command(manufacturer, part(request)) == (0x41, [9]))
        #expect(line.outcomes.count == 1)
        #expect(line.outcomes[0].hasPrefix(parts == 0 ? "1 dropped" : "1 unconfirmed"))
    }

    @Test("when badged goes, a card of which the panel was told, or that waits, is dropped: its number begins anew")
    func away() throws {
        let line = try Self.told()
        line.present(2, isAsked: true)
        line.take(line.device.setReading(false, at: line.now))
        line.take(line.device.setReading(true, at: line.now))
        #expect(try line.command(manufacturer, part(request)) == (0x41, [9]))
        #expect(try Self.fetch(line) == [hex("1a9021fe02")])
        #expect(line.outcomes == [#"1 dropped("badged is away")"#, #"2 dropped("badged is away")"#])
    }

    @Test("in the install mode no card is told or asked")
    func installing() throws {
        let line = Line {
            $0.asksCards = true
            $0.key = nil
        }
        line.device.install(until: 1_000_000)
        try line.connect(.installation)
        line.present(1, isAsked: true)
        #expect(try line.command(poll) == (0x40, []))
        #expect(try line.command(manufacturer, part(request)) == (0x41, [3]))
    }
}
