// SPDX-License-Identifier: GPL-3.0-or-later
import ChipAccess
import Crypto

/// Passive authentication: what EF.SOD has signed, and by whom. ICAO 9303-11 5.1. `DocumentAnchors.judge` says whether
/// that signer is trusted.
enum PassiveAuthentication {
    /// What EF.SOD says.
    struct Result {
        var check = SignatureCheck()
        /// The hashes, also of an object whose signature is wrong.
        var object: SecurityObject?
        /// Why there are no hashes, if the list can be read by others.
        var hashReason: HashCheck.Reason?
        /// Who has signed, or who may have signed if no signature is right.
        var signers: [SignedData.Claim] = []
    }

    /// Verifies the signature of EF.SOD.
    static func check(_ file: [UInt8], anchors: DocumentAnchors) -> Result {
        var result = Result()
        let signed: SignedData
        do throws(SignedData.Fault) {
            signed = try SecurityObject.signedData(file)
        } catch {
            result.check.result = .failed
            result.check.reason = .malformed
            result.object = PartialSecurityObject.read(file)
            return result
        }
        var isMalformed = false
        do throws(SecurityObject.Fault) {
            result.object = try SecurityObject(signed.content)
        } catch {
            // Hashes that cannot be computed are not done; a list that cannot be read is a fault.
            isMalformed = error == .malformed
            if !isMalformed { result.hashReason = .unsupported }
        }
        do throws(SignedData.Fault) {
            let proofs = try signed.proofs(of: .securityObject, others: anchors.signers)
            result.check.result = .passed
            result.check.algorithm = proofs.first?.algorithm.name
            result.signers = proofs.map(\.claim)
        } catch {
            result.check.result = error == .unsupported || error == .noSigner ? .notDone : .failed
            result.check.reason = reason(error)
            result.signers = signed.certificates.first { !$0.isAuthority }.map { [.init(certificate: $0)] } ?? []
        }
        if isMalformed, result.check.result == .passed {
            result.check.result = .failed
            result.check.reason = .malformed
        }
        return result
    }

    private static func reason(_ fault: SignedData.Fault) -> SignatureCheck.Reason {
        switch fault {
        case .malformed: .malformed
        case .noSigner: .noSigner
        case .unsupported: .unsupported
        case .wrongDigest: .wrongDigest
        case .wrongSignature: .wrongSignature
        }
    }

    /// The countries that may sign a document of this zone; nil if it cannot be read.
    static func countries(of zone: MachineReadableZone?) -> Set<String>? {
        zone.map { IssuingCountry.certificates(of: $0.issuer) }
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
