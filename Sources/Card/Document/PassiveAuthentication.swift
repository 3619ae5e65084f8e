// SPDX-License-Identifier: GPL-3.0-or-later
import ChipAccess
import Crypto

/// Passive authentication: the signature of EF.SOD, its signer, and the signer's authority. ICAO 9303-11 5.1,
/// 9303-12 7.
enum PassiveAuthentication {
    /// Verifies the signature of EF.SOD. Returns the hashes also of an object whose signature is wrong.
    static func check(
        _ file: [UInt8],
        anchors: DocumentAnchors
    ) -> (check: SignatureCheck, object: SecurityObject?, signer: SignedData.Proof.Claim?) {
        var check = SignatureCheck()
        let signed: SignedData
        do throws(SignedData.Fault) {
            signed = try SecurityObject.signedData(file)
        } catch {
            (check.result, check.reason) = (.failed, .malformed)
            return (check, PartialSecurityObject.read(file), nil)
        }
        var object: SecurityObject?
        var isMalformed = false
        do throws(SecurityObject.Fault) {
            object = try SecurityObject(signed.content)
        } catch {
            // Hashes that cannot be computed are not done; a list that cannot be read is a fault.
            isMalformed = error == .malformed
        }
        var signer: SignedData.Proof.Claim?
        do throws(SignedData.Fault) {
            let proof = try signed.verify(contentType: SecurityObject.contentType, others: anchors.signers)
            (check.result, check.algorithm) = (.passed, proof.algorithm.name)
            signer = .init(certificate: proof.signer, signingTime: proof.signingTime)
        } catch {
            (check.result, check.reason) = (.failed, reason(error))
            signer = signed.certificates.first.map { .init(certificate: $0, signingTime: nil) }
        }
        if isMalformed, check.result == .passed { (check.result, check.reason) = (.failed, .malformed) }
        return (check, object, signer)
    }

    private static func reason(_ fault: SignedData.Fault) -> SignatureCheck.Reason {
        switch fault {
        case .malformed, .noSigner: .malformed
        case .unsupported: .unsupported
        case .wrongDigest: .wrongDigest
        case .wrongSignature: .wrongSignature
        }
    }

    /// Checks the signer at the time of the reading.
    ///
    /// - Parameters:
    ///   - claim: the certificate that EF.SOD names, and when it has signed.
    ///   - zone: of DG1, which names the issuing state; nil if DG1 cannot be read.
    ///   - anchors: the trusted authorities.
    ///   - time: seconds since 1970.
    /// - Returns: not done without authorities or without a zone.
    static func check(
        _ claim: SignedData.Proof.Claim,
        zone: MachineReadableZone?,
        anchors: DocumentAnchors,
        at time: Int
    ) -> AuthorityCheck {
        var check = AuthorityCheck()
        let signer = claim.certificate
        (check.signer, check.until) = (signer.subject.text, signer.validity.upperBound)
        // Without authorities the signer cannot be checked.
        guard anchors.count > 0 else { return check }
        func fail(_ reason: AuthorityCheck.Reason) -> AuthorityCheck {
            (check.result, check.reason) = (.failed, reason)
            return check
        }
        let authority: DocumentCertificate
        switch anchors.search(for: signer) {
        case .found(let found): authority = found
        case .unknown: return fail(.unknownAuthority)
        case .wrongSignature: return fail(.wrongCertificateSignature)
        case .unsupported: return fail(.unsupported)
        }
        check.authority = authority.subject.text
        guard signer.signsData, signer.extendedKeyUsages.isEmpty else { return fail(.notASigner) }
        guard let country = authority.subject.country, country == signer.subject.country else {
            return fail(.wrongCountry)
        }
        guard let zone else { return check }
        guard IssuingCountry.certificates(of: zone.issuer).contains(country) else { return fail(.wrongCountry) }
        check.revocation = anchors.revocation(of: signer, at: time)
        guard check.revocation != .revoked else { return fail(.revoked) }
        check.defects = anchors.defects(of: signer)
        guard check.defects.isEmpty else { return fail(.defect) }
        // Both the time of signing and the time of reading must be within the signer's validity.
        if let signed = claim.signingTime {
            guard signed >= signer.validity.lowerBound else { return fail(.signerNotYetValid) }
            guard signed <= signer.validity.upperBound else { return fail(.signerExpired) }
        }
        guard time >= signer.validity.lowerBound else { return fail(.signerNotYetValid) }
        guard time <= signer.validity.upperBound else { return fail(.signerExpired) }
        guard authority.validity.contains(time) else { return fail(.authorityExpired) }
        let types = signer.documentTypes
        check.lacksDocumentType = !types.isEmpty && !types.contains { zone.code == $0 || zone.code.prefix(1) == $0 }
        guard check.revocation == .good || !anchors.requiresRevocationList else {
            check.reason = .noRevocationList
            return check
        }
        check.result = .passed
        return check
    }
}

/// Reads the hashes of an EF.SOD that ends too early: its signature is lost, and the list is before it.
private enum PartialSecurityObject {
    static func read(_ file: [UInt8]) -> SecurityObject? {
        // 77, ContentInfo, its content, SignedData, the encapsulated content, its wrapper, the octets.
        guard let outer = value(file[...], 0x77), let info = value(outer, 0x30), let wrapper = value(after(info), 0xA0),
            let signed = value(wrapper, 0x30), let content = value(after(after(signed)), 0x30),
            let explicit = value(after(content), 0xA0), let octets = value(explicit, 0x04)
        else { return nil }
        return try? SecurityObject(Array(octets))
    }

    /// The value of the first object, cut at the end of the bytes.
    private static func value(_ bytes: ArraySlice<UInt8>, _ tag: UInt8) -> ArraySlice<UInt8>? {
        guard bytes.first == tag, let (start, length) = header(bytes) else { return nil }
        return bytes[start...].prefix(length)
    }

    /// What follows the first object.
    private static func after(_ bytes: ArraySlice<UInt8>) -> ArraySlice<UInt8> {
        guard let (start, length) = header(bytes) else { return [] }
        return bytes[start...].dropFirst(length)
    }

    private static func header(_ bytes: ArraySlice<UInt8>) -> (start: Int, length: Int)? {
        let head = Array(bytes.prefix(6))
        guard head.count >= 2 else { return nil }
        guard head[1] & 0x80 != 0 else { return (bytes.startIndex + 2, Int(head[1])) }
        let count = Int(head[1] & 0x7F)
        guard (1...3).contains(count), head.count >= 2 + count else { return nil }
        return (bytes.startIndex + 2 + count, head[2..<2 + count].reduce(0) { $0 << 8 | Int($1) })
    }
}
