// SPDX-License-Identifier: GPL-3.0-or-later
import Crypto
import Glibc
import ISO7816

/// Writes the certificates of an invented authority. ISO/IEC 18013-5, Annex B; RFC 5280.
struct VirtualMdocCertificate {
    private enum OID {
        static let ecdsaSHA256: [UInt8] = [0x2A, 0x86, 0x48, 0xCE, 0x3D, 0x04, 0x03, 0x02]
        static let publicKey: [UInt8] = [0x2A, 0x86, 0x48, 0xCE, 0x3D, 0x02, 0x01]
        static let p256: [UInt8] = [0x2A, 0x86, 0x48, 0xCE, 0x3D, 0x03, 0x01, 0x07]
        /// 1.0.18013.5.1.2
        static let documentSigner: [UInt8] = [0x28, 0x81, 0x8C, 0x5D, 0x05, 0x01, 0x02]

        /// An extension, 2.5.29.
        static func ofExtension(_ number: UInt8) -> [UInt8] { [0x55, 0x1D, number] }
        /// An attribute of a name, 2.5.4.
        static func attribute(_ number: UInt8) -> [UInt8] { [0x55, 0x04, number] }
    }

    private static let site = "https://utopia.example/mdoc"

    /// The common name.
    let subject: String
    let issuer: String
    let key: ECPublicKey
    let issuerKey: ECPublicKey
    /// Seconds since 1970.
    let validity: ClosedRange<Int>
    let isAuthority: Bool

    /// The certificate in DER.
    func signed(with signer: borrowing ECPrivateKey) throws(CryptoError) -> [UInt8] {
        let algorithm = Self.sequence([BERTLV(0x06, OID.ecdsaSHA256)])
        var serial = try Random.bytes(16)
        serial[0] = serial[0] & 0x3F | 0x40
        let content = Self.sequence([
            BERTLV(0xA0, [BERTLV(0x02, [0x02])]),
            BERTLV(0x02, serial),
            algorithm,
            Self.name(issuer),
            Self.sequence([Self.time(validity.lowerBound), Self.time(validity.upperBound)]),
            Self.name(subject),
            Self.sequence([
                Self.sequence([BERTLV(0x06, OID.publicKey), BERTLV(0x06, OID.p256)]),
                BERTLV(0x03, [0x00] + key.uncompressed),
            ]),
            BERTLV(0xA3, [Self.sequence(try extensions())]),
        ])
        let signature = try ECDSA.signDER(content.encoded, with: signer, digest: .sha256)
        return Self.sequence([content, algorithm, BERTLV(0x03, [0x00] + signature)]).encoded
    }

    private func extensions() throws(CryptoError) -> [BERTLV] {
        func one(_ number: UInt8, isCritical: Bool = false, _ value: BERTLV) -> BERTLV {
            let critical = isCritical ? [BERTLV(0x01, [0xFF])] : []
            return Self.sequence(
                [BERTLV(0x06, OID.ofExtension(number))] + critical + [BERTLV(0x04, value.encoded)]
            )
        }
        let uri = BERTLV(0x86, Array(Self.site.utf8))
        var all = [
            one(14, BERTLV(0x04, try Self.identifier(of: key))),
            one(18, Self.sequence([uri])),
        ]
        if isAuthority {
            all.append(one(19, isCritical: true, Self.sequence([BERTLV(0x01, [0xFF]), BERTLV(0x02, [0x00])])))
            all.append(one(15, isCritical: true, BERTLV(0x03, [0x01, 0x06])))
        } else {
            all.append(one(35, Self.sequence([BERTLV(0x80, try Self.identifier(of: issuerKey))])))
            all.append(one(15, isCritical: true, BERTLV(0x03, [0x07, 0x80])))
            all.append(one(37, isCritical: true, Self.sequence([BERTLV(0x06, OID.documentSigner)])))
            all.append(one(31, Self.sequence([Self.sequence([BERTLV(0xA0, [BERTLV(0xA0, [uri])])])])))
        }
        return all
    }

    /// SHA-1 of the point. RFC 5280, 4.2.1.2.
    private static func identifier(of key: ECPublicKey) throws(CryptoError) -> [UInt8] {
        try DigestAlgorithm.sha1.hash(key.uncompressed)
    }

    private static func sequence(_ children: [BERTLV]) -> BERTLV { BERTLV(0x30, children) }

    /// The country Utopia, and a common name.
    private static func name(_ commonName: String) -> BERTLV {
        func attribute(_ number: UInt8, _ value: BERTLV) -> BERTLV {
            BERTLV(0x31, [sequence([BERTLV(0x06, OID.attribute(number)), value])])
        }
        return sequence([
            attribute(6, BERTLV(0x13, Array("UT".utf8))), attribute(3, BERTLV(0x0C, Array(commonName.utf8))),
        ])
    }

    /// UTCTime, with two digits of the year, which is before 2050.
    private static func time(_ seconds: Int) -> BERTLV {
        BERTLV(0x17, Array(MdocTime.text(seconds).utf8.filter { !"-:T".utf8.contains($0) }.dropFirst(2)))
    }
}

/// Points in time as mobile documents write them.
enum MdocTime {
    /// RFC 3339 in UTC, such as `2026-12-31T00:00:00Z`.
    static func text(_ seconds: Int) -> String {
        var time = time_t(seconds)
        var parts = tm()
        gmtime_r(&time, &parts)
        func digits(_ number: Int32, _ count: Int) -> String {
            let text = String(number)
            return String(repeating: "0", count: max(0, count - text.utf8.count)) + text
        }
        let day = "\(digits(parts.tm_year + 1900, 4))-\(digits(parts.tm_mon + 1, 2))-\(digits(parts.tm_mday, 2))"
        return day + "T\(digits(parts.tm_hour, 2)):\(digits(parts.tm_min, 2)):\(digits(parts.tm_sec, 2))Z"
    }
}
