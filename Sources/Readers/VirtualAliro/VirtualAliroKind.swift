// SPDX-License-Identifier: GPL-3.0-or-later
import Crypto
package import Readers
package import ReadersVirtual
package import Secrets
package import Text

/// The kind of the virtual card with Aliro. docs/protocol/credentials.md, Virtual card with Aliro.
package struct VirtualAliroKind: VirtualCardKind {
    package let name = "aliro"

    package init() {}

    package func describe(simulator: JSON?, card: JSON?) throws(CardShelfError) -> any VirtualCardDescription {
        guard simulator == nil else { throw .invalid("simulator is only for eID cards") }
        var description = VirtualAliroDescription()
        description.options = try VirtualCardOptions(card: card)
        for (key, entry) in CardEntry("card", card).members {
            switch key {
            case "key": description.key = SecretBox(Secret(try entry.bytes(32)))
            case "reader": description.reader = try entry.bytes(33)
            case "group": description.group = try entry.bytes(16)
            case "versions":
                description.versions = try entry.bytes()
                guard (2...16).contains(description.versions.count), description.versions.count.isMultiple(of: 2)
                else { throw entry.wrong("is not one to eight versions of two bytes") }
            case "partLength": description.partLength = try entry.int(1...256)
            case "fast": description.isFast = try entry.bool()
            case "pkoc": description.hasPKOC = try entry.bool()
            case "signature":
                guard let text = entry.json?.string, let signature = VirtualAliroDescription.Signature(rawValue: text)
                else { throw entry.wrong("is not right, wrong or replayed") }
                description.signature = signature
            default: continue
            }
        }
        return description
    }
}

/// What a virtual card with Aliro is made of.
package struct VirtualAliroDescription: VirtualCardDescription {
    /// What the card answers to AUTH1.
    package enum Signature: String, Sendable {
        case right
        /// It signs other bytes than the reader wants.
        case wrong
        /// Always its answer to the first AUTH1.
        case replayed
    }

    /// The private key; nil: one that is the same for all such cards.
    package var key: SecretBox?
    /// The compressed public key of the readers that the card knows; nil: it knows none, and refuses all of them.
    package var reader: [UInt8]?
    /// The group of these readers; nil: any.
    package var group: [UInt8]?
    /// Two bytes for each version in the answer to SELECT.
    package var versions: [UInt8] = [0x01, 0x00]
    /// The most bytes of an answer; the rest is fetched by GET RESPONSE. nil: 256.
    package var partLength: Int?
    /// Whether the card does the fast phase with readers that have read it before.
    package var isFast = true
    /// Whether the card has PKOC with the same key, too, as a phone may have.
    package var hasPKOC = false
    package var signature = Signature.right
    package var options = VirtualCardOptions()

    package init() {}

    package func makeCard() throws(CardShelfError) -> VirtualCard {
        let made: ECPrivateKey
        do throws(CryptoError) {
            let group = try Curve.secp256r1.group
            if let key = key?.take() {
                made = try ECPrivateKey(key, on: group)
            } else {
                let standard = try DigestAlgorithm.sha256.hash(Array("badged: key of virtual Aliro cards".utf8))
                made = try ECPrivateKey(Secret(standard), on: group)
            }
        } catch {
            throw .invalid("card.key is no private key of P-256")
        }
        var known: ECPublicKey?
        if let reader {
            guard let key = try? ECPublicKey(compressedPoint: reader, on: .secp256r1) else {
                throw .invalid("card.reader is no compressed public key of P-256")
            }
            known = key
        }
        return try VirtualCard(VirtualAliroCard(self, made, known), options)
    }
}
