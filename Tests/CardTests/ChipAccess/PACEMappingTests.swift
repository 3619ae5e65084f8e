// SPDX-License-Identifier: GPL-3.0-or-later
import ChipAccess
import Crypto
import FoundationEssentials
import ISO7816
import TestSupport
import Testing
import Text

/// The worked examples of ICAO Doc 9303 part 11, appendices D, F, G, H and I. The vector file names its source.
struct NinetyThreeOhThree: Decodable {
    struct Side: Decodable {
        let mapping: String
        let mappingPublic: String
        let ephemeral: String
        let ephemeralPublic: String
        let token: String
    }
    struct Proof: Decodable {
        let encrypted: String
        let number: String
        let publicKey: String
    }
    struct Run: Decodable, CustomTestStringConvertible {
        let name: String
        let protocolID: String
        let parameterID: UInt8
        /// The characters of the machine readable zone from which the key is derived.
        let zonePassword: String?
        let passwordKey: String
        let nonce: String
        let encryptedNonce: String
        let terminal: Side
        let chip: Side
        let generator: String?
        let encryptionKey: String
        let authenticationKey: String
        let proof: Proof?

        var testDescription: String { name }
    }
    struct Exchange: Decodable {
        let command: String
        let protected: String
        let protectedAnswer: String
        let answer: String
    }
    struct BasicAccess: Decodable {
        let information: String
        let encryptionKey: String
        let authenticationKey: String
        let chipRandom: String
        let terminalRandom: String
        let terminalKey: String
        let command: String
        let chipKey: String
        let answer: String
        let sessionEncryptionKey: String
        let sessionAuthenticationKey: String
        let exchanges: [Exchange]
    }
    struct ActiveAuthentication: Decodable {
        let challenge: String
        let representative: String
    }
    struct Zone: Decodable {
        let lines: [String]
        let information: String
        let wrongCheckDigits: [String]
    }
    let zones: [Zone]
    let basicAccessControl: BasicAccess
    let activeAuthentication: ActiveAuthentication
    let pace: [Run]

    static let examples = try? vectors("icao-9303-11-worked-examples.json", as: NinetyThreeOhThree.self)
}

extension NinetyThreeOhThree.Run {
    func parameters() throws -> PACEParameters {
        try #require(PACEParameters(protocolID: hex(protocolID), parameterID: parameterID))
    }

    func fixedKeys(_ side: NinetyThreeOhThree.Side) -> PACE.FixedKeys {
        PACE.FixedKeys(mapping: Secret(hex(side.mapping)), ephemeral: Secret(hex(side.ephemeral)))
    }
}

@Suite("PACE, worked examples of ICAO 9303-11 G, H and I", .timeLimit(.minutes(5)))
struct PACEMappingTests {
    static let runs = NinetyThreeOhThree.examples?.pace ?? []

    @Test("all five examples are read")
    func count() { #expect(Self.runs.count == 5) }

    @Test("the password key is derived from the characters of the machine readable zone")
    func zonePassword() throws {
        let run = try #require(Self.runs.first)
        let characters = Secret(Array(try #require(run.zonePassword).utf8))
        let key = try PACE.passwordKey(characters, id: .mrz, cipher: try run.parameters().cipher)
        #expect(bytes(key) == hex(run.passwordKey))
    }

    @Test("the terminal sends the values of the example and gets its keys", arguments: runs)
    func terminal(run: NinetyThreeOhThree.Run) throws {
        var terminal = PACE.Terminal(
            try run.parameters(),
            passwordKey: Secret(hex(run.passwordKey)),
            fixedKeys: run.fixedKeys(run.terminal)
        )
        let mapping = try terminal.receiveNonce(PACE.wrap(BERTLV(0x80, hex(run.encryptedNonce))))
        #expect(try PACE.only(0x81, in: mapping) == hex(run.terminal.mappingPublic))
        let ephemeral = try terminal.receiveMapping(PACE.wrap(BERTLV(0x82, hex(run.chip.mappingPublic))))
        #expect(try PACE.only(0x83, in: ephemeral) == hex(run.terminal.ephemeralPublic))
        let token = try terminal.receiveEphemeral(PACE.wrap(BERTLV(0x84, hex(run.chip.ephemeralPublic))))
        #expect(try PACE.only(0x85, in: token) == hex(run.terminal.token))
        var objects = [BERTLV(0x86, hex(run.chip.token))]
        if let proof = run.proof { objects.append(BERTLV(0x8A, hex(proof.encrypted))) }
        let outcome = try terminal.receiveToken(BERTLV(0x7C, objects).encoded)
        #expect(bytes(outcome.keys.encryption) == hex(run.encryptionKey))
        #expect(bytes(outcome.keys.authentication) == hex(run.authenticationKey))
        let mappingProof = outcome.mappingProof
        #expect((mappingProof == nil) == (run.proof == nil))
        guard let proof = run.proof, let mappingProof else { return }
        #expect(mappingProof.number == hex(proof.number))
        let key = try ECPublicKey(hex(proof.publicKey), on: .brainpoolP256r1)
        #expect(try mappingProof.proves(key))
        #expect(try !mappingProof.proves(mappingProof.mappingKey))
    }

    @Test("the chip sends the values of the example and gets its keys", arguments: runs)
    func chip(run: NinetyThreeOhThree.Run) throws {
        var chip = PACE.Chip(
            try run.parameters(),
            passwordKey: Secret(hex(run.passwordKey)),
            fixedKeys: run.fixedKeys(run.chip),
            nonce: Secret(hex(run.nonce)),
            staticKey: try staticKey(of: run)
        )
        #expect(try PACE.only(0x80, in: chip.answer(PACE.Terminal.request)) == hex(run.encryptedNonce))
        let mapping = try chip.answer(PACE.wrap(BERTLV(0x81, hex(run.terminal.mappingPublic))))
        #expect(try PACE.only(0x82, in: mapping) == hex(run.chip.mappingPublic))
        let ephemeral = try chip.answer(PACE.wrap(BERTLV(0x83, hex(run.terminal.ephemeralPublic))))
        #expect(try PACE.only(0x84, in: ephemeral) == hex(run.chip.ephemeralPublic))
        let token = try chip.answer(PACE.wrap(BERTLV(0x85, hex(run.terminal.token))))
        var expected = [BERTLV(0x86, hex(run.chip.token))]
        if let proof = run.proof { expected.append(BERTLV(0x8A, hex(proof.encrypted))) }
        #expect(try PACE.unwrap(token) == expected)
        let taken = chip.takeOutcome()
        guard let outcome = consume taken else { throw Unexpected("the chip has no channel") }
        #expect(bytes(outcome.keys.encryption) == hex(run.encryptionKey))
        #expect(bytes(outcome.keys.authentication) == hex(run.authenticationKey))
    }

    /// The static key of the example, which prints only its public key: the key of the mapping divided by the proof.
    private func staticKey(of run: NinetyThreeOhThree.Run) throws -> ECPrivateKey? {
        guard let proof = run.proof else { return nil }
        let group = try Curve.brainpoolP256r1.group
        let mapping = try ECPrivateKey(Secret(hex(run.chip.mapping)), on: group)
        let quotient = try mapping.divided(by: try ECPrivateKey(Secret(hex(proof.number)), on: group))
        let key = try ECPrivateKey(quotient, on: group)
        #expect(key.publicKey.uncompressed == hex(proof.publicKey))
        return key
    }

    @Test("the integrated mapping finds the point of the example")
    func generator() throws {
        let run = try #require(Self.runs.first { $0.generator != nil })
        // R(s, t) of appendix H.1.
        let random = """
            E4447E2DFB3586BAC05DDB00156B57FBB2179A3949294C9725418980
            0C517BAA8DA0FF397ED8C445D3E421E4FEB57322
            """
        let group = try Curve.brainpoolP256r1.group.mapped(random: Secret(hex(random)))
        #expect(try hex(group.generatorEncoding) == run.generator)
    }

    static let variants: [PACEParameters] = {
        let domains: [KeyAgreementDomain] =
            Curve.allCases.map { .curve($0) } + DHParameters.allCases.map { .integers($0) }
        return domains.flatMap { domain in
            PACEParameters.Mapping.allCases.flatMap { mapping in
                SessionCipher.allCases.compactMap { cipher in
                    let parameters = PACEParameters(mapping: mapping, domain: domain, cipher: cipher)
                    return PACEParameters(
                        protocolID: parameters.protocolID,
                        parameterID: parameters.parameterID
                    ) == parameters ? parameters : nil
                }
            }
        }
    }()

    @Test("terminal and chip get the same channel in every variant that exists")
    func everyVariant() throws {
        #expect(Self.variants.count == 14 * 4 + 13 * 4 + 11 * 3)
        for parameters in Self.variants { try run(parameters) }
    }

    private func run(_ parameters: PACEParameters) throws {
        let password = Secret(Array("654321".utf8))
        let key = try PACE.passwordKey(password, id: .can, cipher: parameters.cipher)
        var staticKey: ECPrivateKey?
        var publicKey: ECPublicKey?
        if parameters.mapping == .chipAuthentication, let curve = parameters.curve {
            let made = try ECPrivateKey(on: try curve.group)
            publicKey = made.publicKey
            staticKey = consume made
        }
        var terminal = PACE.Terminal(parameters, passwordKey: key.clone())
        var chip = PACE.Chip(parameters, passwordKey: key, staticKey: staticKey)
        let mapping = try terminal.receiveNonce(try chip.answer(PACE.Terminal.request))
        let ephemeral = try terminal.receiveMapping(try chip.answer(mapping))
        let token = try terminal.receiveEphemeral(try chip.answer(ephemeral))
        let outcome = try terminal.receiveToken(try chip.answer(token))
        if let publicKey { #expect(try outcome.mappingProof?.proves(publicKey) == true) }
        let taken = chip.takeOutcome()
        guard let other = consume taken else { throw Unexpected("the chip has no channel") }
        var reader = outcome.secureMessaging()
        var card = other.secureMessaging()
        let command = CommandAPDU(0x00, 0xB0, 0x81, 0x00, data: [1, 2, 3], le: 200)
        #expect(try card.unwrap(try reader.wrap(command)) == command)
        let answer = ResponseAPDU(data: [UInt8](repeating: 7, count: 200), .ok)
        #expect(try reader.unwrap(try card.wrap(answer)) == answer)
    }

    @Test("numbers out of the subgroup are refused as keys")
    func wrongNumbers() throws {
        let group = DHParameters.modp1024
        for number: [UInt8] in [
            [], [0], [1], [2], [UInt8](repeating: 0xFF, count: 128), [UInt8](repeating: 1, count: 129),
        ] {
            #expect(throws: CryptoError.invalidPoint) { try DHPublicKey(number, in: group) }
        }
        // p - 1 has order 2.
        let minusOne = hex(
            """
            B10B8F96A080E01DDE92DE5EAE5D54EC52C99FBCFB06A3C69A6A9DCA52D23B616073E28675A23D189838EF1E2EE652C0
            13ECB4AEA906112324975C3CD49B83BFACCBDD7D90C4BD7098488E9C219A73724EFFD6FAE5644738FAA31A4FF55BCCC0
            A151AF5F0DC8B4BD45BF37DF365C1A65E68CFDA76D4DA708DF1FB2BC2E4A4370
            """
        )
        #expect(throws: CryptoError.invalidPoint) { try DHPublicKey(minusOne, in: group) }
    }

    @Test("the chip of the generic mapping is unchanged by a proof that nobody asked for")
    func unexpectedProof() throws {
        let parameters = PACEParameters(curve: .brainpoolP256r1, cipher: .aes128)
        let key = try PACE.passwordKey(Secret(Array("1".utf8)), id: .can, cipher: .aes128)
        var terminal = PACE.Terminal(parameters, passwordKey: key.clone())
        var chip = PACE.Chip(parameters, passwordKey: key)
        let mapping = try terminal.receiveNonce(try chip.answer(PACE.Terminal.request))
        let ephemeral = try terminal.receiveMapping(try chip.answer(mapping))
        let token = try terminal.receiveEphemeral(try chip.answer(ephemeral))
        var objects = try PACE.unwrap(try chip.answer(token))
        objects.append(BERTLV(0x8A, [UInt8](repeating: 0, count: 16)))
        let forged = BERTLV(0x7C, objects).encoded
        do {
            _ = try terminal.receiveToken(forged)
            Issue.record("the object was accepted")
        } catch {
            #expect(error == .pace("unexpected object"))
        }
    }
}
