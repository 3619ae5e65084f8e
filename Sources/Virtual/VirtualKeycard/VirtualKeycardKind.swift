// SPDX-License-Identifier: GPL-3.0-or-later
package import Crypto
package import HDWallet
package import Keycard
package import ReadersVirtual
package import Text

/// The kind of the virtual Keycard. docs/protocol/readers.md, Virtual Keycard.
package struct VirtualKeycardKind: VirtualCardKind {
    package let name = "keycard"

    package init() {}

    package func describe(simulator: JSON?, card: JSON?) throws(Malformed) -> any VirtualCardDescription {
        var description = VirtualKeycardDescription()
        description.options = try VirtualCardOptions(card: card)
        for (key, entry) in CardEntry("card", card).members {
            switch key {
            case "version":
                let versions = KeycardVersion.allCases
                guard let found = versions.first(where: { entry.json == .string($0.description) }) else {
                    throw entry.wrong("is not 3.0, 3.1 or 4.0")
                }
                description.version = found
            case "initialised": description.isInitialized = try entry.bool()
            case "pin": description.pin = try entry.digits(KeycardParameters.pinCount)
            case "puk": description.puk = try entry.digits(KeycardParameters.pukCount)
            case "duressPin": description.duressPIN = try entry.digits(KeycardParameters.pinCount)
            case "pairingPassword": description.pairingPassword = try Self.text(entry, 1...128)
            case "words": description.words = try Self.text(entry, 1...256)
            case "retryCounter": description.pinTries = try entry.int(0...KeycardParameters.pinTries)
            case "pukCounter": description.pukTries = try entry.int(0...KeycardParameters.pukTries)
            default: continue
            }
        }
        guard description.version != .v3_0 || description.duressPIN == nil else {
            throw CardEntry("card", card)["duressPin"].wrong("does not exist on a card of version 3.0")
        }
        return description
    }

    private static func text(_ entry: CardEntry, _ counts: ClosedRange<Int>) throws(Malformed) -> SecretBox {
        guard let text = entry.json?.string, counts.contains(text.utf8.count), text.utf8.allSatisfy({ $0 < 0x80 })
        else {
            throw entry.wrong("is not a string of \(counts.lowerBound) to \(counts.upperBound) ASCII characters")
        }
        return SecretBox(Secret(text.utf8))
    }
}

/// What a virtual Keycard is made of. A missing secret has its default value.
package struct VirtualKeycardDescription: VirtualCardDescription {
    package var version = KeycardVersion.v3_1
    /// false: as new from the factory; then the secrets have no effect.
    package var isInitialized = true
    /// 123456
    package var pin: SecretBox?
    /// 987654321098
    package var puk: SecretBox?
    /// 111111
    package var duressPIN: SecretBox?
    /// KeycardDefaultPairing
    package var pairingPassword: SecretBox?
    /// BIP-39 words whose keys are loaded; nil for a card without keys.
    package var words: SecretBox?
    package var pinTries = KeycardParameters.pinTries
    package var pukTries = KeycardParameters.pukTries
    package var options = VirtualCardOptions()
    package var sources = CardSources()

    package init() {}

    package func makeCard() throws(Malformed) -> VirtualCard {
        let applet: VirtualApplet
        do throws(CryptoError) {
            let identity = version == .v4_0 ? try AppletIdentity(signedBy: try Self.authority()) : nil
            applet = try VirtualApplet(version, identity: identity, sources: sources)
        } catch {
            throw Malformed("card cannot be made: \(error)")
        }
        if isInitialized { try personalize(applet) }
        return try VirtualCard(applet, options)
    }

    /// Does what INIT and LOAD KEY do, and sets the counters.
    private func personalize(_ applet: VirtualApplet) throws(Malformed) {
        let pin = try secret(pin, "123456", "pin")
        let puk = try secret(puk, "987654321098", "puk")
        let duress = try secret(duressPIN, "111111", "duressPin")
        let password = try secret(pairingPassword, KeycardParameters.defaultPairingPassword, "pairingPassword")
        var mnemonic: Mnemonic?
        if let words {
            let text = try secret(words, "", "words")
            mnemonic = try Malformed.at("card.words are not BIP-39 words", Mnemonic(words: text))
        }
        do {
            var wallet: CardWallet?
            if let mnemonic { wallet = try CardWallet(seed: try mnemonic.seed()) }
            try applet.personalize(
                CardSecrets(
                    main: CardPIN(pin, limit: KeycardParameters.pinTries, tries: pinTries),
                    duress: CardPIN(duress, limit: KeycardParameters.pinTries, tries: pinTries),
                    puk: CardPIN(puk, limit: KeycardParameters.pukTries, tries: pukTries)
                ),
                // The usual password is derived once: this takes longer than everything else here.
                pairingSecret: pairingPassword == nil
                    ? Secret(try KeycardPairingSecret.standard.get()) : try KeycardPairingSecret.derive(password),
                wallet
            )
        } catch {
            throw Malformed("card cannot be made: \(error)")
        }
    }

    private func secret(
        _ box: SecretBox?,
        _ standard: String,
        _ name: String
    ) throws(Malformed) -> Secret {
        guard let box else { return Secret(standard.utf8) }
        guard let secret = box.take() else { throw Malformed("card.\(name) was used before") }
        return secret
    }

    /// The private key of the authority that signs the certificates of virtual cards: the SHA-256 of a fixed text.
    package static func authority() throws(CryptoError) -> PrivateKey {
        try PrivateKey(Secret(try DigestAlgorithm.sha256.hash(Array("badged: authority of virtual Keycards".utf8))))
    }
}
