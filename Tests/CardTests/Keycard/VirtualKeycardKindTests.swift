// SPDX-License-Identifier: GPL-3.0-or-later
import HDWallet
import ISO7816
import Keycard
import Readers
import ReadersVirtual
import TestSupport
import Testing
import Text
import VirtualKeycard

@Suite("Virtual Keycard by SET_CARD")
struct VirtualKeycardKindTests {
    /// Makes the card of an object `card` in JSON, as a channel.
    private func channel(_ text: String) throws -> VirtualCardChannel {
        let kinds = VirtualCardKinds([VirtualKeycardKind()])
        return VirtualCardChannel(try kinds.describe(simulator: nil, card: try JSON(text.utf8)).makeCard())
    }

    private var trust: KeycardTrust {
        get throws {
            KeycardTrust(authorities: [try VirtualKeycardDescription.authority().publicKey.compressed])
        }
    }

    @Test("the default card is an initialised 3.1 without keys")
    func defaultCard() async throws {
        let channel = try channel(#"{"kind":"keycard"}"#)
        let applet = try await KeycardApplet.select(on: channel)
        let info = await applet.info
        #expect(info.version == 0x0301 && info.isInitialized && info.keyUID == nil && info.freeSlots == 5)
        let secret = try KeycardPairingSecret.derive(Secret(KeycardParameters.defaultPairingPassword.utf8))
        try await applet.open(try await applet.pair(secret: secret))
        #expect(try await applet.verifyPIN(Secret("123456".utf8)) == .accepted)
        #expect(channel.card.answerToReset == [0x3B, 0x80, 0x80, 0x01, 0x01])
    }

    @Test("a 4.0 card has the described PIN, counters and words")
    func described() async throws {
        let channel = try channel(
            """
            {"kind":"keycard","version":"4.0","pin":"111222","retryCounter":2,"pukCounter":4,
             "words":"legal winner thank year wave sausage worth useful legal winner thank yellow"}
            """
        )
        let applet = try await KeycardApplet.select(on: channel, trust: try trust)
        let expected = try ExtendedPrivateKey(seed: try Known.mnemonic().seed())
        #expect(try await applet.info.keyUID == expected.keyUID)
        #expect(await applet.info.pinTries == 2)
        try await applet.openWithCertificate()
        #expect(try await applet.readStatus() == KeycardStatus(pinTries: 2, pukTries: 4, hasKey: true))
        #expect(try await applet.verifyPIN(Secret("111222".utf8)) == .accepted)
        #expect(try await applet.exportPublicKey(Known.path) == Known.publicKey())
    }

    @Test("a card that is new from the factory", arguments: ["3.0", "3.1", "4.0"])
    func new(version: String) async throws {
        let channel = try channel(#"{"kind":"keycard","initialised":false,"version":"\#(version)"}"#)
        let applet = try await KeycardApplet.select(on: channel, trust: try trust)
        #expect(await !applet.info.isInitialized)
    }

    @Test("a fault of the description happens at its command")
    func fault() async throws {
        let channel = try channel(#"{"kind":"keycard","faults":[{"afterApdu":1,"do":"removeAfter"}]}"#)
        let applet = try await KeycardApplet.select(on: channel)
        await #expect(throws: KeycardError.card(.removed)) { try await applet.select() }
    }

    @Test(
        "a wrong member is named",
        arguments: [
            (#"{"version":"3.2"}"#, "card.version is not 3.0, 3.1 or 4.0"),
            (#"{"version":4}"#, "card.version is not 3.0, 3.1 or 4.0"),
            (#"{"version":"3.0","duressPin":"111111"}"#, "card.duressPin does not exist on a card of version 3.0"),
            (#"{"pin":"12345"}"#, "card.pin is not a string of 6 digits"),
            (#"{"puk":"123456789"}"#, "card.puk is not a string of 12 digits"),
            (#"{"duressPin":1}"#, "card.duressPin is not a string of 6 digits"),
            (#"{"pairingPassword":""}"#, "card.pairingPassword is not a string of 1 to 128 ASCII characters"),
            (#"{"words":"abandon"}"#, "card.words are not BIP-39 words: there are not 12, 15, 18, 21 or 24 words"),
            (#"{"retryCounter":4}"#, "card.retryCounter is not a whole number from 0 to 3"),
            (#"{"pukCounter":6}"#, "card.pukCounter is not a whole number from 0 to 5"),
            (#"{"initialised":1}"#, "card.initialised is not true or false"),
        ]
    )
    func wrongMember(text: String, message: String) {
        #expect(throws: Malformed(message)) { _ = try self.channel(text) }
    }

    @Test("hostile commands get a status word, and change nothing", arguments: ["3.1", "4.0"])
    func hostile(version: String) async throws {
        let channel = try channel(#"{"kind":"keycard","version":"\#(version)"}"#)
        let before = await channel.card.counters.dropFirst()
        var random = SplitMix64(seed: 15)
        let select = CommandAPDU(0x00, 0xA4, 0x04, 0x00, data: KeycardParameters.applicationID).bytes
        for round in 0..<FullTables.count(4000) {
            if round.isMultiple(of: 50) { _ = await channel.card.exchange(select) }
            var command = (0..<Int.random(in: 0...120, using: &random)).map { _ in
                UInt8.random(in: 0...255, using: &random)
            }
            if command.count > 5, round.isMultiple(of: 2) {
                command[0] = 0x80
                command[1] = [0x10, 0x11, 0x12, 0x14, 0x18, 0x20, 0xC0, 0xCA, 0xFE].randomElement(using: &random) ?? 0
                command[2] = UInt8.random(in: 0...3, using: &random)
                command[4] = UInt8(command.count - 5)
            }
            guard case .answer(let answer) = await channel.card.exchange(command) else { throw Unexpected("no answer") }
            #expect(answer.count >= 2)
        }
        #expect(await channel.card.counters.dropFirst() == before)
    }
}
