// SPDX-License-Identifier: GPL-3.0-or-later
import Store
package import Text
import Vault

/// Why a command of this feature has failed: `error` of its answer. The names and numbers are those of the Origo SDK
/// where it has one.
package enum KeyCode: String, Sendable, CaseIterable {
    case internalError = "InternalError"
    case busy = "SDKBusy"
    case incompatible = "SDKIncompatible"
    case deviceNotEligible = "DeviceNotEligible"
    case deviceSetupFailed = "DeviceSetupFailed"
    case deviceSetupRetry = "DeviceSetupFailedRetryError"
    case communicationFailed = "ServerCommunicationFailed"
    case communicationRetry = "ServerCommunicationFailedRetryError"
    case invitationInvalid = "InvitationCodeInvalid"
    case invitationForeign = "InvitationCodeInvalidApplication"
    case storageUnreadable = "DataStorageDecryptionFailed"
    case tpmUnavailable = "TPMUnavailable"
    case tpmLocked = "TPMLocked"
    case endpoint = "Endpoint"
    case keyNotFound = "KeyNotFound"
    case keyUnfit = "KeyNotUsable"
    case full = "StorageFull"
    case parameter = "InvalidParameter"
    case notSupported = "NotSupported"

    /// The number of the Origo SDK; nil where none is known.
    package var code: Int? {
        switch self {
        case .internalError: 99
        case .busy: 401
        case .communicationFailed, .communicationRetry: 702
        case .invitationInvalid: 901
        case .storageUnreadable: 999
        case .incompatible, .deviceNotEligible, .tpmUnavailable, .tpmLocked, .deviceSetupFailed, .deviceSetupRetry,
            .invitationForeign, .endpoint, .keyNotFound, .keyUnfit, .full, .parameter, .notSupported:
            nil
        }
    }
}

extension Failure {
    package init(_ code: KeyCode, _ text: Phrase, advice: Phrase? = nil) {
        self.init(Code(code.rawValue), text, advice: advice)
    }

    /// The name for clients: a failure of the vault or of its store has the name of its kind.
    package var keyCode: KeyCode {
        switch code {
        case .storeUnavailable, .storeInUse, .storeExposed: .deviceNotEligible
        case .tpmForeign, .storeKeyMissing, .storeWrongKey, .storeDamaged, .recordDamaged: .storageUnreadable
        case .storeNewer: .incompatible
        case .missingArgument: .parameter
        default: KeyCode(rawValue: code.rawValue) ?? .internalError
        }
    }

    /// The service of HID that hands out keys is closed to badged, and no other issuer answers.
    static func closedService(_ text: Phrase) -> Failure {
        var failure = Failure(.notSupported, text)
        failure.details = [JSON.Member("reason", .string("closedService"))]
        return failure
    }

    func write(to object: inout JSONWriter) {
        object.member("error", keyCode.rawValue)
        object.member("code", keyCode.code)
        object.member("description", message)
        if keyCode == .notSupported, let reason = self["reason"]?.string { object.member("reason", reason) }
    }
}
