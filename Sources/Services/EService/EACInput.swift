// SPDX-License-Identifier: GPL-3.0-or-later
import CountryAuthorities
import Crypto
package import EID
import HTTP
import ISO7816
import Text

/// What the server sends for EAC1, read but not checked. TR-03112-7, 3.6.4.1.
package struct EAC1Input: Sendable, Equatable {
    /// The certificates that can be read, in the order in which they came.
    package let certificates: [CVCertificate]
    /// The DER encoding of the certificate description.
    package let description: [UInt8]?
    package let requiredCHAT: CHAT?
    package let optionalCHAT: CHAT?
    package let auxiliaryData: AuxiliaryData?
    package let transactionInfo: String?
    package let acceptedEIDTypes: Set<EIDType>

    /// The maximum number of bytes of TransactionInfo.
    package static let maximumInfo = 64 * 1024

    init(_ data: XMLElement) throws(Malformed) {
        // An unreadable certificate is ignored: RequestCheck refuses when the terminal's or its issuer's is missing.
        certificates = try data.allHex("Certificate").prefix(CVCertificatePool.maximumCount)
            .compactMap { try? CVCertificate($0) }
        description = try data.hex("CertificateDescription")
        requiredCHAT = try Self.chat(try data.hex("RequiredCHAT"))
        optionalCHAT = try Self.chat(try data.hex("OptionalCHAT"))
        auxiliaryData = try data.hex("AuthenticatedAuxiliaryData").flatMap(Self.auxiliaryData)
        let infos = data.all("TransactionInfo")
        guard infos.count <= 1 else { throw Malformed("TransactionInfo is repeated") }
        transactionInfo = infos.first.map(\.collapsed).flatMap { $0.isEmpty ? nil : $0 }
        guard transactionInfo.map({ $0.utf8.count <= Self.maximumInfo }) != false else {
            throw Malformed("TransactionInfo is too long")
        }
        let types = try data.all("AcceptedEIDType").map { element throws(Malformed) in
            guard element.text.isComparable, let type = EIDType(rawValue: element.trimmed) else {
                throw Malformed("AcceptedEIDType is unknown")
            }
            return type
        }
        acceptedEIDTypes = types.isEmpty ? EIDType.defaults : Set(types)
    }

    private static func chat(_ bytes: [UInt8]?) throws(Malformed) -> CHAT? {
        guard let bytes else { return nil }
        guard let object = try? BERTLV(bytes), let chat = try? CHAT(object),
            chat.terminalType == .authenticationTerminal, chat.role == .terminal
        else { throw Malformed("RequiredCHAT or OptionalCHAT is not the template of a terminal") }
        return chat
    }

    /// Reads the object 67. Only the kinds that can be shown to a user are accepted, each once and in its own form.
    private static func auxiliaryData(_ bytes: [UInt8]) throws(Malformed) -> AuxiliaryData? {
        if bytes.isEmpty { return nil }
        guard let object = try? BERTLV(bytes), let entries = try? object.children,
            let data = try? AuxiliaryData(object),
            data.values.count == entries.count
        else {
            throw Malformed("AuthenticatedAuxiliaryData cannot be read, or has an unknown or repeated entry")
        }
        for (kind, value) in data.values {
            let isValid =
                switch kind {
                case .dateOfBirth, .dateOfExpiry: isDate(value)
                case .communityID: (1...16).contains(value.count)
                }
            guard isValid else { throw Malformed("AuthenticatedAuxiliaryData has an entry of a wrong form") }
        }
        return data
    }

    /// Whether the value is YYYYMMDD in ASCII digits.
    private static func isDate(_ value: [UInt8]) -> Bool {
        let digits = value.map { Int($0) - 0x30 }
        guard digits.count == 8, digits.allSatisfy((0...9).contains) else { return false }
        return (1...12).contains(digits[4] * 10 + digits[5]) && (1...31).contains(digits[6] * 10 + digits[7])
    }
}

/// What the server sends for EAC2, read but not checked. TR-03112-7, 3.6.4.2.
package struct EAC2Input: Sendable, Equatable {
    /// An uncompressed point: 04 and two coordinates of equal length.
    package let ephemeralPublicKey: [UInt8]
    package let certificates: [CVCertificate]
    package let signature: [UInt8]?

    /// Bytes of an uncompressed point on a curve of 521 bits.
    private static let maximumKeyLength = 133

    init(_ data: XMLElement) throws(Malformed) {
        guard let key = try data.hex("EphemeralPublicKey").flatMap(Self.uncompressedPoint) else {
            throw Malformed("EphemeralPublicKey is missing or not an uncompressed point")
        }
        ephemeralPublicKey = key
        certificates = try data.allHex("Certificate").prefix(CVCertificatePool.maximumCount)
            .compactMap { try? CVCertificate($0) }
        signature = try data.hex("Signature")
    }

    /// Returns the point with its leading 04, as the card and TR-03110-3 A.2.4 require. Some eID-Servers send only the
    /// two coordinates; AusweisApp also accepts these. Nil when `key` is neither form.
    private static func uncompressedPoint(_ key: [UInt8]) -> [UInt8]? {
        if key.count.isMultiple(of: 2) {
            return Curve.allCases.contains { $0.fieldLength * 2 == key.count } ? [0x04] + key : nil
        }
        return key.first == 0x04 && (3...maximumKeyLength).contains(key.count) ? key : nil
    }
}
