// SPDX-License-Identifier: GPL-3.0-or-later
import Crypto
import HDWallet
package import ISO7816
package import Keycard
import Text

/// The life of a Keycard from its factory state to FACTORY RESET, with the commands of the card layer. The same for each
/// kind of card and reader.
package struct KeycardLife: Sendable {
    /// The check that failed.
    package struct Failure: Error, CustomStringConvertible {
        package let description: String
    }

    private static let pin = "123456", newPIN = "246802", lastPIN = "135791", puk = "987654321098"
    private static let path = DerivationPath.firstEthereumAddress

    private let trust: KeycardTrust

    package init(trust: KeycardTrust) { self.trust = trust }

    /// Runs the first part, until the keys are on the card. Ends with the key UID.
    package func begin(on channel: any CardChannel) async throws -> (keyUID: [UInt8], pairing: StoredPairing?) {
        let applet = try await KeycardApplet.select(on: channel, trust: trust)
        try expect(await !applet.info.isInitialized, "a new card is not initialised")
        let secret = try KeycardPairingSecret.derive(Secret(KeycardParameters.defaultPairingPassword.utf8))
        try await applet.initialize(
            pin: Secret(Self.pin.utf8),
            puk: Secret(Self.puk.utf8),
            pairingSecret: secret.clone()
        )
        let info = await applet.info
        try expect(info.isInitialized && info.keyUID == nil, "INIT makes a card without keys")
        var pairing: StoredPairing?
        if info.generation == .pairing {
            pairing = StoredPairing(try await applet.pair(secret: secret))
            try await applet.select()
        }
        try await open(applet, pairing)
        let status = try await applet.readStatus()
        try expect(status == KeycardStatus(pinTries: 3, pukTries: 5, hasKey: false), "the counters are full: \(status)")
        try expect(try await applet.verifyPIN(Secret("000000".utf8)) == .wrong(triesLeft: 2), "a wrong PIN uses a try")
        try expect(try await applet.verifyPIN(Secret(Self.pin.utf8)) == .accepted, "the PIN is right")
        let words = try await applet.generateMnemonic(words: 12)
        let master = try ExtendedPrivateKey(seed: try words.seed())
        let uid = try await applet.loadWallet(words)
        try expect(uid == (try master.keyUID), "the key UID is that of BIP-32")
        let key = try master.derive(Self.path).key.publicKey
        try expect(try await applet.exportPublicKey(Self.path) == key, "the card derives the keys of BIP-32")
        let hash = try DigestAlgorithm.sha256.hash(Array("a message".utf8))
        for _ in 0..<4 { _ = try await applet.sign(hash, with: Self.path, expecting: key) }
        return (uid, pairing)
    }

    /// Runs the second part in another connection, until the card is as new.
    package func end(on channel: any CardChannel, keyUID: [UInt8], pairing: StoredPairing?) async throws {
        let applet = try await KeycardApplet.select(on: channel, trust: trust)
        try expect(await applet.info.keyUID == keyUID, "SELECT tells the key UID")
        try await open(applet, pairing)
        let hash = [UInt8](repeating: 9, count: 32)
        do {
            _ = try await applet.sign(hash, with: Self.path)
            throw Failure(description: "a new connection signs without the PIN")
        } catch KeycardError.status(StatusWord(0x6985)) {}
        try expect(try await applet.verifyPIN(Secret(Self.pin.utf8)) == .accepted, "the PIN is right")
        let key = try await applet.exportPublicKey(Self.path)
        try await applet.changePIN(to: Secret(Self.newPIN.utf8))
        for left in [2, 1, 0] {
            let verdict = try await applet.verifyPIN(Secret(Self.pin.utf8))
            try expect(verdict == .wrong(triesLeft: left), "the old PIN is wrong: \(verdict)")
        }
        let wrong = try await applet.unblockPIN(puk: Secret("000000000000".utf8), newPIN: Secret(Self.lastPIN.utf8))
        try expect(wrong == .wrong(triesLeft: 4), "a wrong PUK uses a try: \(wrong)")
        let right = try await applet.unblockPIN(puk: Secret(Self.puk.utf8), newPIN: Secret(Self.lastPIN.utf8))
        try expect(right == .accepted, "the PUK is right: \(right)")
        try expect(try await applet.exportPublicKey(Self.path) == key, "the keys are the same after UNBLOCK PIN")
        _ = try await applet.sign(hash, with: Self.path, expecting: key)
        if let pairing { try await applet.unpair(slot: pairing.pairing.slot) }
        try await applet.factoryReset(keyUID: keyUID)
        try expect(await !applet.info.isInitialized, "the card is as new")
    }

    private func open(_ applet: KeycardApplet, _ pairing: StoredPairing?) async throws {
        if let pairing {
            try await applet.open(pairing.pairing)
        } else {
            try await applet.openWithCertificate()
        }
    }

    private func expect(_ condition: Bool, _ sentence: String) throws {
        guard condition else { throw Failure(description: "not so: \(sentence)") }
    }
}

/// A pairing that is used more than once.
package final class StoredPairing: Sendable {
    package let pairing: KeycardPairing
    package init(_ pairing: consuming KeycardPairing) { self.pairing = pairing }
}
