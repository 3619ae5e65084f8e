// SPDX-License-Identifier: GPL-3.0-or-later
package import Crypto

/// Contents of object identifiers.
package enum OID {
    /// bsi-de: 0.4.0.127.0.7.
    package static let bsi: [UInt8] = [0x04, 0x00, 0x7F, 0x00, 0x07]

    // MARK: Domain parameters and protocols

    /// standardizedDomainParameters: bsi-de 1.2.
    package static let standardizedDomainParameters = bsi + [1, 2]
    /// id-PK: bsi-de 2.2.1.
    package static let publicKey = bsi + [2, 2, 1]
    /// id-TA: bsi-de 2.2.2.
    package static let terminalAuthentication = bsi + [2, 2, 2]
    /// id-CA: bsi-de 2.2.3.
    package static let chipAuthentication = bsi + [2, 2, 3]
    /// id-PACE: bsi-de 2.2.4.
    package static let pace = bsi + [2, 2, 4]
    /// id-RI: bsi-de 2.2.5.
    package static let restrictedIdentification = bsi + [2, 2, 5]

    // MARK: Certificates and applications

    /// id-icao-mrtd-security: 2.23.136.1.1.
    package static let icaoSecurity: [UInt8] = [0x67, 0x81, 0x08, 0x01, 0x01]
    /// id-icao-mrtd-security-aaProtocolObject: 2.23.136.1.1.5. ICAO 9303-11 9.2.4.
    package static let activeAuthentication = icaoSecurity + [5]

    /// id-roles: bsi-de 3.1.2.
    package static let roles = bsi + [3, 1, 2]
    /// id-extensions: bsi-de 3.1.3.
    package static let certificateExtension = bsi + [3, 1, 3]
    /// id-AuxiliaryData: bsi-de 3.1.4.
    package static let auxiliaryData = bsi + [3, 1, 4]
    /// id-securityObject: bsi-de 3.2.1.
    package static let securityObject = bsi + [3, 2, 1]
    /// id-mobileEIDType: bsi-de 3.2.3.2. TR-03110, amendment for the Smart-eID, 2.2.
    package static let mobileEIDType = bsi + [3, 2, 3, 2]
    /// id-signedData: 1.2.840.113549.1.7.2.
    package static let signedData: [UInt8] = [0x2A, 0x86, 0x48, 0x86, 0xF7, 0x0D, 0x01, 0x07, 0x02]

    /// The numbers with dots between them, such as `2.23.136.1.1.1`. ITU-T X.690 8.19.
    package static func text(_ contents: [UInt8]) -> String {
        var numbers: [UInt64] = []
        var number: UInt64 = 0
        for byte in contents {
            number = number << 7 | UInt64(byte & 0x7F)
            if byte & 0x80 != 0 { continue }
            if numbers.isEmpty {
                let first = min(number / 40, 2)
                numbers = [first, number - first * 40]
            } else {
                numbers.append(number)
            }
            number = 0
        }
        return numbers.map(String.init).joined(separator: ".")
    }
}

/// The object identifiers of a protocol that differ in the cipher: `family` and 2, 3 or 4. TR-03110-3 A.1.1.
package struct CipherProtocol: Sendable {
    private let family: [UInt8]

    package init(family: [UInt8]) { self.family = family }

    package func protocolID(_ cipher: AES) -> [UInt8] {
        switch cipher {
        case .aes128: family + [2]
        case .aes192: family + [3]
        case .aes256: family + [4]
        }
    }

    /// Returns the cipher of an object identifier; nil for an identifier of another protocol.
    package func cipher(of protocolID: [UInt8]) -> AES? { AES.allCases.first { self.protocolID($0) == protocolID } }
}

/// The object identifiers of a protocol that differ in the hash function: `family` and 1 to 5. TR-03110-3 A.6.4.
package struct DigestProtocol: Sendable {
    private let family: [UInt8]

    package init(family: [UInt8]) { self.family = family }

    package func protocolID(_ digest: DigestAlgorithm) -> [UInt8] {
        let number: UInt8 =
            switch digest {
            case .sha1: 1
            case .sha224: 2
            case .sha256: 3
            case .sha384: 4
            case .sha512: 5
            }
        return family + [number]
    }

    /// Returns the hash function of an object identifier; nil for an identifier of another protocol.
    package func digest(of protocolID: [UInt8]) -> DigestAlgorithm? {
        DigestAlgorithm.allCases.first { self.protocolID($0) == protocolID }
    }
}
