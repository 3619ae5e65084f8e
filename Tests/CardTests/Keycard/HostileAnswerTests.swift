// SPDX-License-Identifier: GPL-3.0-or-later
import HDWallet
import ISO7816
import TestSupport
import Testing
import Text

@testable import Keycard
@testable import VirtualKeycard

@Suite("Answers that a Keycard does not give")
struct HostileAnswerTests {
    /// A SELECT answer of 3.1 with its key UID.
    static let paired = hex(
        """
        A481818F106C5544797A91115DC3330EBD003851D280410400BE7D8BF757F45DDF976683974D752717742BA9AC3CC138FBA3382402E1B1
        3AD213F168A76F6E105F356F138B57086AA4A8EDE6BC2E43CA7EE7140C5102F587020203010201048E2016F5B9C7657DF5E0B45016292D
        852A36622FB39B63C28017CCF21633270858F18D011F
        """
    )

    @Test("each field of SELECT is read, whatever its place")
    func fields() throws {
        let info = try KeycardInfo(Self.paired)
        #expect(info.version == 0x0301)
        #expect(info.freeSlots == 4)
        #expect(info.capabilities == 0x1F)
        #expect(hex(try #require(info.instanceUID)) == "6C5544797A91115DC3330EBD003851D2")
        let template = try BERTLV(Self.paired)
        let turned = BERTLV(0xA4, Array(try template.children.reversed()))
        #expect(try KeycardInfo(turned.encoded) == info)
    }

    @Test("a SELECT answer that was cut or changed in its structure is refused")
    func cut() throws {
        for count in 0..<Self.paired.count - 1 {
            #expect(throws: KeycardError.self, "\(count) bytes") {
                _ = try KeycardInfo(Array(Self.paired.prefix(count)))
            }
        }
        #expect(throws: KeycardError.self) { _ = try KeycardInfo(Self.paired + [0, 0]) }
        for index in [0, 1, 2, 4, 21, 22] {
            var changed = Self.paired
            changed[index] ^= 0x40
            #expect(throws: KeycardError.self, "byte \(index)") { _ = try KeycardInfo(changed) }
        }
    }

    @Test(
        "GET STATUS must have two counters and a flag",
        arguments: [
            "", "A300", "A3090201030201050101", "A306020103020105", "A30A02020003020105010100",
            "A309010103020105020100",
        ]
    )
    func status(text: String) { #expect(throws: KeycardError.self) { _ = try KeycardStatus(hex(text)) } }

    @Test("signature templates of another form are refused")
    func signature() throws {
        let key = try PrivateKey.generate()
        let hash = [UInt8](repeating: 1, count: 32)
        let field = BERTLV(0x80, key.publicKey.uncompressed).encoded
        let signature = try key.sign(hash)
        func read(_ content: [UInt8]) throws -> KeycardSignature {
            try KeycardApplet.signature(BERTLV(0xA0, content).encoded, hash, nil)
        }
        #expect(try read(field + signature.der).signature == signature)
        let contents = [
            [], field, signature.der, signature.der + field, field + field + signature.der,
            field + [0x30, 0x00], field + signature.der + [0x00],
            field + (try PrivateKey.generate().sign(hash)).der,
        ]
        for content in contents { #expect(throws: KeycardError.self) { _ = try read(content) } }
        #expect(throws: KeycardError.self) { _ = try KeycardApplet.signature([], hash, nil) }
    }

    @Test(
        "key templates of another form are refused",
        arguments: [
            "", "A1", "A100FF", "A10281", "A1028100", "A1038120FF", "A1028220", "A1818001", "A2228120", "A104800080 00",
        ]
    )
    func keyTemplate(text: String) {
        if let fields = KeyTemplate(Secret(hex(text))) {
            #expect(fields.publicKey == nil && fields.privateRange == nil)
        }
    }

    @Test("before INIT, 4.0 answers 9000 without data, and that is no status and no key UID")
    func emptyAnswers() async throws {
        let card = try KeycardStage(.v4_0)
        let applet = try await card.select()
        #expect(await !applet.info.isInitialized)
        try await applet.openWithCertificate()
        await #expect(throws: KeycardError.malformed("GET STATUS: a wrong answer")) {
            _ = try await applet.readStatus()
        }
        await #expect(throws: KeycardError.malformed("the card returned no key UID")) {
            _ = try await applet.loadSeed(Secret([UInt8](repeating: 1, count: 64)))
        }
        await #expect(throws: KeycardError.malformed("GENERATE MNEMONIC: a wrong number of words")) {
            _ = try await applet.generateMnemonic(words: 12)
        }
    }

    @Test("3.1 refuses an unknown P1 of SIGN before it reads the command, and the channel goes on")
    func refusedUnread() async throws {
        let (card, pairing) = try await KeycardStage.ready(.v3_1)
        let applet = try await card.open(pairing)
        #expect(try await applet.verifyPIN(Secret(Known.pin.utf8)) == .accepted)
        let answer = try await applet.exchange(
            KeycardInstruction.sign,
            p1: 0x0F,
            Secret([UInt8](repeating: 0, count: 32))
        )
        #expect(answer.status == StatusWord(0x6B00))
        #expect(try await applet.readStatus().pinTries == 3)
        let unknown = try await applet.exchange(0x77, Secret([]))
        #expect(unknown.status == StatusWord(0x6D00))
        #expect(try await applet.exportPublicKey(Known.path) == Known.publicKey())
    }
}
