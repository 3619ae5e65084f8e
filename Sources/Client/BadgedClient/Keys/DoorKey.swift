// SPDX-License-Identifier: Apache-2.0
import Text

/// A key for doors or one-time codes. docs/protocol/keys.md.
public struct DoorKey: Sendable, Equatable, Identifiable {
    public let id: String
    /// `pkoc` or `otp`.
    public let keyProtocol: String
    public let label: String
    public let issuer: String
    public let cardNumber: String
    /// As `2026-11-22T10:00:00Z`; nil: no limit.
    public let beginDate: String?
    public let endDate: String?
    public let isExpired: Bool
    public let isActive: Bool
    public let isRevoked: Bool
    /// When the key is deleted unless it is saved; nil for a saved key.
    public let pendingUntil: String?
    public let origin: String
    public let protection: String
    public let supportsOTP: Bool
    /// In hexadecimal digits; nil for a key without a key pair.
    public let publicKey: String?
    public let thumbprint: String?
    /// The card numbers by their bits, in hexadecimal digits.
    public let numbers: [Int: String]
    /// The identifiers of the sites.
    public let sites: [String]

    /// Reads a key; nil if a member is missing.
    init?(_ json: JSON) {
        guard let id = json["id"]?.string, let keyProtocol = json["protocol"]?.string,
            let isActive = json["active"]?.bool
        else { return nil }
        self.id = id
        self.keyProtocol = keyProtocol
        self.isActive = isActive
        func text(_ name: String) -> String { json[name]?.string ?? "" }
        (label, issuer, cardNumber) = (text("label"), text("issuer"), text("cardNumber"))
        beginDate = json["beginDate"]?.string
        endDate = json["endDate"]?.string
        isExpired = json["expired"]?.bool ?? false
        isRevoked = json["revoked"]?.bool ?? false
        pendingUntil = json["pendingUntil"]?.string
        (origin, protection) = (text("origin"), text("protection"))
        supportsOTP = json["supportsOTP"]?.bool ?? false
        publicKey = json["publicKey"]?.string
        thumbprint = json["thumbprint"]?.string
        var numbers: [Int: String] = [:]
        for number in json["numbers"]?.array ?? [] {
            if let bits = number["bits"]?.int, let hex = number["hex"]?.string { numbers[bits] = hex }
        }
        self.numbers = numbers
        sites = (json["sites"]?.array ?? []).compactMap { $0["siteId"]?.string }
    }
}

/// Why a command for keys has failed. docs/protocol/keys.md, Errors.
public struct KeyFailure: Error, Sendable, Equatable {
    public let name: String
    /// The number in the Origo SDK; nil where none is known.
    public let code: Int?
    public let text: String
    /// For a pass: the name of `WlPassResult`; empty otherwise.
    public let reason: String

    /// Whether the same invitation can be used again.
    public var mayBeRepeated: Bool { name.hasSuffix("RetryError") }

    init?(_ json: JSON) {
        guard let name = json["error"]?.string else { return nil }
        self.name = name
        code = json["code"]?.int
        text = json["description"]?.string ?? ""
        reason = json["reason"]?.string ?? ""
    }
}
