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
        case issuer(DocumentCertificate.Name)
        case keyID([UInt8])
    }

    private struct Signer: Sendable, Equatable {
        let identity: Identity
        let digest: BERTLV
        /// nil: the signature is over the content itself. RFC 5652 5.4.
        let attributes: Attributes?
        let algorithm: BERTLV
        let signature: [UInt8]
    }

    private struct Attributes: Sendable, Equatable {
        /// As found.
        let content: [UInt8]
        let contentType: [UInt8]?
        let messageDigest: [UInt8]
        let signingTime: Int?
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
        guard info.tag == 0x30, var fields = try? info.children(limit: 8), fields.count >= 5, fields[0].tag == 0x02,
            fields[2].tag == 0x30
        else { throw .malformed }
        let attributes = fields[3].tag == 0xA0 ? try Self.attributes(fields.remove(at: 3)) : nil
        guard fields.count >= 5, fields[3].tag == 0x30, fields[4].tag == 0x04 else { throw .malformed }
        let identity: Identity
        switch fields[1].tag {
        case 0x80: identity = .keyID(fields[1].value)
        case 0x30:
            guard let parts = try? fields[1].children(limit: 2), parts.count == 2, parts[1].tag == 0x02,
                let issuer = try? DistinguishedName(parts[0].object)
            else { throw .malformed }
            identity = .issuer(.init(issuer: issuer, serial: parts[1].integer))
        default: throw .malformed
        }
        return Signer(
            identity: identity,
            digest: fields[2].object,
            attributes: attributes,
            algorithm: fields[3].object,
            signature: fields[4].value
        )
    }

    private static func attributes(_ object: RawObject) throws(Fault) -> Attributes {
        guard let attributes = try? object.children(limit: 32) else { throw .malformed }
        var values: [[UInt8]: BERTLV] = [:]
        for attribute in attributes {
            guard attribute.tag == 0x30, let pair = try? attribute.children(limit: 2), pair.count == 2,
                pair[0].tag == 0x06, pair[1].tag == 0x31, let set = try? pair[1].children(limit: 8),
                let first = set.first, set.count == 1 || !single.contains(pair[0].value),
                values.updateValue(first.object, forKey: pair[0].value) == nil
            else { throw .malformed }
        }
        // Without the digest the signature says nothing about the content.
        let type = values[contentTypeID]
        guard let digest = values[messageDigestID], digest.tag == 0x04, type.map({ $0.tag == 0x06 }) ?? true else {
            throw .malformed
        }
        return Attributes(
            content: object.value,
            contentType: type?.value,
            messageDigest: digest.value,
            signingTime: values[signingTimeID].flatMap(DocumentTime.seconds)
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
        /// The other certificates for this key that the file names or has. One of them may be the signer's, too.
        package let otherNames: [DocumentCertificate.Name]

        package init(
            certificate: DocumentCertificate,
            signingTime: Int? = nil,
            isLabelWrong: Bool = false,
            otherNames: [DocumentCertificate.Name] = []
        ) {
            self.certificate = certificate
            self.signingTime = signingTime
            self.isLabelWrong = isLabelWrong
            self.otherNames = otherNames
        }
    }

    /// What a right signature proves.
    package struct Proof: Sendable, Equatable {
        package let claim: Claim
        package let algorithm: SignatureAlgorithm

        package var signer: DocumentCertificate { claim.certificate }
    }

    /// Verifies the signatures: the content type, the digest of the content, the signature of the attributes. Whether a
    /// signer is trusted is `DocumentAnchors.judge`.
    ///
    /// - Parameters:
    ///   - object: what the file must be.
    ///   - others: certificates that may be the signers', for files without certificates.
    /// - Returns: who has signed, and how; at least one.
    /// - Throws: why no signer fits; what is proven wrong rather than what is not supported.
    package func proofs(of object: SignedObject, others: [DocumentCertificate] = []) throws(Fault) -> [Proof] {
        var proofs: [Proof] = []
        var fault: Fault?
        for signer in signers {
            do throws(Fault) {
                proofs.append(try verify(signer, object, others))
            } catch {
                if fault == nil || fault == .unsupported { fault = error }
            }
        }
        guard proofs.isEmpty else { return proofs }
        throw fault ?? .malformed
    }

    /// Whether a file names its content otherwise than the standard. The key proves who has signed, so that is no fault.
    /// - Throws: `.malformed` for the signature of something else.
    private func isTypeWrong(_ signer: Signer, _ object: SignedObject) throws(Fault) -> Bool {
        // The type beside the content is not signed; the one among the attributes is.
        let type = signer.attributes.map(\.contentType) ?? contentType
        if let type, object.rule.contentTypes.contains(type) { return type != contentType }
        guard !SignedObject.allCases.contains(where: { $0.rule.contentTypes.contains(type ?? []) }) else {
            throw .malformed
        }
        return true
    }

    private func verify(
        _ signer: Signer,
        _ object: SignedObject,
        _ others: [DocumentCertificate]
    ) throws(Fault) -> Proof {
        let isTypeWrong = try isTypeWrong(signer, object)
        guard let digest = SignatureAlgorithm.digest(signer.digest),
            let algorithm = SignatureAlgorithm(signer.algorithm, digest: digest)
        else { throw .unsupported }
        if let attributes = signer.attributes {
            guard let hash = try? digest.hash(content) else { throw .unsupported }
            guard hash == attributes.messageDigest else { throw .wrongDigest }
        }
        let named = (certificates + others).filter { Self.fits($0, signer.identity) }
        let unnamed = certificates.filter { !Self.fits($0, signer.identity) }.prefix(Self.maximumUnnamed)
        guard !named.isEmpty || unnamed.contains(where: { !$0.isAuthority }) else {
            throw hasUnreadableCertificates ? .malformed : .noSigner
        }
        var fault = Fault.unsupported
        for (candidate, isNamed) in named.map({ ($0, true) }) + unnamed.map({ ($0, false) }) {
            for message in signer.attributes.map({ Self.forms($0.content) }) ?? [content] {
                switch candidate.check(signer.signature, of: message, algorithm: signer.algorithm, digest: digest) {
                case .right:
                    let claim = Claim(
                        certificate: candidate,
                        signingTime: signer.attributes?.signingTime,
                        isLabelWrong: !isNamed || isTypeWrong,
                        otherNames: Self.otherNames(than: candidate, signer.identity, named)
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
        case .issuer(let name): certificate.name == name
        case .keyID(let id): certificate.subjectKeyID == id
        }
    }

    /// What else the signer's certificate may be: the one that the file names, and those with the same key.
    private static func otherNames(
        than certificate: DocumentCertificate,
        _ identity: Identity,
        _ named: [DocumentCertificate]
    ) -> [DocumentCertificate.Name] {
        var names = named.filter { $0.publicKeyInfo == certificate.publicKeyInfo }.map(\.name)
        if case .issuer(let name) = identity { names.append(name) }
        return names.filter { $0 != certificate.name }
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
    /// The attributes with exactly one value. RFC 5652 11.
    private static let single = [contentTypeID, messageDigestID, signingTimeID]
}
