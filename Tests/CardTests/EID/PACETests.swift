// SPDX-License-Identifier: GPL-3.0-or-later
import ChipAccess
import Crypto
import EID
import ISO7816
import TestSupport
import Testing
import Text

/// The key of a PIN.
func passwordKey(_ password: String) throws -> Secret {
    try PACE.passwordKey(Secret(Array(password.utf8)), id: .pin, cipher: .aes128)
}

@Suite("PACE", .timeLimit(.minutes(5)))
struct PACETests {
    static let parameters = PACEParameters(curve: .brainpoolP256r1, cipher: .aes128)

    @Test("the terminal gets the names of the trust points")
    func certificationAuthorities() throws {
        let names = PACE.CertificationAuthorities(
            current: Array("DETESTeIDBG00002".utf8),
            previous: Array("DETESTeIDBG00001".utf8)
        )
        var terminal = PACE.Terminal(Self.parameters, passwordKey: try passwordKey("1"))
        var chip = PACE.Chip(
            Self.parameters,
            passwordKey: try passwordKey("1"),
            certificationAuthorities: names
        )
        #expect(try complete(&terminal, &chip).certificationAuthorities == names)
    }

    @Test("the terminal accepts longer nonces", arguments: [16, 32, 48, 64])
    func longNonce(count: Int) throws {
        let nonce = try Random.secret(count)
        var terminal = PACE.Terminal(Self.parameters, passwordKey: try passwordKey("1"))
        var chip = PACE.Chip(Self.parameters, passwordKey: try passwordKey("1"), nonce: nonce)
        #expect(try complete(&terminal, &chip).idPICC.count == 32)
    }

    @Test("CAN, PIN and PUK are not hashed before the key is derived", arguments: [PasswordID.can, .pin, .puk])
    func passwordKinds(id: PasswordID) throws {
        let key = bytes(try PACE.passwordKey(Secret(Array("123456".utf8)), id: id, cipher: .aes256))
        #expect(key == hex("8DF3278FB32026E66277357FCD6C826DBEB3DE32088B2531757D753940185923"))
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
