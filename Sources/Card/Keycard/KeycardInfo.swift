// SPDX-License-Identifier: GPL-3.0-or-later
import Crypto
package import HDWallet
import ISO7816

/// The versions of the applet that badged supports.
package enum KeycardVersion: UInt16, Sendable, CaseIterable, CustomStringConvertible {
    /// Has no duress PIN, no IDENTIFY CARD and no FACTORY RESET. INIT takes no limits of tries.
    case v3_0 = 0x0300
    case v3_1 = 0x0301
    case v4_0 = 0x0400

    package var generation: KeycardInfo.Generation { self == .v4_0 ? .certificate : .pairing }
    package var description: String { Self.text(rawValue) }

    /// All versions, for texts to people.
    package static let list = "3.0, 3.1 and 4.0"

    package static func text(_ version: UInt16) -> String { "\(version >> 8).\(version & 0xFF)" }
}

/// The answer of a Keycard to SELECT, which needs no secret.
package struct KeycardInfo: Sendable, Equatable {
    /// The two kinds of channel.
    package enum Generation: Sendable, Equatable {
        /// 3.x: pairing, AES-CBC. Before INIT, SELECT does not report the version.
        case pairing
        /// 4.0: certificate, AES-CCM.
        case certificate
    }

    package var generation: Generation
    /// Such as 0x0301; nil for a new 3.x card until IDENTIFY CARD has shown it.
    package var version: UInt16?
    package var isInitialized: Bool
    /// 16 bytes, new after each factory reset; only 3.x.
    package var instanceUID: [UInt8]?
    /// The key of the card for the channel; only 3.x.
    package var channelKey: PublicKey?
    /// Free pairing slots; only 3.x.
    package var freeSlots: Int?
    /// SHA-256 of the master public key; nil if there is no key.
    package var keyUID: [UInt8]?
    package var capabilities: UInt8 = 0
    /// Remaining tries of the PIN that was used last; only 4.0.
    package var pinTries: Int?
    /// Only 4.0.
    package var certificate: KeycardCertificate?

    /// The version, if badged supports it.
    package var supportedVersion: KeycardVersion? { version.flatMap(KeycardVersion.init) }
    /// Whether badged can use the card, as far as its version is known.
    package var isSupported: Bool { version == nil || supportedVersion != nil }
    /// Whether the card can be reset to its factory state.
    package var hasFactoryReset: Bool { capabilities & 0x10 != 0 }

    /// Reads the answer to SELECT. Of a card that badged does not support, only the version is certain.
    /// - Throws: `.malformed`.
    package init(_ answer: [UInt8]) throws(KeycardError) {
        if answer.first == 0x80 {
            guard let object = try? BERTLV(answer), let key = try? PublicKey(object.value) else {
                throw .malformed("SELECT: no public key")
            }
            generation = .pairing
            isInitialized = false
            channelKey = key
            return
        }
        let fields = try Self.fields(of: answer)
        func value(_ tag: UInt32, count: Int) throws(KeycardError) -> [UInt8]? {
            let all = fields.filter { $0.tag == tag && (tag != 0x02 || $0.value.count == count) }
            guard let first = all.first else { return nil }
            guard all.count == 1, first.value.count == count else { throw .malformed("SELECT: a field is wrong") }
            return first.value
        }
        guard let version = try value(0x02, count: 2) else { throw .malformed("SELECT: no version") }
        let number = UInt16(version[0]) << 8 | UInt16(version[1])
        self.version = number
        guard let known = KeycardVersion(rawValue: number) else {
            let status = fields.first { $0.tag == 0x8C }?.value.first
            generation = status == nil ? .pairing : .certificate
            isInitialized = status.map { $0 & 0x10 != 0 } ?? true
            keyUID = fields.first { $0.tag == 0x8E && $0.value.count == 32 }?.value
            return
        }
        generation = known.generation
        guard let keyField = fields.first(where: { $0.tag == 0x8E }) else { throw .malformed("SELECT: no key UID") }
        if !keyField.value.isEmpty { keyUID = try value(0x8E, count: 32) }
        capabilities = try value(0x8D, count: 1)?[0] ?? 0
        switch known.generation {
        case .certificate:
            guard let status = try value(0x8C, count: 1)?[0],
                let bytes = try value(0x8A, count: KeycardCertificate.count)
            else { throw .malformed("SELECT: no status or certificate") }
            isInitialized = status & 0x10 != 0
            pinTries = isInitialized ? Int(status & 0x0F) : nil
            certificate = try KeycardCertificate(bytes)
        case .pairing:
            guard let uid = try value(0x8F, count: 16), let slots = try value(0x02, count: 1)?[0],
                let point = try value(0x80, count: PublicKey.uncompressedCount), let key = try? PublicKey(point)
            else { throw .malformed("SELECT: a field is missing") }
            isInitialized = true
            instanceUID = uid
            freeSlots = Int(slots)
            channelKey = key
        }
    }

    /// The objects of the template A4.
    ///
    /// Version 4.0 writes an outer length that is one too small. So a length that is one less than the real length is
    /// accepted.
    private static func fields(of answer: [UInt8]) throws(KeycardError) -> [BERTLV] {
        guard answer.count >= 3, answer[0] == 0xA4 else { throw .malformed("SELECT: no template A4") }
        let header = answer[1] == 0x81 ? 3 : 2
        let length = Int(answer[header - 1])
        let content = answer[header...]
        guard answer[1] <= 0x81, content.count == length || content.count == length + 1,
            let fields = try? BERTLV.sequence(content)
        else { throw .malformed("SELECT: the template is damaged") }
        return fields
    }
}

/// The certificate of a Keycard: its identity key, signed by the vendor.
package struct KeycardCertificate: Sendable, Equatable {
    /// The 98 bytes of the certificate: compressed key, r, s, recovery ID.
    package static let count = 98

    /// The key with which the card signs.
    package let identity: PublicKey
    /// The key of the authority that signed the certificate.
    package let authority: PublicKey
    package let bytes: [UInt8]

    /// Reads a certificate and finds its authority.
    /// - Throws: `.malformed`.
    package init(_ bytes: [UInt8]) throws(KeycardError) {
        guard bytes.count == Self.count,
            let identity = try? PublicKey(Array(bytes[..<33])), bytes[0] != 4,
            let signature = try? Signature(compact: Array(bytes[33..<97])),
            let hash = try? DigestAlgorithm.sha256.hash(identity.compressed),
            let authority = try? signature.recover(id: bytes[97], for: hash)
        else { throw .malformed("the certificate of the card is damaged") }
        self.identity = identity
        self.authority = authority
        self.bytes = bytes
    }
}

/// Which Keycards are genuine.
package struct KeycardTrust: Sendable, Equatable {
    /// Compressed keys of authorities.
    package var authorities: Set<[UInt8]>
    /// Compressed identity keys of single cards whose authority is not trusted.
    package var pinnedCards: Set<[UInt8]>

    package init(authorities: Set<[UInt8]> = [vendor], pinnedCards: Set<[UInt8]> = []) {
        self.authorities = authorities
        self.pinnedCards = pinnedCards
    }

    /// The authority of the vendor.
    package static let vendor: [UInt8] = [
        0x02, 0x9A, 0xB9, 0x9E, 0xE1, 0xE7, 0xA7, 0x1B, 0xDF, 0x45, 0xB3, 0xF9, 0xC5, 0x8C, 0x99, 0x86, 0x6F,
        0xF1, 0x29, 0x4D, 0x2C, 0x1E, 0x30, 0x4E, 0x22, 0x8A, 0x86, 0xE1, 0x0C, 0x33, 0x43, 0x50, 0x1C,
    ]

    /// Whether a card with this certificate is accepted.
    package func accepts(_ certificate: KeycardCertificate) -> Bool {
        authorities.contains(certificate.authority.compressed) || pinnedCards.contains(certificate.identity.compressed)
    }
}
