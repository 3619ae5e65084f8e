// SPDX-License-Identifier: GPL-3.0-or-later
import ISO7816
package import Text

/// The SET OF SecurityInfo of EF.CardAccess, EF.CardSecurity and DG14: the protocols of a chip. TR-03110-3 A.1.1,
/// ICAO 9303-11 9.2.
///
/// Infos of unknown protocols, infos with a wrong syntax and repeated infos are ignored, so that they do not hide others.
/// Only a wrong outer structure is an error.
package struct SecurityInfos: Sendable, Equatable {
    package private(set) var pace: [PACEInfo] = []
    package private(set) var chipAuthentication: [ChipAuthenticationInfo] = []
    package private(set) var chipAuthenticationDomainParameters: [DomainParameterInfo] = []
    package private(set) var chipAuthenticationKeys: [ChipAuthenticationKeyInfo] = []
    package private(set) var activeAuthentication: [ActiveAuthenticationInfo] = []
    package private(set) var restrictedIdentification: [RestrictedIdentificationInfo] = []
    /// How a mobile eID keeps its keys; nil for a card.
    package private(set) var mobileEIDType: MobileEIDType?

    /// The maximum number of infos. Real cards have fewer than 20.
    package static let maximumCount = 128

    /// Reads the content of the file. Bytes behind the set are ignored, since a file may be longer than its content.
    /// - Throws: `Malformed`.
    package init(_ bytes: some Collection<UInt8>) throws(Malformed) {
        let set = try BERTLV(startOf: bytes)
        guard set.tag == 0x31 else { throw .invalidTag }
        for object in try set.children.prefix(Self.maximumCount) {
            guard object.tag == 0x30, let fields = try? object.children, let info = Info(fields) else { continue }
            add(info)
        }
    }

    private mutating func add(_ info: Info) {
        switch info.protocolID {
        case let id where id.dropLast() == OID.mobileEIDType[...]:
            mobileEIDType = mobileEIDType ?? MobileEIDType(info)
        case let id where id.starts(with: OID.pace):
            append(PACEInfo(info), to: \.pace)
        case let id where id.starts(with: OID.chipAuthentication):
            append(ChipAuthenticationInfo(info), to: \.chipAuthentication)
            append(DomainParameterInfo(info), to: \.chipAuthenticationDomainParameters)
        case let id where id.starts(with: OID.publicKey):
            append(ChipAuthenticationKeyInfo(info), to: \.chipAuthenticationKeys)
        case OID.activeAuthentication:
            append(ActiveAuthenticationInfo(info), to: \.activeAuthentication)
        case let id where id.starts(with: OID.restrictedIdentification):
            append(RestrictedIdentificationInfo(info), to: \.restrictedIdentification)
        default:
            break
        }
    }

    private mutating func append<T: Equatable>(_ info: T?, to path: WritableKeyPath<SecurityInfos, [T]>) {
        guard let info, !self[keyPath: path].contains(info) else { return }
        self[keyPath: path].append(info)
    }

    /// The syntax of every info.
    struct Info {
        let protocolID: [UInt8]
        let required: BERTLV
        let optional: BERTLV?

        init?(_ fields: [BERTLV]) {
            guard let first = fields.first, first.tag == 0x06, (2...3).contains(fields.count) else { return nil }
            protocolID = first.value
            required = fields[1]
            optional = fields.count == 3 ? fields[2] : nil
        }
    }
}

/// A PACE variant. TR-03110-3 A.1.1.1.
package struct PACEInfo: Sendable, Equatable {
    package let protocolID: [UInt8]
    package let version: Int
    package let parameterID: Int?

    init?(_ info: SecurityInfos.Info) {
        guard info.protocolID.count == OID.pace.count + 2, let version = Int(info.required) else { return nil }
        guard let optional = info.optional else {
            protocolID = info.protocolID
            self.version = version
            parameterID = nil
            return
        }
        guard let id = Int(optional) else { return nil }
        protocolID = info.protocolID
        self.version = version
        parameterID = id
    }

    /// The variant; nil when its version is not 2, or when `PACEParameters` does not have it.
    package var parameters: PACEParameters? {
        guard version == 2, let id = parameterID.flatMap(UInt8.init(exactly:)) else { return nil }
        return PACEParameters(protocolID: protocolID, parameterID: id)
    }
}

/// The domain parameters of chip authentication. TR-03110-3 A.1.1.2.
package struct DomainParameterInfo: Sendable, Equatable {
    /// The number in the table of standardized parameters; nil for explicit parameters.
    package let standardized: Int?
    package let keyID: Int?

    init?(_ info: SecurityInfos.Info) {
        guard info.protocolID.count == OID.chipAuthentication.count + 1, info.required.tag == 0x30,
            let algorithm = try? info.required.children, let first = algorithm.first, first.tag == 0x06
        else { return nil }
        standardized =
            first.value == OID.standardizedDomainParameters && algorithm.count == 2 ? Int(algorithm[1]) : nil
        keyID = info.optional.flatMap { Int($0) }
    }
}

/// A chip authentication variant and its key. TR-03110-3 A.1.1.2.
package struct ChipAuthenticationInfo: Sendable, Equatable {
    package let protocolID: [UInt8]
    package let version: Int
    package let keyID: Int?

    init?(_ info: SecurityInfos.Info) {
        guard info.protocolID.count == OID.chipAuthentication.count + 2, let version = Int(info.required) else {
            return nil
        }
        protocolID = info.protocolID
        self.version = version
        keyID = info.optional.flatMap { Int($0) }
    }
}

/// A static public key for chip authentication. ICAO 9303-11 9.2.6.
package struct ChipAuthenticationKeyInfo: Sendable, Equatable {
    /// Whether the key is for ECDH (id-PK-ECDH) or for DH (id-PK-DH).
    package let isElliptic: Bool
    /// The encoded SubjectPublicKeyInfo.
    package let publicKey: [UInt8]
    package let keyID: Int?

    init?(_ info: SecurityInfos.Info) {
        guard info.protocolID.count == OID.publicKey.count + 1, info.required.tag == 0x30 else { return nil }
        switch info.protocolID.last {
        case 1: isElliptic = false
        case 2: isElliptic = true
        default: return nil
        }
        publicKey = info.required.encoded
        keyID = info.optional.flatMap { Int($0) }
    }
}

/// The signature algorithm of active authentication with ECDSA. ICAO 9303-11 9.2.4.
package struct ActiveAuthenticationInfo: Sendable, Equatable {
    package let version: Int
    /// The content of the object identifier of the algorithm.
    package let algorithm: [UInt8]

    init?(_ info: SecurityInfos.Info) {
        guard let version = Int(info.required), let algorithm = info.optional, algorithm.tag == 0x06 else { return nil }
        self.version = version
        self.algorithm = algorithm.value
    }
}

/// A key for restricted identification. TR-03110-3 A.1.1.4.
package struct RestrictedIdentificationInfo: Sendable, Equatable {
    package let keyID: Int
    package let isAuthorizedOnly: Bool

    init?(_ info: SecurityInfos.Info) {
        guard info.required.tag == 0x30, let fields = try? info.required.children, fields.count == 3,
            Int(fields[0]) != nil, let keyID = Int(fields[1]), fields[2].tag == 0x01, fields[2].value.count == 1
        else { return nil }
        self.keyID = keyID
        isAuthorizedOnly = fields[2].value != [0]
    }
}

/// How a mobile eID keeps its keys. TR-03110, amendment for the Smart-eID, 2.2; TR-03159 4.
package enum MobileEIDType: UInt8, Sendable {
    case certifiedSecureElement = 1
    case endorsedSecureElement = 2
    case hardwareKeyStore = 3

    init?(_ info: SecurityInfos.Info) {
        guard let last = info.protocolID.last else { return nil }
        self.init(rawValue: last)
    }
}

extension Int {
    /// Reads an INTEGER of at most four bytes; nil for a negative one or another object.
    init?(_ object: BERTLV) {
        guard object.tag == 0x02, (1...4).contains(object.value.count), object.value[0] & 0x80 == 0 else { return nil }
        self = object.value.reduce(0) { $0 << 8 | Int($1) }
    }
}
