// SPDX-License-Identifier: GPL-3.0-or-later
import Crypto
import HDWallet
import ISO7816
import TestSupport
import Testing
import Text

@testable import Keycard
@testable import VirtualKeycard

@Suite("Dialogues with a Keycard")
struct DialogueTests {
    @Test(
        "INIT gives the card another duress PIN than its PIN and the start of its PUK",
        arguments: CardModel.allCases
    )
    func initialize(model: CardModel) async throws {
        let (card, _) = try await KeycardStage.ready(model, loaded: false)
        #expect(await card.isDuressDistinct)
        #expect(await card.hasPIN(Known.pin))
        let applet = try await card.select()
        await #expect(throws: KeycardError.wrongState) {
            try await applet.initializeWithKnownSecrets()
        }
    }

    @Test(
        "secrets of a wrong form are not sent",
        arguments: [
            ("12345", "987654321098", 32), ("1234567", "987654321098", 32), ("12345a", "987654321098", 32),
            ("123456", "98765432109", 32), ("123456", "98765432109x", 32), ("123456", "987654321098", 31),
        ]
    )
    func wrongForm(pin: String, puk: String, count: Int) async throws {
        let card = try KeycardStage(.v3_1)
        let applet = try await card.select()
        await #expect(throws: KeycardError.wrongForm) {
            try await applet.initialize(
                pin: Secret(pin.utf8),
                puk: Secret(puk.utf8),
                pairingSecret: Secret([UInt8](repeating: 1, count: count))
            )
        }
        #expect(await card.count == 1)
    }

    @Test("INIT has the form that a new card of each version takes", arguments: KeycardVersion.allCases)
    func initForms(version: KeycardVersion) async throws {
        let authority = try PrivateKey.generate()
        let identity = version == .v4_0 ? try AppletIdentity(signedBy: authority) : nil
        let channel = AppletChannel(try VirtualApplet(version, identity: identity, sources: CardSources()))
        let trust = KeycardTrust(authorities: [authority.publicKey.compressed])
        let applet = try await KeycardApplet.select(on: channel, trust: trust)
        #expect(try await applet.findVersion() == version)
        try await applet.initializeWithKnownSecrets()
        let info = await applet.info
        #expect(info.isInitialized && info.version == version.rawValue)
        #expect(info.hasFactoryReset == (version != .v3_0))
    }

    @Test("words are loaded and the card derives the keys of BIP-32", arguments: CardModel.allCases)
    func load(model: CardModel) async throws {
        let (card, pairing) = try await KeycardStage.ready(model)
        await card.insert()
        let applet = try await card.open(pairing)
        let expected = try ExtendedPrivateKey(seed: try Known.mnemonic().seed()).keyUID
        #expect(await applet.info.keyUID == expected)
        #expect(try await applet.readStatus() == KeycardStatus(pinTries: 3, pukTries: 5, hasKey: true))
        #expect(try await applet.verifyPIN(Secret(Known.pin.utf8)) == .accepted)
        #expect(try await applet.exportPublicKey(Known.path) == Known.publicKey())
    }

    @Test(
        "words that are loaded with the duress PIN are refused and removed",
        arguments: CardModel.allCases
    )
    func duress(model: CardModel) async throws {
        // Without an explicit duress PIN at INIT, the PIN can open the duress wallet. A 3.1 card does so if its PUK
        // begins with the PIN, a 4.0 card always.
        let card = try KeycardStage(model)
        await card.initializeWithoutDuressPIN()
        let applet = try await card.select()
        var pairing: PairingBox?
        if model.isPaired { pairing = PairingBox(try await applet.pair(secret: Secret(Known.pairingSecret))) }
        let opened = try await card.open(pairing)
        #expect(try await opened.verifyPIN(Secret(Known.pin.utf8)) == .accepted)
        await #expect(throws: KeycardError.wrongWallet) { _ = try await opened.loadWallet(try Known.mnemonic()) }
        #expect(await card.keyUID == nil)
    }

    @Test("the card draws words of each length with a valid checksum", arguments: CardModel.allCases)
    func generate(model: CardModel) async throws {
        let (card, pairing) = try await KeycardStage.ready(model, loaded: false)
        let applet = try await card.open(pairing)
        for count in [12, 15, 18, 21, 24] {
            let words = try await applet.generateMnemonic(words: count)
            #expect(words.count == count)
        }
        await #expect(throws: KeycardError.wrongForm) { _ = try await applet.generateMnemonic(words: 13) }
    }

    @Test("a signature is low, has its recovery ID, and differs each time", arguments: CardModel.allCases)
    func sign(model: CardModel) async throws {
        let (card, pairing) = try await KeycardStage.ready(model)
        let applet = try await card.open(pairing)
        let hash = try DigestAlgorithm.sha256.hash(Array("message".utf8))
        await #expect(throws: KeycardError.status(StatusWord(0x6985))) {
            _ = try await applet.sign(hash, with: Known.path)
        }
        _ = try await applet.verifyPIN(Secret(Known.pin.utf8))
        let key = try Known.publicKey()
        let first = try await applet.sign(hash, with: Known.path, expecting: key)
        let second = try await applet.sign(hash, with: Known.path)
        #expect(first.publicKey == key)
        #expect(first.signature != second.signature)
        #expect(try first.signature.recover(id: first.recoveryID, for: hash) == key)
        #expect(try first.signature.normalized == first.signature)
        let other = try PrivateKey.generate().publicKey
        await #expect(throws: KeycardError.malformed("SIGN: another key has signed")) {
            _ = try await applet.sign(hash, with: Known.path, expecting: other)
        }
    }

    @Test("private keys are exported only below m/43'/60'/1581'", arguments: CardModel.allCases)
    func exportPrivate(model: CardModel) async throws {
        let (card, pairing) = try await KeycardStage.ready(model)
        let applet = try await card.open(pairing)
        _ = try await applet.verifyPIN(Secret(Known.pin.utf8))
        let path = try #require(DerivationPath("m/43'/60'/1581'/0'/0"))
        let own = try ExtendedPrivateKey(seed: try Known.mnemonic().seed()).derive(path)
        let exported = try await applet.exportPrivateKey(path)
        #expect(bytes(exported.scalar) == bytes(own.key.scalar))
        await #expect(throws: KeycardError.status(StatusWord(0x6985))) {
            _ = try await applet.exportPrivateKey(Known.path)
        }
    }

    @Test(
        "a wrong PIN uses one try, a blocked PIN is unblocked with the PUK",
        arguments: CardModel.allCases
    )
    func block(model: CardModel) async throws {
        let (card, pairing) = try await KeycardStage.ready(model)
        let applet = try await card.open(pairing)
        for left in [2, 1, 0, 0] {
            #expect(try await applet.verifyPIN(Secret("000000".utf8)) == .wrong(triesLeft: left))
        }
        #expect(try await applet.verifyPIN(Secret(Known.pin.utf8)) == .wrong(triesLeft: 0))
        #expect(
            try await applet.unblockPIN(puk: Secret("000000000000".utf8), newPIN: Secret(Known.newPIN.utf8))
                == .wrong(triesLeft: 4)
        )
        #expect(
            try await applet.unblockPIN(puk: Secret(Known.puk.utf8), newPIN: Secret(Known.newPIN.utf8)) == .accepted
        )
        #expect(try await applet.readStatus() == KeycardStatus(pinTries: 3, pukTries: 5, hasKey: true))
        #expect(try await applet.exportPublicKey(Known.path) == Known.publicKey())
        await #expect(throws: KeycardError.status(StatusWord(0x6985))) {
            _ = try await applet.unblockPIN(puk: Secret(Known.puk.utf8), newPIN: Secret(Known.pin.utf8))
        }
    }

    @Test("the PIN is changed", arguments: CardModel.allCases)
    func change(model: CardModel) async throws {
        let (card, pairing) = try await KeycardStage.ready(model)
        let applet = try await card.open(pairing)
        _ = try await applet.verifyPIN(Secret(Known.pin.utf8))
        try await applet.changePIN(to: Secret(Known.newPIN.utf8))
        #expect(await card.hasPIN(Known.newPIN))
    }

    @Test("the five slots are used up, and UNPAIR frees one", arguments: CardModel.paired)
    func slots(model: CardModel) async throws {
        let (card, pairing) = try await KeycardStage.ready(model, loaded: false)
        let applet = try await card.select()
        for slot: UInt8 in 1...4 { #expect(try await applet.pair(secret: Secret(Known.pairingSecret)).slot == slot) }
        await #expect(throws: KeycardError.noFreeSlot) {
            _ = try await applet.pair(secret: Secret(Known.pairingSecret))
        }
        let opened = try await card.open(pairing)
        _ = try await opened.verifyPIN(Secret(Known.pin.utf8))
        try await opened.unpair(slot: 3)
        try await opened.select()
        #expect(await opened.info.freeSlots == 1)
        try await opened.open(try #require(pairing).pairing)
        _ = try await opened.verifyPIN(Secret(Known.pin.utf8))
        try await opened.unpair(slot: 0)
        await #expect(throws: KeycardError.pairingLost) { _ = try await card.open(pairing) }
    }

    @Test("a pairing with another key is lost, and costs no try", arguments: CardModel.paired)
    func wrongPairing(model: CardModel) async throws {
        let (card, _) = try await KeycardStage.ready(model, loaded: false)
        let wrong = PairingBox(KeycardPairing(slot: 0, key: Secret([UInt8](repeating: 1, count: 32))))
        await #expect(throws: KeycardError.pairingLost) { _ = try await card.open(wrong) }
        #expect(await card.pinTries == 3)
    }

    @Test("a pairing is written for the store and read again")
    func storedPairing() throws {
        let pairing = KeycardPairing(slot: 4, key: Secret([UInt8](repeating: 7, count: 32)))
        let encoded = pairing.encoded
        guard let read = KeycardPairing(encoded: encoded) else { throw Unexpected("the pairing cannot be read") }
        #expect(read.slot == 4)
        #expect(bytes(read.key) == [UInt8](repeating: 7, count: 32))
        for wrong in [bytes(encoded).dropLast(), bytes(encoded) + [0], []] {
            let isRefused = KeycardPairing(encoded: Secret(wrong)) == nil
            #expect(isRefused)
        }
    }

    @Test("wrong slots have the status words of the applet", arguments: CardModel.paired)
    func refusals(model: CardModel) async throws {
        let (card, pairing) = try await KeycardStage.ready(model)
        let applet = try await card.open(pairing)
        _ = try await applet.verifyPIN(Secret(Known.pin.utf8))
        func status(_ ins: UInt8, _ p1: UInt8) async throws -> UInt16 {
            try await applet.exchange(ins, p1: p1, Secret([])).status.value
        }
        #expect(try await status(KeycardInstruction.unpair, 5) == 0x6A86)
        #expect(try await status(KeycardInstruction.unpair, 0x80) == 0x6F00)
        // A command without a whole MAC is refused inside the channel, which stays open.
        #expect(await card.run([0x80, KeycardInstruction.getStatus, 0x00, 0x00]).count == 34)
    }

    @Test("the channel of 3.1 distinguishes a wrong MAC from a command in the wrong state")
    func commandFaults() throws {
        func channel() throws -> CBCChannel {
            try CBCChannel(
                shared: Secret([UInt8](repeating: 1, count: 32)),
                pairingKey: Secret([UInt8](repeating: 2, count: 32)),
                salt: [UInt8](repeating: 3, count: 32),
                vector: [UInt8](repeating: 4, count: 16)
            )
        }
        let (terminal, card) = (try channel(), try channel())
        let header = CommandAPDU(0x80, KeycardInstruction.verifyPIN, 0, 0)
        _ = try terminal.wrap(header, data: Secret(Known.pin.utf8))
        let second = try terminal.wrap(header, data: Secret(Known.pin.utf8))
        func fault(_ data: [UInt8]) -> KeycardError? {
            do throws(KeycardError) {
                _ = try card.unwrap(CommandAPDU(0x80, KeycardInstruction.verifyPIN, 0, 0, data: data))
                return nil
            } catch {
                return error
            }
        }
        #expect(fault([UInt8](repeating: 0, count: 15)) == .tooShort)
        #expect(fault(second.data.dropLast() + [second.data[31] ^ 1]) == .wrongMAC)
        #expect(fault(second.data) == .wrongPadding)
    }

    @Test("FACTORY RESET needs the key UID of this card", arguments: CardModel.allCases)
    func reset(model: CardModel) async throws {
        let (card, pairing) = try await KeycardStage.ready(model)
        let applet = try await card.open(pairing)
        let uid = try #require(await card.keyUID)
        for wrong in [nil, Array(uid.reversed())] {
            await #expect(throws: KeycardError.wrongState) { try await applet.factoryReset(keyUID: wrong) }
        }
        #expect(await card.keyUID == uid)
        try await applet.factoryReset(keyUID: uid)
        #expect(await !card.isInitialized)
    }

    @Test("a 3.x card with a certificate proves it, and one of another authority is refused by name")
    func identify() async throws {
        let authority = PeerKey(try PrivateKey.generate())
        let identity = try AppletIdentity(signedBy: authority.key)
        let applet = AppletChannel(try VirtualApplet(.v3_1, identity: identity, sources: CardSources()))
        let trusted = try await KeycardApplet.select(
            on: applet,
            trust: KeycardTrust(authorities: [authority.key.publicKey.compressed])
        )
        #expect(try await trusted.identify()?.identity == identity.key.publicKey)
        let strict = try await KeycardApplet.select(on: applet)
        await #expect(throws: KeycardError.foreignCard(try KeycardCertificate(identity.certificate))) {
            _ = try await strict.identify()
        }
        let plain = AppletChannel(try VirtualApplet(.v3_1, sources: CardSources()))
        #expect(try await KeycardApplet.select(on: plain).identify() == nil)
    }

    @Test("a card without the applet is distinguished from a card that fails")
    func noApplet() async throws {
        for status: UInt16 in [0x6A82, 0x6999, 0x6D00] {
            await #expect(throws: KeycardError.noApplet) {
                _ = try await KeycardApplet.select(on: FixedCard(status: StatusWord(status)))
            }
        }
        await #expect(throws: KeycardError.status(StatusWord(0x6985))) {
            _ = try await KeycardApplet.select(on: FixedCard(status: StatusWord(0x6985)))
        }
    }

    @Test(
        "a status of the SELECT after INIT or FACTORY RESET is not taken for that of the command",
        arguments: CardModel.allCases
    )
    func selectAgain(model: CardModel) async throws {
        let card = try KeycardStage(model)
        let new = try await KeycardApplet.select(on: SelectedOnce(card), trust: card.trust)
        let initialize = await #expect(throws: KeycardError.self) { try await new.initializeWithKnownSecrets() }
        guard case .malformed = initialize else { return #expect(Bool(false), "\(String(describing: initialize))") }
        #expect(await card.wasInitialized)
        let applet = try await KeycardApplet.select(on: SelectedOnce(card), trust: card.trust)
        guard await applet.info.hasFactoryReset else { return }
        let reset = await #expect(throws: KeycardError.self) { try await applet.factoryReset(keyUID: nil) }
        guard case .malformed = reset else { return #expect(Bool(false), "\(String(describing: reset))") }
        #expect(await !card.isInitialized)
    }

    @Test("4.0 opens the duress wallet after UNBLOCK of the duress PIN, and a public key shows it")
    func unblockedDuress() async throws {
        // The first digit of each byte is the digit 1, so the duress PIN is 111111.
        let random = KeycardRandom { count throws(CryptoError) in
            count == 1 ? Secret([1]) : try Random.secret(count)
        }
        let (card, pairing) = try await KeycardStage.ready(.v4_0, random: random)
        let applet = try await card.open(pairing)
        #expect(try await applet.verifyPIN(Secret("111111".utf8)) == .accepted)
        for left in [2, 1, 0] { #expect(try await applet.verifyPIN(Secret("000000".utf8)) == .wrong(triesLeft: left)) }
        #expect(
            try await applet.unblockPIN(puk: Secret(Known.puk.utf8), newPIN: Secret(Known.newPIN.utf8)) == .accepted
        )
        #expect(try await applet.exportPublicKey(Known.path) != Known.publicKey())
        #expect(await card.pinTries == 0)
    }
}

private final class PeerKey: Sendable {
    let key: PrivateKey
    init(_ key: consuming PrivateKey) { self.key = key }
}

/// A virtual applet without faults.
private actor AppletChannel: CardChannel {
    private let applet: VirtualApplet

    init(_ applet: sending VirtualApplet) { self.applet = applet }

    func transmit(_ command: CommandAPDU) async throws(CardError) -> ResponseAPDU {
        guard let answer = ResponseAPDU(bytes: applet.process(command.bytes)) else { throw .mute }
        return answer
    }
}

/// A card that answers 6985 to each SELECT but the first.
private actor SelectedOnce: CardChannel {
    private let card: KeycardStage
    private var wasSelected = false

    init(_ card: KeycardStage) { self.card = card }

    func transmit(_ command: CommandAPDU) async throws(CardError) -> ResponseAPDU {
        if command.ins == KeycardInstruction.select, wasSelected { return ResponseAPDU(StatusWord(0x6985)) }
        wasSelected = true
        return try await card.transmit(command)
    }
}

private struct FixedCard: CardChannel {
    let status: StatusWord
    func transmit(_ command: CommandAPDU) async throws(CardError) -> ResponseAPDU { ResponseAPDU(status) }
}
