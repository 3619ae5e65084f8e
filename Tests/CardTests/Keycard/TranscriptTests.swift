// SPDX-License-Identifier: GPL-3.0-or-later
import Crypto
import HDWallet
import ISO7816
import TestSupport
import Testing
import Text

@testable import Keycard
@testable import VirtualKeycard

@Suite("Dialogues with the real applets, byte by byte")
struct TranscriptTests {
    /// The first digit of each byte is the digit 1: the recorded duress PIN is 111111.
    private static let duressDigits = [[UInt8]](repeating: [1], count: 6)

    // MARK: Terminal

    @Test("the terminal sends the recorded commands of 3.1 and reads the recorded answers")
    func terminalPaired() async throws {
        let transcript = try Transcript.load("keycard-3.1")
        let steps = transcript.steps
        let initialize = steps[1]
        let random = RecordedRandom(
            Self.duressDigits + [
                hex(try #require(initialize.client_ephemeral_private)), hex(try #require(initialize.iv)),
                hex(try #require(steps[3].challenge)), hex(try #require(steps[8].client_ephemeral_private)),
                hex(try #require(steps[9].plain_command)), hex(try #require(steps[42].client_ephemeral_private)),
                hex(try #require(steps[43].plain_command)),
            ]
        )
        let inside = Array(10...38)
        let duress = [44, 45, 46]
        let card = RecordedCard(
            transcript,
            steps: [0, 1, 2, 3, 4, 7, 8, 9] + inside + [41, 42, 43] + duress + [47, 48]
        )
        let applet = try await KeycardApplet.select(on: card, random: random.source)
        #expect(await !applet.info.isInitialized)
        // The recording has no IDENTIFY CARD, which shows the version of a new card.
        await applet.assume(.v3_1)
        let secret = try KeycardPairingSecret.derive(Secret(KeycardParameters.defaultPairingPassword.utf8))
        #expect(bytes(secret) == hex(try #require(transcript.pairing_secret)))
        try await applet.initialize(
            pin: Secret("123456".utf8),
            puk: Secret("987654321098".utf8),
            pairingSecret: secret.clone()
        )
        #expect(await applet.info.freeSlots == 5)

        let pairing = try await applet.pair(secret: secret)
        #expect(pairing.slot == 0)
        #expect(bytes(pairing.key) == hex(try #require(steps[4].pairing_key)))
        try await applet.select()
        #expect(await applet.info.freeSlots == 4)
        try await applet.open(pairing)
        for index in inside { try await compare(steps[index], applet) }

        try await applet.select()
        let uid = try #require(await applet.info.keyUID)
        #expect(hex(uid) == "16F5B9C7657DF5E0B45016292D852A36622FB39B63C28017CCF21633270858F1")
        try await applet.open(pairing)
        for index in duress { try await compare(steps[index], applet) }
        try await applet.factoryReset(keyUID: uid)
        #expect(await !applet.info.isInitialized)
        #expect(card.isUsedUp && random.isUsedUp)
    }

    /// Sends the plain command of a step and compares the plain answer. The card compares the protected command.
    private func compare(_ step: Transcript.Step, _ applet: KeycardApplet) async throws {
        let header = hex(step.command)
        let answer = try await applet.exchange(
            header[1],
            p1: header[2],
            p2: header[3],
            Secret(hex(try #require(step.plain_command)))
        )
        #expect(bytes(answer.plain) == hex(try #require(step.plain_response)), "\(step.step)")
    }

    @Test("the terminal sends the recorded commands of 4.0 and reads the recorded answers")
    func terminalCertified() async throws {
        let transcript = try Transcript.load("keycard-4.0")
        let steps = transcript.steps
        let random = RecordedRandom(
            Self.duressDigits + [
                hex(try #require(steps[3].salt)), hex(try #require(steps[3].client_ephemeral_private)),
                hex(try #require(steps[6].salt)), hex(try #require(steps[6].client_ephemeral_private)),
            ]
        )
        let inside = Array(7...21)
        let card = RecordedCard(transcript, steps: [2, 3, 4, 5, 6] + inside)
        let authority = hex(try #require(transcript.ca_public))
        let applet = try await KeycardApplet.select(
            on: card,
            trust: KeycardTrust(authorities: [authority]),
            random: random.source
        )
        #expect(await applet.info.generation == .certificate)
        #expect(await applet.info.pinTries == nil)
        try await applet.initialize(
            pin: Secret("123456".utf8),
            puk: Secret("987654321098".utf8),
            pairingSecret: Secret([UInt8](repeating: 0, count: 32))
        )
        #expect(await applet.info.pinTries == 3)
        try await applet.openWithCertificate()
        for index in inside {
            let plain = hex(try #require(steps[index].plain_command))
            let answer = try await applet.exchange(plain[1], p1: plain[2], p2: plain[3], Secret(plain[5...]))
            #expect(bytes(answer.plain) == hex(try #require(steps[index].plain_response)), "\(steps[index].step)")
        }
        #expect(card.isUsedUp && random.isUsedUp)
    }

    @Test("a card of another authority is refused by name, unless the card is pinned")
    func foreignCard() async throws {
        let transcript = try Transcript.load("keycard-4.0")
        let authority = hex(try #require(transcript.ca_public))
        let applet = try await KeycardApplet.select(on: RecordedCard(transcript, steps: [5]))
        let certificate = try #require(await applet.info.certificate)
        #expect(certificate.authority.compressed == authority)
        await #expect(throws: KeycardError.foreignCard(certificate)) { try await applet.openWithCertificate() }
        let step = transcript.steps[6]
        let random = RecordedRandom([
            hex(try #require(step.salt)), hex(try #require(step.client_ephemeral_private)),
        ])
        let identity = try #require(await applet.info.certificate).identity.compressed
        let pinned = try await KeycardApplet.select(
            on: RecordedCard(transcript, steps: [5, 6]),
            trust: KeycardTrust(pinnedCards: [identity]),
            random: random.source
        )
        try await pinned.openWithCertificate()
        #expect(await pinned.hasChannel)
    }

    // MARK: Card

    @Test("the virtual card answers each recorded command of 3.1 with the recorded bytes")
    func cardPaired() throws {
        let transcript = try Transcript.load("keycard-3.1")
        let steps = transcript.steps
        let terminalKeys = steps.compactMap(\.client_ephemeral_private).map { hex($0) }
        func key(_ step: Int, _ range: Range<Int>) throws -> RecordedKey {
            RecordedKey(publicKey: try PublicKey(Array(steps[step].answer[range])), terminalKeys: terminalKeys)
        }
        func signature(_ step: Transcript.Step) throws -> [UInt8] {
            Array(hex(try #require(step.plain_response)).dropFirst(3 + 67).dropLast(2))
        }
        let recorded = RecordedCardSources(
            random: [
                Array(steps[2].answer[4..<20]),  // instance UID
                Array(steps[3].answer[32..<64]),  // challenge of PAIR
                Array(steps[4].answer[1..<33]),  // salt of PAIR
                Array(steps[5].answer[32..<64]),
                Array(steps[8].answer[..<48]),  // salt and vector of the channel
                Array(hex(try #require(steps[9].plain_response)).dropLast(2)),
                try Self.entropy(steps[16]),
                try Self.entropy(steps[17]),
                Array(steps[42].answer[..<48]),
                Array(hex(try #require(steps[43].plain_response)).dropLast(2)),
                [UInt8](repeating: 0, count: 16),  // instance UID after the reset, which no answer has
            ],
            keys: [try key(0, 2..<67), try key(2, 22..<87), try key(48, 2..<67)],
            signatures: try steps.filter { $0.step == "SIGN" }.map(signature)
        )
        let card = try VirtualApplet(.v3_1, sources: recorded.sources)
        for (index, step) in steps.enumerated() {
            #expect(hex(card.process(hex(step.command))) == step.response.uppercased(), "step \(index): \(step.step)")
        }
        #expect(recorded.isUsedUp)
    }

    @Test("the virtual card answers each recorded command of 4.0 with the recorded bytes")
    func cardCertified() throws {
        let transcript = try Transcript.load("keycard-4.0")
        let steps = transcript.steps
        let opens = steps.filter { $0.step == "OPEN SECURE CHANNEL" }
        let terminalKeys = opens.compactMap(\.client_ephemeral_private).map { hex($0) }
        var signatures = opens.map { Array($0.answer.dropFirst(65).dropLast(2)) }
        for step in steps where step.step == "SIGN" {
            signatures.append(Array(hex(try #require(step.plain_response)).dropFirst(3 + 67).dropLast(2)))
        }
        let recorded = RecordedCardSources(
            random: [try Self.entropy(steps[11])],
            keys: try opens.map {
                RecordedKey(publicKey: try PublicKey(Array($0.answer[..<65])), terminalKeys: terminalKeys)
            },
            signatures: signatures
        )
        let card = try VirtualApplet(.v4_0, sources: recorded.sources)
        for (index, step) in steps.enumerated() {
            #expect(hex(card.process(hex(step.command))) == step.response.uppercased(), "step \(index): \(step.step)")
        }
        #expect(recorded.isUsedUp)
    }

    /// The random bytes of the words that a step answers.
    private static func entropy(_ step: Transcript.Step) throws -> [UInt8] {
        let words = Array(hex(try #require(step.plain_response)).dropLast(2))
        let count = words.count / 2
        var out = [UInt8](repeating: 0, count: count * 4 / 3)
        for bit in 0..<out.count * 8 {
            let index = Int(words[bit / 11 * 2]) << 8 | Int(words[bit / 11 * 2 + 1])
            if index >> (10 - bit % 11) & 1 != 0 { out[bit / 8] |= 0x80 >> UInt8(bit % 8) }
        }
        return out
    }
}

extension KeycardApplet {
    fileprivate func assume(_ version: KeycardVersion) { info.version = version.rawValue }
}
