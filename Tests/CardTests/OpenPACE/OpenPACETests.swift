// SPDX-License-Identifier: GPL-3.0-or-later
import ChipAccess
import Crypto
import EID
import ISO7816
import TestSupport
import Testing
import Text

private func value(_ tag: UInt32, _ data: [UInt8]) throws -> [UInt8] {
    try #require(try BERTLV(data).children.first { $0.tag == tag }).value
}

private func wrap(_ tag: UInt32, _ value: [UInt8]) -> [UInt8] { BERTLV(0x7C, [BERTLV(tag, value)]).encoded }

/// Both sides of PACE and of secure messaging, each with libeac as the other side.
///
/// Serialized, since libeac changes a global table of object identifiers.
@Suite("PACE with libeac", .serialized, .timeLimit(.minutes(5)))
struct OpenPACETests {
    @Test("our terminal and libeac's chip get the same channel", arguments: Curve.allCases, AES.allCases)
    func terminal(curve: Curve, cipher: AES) throws {
        let parameters = PACEParameters(curve: curve, cipher: cipher)
        let chip = try OpenPACE(parameters, password: "123456", id: .pin)
        var terminal = try makeTerminal(parameters, "123456", .pin)

        let outcome = try agree(&terminal, chip)

        let keys = try chip.keys
        #expect(bytes(outcome.keys.encryption) == keys.encryption)
        #expect(bytes(outcome.keys.authentication) == keys.authentication)
    }

    @Test("libeac's terminal and our chip get the same channel", arguments: Curve.allCases, AES.allCases)
    func chip(curve: Curve, cipher: AES) throws {
        let parameters = PACEParameters(curve: curve, cipher: cipher)
        let terminal = try OpenPACE(parameters, password: "500540", id: .can)
        var chip = try makeChip(parameters, "500540", .can)

        let token = try token(of: terminal, for: &chip)
        let answer = try chip.answer(wrap(0x85, token))
        #expect(try terminal.accepts(token: try value(0x86, answer)))

        let keys = try terminal.keys
        let taken = chip.takeOutcome()
        guard let outcome = consume taken else { throw Unexpected("our chip has no channel") }
        #expect(bytes(outcome.keys.encryption) == keys.encryption)
        #expect(bytes(outcome.keys.authentication) == keys.authentication)
    }

    /// What documents have beside the variants of eID cards: Triple DES, integers, the integrated mapping.
    static let documentVariants: [PACEParameters] =
        [Curve.secp256r1, .brainpoolP384r1].map { curve in
            PACEParameters(mapping: .generic, domain: .curve(curve), cipher: .tripleDES)
        }
        + DHParameters.allCases.flatMap { group in
            SessionCipher.allCases.map { PACEParameters(mapping: .generic, domain: .integers(group), cipher: $0) }
        }

    @Test(
        "our terminal and libeac's chip get the same channel in the variants of documents",
        arguments: documentVariants
    )
    func documentTerminal(parameters: PACEParameters) throws {
        var chip = try OpenPACE(parameters, password: "500540", id: .can)
        var terminal = try makeTerminal(parameters, "500540", .can)
        var agreed: PACE.Outcome?
        do {
            agreed = try agree(&terminal, chip)
        } catch is TokenRefused {
            // libeac drops the leading zero bytes of an integer, which ICAO 9303-11 keeps, once in some hundred agreements.
            guard case .integers = parameters.domain else { throw TokenRefused() }
            chip = try OpenPACE(parameters, password: "500540", id: .can)
            terminal = try makeTerminal(parameters, "500540", .can)
            agreed = try agree(&terminal, chip)
        }
        guard let outcome = agreed.take() else { return }

        let keys = try chip.keys
        // libeac does not adjust the parity of keys of Triple DES, which is the last bit of each byte.
        let mask: UInt8 = parameters.cipher == .tripleDES ? 0xFE : 0xFF
        #expect(bytes(outcome.keys.encryption).map { $0 & mask } == keys.encryption.map { $0 & mask })
        #expect(bytes(outcome.keys.authentication).map { $0 & mask } == keys.authentication.map { $0 & mask })
    }

    /// The machine readable zone of an invented card. libeac needs the whole zone. The password consists of the
    /// document number, the date of birth and the date of expiry, each with its check digit.
    static let zone =
        "I<UTOT220001293<<<<<<<<<<<<<<<" + "6408125F1010318UTO<<<<<<<<<<<0" + "MUSTER<<MAX<<<<<<<<<<<<<<<<<<<"

    @Test(
        "both sides accept passwords of every kind",
        arguments: [
            (.mrz, zone, "T22000129364081251010318"), (.can, "500540", "500540"), (.pin, "12345", "12345"),
            (.puk, "9876543210", "9876543210"),
        ] as [(PasswordID, String, String)]
    )
    func passwords(id: PasswordID, theirs: String, ours: String) throws {
        let parameters = PACEParameters(curve: .brainpoolP256r1, cipher: .aes256)
        let terminal = try OpenPACE(parameters, password: theirs, id: id)
        var chip = try makeChip(parameters, ours, id)
        let token = try token(of: terminal, for: &chip)
        #expect(try terminal.accepts(token: try value(0x86, try chip.answer(wrap(0x85, token)))))
    }

    @Test("different passwords give different tokens")
    func wrongPassword() throws {
        let parameters = PACEParameters(curve: .brainpoolP256r1, cipher: .aes128)
        let terminal = try OpenPACE(parameters, password: "123456", id: .pin)
        var chip = try makeChip(parameters, "123457", .pin)
        let token = try token(of: terminal, for: &chip)
        #expect(throws: ChipError.wrongToken) { try chip.answer(wrap(0x85, token)) }
    }

    @Test("libeac's Comp() is the same except for the leading zero bytes that it drops")
    func compression() throws {
        let parameters = PACEParameters(curve: .brainpoolP256r1, cipher: .aes128)
        let libeac = try OpenPACE(parameters, password: "1", id: .can)
        _ = try libeac.makeEncryptedNonce()
        let peer = try ECPrivateKey(on: try Curve.brainpoolP256r1.group).publicKey
        _ = try libeac.makeMappingKey()
        try libeac.map(peer.uncompressed)
        _ = try libeac.makeEphemeralKey()
        var withLeadingZero = 0
        for _ in 0..<20_000 where withLeadingZero < 2 {
            let key = try ECPrivateKey(on: try Curve.brainpoolP256r1.group).publicKey
            guard key.compressed[0] == 0 || withLeadingZero == 0 else { continue }
            #expect(try libeac.compress(key.uncompressed).drop { $0 == 0 } == key.compressed.drop { $0 == 0 })
            #expect(key.compressed.count == 32)
            if key.compressed[0] == 0 { withLeadingZero += 1 }
        }
        #expect(withLeadingZero > 0)
    }

    @Test("libeac decrypts our commands, and its answers are accepted", arguments: AES.allCases)
    func secureMessaging(cipher: AES) throws {
        let parameters = PACEParameters(curve: .brainpoolP256r1, cipher: cipher)
        let chip = try OpenPACE(parameters, password: "123456", id: .pin)
        var terminal = try makeTerminal(parameters, "123456", .pin)
        let outcome = try agree(&terminal, chip)
        var messaging = outcome.secureMessaging()
        try chip.startSecureMessaging()

        for (round, count) in [6, 0, 16, 200].enumerated() {
            let plain = (0..<count).map { UInt8(truncatingIfNeeded: $0) }
            let command = CommandAPDU(0x00, 0x2C, 0x02, 0x03, data: plain, le: 256)
            let wrapped = try messaging.wrap(command)
            try chip.setCounter(UInt(2 * round + 1))
            let objects = try BERTLV.sequence(wrapped.data)
            if count > 0 {
                let encrypted = try #require(objects.first { $0.tag == 0x87 }).value
                #expect(try chip.decrypt(Array(encrypted.dropFirst())) == (try chip.pad(plain)))
            }
            let header = try chip.pad([wrapped.cla, wrapped.ins, wrapped.p1, wrapped.p2])
            let body = try chip.pad(objects.dropLast().flatMap(\.encoded))
            #expect(try chip.authenticate(header + body) == objects.last?.value)

            try chip.setCounter(UInt(2 * round + 2))
            var answer = [BERTLV(0x99, [0x90, 0x00])]
            if count > 0 {
                answer.insert(BERTLV(0x87, [0x01] + (try chip.encrypt(try chip.pad(plain.reversed())))), at: 0)
            }
            let mac = try chip.authenticate(try chip.pad(answer.flatMap(\.encoded)))
            let data = (answer + [BERTLV(0x8E, mac)]).flatMap(\.encoded)
            #expect(try messaging.unwrap(ResponseAPDU(data: data, .ok)).data == plain.reversed())
        }
    }

    private struct TokenRefused: Error {}

    /// Runs PACE of our terminal with libeac's chip.
    /// - Throws: `TokenRefused` if the chip refuses our token.
    private func agree(_ terminal: inout PACE.Terminal, _ chip: OpenPACE) throws -> PACE.Outcome {
        let mapping = try terminal.receiveNonce(wrap(0x80, try chip.makeEncryptedNonce()))
        let chipMapping = try chip.makeMappingKey()
        try chip.map(try value(0x81, mapping))
        let ephemeral = try terminal.receiveMapping(wrap(0x82, chipMapping))
        let chipEphemeral = try chip.makeEphemeralKey()
        let chipToken = try chip.agree(try value(0x83, ephemeral))
        let token = try terminal.receiveEphemeral(wrap(0x84, chipEphemeral))
        guard try chip.accepts(token: try value(0x85, token)) else { throw TokenRefused() }
        let outcome = try terminal.receiveToken(wrap(0x86, chipToken))
        // libeac hands out the numbers of DH without their Comp().
        if chipEphemeral.first == 4, chipEphemeral.count % 2 == 1 {
            #expect(outcome.idPICC == Array(chipEphemeral.dropFirst().prefix(chipEphemeral.count / 2)))
        }
        return outcome
    }

    /// Runs PACE of libeac's terminal with our chip, up to the token of the terminal.
    private func token(of terminal: OpenPACE, for chip: inout PACE.Chip) throws -> [UInt8] {
        try terminal.decryptNonce(try value(0x80, try chip.answer(PACE.Terminal.request)))
        let mapping = try terminal.makeMappingKey()
        try terminal.map(try value(0x82, try chip.answer(wrap(0x81, mapping))))
        let ephemeral = try terminal.makeEphemeralKey()
        return try terminal.agree(try value(0x84, try chip.answer(wrap(0x83, ephemeral))))
    }

    private func makeTerminal(_ parameters: PACEParameters, _ password: String, _ id: PasswordID) throws
        -> PACE.Terminal
    {
        let key = try PACE.passwordKey(Secret(Array(password.utf8)), id: id, cipher: parameters.cipher)
        return PACE.Terminal(parameters, passwordKey: key)
    }

    private func makeChip(_ parameters: PACEParameters, _ password: String, _ id: PasswordID) throws -> PACE.Chip {
        let key = try PACE.passwordKey(Secret(Array(password.utf8)), id: id, cipher: parameters.cipher)
        return PACE.Chip(parameters, passwordKey: key)
    }
}
