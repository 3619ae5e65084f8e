// SPDX-License-Identifier: GPL-3.0-or-later
import EID
import ISO7816
import TestSupport
import Testing

@Suite("Identification of cards", .timeLimit(.minutes(5)))
struct IdentificationTests {
    /// The commands that AusweisApp2 sends to the same card.
    static let commands = [
        "00A4040C09E80704007F00070302", "00A4000C023F00", "00B09E0000", "00B0002600", "00B09C0000", "00B0005700",
        "0022C1A412800A04007F0007020204020283010384010D",
    ]

    @Test("an eID card is identified with the same commands as by AusweisApp2")
    func sequence() async throws {
        let card = TestCard()
        let identity = try await EIDCard.identify(on: card)
        let access = try #require(try CardAccess(exampleCardAccess))
        let profile = EIDProfile(
            applicationID: ApplicationID.eid,
            cardAccess: access,
            status: PINStatus(retryCounter: 3)
        )
        #expect(identity == .eid(profile))
        #expect(card.commands == Self.commands)
    }

    @Test("the remaining tries are read", arguments: 0...3)
    func tries(count: Int) async throws {
        guard case .eid(let profile) = try await EIDCard.identify(on: TestCard(tries: count)) else {
            throw Unexpected("not identified")
        }
        #expect(profile.status == PINStatus(retryCounter: count))
    }

    @Test(
        "an application that cannot be selected is still found",
        arguments: [0x9000, 0x6982, 0x6D00] as [UInt16]
    )
    func selected(word: UInt16) async throws {
        let card = TestCard(interfere: { index, _ in index == 0 ? ResponseAPDU(StatusWord(word)) : nil })
        #expect(try await EIDCard.identify(on: card) != .unknown)
        #expect(card.commands == Self.commands)
    }

    @Test("the applications are tried in order, and a passport is not an eID card")
    func applications() async throws {
        let persoSim = TestCard(interfere: { index, _ in index == 0 ? ResponseAPDU(StatusWord(0x6A82)) : nil })
        guard case .eid(let profile) = try await EIDCard.identify(on: persoSim) else {
            throw Unexpected("not identified")
        }
        #expect(profile.applicationID == ApplicationID.persoSim)
        let passport = TestCard(interfere: { index, _ in index < 2 ? ResponseAPDU(StatusWord(0x6A82)) : nil })
        #expect(try await EIDCard.identify(on: passport) == .unknown)
        #expect(passport.commands.count == 4)
        let other = TestCard(interfere: { _, _ in ResponseAPDU(StatusWord(0x6A82)) })
        #expect(try await EIDCard.identify(on: other) == .unknown)
        #expect(other.commands.count == 3)
    }

    @Test(
        "bytes behind the structure of a file do not matter",
        arguments: [2, 4],
        [0x00, 0x01, 0x20, 0x90, 0xFF] as [UInt8]
    )
    func padded(index: Int, padding: UInt8) async throws {
        let unchanged = TestCard()
        let expected = try await EIDCard.identify(on: unchanged)
        let content = index == 2 ? hex("610B4F09E80704007F00070302") : exampleCardAccess
        let card = TestCard(interfere: { command, _ in
            command == index ? ResponseAPDU(data: content + [UInt8](repeating: padding, count: 40), .ok) : nil
        })
        #expect(try await EIDCard.identify(on: card) == expected)
        guard case .eid = expected else { throw Unexpected("not identified") }
    }

    /// Unexpected answers, with the number of the command.
    static let otherCards: [(Int, ResponseAPDU)] = [
        (1, ResponseAPDU(StatusWord(0x6A82))),
        (2, ResponseAPDU(StatusWord(0x6A82))),
        (2, ResponseAPDU(.ok)),
        (2, ResponseAPDU(data: hex("610A4F08A000000167455349"), .ok)),
        (2, ResponseAPDU(data: [0x61, 0x50, 0x4F], .ok)),
        (2, ResponseAPDU(data: [UInt8](repeating: 0x61, count: 257), .ok)),
        (4, ResponseAPDU(StatusWord(0x6982))),
        (4, ResponseAPDU(data: exampleCardAccess.dropLast(), .ok)),
        (4, ResponseAPDU(data: [0x31, 0x00], .ok)),
        (6, ResponseAPDU(StatusWord(0x6A80))),
        (6, ResponseAPDU(StatusWord(0x6983))),
    ]

    @Test("a card that does not answer like an eID card is unknown", arguments: otherCards)
    func unknown(index: Int, answer: ResponseAPDU) async throws {
        let card = TestCard(interfere: { at, _ in at == index ? answer : nil })
        #expect(try await EIDCard.identify(on: card) == .unknown)
    }

    @Test("a card that is lost at any command is an error, and no command is repeated", arguments: 0..<7)
    func lost(index: Int) async throws {
        let card = TestCard(interfere: { at, _ throws(CardError) in
            if at == index { throw .removed }
            return nil
        })
        await #expect(throws: CardError.removed) { try await EIDCard.identify(on: card) }
        #expect(card.commands == Array(Self.commands.prefix(index + 1)))
    }

    @Test(
        "a file is read until its end, for each way in which cards report the end",
        arguments: [
            (0x9000, true), (0x6282, true), (0x6B00, true), (0x6A86, true), (0x6700, true), (0x6282, false),
        ] as [(UInt16, Bool)]
    )
    func endOfFile(word: UInt16, isSeparate: Bool) async throws {
        // The end is reported with the last bytes, or in an answer of its own.
        let card = TestCard(interfere: { index, command in
            guard command.ins == 0xB0, index > 3 else { return nil }
            let offset = command.p1 & 0x80 != 0 ? 0 : Int(command.p1) << 8 | Int(command.p2)
            let part = Array(exampleCardAccess.dropFirst(offset).prefix(30))
            let isLast = offset + part.count == exampleCardAccess.count
            if part.isEmpty || !isSeparate && isLast { return ResponseAPDU(data: part, StatusWord(word)) }
            return ResponseAPDU(data: part, .ok)
        })
        guard case .eid(let profile) = try await EIDCard.identify(on: card) else { throw Unexpected("not identified") }
        #expect(profile.cardAccess.bytes == exampleCardAccess)
    }

    @Test("reading a file without end is bounded", arguments: [1, 10, 256])
    func endless(chunk: Int) async throws {
        let card = TestCard(interfere: { _, command in
            command.ins == 0xB0 ? ResponseAPDU(data: [UInt8](repeating: 0, count: chunk), .ok) : nil
        })
        #expect(try await EIDCard.identify(on: card) == .unknown)
        #expect(card.commands.count <= 2 + 256)
    }

    @Test("no command is sent for a file after the task is cancelled")
    func cancelled() async throws {
        let card = TestCard(interfere: { _, command in
            guard command.ins == 0xB0 else { return nil }
            withUnsafeCurrentTask { $0?.cancel() }
            return ResponseAPDU(data: [0x61], .ok)
        })
        let task = Task { try await EIDCard.identify(on: card) }
        await #expect(throws: CardError.cancelled) { try await task.value }
        #expect(card.commands.count == 3)
    }
}
