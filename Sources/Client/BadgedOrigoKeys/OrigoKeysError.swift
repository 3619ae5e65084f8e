// SPDX-License-Identifier: Apache-2.0
import BadgedClient
public import FoundationEssentials

/// The numbers of errors.
public enum OrigoKeysErrorCode: Int, Sendable, CaseIterable {
    case internalError = 99
    /// Another call that ends with a callback has not ended.
    case apiIsBusy = 401
    /// The issuer cannot be reached, or its answer cannot be used.
    case networkUnreachable = 702
    case invalidInvitationCode = 901
    case dataStorageDecryptionFailed = 999
    case locationMonitoringNotSupported = 1001
    case locationServicesNotEnabled = 1002
    case locationServicesNotAuthorized = 1003
    case locationServicesNotDetermined = 1004
    /// The way of opening is not one with which the scan was started.
    case openingTypeNotPermitted = 1101
    /// There is no way of opening, or a wrong one.
    case badScanConfiguration = 1102
    case bluetoothLENotAvailable = 1103

    // The public texts of the SDK have no numbers for these; the numbers are those of badged.
    case unknown = 9000
    case endpoint
    /// The TPM with the keys is not there, or is locked.
    case secureElement
    case deviceSetupFailed
    /// The same invitation can be used again.
    case deviceSetupFailedRetry
    case deviceNotEligible
    case deviceApiIncompatible
    case invitationCodeInvalidApplication
    case sdkIncompatible
    case dataStorageEncryptionFailed
    case keyNotFound
    case keyNotUsable
    case storageFull
    case invalidParameter
    case notSupported
    /// badged cannot be reached, or does not allow the call to this user.
    case daemonUnavailable

    /// The number for a name of badged that has none.
    init(name: String) {
        self =
            switch name {
            case "Endpoint": .endpoint
            case "KeyNotFound": .keyNotFound
            case "KeyNotUsable": .keyNotUsable
            case "StorageFull": .storageFull
            case "InvalidParameter": .invalidParameter
            case "InvitationCodeInvalidApplication": .invitationCodeInvalidApplication
            case "DeviceSetupFailed": .deviceSetupFailed
            case "DeviceSetupFailedRetryError": .deviceSetupFailedRetry
            case "NotSupported": .notSupported
            case "DeviceNotEligible": .deviceNotEligible
            case "SDKIncompatible": .sdkIncompatible
            case "TPMUnavailable", "TPMLocked": .secureElement
            default: .unknown
            }
    }
}

/// Why a call has failed.
///
/// It has the members that apps use of the class with this name in Foundation, which this library does not load. A file
/// that also imports Foundation says `import class BadgedOrigoKeys.NSError`.
public final class NSError: LocalizedError, Equatable, CustomStringConvertible {
    /// The number of `OrigoKeysErrorCode`.
    public let code: Int
    /// The name of badged, such as `InvitationCodeInvalid`. Where it ends in `RetryError`, the same invitation can be used
    /// again.
    public let domain: String
    /// What has happened and what to do, in English.
    public let localizedDescription: String

    init(_ code: OrigoKeysErrorCode, _ text: String, name: String? = nil) {
        (self.code, localizedDescription) = (code.rawValue, text)
        domain = name ?? "\(code)"
    }

    init(_ failure: KeyFailure) {
        code = failure.code ?? OrigoKeysErrorCode(name: failure.name).rawValue
        (domain, localizedDescription) = (failure.name, failure.text)
    }

    convenience init(_ error: ClientError) {
        self.init(.daemonUnavailable, "\(error.text); \(error.advice)")
    }

    public var errorDescription: String? { localizedDescription }
    public var description: String { "\(domain) \(code): \(localizedDescription)" }

    /// What bridges of Foundation read.
    public var _code: Int { code }
    public var _domain: String { domain }

    public static func == (left: NSError, right: NSError) -> Bool {
        left.code == right.code && left.domain == right.domain
            && left.localizedDescription == right.localizedDescription
    }
}

/// A variable of the app that gets the error of a call, or nil.
public typealias NSErrorPointer = UnsafeMutablePointer<NSError?>?
