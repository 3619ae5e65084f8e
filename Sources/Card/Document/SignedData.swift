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
        /// The file has no certificate of a signer, and nobody has imported it.
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
    /// Whether there are certificates that cannot be read.
    private let hasUnreadableCertificates: Bool
    private let signers: [Signer]

    /// The limits of a file: signers, certificates beside the content.
    private static let maximumSigners = 8
    private static let maximumCertificates = 64
    private static let maximumBag = 10_000
    /// How many certificates that a SignerInfo does not name are tried.
    private static let maximumUnnamed = 8

    /// Reads a ContentInfo. Bytes after it are ignored, since files may be filled up.
    /// - Throws: `.malformed`.
    package init(_ bytes: [UInt8]) throws(Fault) {
        guard let (resolved, _) = DefiniteLengths.first(of: bytes), let info = try? RawObject(resolved),
            info.tag == 0x30, let outer = try? info.children(limit: 2),
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
        var hasUnreadableCertificates = false
        if let set = fields.dropFirst(3).first(where: { $0.tag == 0xA0 }) {
            guard let list = try? set.children(limit: Self.maximumCertificates) else { throw .malformed }
            certificates = list.compactMap { try? DocumentCertificate(Array($0.raw)) }
            hasUnreadableCertificates = certificates.count < list.count
        }
        self.certificates = certificates
        self.hasUnreadableCertificates = hasUnreadableCertificates
        var signers: [Signer] = []
        for info in infos { signers.append(try Self.signer(info)) }
        guard !signers.isEmpty else { throw .malformed }
        self.signers = signers
    }

    /// The certificates and revocation lists of a SignedData that signs nothing, which is how some programs save many
    /// (`.p7b`, `.p7c`); nil for other bytes. RFC 5652 5.2, the degenerate case.
    static func bag(_ bytes: [UInt8]) -> [[UInt8]]? {
        guard let info = try? RawObject(definite: bytes), let outer = try? info.children(limit: 2), outer.count == 2,
            outer[0].object == BERTLV(0x06, OID.signedData), outer[1].tag == 0xA0,
            let wrapped = try? outer[1].children(limit: 1).first, wrapped.tag == 0x30,
            let fields = try? wrapped.children(limit: 8), fields.count >= 3, fields[2].tag == 0x30,
            (try? fields[2].children(limit: 2))?.count == 1
        else { return nil }
        let sets = fields.dropFirst(3).filter { $0.tag == 0xA0 || $0.tag == 0xA1 }
        let entries = sets.map { try? $0.children(limit: maximumBag) }
        guard !entries.contains(where: { $0 == nil }) else { return nil }
        return entries.flatMap { $0 ?? [] }.map { Array($0.raw) }
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
            identity = .issuer(issuer, serial: parts[1].magnitude)
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

    /// Who has signed, and when.
    package struct Claim: Sendable, Equatable {
        package let certificate: DocumentCertificate
        /// Seconds since 1970; nil if the time is not signed.
        package let signingTime: Int?
        /// Whether the file names its signer otherwise than the signer's certificate, or its content otherwise than the
        /// signer. The key has proven who has signed, so this is no fault.
        package let isLabelWrong: Bool

        package init(certificate: DocumentCertificate, signingTime: Int? = nil, isLabelWrong: Bool = false) {
            self.certificate = certificate
            self.signingTime = signingTime
            self.isLabelWrong = isLabelWrong
        }
    }

    /// What a right signature proves.
    package struct Proof: Sendable, Equatable {
        package let claim: Claim
        package let algorithm: SignatureAlgorithm

        package var signer: DocumentCertificate { claim.certificate }
    }

    /// Verifies the signature of the first signer that fits: the content type, the digest of the content, the signature
    /// of the attributes. Whether the signer is trusted is `DocumentAnchors.judge`.
    ///
    /// - Parameters:
    ///   - object: what the file must be.
    ///   - others: certificates that may be the signer's, for files without certificates.
    /// - Returns: who has signed, and how.
    /// - Throws: why no signer fits; what is proven wrong rather than what is not supported.
    package func verify(_ object: SignedObject, others: [DocumentCertificate] = []) throws(Fault) -> Proof {
        var fault: Fault?
        for signer in signers {
            do throws(Fault) {
                return try verify(signer, object.rule.contentTypes, others)
            } catch {
                if fault == nil || fault == .unsupported { fault = error }
            }
        }
        throw fault ?? .malformed
    }

    private func verify(
        _ signer: Signer,
        _ types: [[UInt8]],
        _ others: [DocumentCertificate]
    ) throws(Fault) -> Proof {
        // The type beside the content is not signed; the one among the attributes is.
        guard types.contains(signer.contentType) else { throw .malformed }
        guard let digest = SignatureAlgorithm.digest(signer.digest),
            let algorithm = SignatureAlgorithm(signer.algorithm, digest: digest)
        else { throw .unsupported }
        guard let hash = try? digest.hash(content) else { throw .unsupported }
        guard hash == signer.messageDigest else { throw .wrongDigest }
        let named = (certificates + others).filter { Self.fits($0, signer.identity) }
        let unnamed = certificates.filter { !Self.fits($0, signer.identity) }.prefix(Self.maximumUnnamed)
        guard !named.isEmpty || unnamed.contains(where: { !$0.isAuthority }) else {
            throw hasUnreadableCertificates ? .malformed : .noSigner
        }
        var fault = Fault.unsupported
        for (candidate, isNamed) in named.map({ ($0, true) }) + unnamed.map({ ($0, false) }) {
            for attributes in Self.forms(signer.attributes) {
                switch candidate.check(signer.signature, of: attributes, algorithm: signer.algorithm, digest: digest) {
                case .right:
                    let claim = Claim(
                        certificate: candidate,
                        signingTime: signer.signingTime,
                        isLabelWrong: !isNamed || contentType != signer.contentType
                    )
                    return Proof(claim: claim, algorithm: algorithm)
                case .wrong: if isNamed || named.isEmpty { fault = .wrongSignature }
                case .unsupported: continue
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

    /// The signed attributes as a SET OF: as found, and with the order and the lengths that DER requires.
    private static func forms(_ attributes: [UInt8]) -> [[UInt8]] {
        let found = BERTLV(0x31, attributes).encoded
        var forms = [found]
        for form in [found, DefiniteLengths.shortest(found)] {
            guard let set = try? BERTLV(form), let objects = try? set.children else { continue }
            let sorted = objects.map(\.encoded).sorted { $0.lexicographicallyPrecedes($1) }
            for other in [form, BERTLV(0x31, sorted.flatMap { $0 }).encoded] where !forms.contains(other) {
                forms.append(other)
            }
        }
        return forms
    }

    private static let pkcs9: [UInt8] = [0x2A, 0x86, 0x48, 0x86, 0xF7, 0x0D, 0x01, 0x09]
    private static let contentTypeID = pkcs9 + [3]
    private static let messageDigestID = pkcs9 + [4]
    private static let signingTimeID = pkcs9 + [5]
}
