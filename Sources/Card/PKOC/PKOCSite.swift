// SPDX-License-Identifier: GPL-3.0-or-later
package import Crypto

/// Who reads: the identifier that a reader sends to cards, and whose certificates it accepts.
package struct PKOCSite: Sendable, Equatable {
    /// The names of the site and of the reader's place, 16 bytes each. A card may use them to choose a key.
    package let readerIdentifier: [UInt8]
    /// The issuers whose certificates count.
    package let issuers: [PKOCIssuer]
    /// Validated mode: only a key with a valid certificate is a credential, and SE V1 is never used.
    package let isValidated: Bool

    /// `site` and `location` have 16 bytes each; other lengths are cut or filled with zeros.
    package init(
        site: [UInt8] = [],
        location: [UInt8] = [],
        issuers: [PKOCIssuer] = [],
        isValidated: Bool = false
    ) {
        func sixteen(_ bytes: [UInt8]) -> [UInt8] {
            Array(bytes.prefix(16)) + [UInt8](repeating: 0, count: max(0, 16 - bytes.count))
        }
        readerIdentifier = sixteen(site) + sixteen(location)
        (self.issuers, self.isValidated) = (issuers, isValidated)
    }
}

/// An issuer of card certificates: its name in certificates, and the key that signs them.
package struct PKOCIssuer: Sendable, Equatable {
    /// 16 bytes, each A to Z or 0 to 9.
    package let reference: [UInt8]
    package let key: ECPublicKey

    /// Nil unless `reference` is a name of 16 letters and digits.
    package init?(reference: [UInt8], key: ECPublicKey) {
        guard PKOCCertificate.isReference(reference) else { return nil }
        (self.reference, self.key) = (reference, key)
    }
}
