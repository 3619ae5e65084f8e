// SPDX-License-Identifier: GPL-3.0-or-later
import ChipAccess
package import Crypto
package import ISO7816
package import Text

/// A card-verifiable certificate. TR-03110-3 C.1.
package struct CVCertificate: Sendable, Equatable {
    /// One entry of the certificate extensions. TR-03110-3 C.3.
    package struct Extension: Sendable, Equatable {
        /// The content of the object identifier.
        package let identifier: [UInt8]
        /// The context-specific objects.
        package let objects: [BERTLV]
    }

    /// The object 7F4E with its header, which is signed.
    package let body: [UInt8]
    /// The signature in plain format: r and s at full length. TR-03111 5.2.1.
    package let signature: [UInt8]
    /// The holder reference of the issuer, 7 to 16 bytes.
    package let authorityReference: [UInt8]
    /// The name of the holder and its key, 7 to 16 bytes.
    package let holderReference: [UInt8]
    package let publicKey: CVPublicKey
    package let chat: CHAT
    package let effectiveDate: CVDate
    /// The last day on which the certificate is valid.
    package let expirationDate: CVDate
    package let extensions: [Extension]

    /// The maximum length in bytes. Certificates of the eID PKI have a few hundred bytes.
    package static let maximumLength = 2048

    /// Reads the object 7F21.
    /// - Throws: `Malformed`.
    package init(_ bytes: [UInt8]) throws(Malformed) {
        guard bytes.count <= Self.maximumLength else { throw Malformed("certificate too long") }
        let parts = try Malformed.at("certificate") { () throws(Malformed) in
            let outer = try BERTLV(bytes)
            return outer.tag == 0x7F21 ? try outer.children : []
        }
        try self.init(parts: parts)
    }

    /// Reads body and signature without the object 7F21, as in PSO:VERIFY CERTIFICATE. TR-03110-3 B.11.4.
    package init(commandData bytes: [UInt8]) throws(Malformed) {
        guard bytes.count <= Self.maximumLength else { throw Malformed("certificate too long") }
        let parts = try Malformed.at("certificate", BERTLV.sequence(bytes))
        try self.init(parts: parts)
    }

    private init(parts: [BERTLV]) throws(Malformed) {
        guard parts.map(\.tag) == [0x7F4E, 0x5F37] else { throw Malformed("certificate without body and signature") }
        let fields = try Malformed.at("certificate body", parts[0].children)
        let tags = fields.map(\.tag)
        guard tags == Self.tags || tags == Self.tags + [0x65] else {
            throw Malformed("certificate body with unexpected objects")
        }
        guard fields[0].value == [0] else { throw Malformed("certificate of another version") }
        guard (7...16).contains(fields[1].value.count), (7...16).contains(fields[3].value.count) else {
            throw Malformed("reference of a wrong length")
        }
        let keyObjects = try Malformed.at("public key", fields[2].children)
        guard let effective = CVDate(bytes: fields[5].value), let expiration = CVDate(bytes: fields[6].value) else {
            throw Malformed("date that does not exist")
        }
        body = parts[0].encoded
        signature = parts[1].value
        authorityReference = fields[1].value
        holderReference = fields[3].value
        effectiveDate = effective
        expirationDate = expiration
        publicKey = try CVPublicKey(objects: keyObjects)
        chat = try CHAT(fields[4])
        extensions = fields.count == 8 ? try Self.extensions(in: fields[7]) : []
    }

    private static let tags: [UInt32] = [0x5F29, 0x42, 0x7F49, 0x5F20, 0x7F4C, 0x5F25, 0x5F24]

    private static func extensions(in object: BERTLV) throws(Malformed) -> [Extension] {
        try Malformed.at(
            "extensions",
            object.children.map { entry throws(Malformed) in
                let objects = try entry.children
                guard entry.tag == 0x73, let first = objects.first, first.tag == 0x06 else { throw .invalidTag }
                return Extension(identifier: first.value, objects: Array(objects.dropFirst()))
            }
        )
    }

    /// The object 7F21.
    package var encoded: [UInt8] {
        BERTLV(0x7F21, body + BERTLV(0x5F37, signature).encoded).encoded
    }

    /// The command data of PSO:VERIFY CERTIFICATE.
    package var commandData: [UInt8] { body + BERTLV(0x5F37, signature).encoded }

    /// The hash function of the signatures that the holder makes; nil when its key is not for signatures.
    package var digest: DigestAlgorithm? { TerminalAuthentication.digest(of: publicKey.identifier) }

    /// Whether the key `issuer` has signed this certificate. `digest` is the hash function that the issuer's certificate
    /// names. Throws `.unsupported` when libcrypto cannot check the signature.
    package func isSigned(by issuer: ECPublicKey, _ digest: DigestAlgorithm) throws(Malformed) -> Bool {
        guard let isRight = try? ECDSA.verify(signature, of: body, with: issuer, digest: digest) else {
            throw .unsupported
        }
        return isRight
    }

    /// The hash of the certificate description. TR-03110-3 C.3.1.
    package var descriptionHash: [UInt8]? { value(0x80, of: 1) }

    /// The hashes of the first and the second public key of the terminal sector. TR-03110-3 C.3.2.
    package var sectorHashes: (first: [UInt8]?, second: [UInt8]?) { (value(0x80, of: 2), value(0x81, of: 2)) }

    private func value(_ tag: UInt32, of number: UInt8) -> [UInt8]? {
        extensions.first { $0.identifier == OID.certificateExtension + [number] }?
            .objects.first { $0.tag == tag }?.value
    }
}

/// What is wrong with a CV certificate or one of its parts.
extension Malformed {
    /// The certificate has a curve or an algorithm that no eID certificate uses.
    package static let unsupported = Malformed("a curve or an algorithm that no eID certificate uses")
    /// The public point is not on its curve.
    package static let invalidKey = Malformed("a public key that is not on its curve")
}
