// SPDX-License-Identifier: GPL-3.0-or-later
import Store
import TPM
import Vault

/// Why a command of this feature has failed. The names and numbers are those of the Origo SDK where it has one.
package struct KeyFailure: Error, Sendable, Equatable {
    package enum Name: String, Sendable, CaseIterable {
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

    package let name: Name
    /// What happened and what to do next.
    package let text: String

    init(_ name: Name, _ text: String) { (self.name, self.text) = (name, text) }

    init(_ error: VaultError) {
        let name: Name =
            switch error {
            case .store(.unavailable), .store(.inUse), .store(.exposed): .deviceNotEligible
            case .tpm(.foreign), .store(.tpm(.foreign)): .storageUnreadable
            case .tpm(.lockedOut), .store(.tpm(.lockedOut)): .tpmLocked
            case .tpm, .store(.tpm): .tpmUnavailable
            case .store(.keyMissing), .store(.wrongKey), .store(.damaged), .damaged: .storageUnreadable
            case .store(.newer): .incompatible
            case .store(.tooLong), .store(.library), .library: .internalError
            case .notSetUp: .endpoint
            case .unknownKey: .keyNotFound
            case .unfit: .keyUnfit
            case .full: .full
            }
        self.init(name, error.text)
    }
}
