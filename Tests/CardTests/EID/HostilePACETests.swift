// SPDX-License-Identifier: GPL-3.0-or-later
import ChipAccess
import Crypto
import EID
import ISO7816
import TestSupport
import Testing
import Text

/// Invalid messages of a chip or a terminal. Each is refused with its error.
@Suite("PACE with a hostile other side", .timeLimit(.minutes(5)))
struct HostilePACETests {
    /// A change to the data field of one step.
    struct Change: Sendable, CustomTestStringConvertible {
        let name: String
        let error: ChipError
        let body: @Sendable (_ good: [UInt8], _ mirror: [UInt8]) -> [UInt8]
        var testDescription: String { name }

        init(_ name: String, _ error: ChipError, _ body: @escaping @Sendable ([UInt8], [UInt8]) -> [UInt8]) {
            (self.name, self.error, self.body) = (name, error, body)
        }
    }

    static let unreadable = ChipError.pace("dynamic authentication data cannot be read")
    static let otherObject = ChipError.pace("unexpected object")

    static let anyStep: [Change] = [
        Change("nothing", unreadable) { _, _ in [] },
        Change("cut in the middle", unreadable) { good, _ in Array(good.prefix(good.count / 2)) },
        Change("last byte lost", unreadable) { good, _ in Array(good.dropLast()) },
        Change("a byte too many", unreadable) { good, _ in good + [0] },
        Change("object cut inside", unreadable) { _, _ in [0x7C, 0x02, 0x82, 0x41] },
        Change("other template", .pace("no dynamic authentication data")) { good, _ in [0x7D] + good.dropFirst()
        },
        Change("garbage", unreadable) { good, _ in good.map { $0 ^ 0xA5 } },
        Change("indefinite length", unreadable) { _, _ in [0x7C, 0x80, 0x00, 0x00] },
        Change("60 000 bytes", unreadable) { _, _ in [UInt8](repeating: 0x7C, count: 60_000) },
    ]

    static let oneObject: [Change] = [
        Change("no object", otherObject) { _, _ in [0x7C, 0x00] },
        Change("other tag", otherObject) { good, _ in good.prefix(2) + [good[2] + 0x10] + good.dropFirst(3) },
        Change("object twice", otherObject) { good, _ in
            (try? BERTLV(0x7C, BERTLV(good).children + BERTLV(good).children).encoded) ?? []
        },
    ]

    static let points: [Change] = [
        Change("empty object", .invalidPoint) { good, _ in [0x7C, 0x02, good[2], 0x00] },
        Change("off the curve", .invalidPoint) { good, _ in Array(good.dropLast()) + [(good.last ?? 0) ^ 1] },
        Change("infinity", .invalidPoint) { good, _ in [0x7C, 0x03, good[2], 0x01, 0x00] },
        Change("zeros", .invalidPoint) { good, _ in good.prefix(5) + [UInt8](repeating: 0, count: 64) },
        Change("compressed", .invalidPoint) { good, _ in
            [0x7C, 0x23, good[2], 0x21, 0x02] + good.dropFirst(5).prefix(32)
        },
        Change("short coordinates", .invalidPoint) { good, _ in
            [0x7C, 0x41, good[2], 0x3F, 0x04] + [UInt8](repeating: 1, count: 62)
        },
        Change("our own key", .equalKeys) { good, mirror in Array(good.prefix(4)) + mirror.dropFirst(4) },
    ]

    static let parameters = PACEParameters(curve: .brainpoolP256r1, cipher: .aes128)

    @Test("an invalid encrypted nonce is refused", arguments: anyStep + oneObject)
    func nonce(change: Change) throws {
        var terminal = try makeTerminal()
        var chip = try makeChip()
        let good = try chip.answer(PACE.Terminal.request)
        #expect(throws: change.error) { try terminal.receiveNonce(change.body(good, [])) }
        #expect(throws: ChipError.outOfOrder) { try terminal.receiveMapping(good) }
    }

    @Test("an encrypted nonce of a wrong length is refused", arguments: [0, 1, 15, 17, 31, 80, 200])
    func nonceLength(count: Int) throws {
        var terminal = try makeTerminal()
        let data = BERTLV(0x7C, [BERTLV(0x80, [UInt8](repeating: 7, count: count))]).encoded
        #expect(throws: ChipError.pace("nonce of a wrong length")) { try terminal.receiveNonce(data) }
    }

    @Test("an invalid mapping key is refused", arguments: anyStep + oneObject + points)
    func mapping(change: Change) throws {
        var terminal = try makeTerminal()
        var chip = try makeChip()
        let own = try terminal.receiveNonce(try chip.answer(PACE.Terminal.request))
        let good = try chip.answer(own)
        #expect(throws: change.error) { try terminal.receiveMapping(change.body(good, own)) }
        #expect(throws: ChipError.outOfOrder) { try terminal.receiveEphemeral(good) }
    }

    @Test("an invalid ephemeral key is refused", arguments: anyStep + oneObject + points)
    func ephemeral(change: Change) throws {
        var terminal = try makeTerminal()
        var chip = try makeChip()
        let mapping = try terminal.receiveNonce(try chip.answer(PACE.Terminal.request))
        let own = try terminal.receiveMapping(try chip.answer(mapping))
        let good = try chip.answer(own)
        #expect(throws: change.error) { try terminal.receiveEphemeral(change.body(good, own)) }
        #expect(throws: ChipError.outOfOrder) { try terminal.receiveToken(good).idPICC }
    }

    static let noToken = ChipError.pace("no token")
    static let tokens: [Change] = [
        Change("no object", noToken) { _, _ in [0x7C, 0x00] },
        Change("other tag", noToken) { good, _ in good.prefix(2) + [0x85] + good.dropFirst(3) },
        Change("one bit changed", .wrongToken) { good, _ in Array(good.dropLast()) + [(good.last ?? 0) ^ 0x80] },
        Change("our own token", .wrongToken) { good, own in Array(good.prefix(4)) + own.dropFirst(4) },
        Change("short token", .wrongToken) { good, _ in [0x7C, 0x06, 0x86, 0x04] + good.dropFirst(4).prefix(4) },
        Change("empty token", .wrongToken) { _, _ in [0x7C, 0x02, 0x86, 0x00] },
        Change("token twice", otherObject) { good, _ in [0x7C, 0x14] + good.dropFirst(2) + good.dropFirst(2) },
        Change("previous trust point alone", otherObject) { good, _ in
            [0x7C, 0x0D] + good.dropFirst(2) + [0x88, 0x01, 0x41]
        },
        Change("empty name of a trust point", .pace("name of a CVCA key")) { good, _ in
            [0x7C, 0x0C] + good.dropFirst(2) + [0x87, 0x00]
        },
        Change("name of a trust point of 17 bytes", .pace("name of a CVCA key")) { good, _ in
            [0x7C, 0x1D] + good.dropFirst(2) + [0x87, 0x11] + [UInt8](repeating: 0x41, count: 17)
        },
    ]

    @Test("an invalid token is refused", arguments: anyStep + tokens)
    func token(change: Change) throws {
        var terminal = try makeTerminal()
        var chip = try makeChip()
        let own = try exchange(&terminal, &chip)
        let good = try chip.answer(own)
        #expect(throws: change.error) { try terminal.receiveToken(change.body(good, own)).idPICC }
        #expect(throws: ChipError.outOfOrder) { try terminal.receiveToken(good).idPICC }
    }

    @Test("the chip refuses invalid messages of a terminal in each step", arguments: anyStep + oneObject, 1...3)
    func terminal(change: Change, step: Int) throws {
        var terminal = try makeTerminal()
        var chip = try makeChip()
        let good = try command(step, &terminal, &chip)
        #expect(throws: change.error) { try chip.answer(change.body(good, good)) }
        #expect(throws: ChipError.outOfOrder) { try chip.answer(good) }
        let isWithoutOutcome = chip.takeOutcome() == nil
        #expect(isWithoutOutcome)
    }

    @Test("the chip refuses invalid points of a terminal", arguments: points.filter { $0.error != .equalKeys }, 1...2)
    func terminalPoints(change: Change, step: Int) throws {
        var terminal = try makeTerminal()
        var chip = try makeChip()
        let good = try command(step, &terminal, &chip)
        #expect(throws: change.error) { try chip.answer(change.body(good, good)) }
        #expect(throws: ChipError.outOfOrder) { try chip.answer(good) }
    }

    @Test("the chip refuses its own ephemeral key from a terminal")
    func mirroredChip() throws {
        // The same private key on the same mapped generator.
        let ephemeral = try Random.bytes(31)
        var terminal = PACE.Terminal(
            Self.parameters,
            passwordKey: try passwordKey("123456"),
            fixedKeys: PACE.FixedKeys(mapping: try Random.secret(31), ephemeral: Secret(ephemeral))
        )
        var chip = PACE.Chip(
            Self.parameters,
            passwordKey: try passwordKey("123456"),
            fixedKeys: PACE.FixedKeys(mapping: try Random.secret(31), ephemeral: Secret(ephemeral))
        )
        let command = try command(2, &terminal, &chip)
        #expect(throws: ChipError.equalKeys) { try chip.answer(command) }
    }

    @Test("the chip refuses data in the request for the nonce")
    func requestWithData() throws {
        var chip = try makeChip()
        #expect(throws: ChipError.pace("data in the request for the nonce")) {
            try chip.answer([0x7C, 0x02, 0x80, 0x00])
        }
    }

    @Test("steps in a wrong order are refused")
    func order() throws {
        var terminal = try makeTerminal()
        #expect(throws: ChipError.outOfOrder) { try terminal.receiveToken([0x7C, 0x00]).idPICC }
        #expect(throws: ChipError.outOfOrder) { try terminal.receiveNonce([0x7C, 0x00]) }
        var chip = try makeChip()
        let isWithoutOutcome = chip.takeOutcome() == nil
        #expect(isWithoutOutcome)
    }

    private func makeTerminal() throws -> PACE.Terminal {
        PACE.Terminal(Self.parameters, passwordKey: try passwordKey("123456"))
    }

    private func makeChip() throws -> PACE.Chip {
        PACE.Chip(Self.parameters, passwordKey: try passwordKey("123456"))
    }

    /// The terminal's command of step 1 (mapping), 2 (ephemeral key) or 3 (token).
    private func command(_ step: Int, _ terminal: inout PACE.Terminal, _ chip: inout PACE.Chip) throws -> [UInt8] {
        var command = try terminal.receiveNonce(try chip.answer(PACE.Terminal.request))
        if step > 1 { command = try terminal.receiveMapping(try chip.answer(command)) }
        if step > 2 { command = try terminal.receiveEphemeral(try chip.answer(command)) }
        return command
    }
}
