// SPDX-License-Identifier: GPL-3.0-or-later
import Crypto
import Document
import ISO7816
import Text

/// Makes a master list with keys of its own. ICAO 9303-12 8, RFC 5652, RFC 5280.
struct MasterListMaker {
    /// 2026-11-25.
    static let time = 1_795_608_000

    /// The authority that has certified the signer of the list.
    private(set) var root: [UInt8] = []
    private(set) var list: [UInt8] = []
    /// Certificates of document signers, of authorities in all parts of the list.
    private(set) var signers: [[UInt8]] = []

    private static let ecdsa = sequence(oid([0x2A, 0x86, 0x48, 0xCE, 0x3D, 0x04, 0x03, 0x02]))
    private static let sha256 = sequence(oid([0x60, 0x86, 0x48, 0x01, 0x65, 0x03, 0x04, 0x02, 0x01]))
    private static let contentType: [UInt8] = [0x67, 0x81, 0x08, 0x01, 0x01, 0x02]
    private static let masterListSigner: [UInt8] = [0x67, 0x81, 0x08, 0x01, 0x01, 0x03]

    init(authorities count: Int) throws(BenchError) {
        do {
            let group = try Curve.secp256r1.group
            let rootKey = try ECPrivateKey(on: group)
            let signerKey = try ECPrivateKey(on: group)
            var certificates: [[UInt8]] = []
            for number in 0..<count {
                let name = Self.name("CSCA \(number)")
                let key = number == 0 ? try rootKey.copy() : try ECPrivateKey(on: group)
                let own = try Self.certificate(name, name, key.publicKey, by: key, keyUsage: 0x06)
                certificates.append(own)
                if number == 0 { root = own }
                if number % 25 == 0 {
                    let signer = try ECPrivateKey(on: group)
                    signers.append(
                        try Self.certificate(Self.name("DS \(number)"), name, signer.publicKey, by: key, keyUsage: 0x80)
                    )
                }
            }
            let issuer = Self.name("CSCA 0")
            let own = try Self.certificate(
                Self.name("Master list signer"),
                issuer,
                signerKey.publicKey,
                by: rootKey,
                keyUsage: 0x80,
                extendedKeyUsage: Self.masterListSigner
            )
            let content = Self.sequence(Self.integer([0]) + BERTLV(0x31, certificates.flatMap(\.self)).encoded)
            list = try Self.signed(content, own, issuer, with: signerKey)
        } catch {
            throw BenchError("no master list can be made: \(error)")
        }
    }

    // MARK: Structures

    private static func sequence(_ content: [UInt8]) -> [UInt8] { BERTLV(0x30, content).encoded }
    private static func oid(_ content: [UInt8]) -> [UInt8] { BERTLV(0x06, content).encoded }
    private static func integer(_ bytes: [UInt8]) -> [UInt8] { BERTLV(0x02, bytes).encoded }

    private static func name(_ text: String) -> [UInt8] {
        func part(_ type: UInt8, _ tag: UInt32, _ text: String) -> [UInt8] {
            BERTLV(0x31, sequence(oid([0x55, 0x04, type]) + BERTLV(tag, Array(text.utf8)).encoded)).encoded
        }
        return sequence(part(0x06, 0x13, "UT") + part(0x03, 0x0C, text))
    }

    private static func certificate(
        _ subject: [UInt8],
        _ issuer: [UInt8],
        _ key: ECPublicKey,
        by issuerKey: borrowing ECPrivateKey,
        keyUsage: UInt8,
        extendedKeyUsage: [UInt8]? = nil
    ) throws(CryptoError) -> [UInt8] {
        func time(_ text: String) -> [UInt8] { BERTLV(0x17, Array(text.utf8)).encoded }
        func rule(_ type: UInt8, _ content: [UInt8]) -> [UInt8] {
            sequence(oid([0x55, 0x1D, type]) + BERTLV(0x01, [0xFF]).encoded + BERTLV(0x04, content).encoded)
        }
        let curve: [UInt8] = [0x2A, 0x86, 0x48, 0xCE, 0x3D, 0x03, 0x01, 0x07]
        let ecPublicKey: [UInt8] = [0x2A, 0x86, 0x48, 0xCE, 0x3D, 0x02, 0x01]
        let info = sequence(
            sequence(oid(ecPublicKey) + oid(curve)) + BERTLV(0x03, [0x00] + key.uncompressed).encoded
        )
        var rules = rule(0x0F, BERTLV(0x03, [keyUsage == 0x80 ? 0x07 : 0x01, keyUsage]).encoded)
        if keyUsage == 0x06 { rules += rule(0x13, sequence(BERTLV(0x01, [0xFF]).encoded)) }
        if let extendedKeyUsage { rules += rule(0x25, sequence(oid(extendedKeyUsage))) }
        let body = sequence(
            BERTLV(0xA0, integer([2])).encoded + integer([0x01] + (try Random.bytes(8))) + ecdsa + issuer
                + sequence(time("260101000000Z") + time("360101000000Z")) + subject + info
                + BERTLV(0xA3, sequence(rules)).encoded
        )
        let signature = try ECDSA.signDER(body, with: issuerKey, digest: .sha256)
        return sequence(body + ecdsa + BERTLV(0x03, [0x00] + signature).encoded)
    }

    private static func signed(
        _ content: [UInt8],
        _ certificate: [UInt8],
        _ issuer: [UInt8],
        with key: borrowing ECPrivateKey
    ) throws -> [UInt8] {
        func attribute(_ number: UInt8, _ value: [UInt8]) -> [UInt8] {
            let type: [UInt8] = [0x2A, 0x86, 0x48, 0x86, 0xF7, 0x0D, 0x01, 0x09, number]
            return sequence(oid(type) + BERTLV(0x31, value).encoded)
        }
        let digest = try DigestAlgorithm.sha256.hash(content)
        let attributes = attribute(3, oid(contentType)) + attribute(4, BERTLV(0x04, digest).encoded)
        let signature = try ECDSA.signDER(BERTLV(0x31, attributes).encoded, with: key, digest: .sha256)
        let serial = try DocumentCertificate(certificate).serial
        let signer = sequence(
            integer([1]) + sequence(issuer + integer(serial)) + sha256 + BERTLV(0xA0, attributes).encoded + ecdsa
                + BERTLV(0x04, signature).encoded
        )
        let wrapped = BERTLV(0xA0, BERTLV(0x04, content).encoded).encoded
        let data = sequence(
            integer([3]) + BERTLV(0x31, sha256).encoded + sequence(oid(contentType) + wrapped)
                + BERTLV(0xA0, certificate).encoded + BERTLV(0x31, signer).encoded
        )
        let signedData: [UInt8] = [0x2A, 0x86, 0x48, 0x86, 0xF7, 0x0D, 0x01, 0x07, 0x02]
        return sequence(oid(signedData) + BERTLV(0xA0, data).encoded)
    }
}
