// SPDX-License-Identifier: GPL-3.0-or-later
import ChipAccess
import Crypto
import ISO7816

/// A signed file: EF.SOD, EF.CardSecurity, a master list, a defect list. RFC 5652 5, ICAO 9303-10 4.6.2.
package struct SignedData: Sendable, Equatable {
    package enum Fault: Error, Sendable, Equatable {
        case malformed
        /// No digest or signature algorithm that is known.
        case unsupported
        /// No certificate of the signer.
        case noSigner
        case wrongDigest
        case wrongSignature
    }

    /// Who has signed.
    private enum Identity: Sendable, Equatable {
        case issuer(DistinguishedName, serial: [UInt8])
        case keyID([UInt8])
    }

    private struct Signer: Sendable, Equatable {
        let identity: Identity
        let digest: BERTLV
        /// The content of the signed attributes as found.
        let attributes: [UInt8]
        let contentType: [UInt8]
        let messageDigest: [UInt8]
        let signingTime: Int?
        let algorithm: BERTLV
        let signature: [UInt8]
    }

    /// The content of the object identifier.
    package let contentType: [UInt8]
    package let content: [UInt8]
    package let certificates: [DocumentCertificate]
    private let signers: [Signer]

    /// The limits of a file: signers, certificates beside the content.
    private static let maximumSigners = 8
    private static let maximumCertificates = 64

    /// Reads a ContentInfo. Bytes after it are ignored, since files may be filled up.
    /// - Throws: `.malformed`.
    package init(_ bytes: [UInt8]) throws(Fault) {
        guard let resolved = IndefiniteLengths.resolve(Self.withoutFiller(bytes)),
            let info = try? RawObject(resolved), info.tag == 0x30, let outer = try? info.children(limit: 2),
            outer.count == 2, outer[0].object == BERTLV(0x06, OID.signedData), outer[1].tag == 0xA0,
            let wrapped = try? outer[1].children(limit: 1).first, wrapped.tag == 0x30,
            let fields = try? wrapped.children(limit: 8), fields.count >= 4, fields[0].tag == 0x02,
            fields[1].tag == 0x31, fields[2].tag == 0x30, let content = try? fields[2].children(limit: 2),
            content.count == 2, content[0].tag == 0x06, content[1].tag == 0xA0,
            let octets = try? BERTLV(content[1].value), octets.tag == 0x04, let last = fields.last, last.tag == 0x31,
            let infos = try? last.children(limit: Self.maximumSigners)
        else { throw .malformed }
        contentType = content[0].value
        self.content = octets.value
        var certificates: [DocumentCertificate] = []
        if let set = fields.dropFirst(3).first(where: { $0.tag == 0xA0 }) {
            guard let list = try? set.children(limit: Self.maximumCertificates) else { throw .malformed }
            certificates = list.compactMap { try? DocumentCertificate(Array($0.raw)) }
        }
        self.certificates = certificates
        var signers: [Signer] = []
        for info in infos { signers.append(try Self.signer(info)) }
        guard !signers.isEmpty else { throw .malformed }
        self.signers = signers
    }

    /// Cuts what follows the first object, if its length is definite.
    private static func withoutFiller(_ bytes: [UInt8]) -> [UInt8] {
        var reader = BERReader(bytes)
        guard (try? reader.next()) != nil else { return bytes }
        return Array(bytes.dropLast(reader.remainder.count))
    }

    private static func signer(_ info: RawObject) throws(Fault) -> Signer {
        guard info.tag == 0x30, let fields = try? info.children(limit: 8), fields.count >= 6, fields[0].tag == 0x02,
            fields[2].tag == 0x30, fields[3].tag == 0xA0, fields[4].tag == 0x30, fields[5].tag == 0x04,
            let attributes = try? fields[3].children(limit: 32)
        else { throw .malformed }
        let identity: Identity
        switch fields[1].tag {
        case 0x80: identity = .keyID(fields[1].value)
        case 0x30:
            guard let parts = try? fields[1].children(limit: 2), parts.count == 2, parts[1].tag == 0x02,
                let issuer = try? DistinguishedName(parts[0].object)
            else { throw .malformed }
            identity = .issuer(issuer, serial: parts[1].value)
        default: throw .malformed
        }
        var values: [[UInt8]: BERTLV] = [:]
        for attribute in attributes {
            guard attribute.tag == 0x30, let pair = try? attribute.children(limit: 2), pair.count == 2,
                pair[0].tag == 0x06, pair[1].tag == 0x31, let first = try? pair[1].children(limit: 8).first,
                values.updateValue(first.object, forKey: pair[0].value) == nil
            else { throw .malformed }
        }
        guard let type = values[contentTypeID], type.tag == 0x06, let digest = values[messageDigestID],
            digest.tag == 0x04
        else { throw .malformed }
        return Signer(
            identity: identity,
            digest: fields[2].object,
            attributes: fields[3].value,
            contentType: type.value,
            messageDigest: digest.value,
            signingTime: values[signingTimeID].flatMap(DocumentTime.seconds),
            algorithm: fields[4].object,
            signature: fields[5].value
        )
    }

    /// What a right signature proves.
    package struct Proof: Sendable, Equatable {
        package let signer: DocumentCertificate
        package let algorithm: SignatureAlgorithm
        /// Seconds since 1970; nil if the time is not signed.
        package let signingTime: Int?

        /// A signer whose authority is to be checked.
        struct Claim: Sendable {
            let certificate: DocumentCertificate
            let signingTime: Int?
        }
    }

    /// Verifies the signature of the first signer that fits: the content type, the digest of the content, the signature
    /// of the attributes. Whether the signer is trusted is not checked.
    ///
    /// - Parameters:
    ///   - type: the content type that is expected.
    ///   - others: certificates that may be the signer's, for files without certificates.
    /// - Returns: who has signed, and how.
    /// - Throws: why the last signer that was tried does not fit.
    package func verify(
        contentType type: [UInt8],
        others: [DocumentCertificate] = []
    ) throws(Fault) -> Proof {
        guard contentType == type else { throw .malformed }
        var fault = Fault.noSigner
        for signer in signers {
            do throws(Fault) {
                return try verify(signer, others)
            } catch {
                fault = error
            }
        }
        throw fault
    }

    private func verify(_ signer: Signer, _ others: [DocumentCertificate]) throws(Fault) -> Proof {
        guard signer.contentType == contentType else { throw .malformed }
        guard let digest = SignatureAlgorithm.digest(signer.digest),
            let algorithm = SignatureAlgorithm(signer.algorithm, digest: digest)
        else { throw .unsupported }
        guard let hash = try? digest.hash(content) else { throw .unsupported }
        guard hash == signer.messageDigest else { throw .wrongDigest }
        let candidates = (certificates + others).filter { Self.fits($0, signer.identity) }
        guard !candidates.isEmpty else { throw .noSigner }
        var fault = Fault.wrongSignature
        for candidate in candidates {
            for attributes in Self.forms(signer.attributes) {
                switch candidate.check(signer.signature, of: attributes, algorithm: signer.algorithm, digest: digest) {
                case .right:
                    return Proof(signer: candidate, algorithm: algorithm, signingTime: signer.signingTime)
                case .wrong: fault = .wrongSignature
                case .unsupported: fault = .unsupported
                }
            }
        }
        throw fault
    }

    private static func fits(_ certificate: DocumentCertificate, _ identity: Identity) -> Bool {
        switch identity {
        case .issuer(let issuer, let serial): certificate.issuer == issuer && certificate.serial == serial
        case .keyID(let id): certificate.subjectKeyID == id
        }
    }

    /// The signed attributes as a SET OF: as found, and sorted as DER requires.
    private static func forms(_ attributes: [UInt8]) -> [[UInt8]] {
        let found = BERTLV(0x31, attributes).encoded
        guard let objects = try? BERTLV.sequence(attributes) else { return [found] }
        let sorted = objects.map(\.encoded).sorted { $0.lexicographicallyPrecedes($1) }
        let form = BERTLV(0x31, sorted.flatMap { $0 }).encoded
        return form == found ? [found] : [found, form]
    }

    private static let pkcs9: [UInt8] = [0x2A, 0x86, 0x48, 0x86, 0xF7, 0x0D, 0x01, 0x09]
    private static let contentTypeID = pkcs9 + [3]
    private static let messageDigestID = pkcs9 + [4]
    private static let signingTimeID = pkcs9 + [5]
}
