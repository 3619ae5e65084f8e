// SPDX-License-Identifier: Apache-2.0
import BadgedClient
public import Foundation

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

/// Why a call has failed. `code` is the number of `OrigoKeysErrorCode`.
///
/// `domain` is the name of badged, such as `InvitationCodeInvalid`. Where it ends in `RetryError`, the same invitation
/// can be used again. `localizedDescription` says what has happened and what to do, in English.
extension NSError {
    convenience init(_ code: OrigoKeysErrorCode, _ text: String, name: String? = nil) {
        self.init(domain: name ?? "\(code)", code: code.rawValue, userInfo: [NSLocalizedDescriptionKey: text])
    }

    /// The form of any error for an app.
    static func of(_ error: any Error) -> NSError {
        switch error {
        case let failure as KeyFailure:
            let code = failure.code ?? OrigoKeysErrorCode(name: failure.name).rawValue
            return NSError(domain: failure.name, code: code, userInfo: [NSLocalizedDescriptionKey: failure.text])
        case let error as ClientError: return NSError(.daemonUnavailable, "\(error.text); \(error.advice)")
        default: return error as NSError
        }
    }
}

/// A variable of the app that gets the error of a call, or nil.
public typealias NSErrorPointer = UnsafeMutablePointer<NSError?>?
