// SPDX-License-Identifier: GPL-3.0-or-later
import Crypto
package import Readers
package import ReadersVirtual
package import Secrets
package import Text

/// The kind of the virtual PKOC card. docs/protocol/credentials.md, Virtual PKOC card.
package struct VirtualPKOCKind: VirtualCardKind {
    package let name = "pkoc"

    package init() {}

    package func describe(simulator: JSON?, card: JSON?) throws(CardShelfError) -> any VirtualCardDescription {
        guard simulator == nil else { throw .invalid("simulator is only for eID cards") }
        var description = VirtualPKOCDescription()
        description.options = try VirtualCardOptions(card: card)
        for (key, entry) in CardEntry("card", card).members {
            switch key {
            case "key": description.key = SecretBox(Secret(try entry.bytes(32)))
            case "certificate": description.certificate = try entry.bytes()
            case "versions":
                description.versions = try entry.bytes()
                guard (2...16).contains(description.versions.count), description.versions.count.isMultiple(of: 2)
                else { throw entry.wrong("is not one to eight versions of two bytes") }
            case "partLength": description.partLength = try entry.int(1...256)
            case "phone": description.isPhone = try entry.bool()
            case "signature":
                guard let text = entry.json?.string, let signature = VirtualPKOCDescription.Signature(rawValue: text)
                else { throw entry.wrong("is not right, wrong or replayed") }
                description.signature = signature
            default: continue
            }
        }
        return description
    }
}

/// What a virtual PKOC card is made of.
package struct VirtualPKOCDescription: VirtualCardDescription {
    /// What the card signs.
    package enum Signature: String, Sendable {
        case right
        /// Other bytes than the reader wants.
        case wrong
        /// Always the transaction of the first signature of this card.
        case replayed
    }

    /// The private key; nil: one that is the same for all such cards.
    package var key: SecretBox?
    /// The object 7F21; nil: a card without SE V2.
    package var certificate: [UInt8]?
    /// The answer to SELECT: two bytes for each version.
    package var versions: [UInt8] = [0x01, 0x00]
    /// The most bytes of an answer; the rest is fetched by GET RESPONSE. nil: 256.
    package var partLength: Int?
    /// Whether the card signs once per activation, as a phone does.
    package var isPhone = false
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
                let standard = try DigestAlgorithm.sha256.hash(Array("badged: key of virtual PKOC cards".utf8))
                made = try ECPrivateKey(Secret(standard), on: group)
            }
        } catch {
            throw .invalid("card.key is no private key of P-256")
        }
        return try VirtualCard(VirtualPKOCCard(self, made), options)
    }
}
