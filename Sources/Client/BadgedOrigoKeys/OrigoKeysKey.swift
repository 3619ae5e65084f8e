// SPDX-License-Identifier: Apache-2.0
import BadgedClient
public import Foundation

/// A key of this user.
public final class OrigoKeysKey: NSObject, Sendable {
    /// Always 0: badged has no types of credentials of this numbering.
    public let credentialType: UInt8 = 0
    /// The identifier: 32 hexadecimal digits. The calls for data take it as OID.
    public let keyId: String
    /// The thumbprint of the public key, by which the issuer knows the key; empty for one-time codes.
    public let externalId: String
    public let label: String
    public let issuer: String
    /// `pkoc` or `otp`.
    public let keyType: String
    public let cardNumber: String
    /// When the key begins to be valid; nil: always.
    public let beginDate: Date?
    /// When the key ends; nil: never. badged opens no door with it afterwards.
    public let endDate: Date?
    public let active: Bool
    /// Always empty: badged has no such address.
    public let configUrl = ""
    /// Always empty: badged has no such address.
    public let readbackUrl = ""
    /// Always empty: `data(forKeyOid:tag:error:)` reads the data of a key.
    public let additionalMetaData: [Int: Data] = [:]

    private let hasCodes: Bool

    init(_ key: DoorKey) {
        keyId = key.id
        externalId = key.thumbprint ?? ""
        label = key.label
        issuer = key.issuer
        keyType = key.keyProtocol
        cardNumber = key.cardNumber
        beginDate = Date(daemon: key.beginDate)
        endDate = Date(daemon: key.endDate)
        active = key.isActive
        hasCodes = key.supportsOTP
    }

    /// The same as `keyId`.
    public func uniqueIdentifier() -> String { keyId }

    /// Whether `endDate` is over.
    public func isExpired() -> Bool { endDate.map { $0 <= Date() } ?? false }

    /// Whether the key makes one-time codes.
    public func supportsOTP() -> Bool { hasCodes }

    public override var description: String { "\(keyId) \(keyType) \(label)" }

    public override func isEqual(_ object: Any?) -> Bool { (object as? OrigoKeysKey)?.keyId == keyId }
    public override var hash: Int { keyId.hashValue }
}

extension Date {
    /// Reads a time of badged, such as `2026-11-22T10:00:00Z`.
    init?(daemon text: String?) {
        guard let text, let date = try? Date(text, strategy: .iso8601) else { return nil }
        self = date
    }
}
