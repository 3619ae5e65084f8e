// SPDX-License-Identifier: GPL-3.0-or-later
package import ChipAccess
package import Crypto
import Document
package import ReadersVirtual
package import Text

/// What a virtual document is made of: its files, keys and passwords, and how it differs from the standard.
package struct VirtualDocumentDescription: VirtualCardDescription {
    /// A private key of the chip.
    package enum Key: Sendable {
        case elliptic(Curve, SecretBox)
        /// The modulus, and the exponent.
        case rsa([UInt8], SecretBox)
    }

    /// How real chips differ. The names are of the property of the chip.
    package struct Quirks: Sendable, Equatable {
        /// The answer to SELECT of the master file; nil: 9000.
        package var selectMasterFile: UInt16?
        /// The answer to the plain reading of EF.CardAccess if there is no such file.
        package var noCardAccess: UInt16 = 0x6A82
        /// The answer to a short file identifier; nil: it is known.
        package var noShortID: UInt16?
        /// The status words that are answered without protection, which ends the channel.
        package var endsChannel: Set<UInt16> = []
        /// The most bytes that one READ BINARY returns; more is answered with 6700 without protection.
        package var maximumRead: Int?
        /// Whether commands and answers may have extended lengths.
        package var hasExtendedLength = true
        /// The answer to a read beyond the end; nil: 6282 with the data that are left.
        package var beyondEnd: UInt16?
        /// The answer to a wrong password; nil: 6300.
        package var wrongPassword: UInt16?
        /// The Le that EXTERNAL AUTHENTICATE must have; nil: any.
        package var externalLe: Int?
        /// Whether reads are answered without protection in the channel.
        package var answersInPlain = false
        /// Whether active authentication answers with n - s.
        package var signsComplement = false
    }

    /// The files by the names of their folder form, such as `DG1` or `CardAccess`.
    package var files: [String: [UInt8]] = [:]
    /// The characters of the machine readable zone that open the document.
    package var information: [UInt8] = []
    package var can: [UInt8] = []
    package var hasBAC = false
    package var pace: [PACEParameters] = []
    /// Whether the files need BAC or PACE. Chips with neither send them to everybody.
    var hasAccessControl: Bool { hasBAC || !pace.isEmpty }
    /// The keys `aa`, `cam`, `ca1`, `ca2` and so on.
    package var keys: [String: Key] = [:]
    package var chipCiphers: [SessionCipher] = []
    package var signatureDigest: DigestAlgorithm?
    package var lockedGroups: Set<Int> = []
    /// The protocol whose key the chip does not have: `aa`, `ca` or `cam`.
    package var cloned: String?
    package var quirks = Quirks()
    package var options = VirtualCardOptions()

    package init() {}

    package func makeCard() throws(Malformed) -> VirtualCard {
        var made: [String: ChipKey] = [:]
        for (name, key) in keys {
            let isCloned = cloned.map { name.hasPrefix($0) } ?? false
            guard let right = try? ChipKey(key), let used = isCloned ? try? ChipKey(other: right) : right else {
                throw Malformed("card.keys.\(name) cannot be used")
            }
            made[name] = used
        }
        return try VirtualCard(VirtualDocumentCard(self, keys: made), options)
    }

    /// Reads the entries of the folder form: `mrzKey`, `can`, `access`, `keys`, `caCiphers`, `aaHash`, `locked`, `cloned`
    /// and `files` with hexadecimal contents. Without `mrzKey` they change the standard document.
    package init(card: JSON?) throws(Malformed) {
        self.init()
        options = try VirtualCardOptions(card: card)
        let card = CardEntry("card", card?["mrzKey"] == nil ? Self.changed(card) : card)
        guard let information = card["mrzKey"].json?.string else { throw card["mrzKey"].wrong("is not a string") }
        self.information = Array(information.utf8)
        can = Array((card["can"].json?.string ?? "").utf8)
        hasBAC = card["access"]["bac"].json == .bool(true)
        for entry in card["access"]["pace"].json?.array ?? [] {
            guard let parameters = Self.parameters(entry) else { throw card["access"].wrong("has an unknown pace") }
            pace.append(parameters)
        }
        for (name, entry) in card["keys"].members { keys[name] = try Self.key(entry) }
        for entry in card["caCiphers"].json?.array ?? [] {
            guard let cipher = entry.string.flatMap({ Self.ciphers[$0] }) else {
                throw card["caCiphers"].wrong("has an unknown cipher")
            }
            chipCiphers.append(cipher)
        }
        signatureDigest = card["aaHash"].json?.string.flatMap { Self.digests[$0] }
        lockedGroups = Set((card["locked"].json?.array ?? []).compactMap(\.int))
        cloned = card["cloned"].json?.string
        for (name, entry) in card["files"].members { files[name] = try entry.bytes() }
    }

    /// The standard document with the entries of a description in place of its own; `files` are replaced one by one.
    private static func changed(_ card: JSON?) -> JSON? {
        guard let standard = try? JSON(Array(StandardDocument.card.utf8)) else { return card }
        func merged(_ old: JSON?, _ new: JSON?) -> JSON {
            let names = Set((new?.members ?? []).map(\.key))
            return .object((old?.members ?? []).filter { !names.contains($0.key) } + (new?.members ?? []))
        }
        let files = merged(standard["files"], card?["files"])
        return merged(merged(standard, card), .object([JSON.Member("files", files)]))
    }

    private static let ciphers: [String: SessionCipher] = [
        "3DES": .tripleDES, "AES-128": .aes128, "AES-192": .aes192, "AES-256": .aes256,
    ]
    private static let digests: [String: DigestAlgorithm] = [
        "sha1": .sha1, "sha224": .sha224, "sha256": .sha256, "sha384": .sha384, "sha512": .sha512,
    ]
    private static let mappings: [String: PACEParameters.Mapping] = [
        "GM": .generic, "IM": .integrated, "CAM": .chipAuthentication,
    ]

    /// `["ECDH", "GM", "AES-128", 13]`.
    private static func parameters(_ json: JSON) -> PACEParameters? {
        guard let fields = json.array, fields.count == 4, let mapping = fields[1].string.flatMap({ mappings[$0] }),
            let cipher = fields[2].string.flatMap({ ciphers[$0] }),
            let id = fields[3].int.flatMap(UInt8.init(exactly:)),
            let domain = KeyAgreementDomain(parameterID: id)
        else { return nil }
        return PACEParameters(mapping: mapping, domain: domain, cipher: cipher)
    }

    private static func key(_ entry: CardEntry) throws(Malformed) -> Key {
        let d = SecretBox(Secret(try number(entry["d"])))
        switch entry["kind"].json?.string {
        case "rsa": return .rsa(try number(entry["n"]), d)
        case "ec":
            let name = entry["curve"].json?.string
            guard let curve = Curve.allCases.first(where: { "\($0)" == name }) else {
                throw entry["curve"].wrong("is not a known curve")
            }
            return .elliptic(curve, d)
        default: throw entry["kind"].wrong("is not one of ec, rsa")
        }
    }

    /// A number in hexadecimal digits, of which there may be an odd number.
    private static func number(_ entry: CardEntry) throws(Malformed) -> [UInt8] {
        let text = entry.json?.string ?? ""
        guard let bytes = Hex.decode(text.utf8.count % 2 == 0 ? text : "0" + text, limit: 4096), !bytes.isEmpty else {
            throw entry.wrong("is not hexadecimal")
        }
        return bytes
    }
}

/// A private key of a chip, ready for use.
final class ChipKey: Sendable {
    enum Content: ~Copyable, Sendable {
        case elliptic(ECPrivateKey)
        case rsa(RSAPrivateNumbers)
    }

    let content: Content

    init(_ key: VirtualDocumentDescription.Key) throws(CryptoError) {
        switch key {
        case .elliptic(let curve, let box):
            guard let secret = box.take() else { throw .invalidKey }
            content = .elliptic(try ECPrivateKey(secret, on: try curve.group))
        case .rsa(let modulus, let box):
            guard let secret = box.take() else { throw .invalidKey }
            content = .rsa(RSAPrivateNumbers(modulus: modulus, exponent: secret))
        }
    }

    /// Another key of the same kind, for a clone.
    init(other key: ChipKey) throws(CryptoError) {
        switch key.content {
        case .elliptic(let key): content = .elliptic(try ECPrivateKey(on: key.group))
        case .rsa(let numbers):
            content = .rsa(RSAPrivateNumbers(modulus: numbers.modulus, exponent: try Random.secret(numbers.length)))
        }
    }
}

package struct VirtualDocumentKind: VirtualCardKind {
    package let name = "document"

    package init() {}

    package func describe(simulator: JSON?, card: JSON?) throws(Malformed) -> any VirtualCardDescription {
        guard simulator == nil else { throw Malformed("simulator is only for eID cards") }
        return try VirtualDocumentDescription(card: card)
    }
}
