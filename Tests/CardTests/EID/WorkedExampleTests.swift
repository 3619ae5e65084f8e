// SPDX-License-Identifier: GPL-3.0-or-later
import ChipAccess
import Crypto
import EID
import FoundationEssentials
import ISO7816
import Secrets
import TestSupport
import Testing

/// The values of ICAO Doc 9303 part 11, appendix G.1. The vector file names its source.
struct WorkedExample: Decodable {
    struct Password: Decodable {
        let characters: String
        let hash: String
    }
    struct Nonce: Decodable {
        let plain: String
        let encrypted: String
    }
    struct KeyPair: Decodable {
        let `private`: String
        let `public`: String
    }
    struct Agreement: Decodable {
        let terminal: KeyPair
        let chip: KeyPair
        let sharedPoint: String?
        let generator: String?
        let sharedSecret: String?
    }
    struct Tokens: Decodable {
        let terminal: String
        let chip: String
    }
    struct Exchange: Decodable {
        let command: String
        let answer: String
    }
    let password: Password
    let protocolID: String
    let parameterID: UInt8
    let passwordKey: String
    let nonce: Nonce
    let mapping: Agreement
    let ephemeral: Agreement
    let encryptionKey: String
    let authenticationKey: String
    let tokens: Tokens
    let exchange: [Exchange]

    static func load() throws -> WorkedExample {
        try vectors("pace-ecdh-gm-worked-example.json", as: WorkedExample.self)
    }

    func parameters() throws -> PACEParameters {
        try #require(PACEParameters(protocolID: hex(protocolID), parameterID: parameterID))
    }

    func key() throws -> Secret {
        try PACE.passwordKey(Secret(Array(password.characters.utf8)), id: .mrz, cipher: .aes128)
    }

    func fixedKeys(_ side: KeyPath<Agreement, KeyPair>) -> PACE.FixedKeys {
        PACE.FixedKeys(
            mapping: Secret(hex(mapping[keyPath: side].private)),
            ephemeral: Secret(hex(ephemeral[keyPath: side].private))
        )
    }

    /// The data fields of the four GENERAL AUTHENTICATE commands and answers.
    func fields() throws -> [(command: [UInt8], answer: [UInt8])] {
        try exchange.dropFirst().map { pair in
            let command = try #require(CommandAPDU(bytes: hex(pair.command)))
            let answer = try #require(ResponseAPDU(bytes: hex(pair.answer)))
            return (command.data, answer.data)
        }
    }
}

@Suite("PACE, worked example of ICAO 9303-11 G.1", .timeLimit(.minutes(5)))
struct WorkedExampleTests {
    let example: WorkedExample

    init() throws { example = try WorkedExample.load() }

    @Test("the password key is derived from the characters of the machine readable zone")
    func passwordKey() throws {
        let hash = try DigestAlgorithm.sha1.hash(Array(example.password.characters.utf8))
        #expect(hash == hex(example.password.hash))
        #expect(bytes(try example.key()) == hex(example.passwordKey))
    }

    @Test("the nonce is decrypted and encrypted with the password key")
    func nonce() throws {
        let key = try example.key()
        #expect(bytes(try AES.decrypt(hex(example.nonce.encrypted), key: key)) == hex(example.nonce.plain))
        #expect(try AES.encrypt(Secret(hex(example.nonce.plain)), key: key) == hex(example.nonce.encrypted))
    }

    @Test("both sides map the generator to the same point", arguments: [true, false])
    func mapping(isTerminal: Bool) throws {
        let mapping = example.mapping
        let (own, other) = isTerminal ? (mapping.terminal, mapping.chip) : (mapping.chip, mapping.terminal)
        let parameters = try example.parameters()
        let curve = try #require(parameters.curve)
        let key = try ECPrivateKey(Secret(hex(own.private)), on: try curve.group)
        #expect(key.publicKey.uncompressed == hex(own.public))
        let peer = try ECPublicKey(hex(other.public), on: curve)
        let sharedPoint = try #require(mapping.sharedPoint)
        #expect(bytes(try key.sharedSecret(with: peer)) == Array(hex(sharedPoint).dropFirst().prefix(32)))
        let group = try curve.group.mapped(nonce: Secret(hex(example.nonce.plain)), key: key, peer: peer)
        #expect(try group.generatorEncoding == hex(try #require(mapping.generator)))
    }

    @Test("both sides agree on the same secret and session keys", arguments: [true, false])
    func agreement(isTerminal: Bool) throws {
        let pair = example.ephemeral
        let (own, other) = isTerminal ? (pair.terminal, pair.chip) : (pair.chip, pair.terminal)
        let parameters = try example.parameters()
        let curve = try #require(parameters.curve)
        let mapping = try ECPrivateKey(Secret(hex(example.mapping.chip.private)), on: try curve.group)
        let group = try curve.group.mapped(
            nonce: Secret(hex(example.nonce.plain)),
            key: mapping,
            peer: try ECPublicKey(hex(example.mapping.terminal.public), on: curve)
        )
        let key = try ECPrivateKey(Secret(hex(own.private)), on: group)
        #expect(key.publicKey.uncompressed == hex(own.public))
        let secret = try key.sharedSecret(with: try ECPublicKey(hex(other.public), on: curve))
        #expect(bytes(secret) == hex(try #require(pair.sharedSecret)))
        let keys = try SessionKeys(sharedSecret: secret, cipher: parameters.cipher)
        #expect(bytes(keys.encryption) == hex(example.encryptionKey))
        #expect(bytes(keys.authentication) == hex(example.authenticationKey))
    }

    @Test("the terminal sends the commands of the example and gets its keys")
    func terminal() throws {
        let fields = try example.fields()
        var terminal = PACE.Terminal(
            try example.parameters(),
            passwordKey: try example.key(),
            fixedKeys: example.fixedKeys(\.terminal)
        )
        #expect(PACE.Terminal.request == fields[0].command)
        #expect(try terminal.receiveNonce(fields[0].answer) == fields[1].command)
        #expect(try terminal.receiveMapping(fields[1].answer) == fields[2].command)
        #expect(try terminal.receiveEphemeral(fields[2].answer) == fields[3].command)
        let outcome = try terminal.receiveToken(fields[3].answer)
        #expect(bytes(outcome.keys.encryption) == hex(example.encryptionKey))
        #expect(bytes(outcome.keys.authentication) == hex(example.authenticationKey))
        #expect(outcome.idPICC == Array(hex(example.ephemeral.chip.public).dropFirst().prefix(32)))
        #expect(outcome.idPCD == Array(hex(example.ephemeral.terminal.public).dropFirst().prefix(32)))
        #expect(outcome.certificationAuthorities == PACE.CertificationAuthorities())
    }

    @Test("the chip sends the answers of the example and gets its keys")
    func chip() throws {
        let fields = try example.fields()
        var chip = PACE.Chip(
            try example.parameters(),
            passwordKey: try example.key(),
            fixedKeys: example.fixedKeys(\.chip),
            nonce: Secret(hex(example.nonce.plain))
        )
        for field in fields { #expect(try chip.answer(field.command) == field.answer) }
        let taken = chip.takeOutcome()
        guard let outcome = consume taken else { throw Unexpected("no outcome") }
        #expect(bytes(outcome.keys.encryption) == hex(example.encryptionKey))
        #expect(bytes(outcome.keys.authentication) == hex(example.authenticationKey))
        #expect(outcome.idPICC == Array(hex(example.ephemeral.chip.public).dropFirst().prefix(32)))
        #expect(outcome.idPCD == Array(hex(example.ephemeral.terminal.public).dropFirst().prefix(32)))
    }
}
