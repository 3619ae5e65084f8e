// SPDX-License-Identifier: GPL-3.0-or-later
import Crypto
import EID
import ISO7816
import Secrets
import TestSupport
import Testing

/// What a chip or terminal without good manners sends. Every one is refused with its error; none traps, none is taken.
@Suite("PACE against a hostile partner")
struct HostilePACETests {
    /// How the data field of one step is spoiled.
    struct Spoiling: Sendable, CustomTestStringConvertible {
        let name: String
        let error: PACEError
        let body: @Sendable (_ good: [UInt8], _ mirror: [UInt8]) -> [UInt8]
        var testDescription: String { name }

        init(_ name: String, _ error: PACEError, _ body: @escaping @Sendable ([UInt8], [UInt8]) -> [UInt8]) {
            (self.name, self.error, self.body) = (name, error, body)
        }
    }

    static let unreadable = PACEError.malformed("dynamic authentication data cannot be read")
    static let otherObject = PACEError.malformed("unexpected object")

    static let anyStep: [Spoiling] = [
        Spoiling("nothing", unreadable) { _, _ in [] },
        Spoiling("cut in the middle", unreadable) { good, _ in Array(good.prefix(good.count / 2)) },
        Spoiling("last byte lost", unreadable) { good, _ in Array(good.dropLast()) },
        Spoiling("a byte too many", unreadable) { good, _ in good + [0] },
        Spoiling("object cut inside", unreadable) { _, _ in [0x7C, 0x02, 0x82, 0x41] },
        Spoiling("other template", .malformed("no dynamic authentication data")) { good, _ in [0x7D] + good.dropFirst()
        },
        Spoiling("garbage", unreadable) { good, _ in good.map { $0 ^ 0xA5 } },
        Spoiling("indefinite length", unreadable) { _, _ in [0x7C, 0x80, 0x00, 0x00] },
        Spoiling("60 000 bytes", unreadable) { _, _ in [UInt8](repeating: 0x7C, count: 60_000) },
    ]

    static let oneObject: [Spoiling] = [
        Spoiling("no object", otherObject) { _, _ in [0x7C, 0x00] },
        Spoiling("other tag", otherObject) { good, _ in good.prefix(2) + [good[2] + 0x10] + good.dropFirst(3) },
        Spoiling("object twice", otherObject) { good, _ in
            (try? BERTLV(0x7C, BERTLV(good).children + BERTLV(good).children).encoded) ?? []
        },
    ]

    static let points: [Spoiling] = [
        Spoiling("empty object", .invalidPoint) { good, _ in [0x7C, 0x02, good[2], 0x00] },
        Spoiling("off the curve", .invalidPoint) { good, _ in Array(good.dropLast()) + [(good.last ?? 0) ^ 1] },
        Spoiling("infinity", .invalidPoint) { good, _ in [0x7C, 0x03, good[2], 0x01, 0x00] },
        Spoiling("zeros", .invalidPoint) { good, _ in good.prefix(5) + [UInt8](repeating: 0, count: 64) },
        Spoiling("compressed", .invalidPoint) { good, _ in
            [0x7C, 0x23, good[2], 0x21, 0x02] + good.dropFirst(5).prefix(32)
        },
        Spoiling("short coordinates", .invalidPoint) { good, _ in
            [0x7C, 0x41, good[2], 0x3F, 0x04] + [UInt8](repeating: 1, count: 62)
        },
        Spoiling("our own key", .equalKeys) { good, mirror in Array(good.prefix(4)) + mirror.dropFirst(4) },
    ]

    static let parameters = PACEParameters(curve: .brainpoolP256r1, cipher: .aes128)

    @Test("an encrypted nonce", arguments: anyStep + oneObject)
    func nonce(spoiling: Spoiling) throws {
        var terminal = try makeTerminal()
        var chip = try makeChip()
        let good = try chip.answer(PACE.Terminal.request)
        #expect(throws: spoiling.error) { try terminal.receiveNonce(spoiling.body(good, [])) }
        #expect(throws: PACEError.outOfOrder) { try terminal.receiveMapping(good) }
    }

    @Test("an encrypted nonce of a length that is no whole block", arguments: [0, 1, 15, 17, 31, 80, 200])
    func nonceLength(count: Int) throws {
        var terminal = try makeTerminal()
        let data = BERTLV(0x7C, [BERTLV(0x80, [UInt8](repeating: 7, count: count))]).encoded
        #expect(throws: PACEError.malformed("nonce of a wrong length")) { try terminal.receiveNonce(data) }
    }

    @Test("a mapping key", arguments: anyStep + oneObject + points)
    func mapping(spoiling: Spoiling) throws {
        var terminal = try makeTerminal()
        var chip = try makeChip()
        let own = try terminal.receiveNonce(try chip.answer(PACE.Terminal.request))
        let good = try chip.answer(own)
        #expect(throws: spoiling.error) { try terminal.receiveMapping(spoiling.body(good, own)) }
        #expect(throws: PACEError.outOfOrder) { try terminal.receiveEphemeral(good) }
    }

    @Test("an ephemeral key", arguments: anyStep + oneObject + points)
    func ephemeral(spoiling: Spoiling) throws {
        var terminal = try makeTerminal()
        var chip = try makeChip()
        let mapping = try terminal.receiveNonce(try chip.answer(PACE.Terminal.request))
        let own = try terminal.receiveMapping(try chip.answer(mapping))
        let good = try chip.answer(own)
        #expect(throws: spoiling.error) { try terminal.receiveEphemeral(spoiling.body(good, own)) }
        #expect(throws: PACEError.outOfOrder) { try terminal.receiveToken(good).idPICC }
    }

    static let noToken = PACEError.malformed("no token")
    static let tokens: [Spoiling] = [
        Spoiling("no object", noToken) { _, _ in [0x7C, 0x00] },
        Spoiling("other tag", noToken) { good, _ in good.prefix(2) + [0x85] + good.dropFirst(3) },
        Spoiling("one bit changed", .wrongToken) { good, _ in Array(good.dropLast()) + [(good.last ?? 0) ^ 0x80] },
        Spoiling("our own token", .wrongToken) { good, own in Array(good.prefix(4)) + own.dropFirst(4) },
        Spoiling("short token", .wrongToken) { good, _ in [0x7C, 0x06, 0x86, 0x04] + good.dropFirst(4).prefix(4) },
        Spoiling("empty token", .wrongToken) { _, _ in [0x7C, 0x02, 0x86, 0x00] },
        Spoiling("token twice", otherObject) { good, _ in [0x7C, 0x14] + good.dropFirst(2) + good.dropFirst(2) },
        Spoiling("previous trust point alone", otherObject) { good, _ in
            [0x7C, 0x0D] + good.dropFirst(2) + [0x88, 0x01, 0x41]
        },
        Spoiling("empty name of a trust point", .malformed("name of a CVCA key")) { good, _ in
            [0x7C, 0x0C] + good.dropFirst(2) + [0x87, 0x00]
        },
        Spoiling("name of a trust point of 17 bytes", .malformed("name of a CVCA key")) { good, _ in
            [0x7C, 0x1D] + good.dropFirst(2) + [0x87, 0x11] + [UInt8](repeating: 0x41, count: 17)
        },
    ]

    @Test("a token", arguments: anyStep + tokens)
    func token(spoiling: Spoiling) throws {
        var terminal = try makeTerminal()
        var chip = try makeChip()
        let own = try exchange(&terminal, &chip)
        let good = try chip.answer(own)
        #expect(throws: spoiling.error) { try terminal.receiveToken(spoiling.body(good, own)).idPICC }
        #expect(throws: PACEError.outOfOrder) { try terminal.receiveToken(good).idPICC }
    }

    @Test("a terminal against the chip, at each step", arguments: anyStep + oneObject, 1...3)
    func terminal(spoiling: Spoiling, step: Int) throws {
        var terminal = try makeTerminal()
        var chip = try makeChip()
        let good = try command(step, &terminal, &chip)
        #expect(throws: spoiling.error) { try chip.answer(spoiling.body(good, good)) }
        #expect(throws: PACEError.outOfOrder) { try chip.answer(good) }
        let isWithoutOutcome = (try? ChipOutcome(&chip)) == nil
        #expect(isWithoutOutcome)
    }

    @Test("a terminal's points against the chip", arguments: points.filter { $0.error != .equalKeys }, 1...2)
    func terminalPoints(spoiling: Spoiling, step: Int) throws {
        var terminal = try makeTerminal()
        var chip = try makeChip()
        let good = try command(step, &terminal, &chip)
        #expect(throws: spoiling.error) { try chip.answer(spoiling.body(good, good)) }
        #expect(throws: PACEError.outOfOrder) { try chip.answer(good) }
    }

    @Test("a terminal that has the chip's own ephemeral key")
    func mirroredChip() throws {
        // The same private key on the same mapped generator.
        let ephemeral = try Random.bytes(31)
        var terminal = PACE.Terminal(
            Self.parameters,
            passwordKey: try passwordKey("123456", .aes128),
            fixedKeys: PACE.FixedKeys(mapping: try Random.secret(31), ephemeral: Secret(ephemeral))
        )
        var chip = PACE.Chip(
            Self.parameters,
            passwordKey: try passwordKey("123456", .aes128),
            fixedKeys: PACE.FixedKeys(mapping: try Random.secret(31), ephemeral: Secret(ephemeral))
        )
        let command = try command(2, &terminal, &chip)
        #expect(throws: PACEError.equalKeys) { try chip.answer(command) }
    }

    @Test("a terminal that asks for the nonce with data")
    func requestWithData() throws {
        var chip = try makeChip()
        #expect(throws: PACEError.malformed("data in the request for the nonce")) {
            try chip.answer([0x7C, 0x02, 0x80, 0x00])
        }
    }

    @Test("steps in another order")
    func order() throws {
        var terminal = try makeTerminal()
        #expect(throws: PACEError.outOfOrder) { try terminal.receiveToken([0x7C, 0x00]).idPICC }
        #expect(throws: PACEError.outOfOrder) { try terminal.receiveNonce([0x7C, 0x00]) }
        var chip = try makeChip()
        let isWithoutOutcome = (try? ChipOutcome(&chip)) == nil
        #expect(isWithoutOutcome)
    }

    private func makeTerminal() throws -> PACE.Terminal {
        PACE.Terminal(Self.parameters, passwordKey: try passwordKey("123456", .aes128))
    }

    private func makeChip() throws -> PACE.Chip {
        PACE.Chip(Self.parameters, passwordKey: try passwordKey("123456", .aes128))
    }

    /// The terminal's command of step 1 (mapping), 2 (ephemeral key) or 3 (token), not yet answered.
    private func command(_ step: Int, _ terminal: inout PACE.Terminal, _ chip: inout PACE.Chip) throws -> [UInt8] {
        var command = try terminal.receiveNonce(try chip.answer(PACE.Terminal.request))
        if step > 1 { command = try terminal.receiveMapping(try chip.answer(command)) }
        if step > 2 { command = try terminal.receiveEphemeral(try chip.answer(command)) }
        return command
    }
}
