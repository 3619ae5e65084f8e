// SPDX-License-Identifier: GPL-3.0-or-later
import ChipAccess
import Crypto
import EID
import ISO7816
import Secrets
import TestSupport
import Testing

/// The key of a PIN.
func passwordKey(_ password: String, _ cipher: AES) throws -> Secret {
    try PACE.passwordKey(Secret(Array(password.utf8)), id: .pin, cipher: SessionCipher(cipher))
}

@Suite("PACE", .timeLimit(.minutes(5)))
struct PACETests {
    static let parameters = PACEParameters(curve: .brainpoolP256r1, cipher: .aes128)

    @Test(
        "both sides get the same channel, with every curve and every AES key length",
        arguments: Curve.allCases,
        AES.allCases
    )
    func run(curve: Curve, cipher: AES) throws {
        let parameters = PACEParameters(curve: curve, cipher: cipher)
        var terminal = PACE.Terminal(parameters, passwordKey: try passwordKey("123456", cipher))
        var chip = PACE.Chip(parameters, passwordKey: try passwordKey("123456", cipher))
        let outcome = try complete(&terminal, &chip)
        let other = try ChipOutcome(&chip)
        #expect(outcome.idPICC == other.idPICC)
        #expect(outcome.idPCD == other.idPCD)
        #expect(outcome.idPICC.count == curve.fieldLength)
        #expect(outcome.idPCD.count == curve.fieldLength)
        #expect(bytes(outcome.keys.encryption) == other.encryption)
        #expect(bytes(outcome.keys.authentication) == other.authentication)
        #expect(other.encryption.count == cipher.keyLength)
        #expect(other.encryption != other.authentication)
    }

    @Test("the chip detects a wrong password at the token", arguments: [AES.aes128, .aes256])
    func wrongPassword(cipher: AES) throws {
        let parameters = PACEParameters(curve: .brainpoolP256r1, cipher: cipher)
        var terminal = PACE.Terminal(parameters, passwordKey: try passwordKey("123456", cipher))
        var chip = PACE.Chip(parameters, passwordKey: try passwordKey("123457", cipher))
        let token = try exchange(&terminal, &chip)
        #expect(throws: ChipError.wrongToken) { try chip.answer(token) }
        let isWithoutOutcome = (try? ChipOutcome(&chip)) == nil
        #expect(isWithoutOutcome)
        #expect(throws: ChipError.outOfOrder) { try chip.answer(PACE.Terminal.request) }
    }

    @Test("the terminal gets the names of the trust points")
    func certificationAuthorities() throws {
        let names = PACE.CertificationAuthorities(
            current: Array("DETESTeIDBG00002".utf8),
            previous: Array("DETESTeIDBG00001".utf8)
        )
        var terminal = PACE.Terminal(Self.parameters, passwordKey: try passwordKey("1", .aes128))
        var chip = PACE.Chip(
            Self.parameters,
            passwordKey: try passwordKey("1", .aes128),
            certificationAuthorities: names
        )
        #expect(try complete(&terminal, &chip).certificationAuthorities == names)
    }

    @Test("the terminal accepts longer nonces", arguments: [16, 32, 48, 64])
    func longNonce(count: Int) throws {
        let nonce = try Random.secret(count)
        var terminal = PACE.Terminal(Self.parameters, passwordKey: try passwordKey("1", .aes128))
        var chip = PACE.Chip(Self.parameters, passwordKey: try passwordKey("1", .aes128), nonce: nonce)
        #expect(try complete(&terminal, &chip).idPICC.count == 32)
    }

    @Test("only the MRZ is hashed before the key is derived")
    func passwordKinds() throws {
        let text = Array("123456".utf8)
        let hash = try DigestAlgorithm.sha1.hash(text)
        let mrz = bytes(try PACE.passwordKey(Secret(text), id: .mrz, cipher: .aes256))
        let expected = bytes(try KeyDerivation.derive(.password, from: Secret(hash), for: .aes256))
        #expect(mrz == expected)
        for id in [PasswordID.can, .pin, .puk] {
            let key = bytes(try PACE.passwordKey(Secret(text), id: id, cipher: .aes256))
            #expect(key == hex("8DF3278FB32026E66277357FCD6C826DBEB3DE32088B2531757D753940185923"))
        }
    }

    /// The value that begins with a zero byte.
    enum Part: CaseIterable { case chipKey, terminalKey, sharedSecret }

    @Test(
        "both sides keep leading zero bytes of keys and secrets",
        arguments: [Curve.brainpoolP256r1, .secp256r1, .brainpoolP320r1],
        Part.allCases
    )
    func leadingZeros(curve: Curve, part: Part) throws {
        let parameters = PACEParameters(curve: curve, cipher: .aes128)
        let nonce = try Random.secret(16)
        // The mapping keys fix the generator. Then random ephemeral keys are tried until one has a leading zero.
        let mappingScalars = [try scalar(curve), try scalar(curve)]
        let mappingTerminal = try ECPrivateKey(Secret(mappingScalars[0]), on: try curve.group)
        let mappingChip = try ECPrivateKey(Secret(mappingScalars[1]), on: try curve.group)
        let peer = mappingChip.publicKey
        let group = try curve.group.mapped(nonce: nonce, key: mappingTerminal, peer: peer)
        let otherScalar = try scalar(curve)
        let other = try ECPrivateKey(Secret(otherScalar), on: group)
        let otherPublic = other.publicKey
        for _ in 0..<20_000 {
            let candidate = try scalar(curve)
            let key = try ECPrivateKey(Secret(candidate), on: group)
            let found =
                switch part {
                case .chipKey, .terminalKey: key.publicKey.compressed[0] == 0
                case .sharedSecret: bytes(try key.sharedSecret(with: otherPublic))[0] == 0
                }
            guard found else { continue }
            let isChips = part == .chipKey
            var terminal = PACE.Terminal(
                parameters,
                passwordKey: try passwordKey("123456", .aes128),
                fixedKeys: PACE.FixedKeys(
                    mapping: Secret(mappingScalars[0]),
                    ephemeral: Secret(isChips ? otherScalar : candidate)
                )
            )
            var chip = PACE.Chip(
                parameters,
                passwordKey: try passwordKey("123456", .aes128),
                fixedKeys: PACE.FixedKeys(
                    mapping: Secret(mappingScalars[1]),
                    ephemeral: Secret(isChips ? candidate : otherScalar)
                ),
                nonce: nonce.clone()
            )
            let outcome = try complete(&terminal, &chip)
            let chipOutcome = try ChipOutcome(&chip)
            let point = key.publicKey.uncompressed
            let expected = Array(point.dropFirst().prefix(curve.fieldLength))
            switch part {
            case .chipKey:
                #expect(outcome.idPICC == expected)
                #expect(chipOutcome.idPICC == expected)
            case .terminalKey:
                #expect(outcome.idPCD == expected)
                #expect(chipOutcome.idPCD == expected)
            case .sharedSecret:
                let secret = Secret([0] + bytes(try key.sharedSecret(with: otherPublic)).dropFirst())
                let derived = try SessionKeys(sharedSecret: secret, cipher: .aes128)
                #expect(secret.count == curve.fieldLength)
                #expect(bytes(outcome.keys.encryption) == bytes(derived.encryption))
                #expect(chipOutcome.encryption == bytes(derived.encryption))
            }
            return
        }
        Issue.record("no such key found")
    }

    private func scalar(_ curve: Curve) throws -> [UInt8] {
        // One byte shorter than the order, so that the scalar is in range.
        try Random.bytes(curve.scalarLength - 1)
    }
}

/// The result of a chip as values that can be compared.
struct ChipOutcome: Equatable {
    let idPICC: [UInt8]
    let idPCD: [UInt8]
    let encryption: [UInt8]
    let authentication: [UInt8]

    struct Missing: Error {}

    init(_ chip: inout PACE.Chip) throws {
        let taken = chip.takeOutcome()
        guard let outcome = consume taken else { throw Missing() }
        (idPICC, idPCD) = (outcome.idPICC, outcome.idPCD)
        (encryption, authentication) = (bytes(outcome.keys.encryption), bytes(outcome.keys.authentication))
    }
}

/// Runs the first three steps and returns the terminal's token.
func exchange(_ terminal: inout PACE.Terminal, _ chip: inout PACE.Chip) throws -> [UInt8] {
    let mapping = try terminal.receiveNonce(try chip.answer(PACE.Terminal.request))
    let ephemeral = try terminal.receiveMapping(try chip.answer(mapping))
    return try terminal.receiveEphemeral(try chip.answer(ephemeral))
}

/// Runs all steps.
func complete(_ terminal: inout PACE.Terminal, _ chip: inout PACE.Chip) throws -> PACE.Outcome {
    let token = try exchange(&terminal, &chip)
    return try terminal.receiveToken(try chip.answer(token))
}
