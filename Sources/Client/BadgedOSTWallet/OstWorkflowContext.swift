// SPDX-License-Identifier: Apache-2.0
import BadgedClient
import Text

/// The kind of a workflow.
public enum OstWorkflowType: String, Sendable, CaseIterable {
    case setupDevice = "SETUP_DEVICE"
    case activateUser = "ACTIVATE_USER"
    case addSession = "ADD_SESSION"
    case getDeviceMnemonics = "GET_DEVICE_MNEMONICS"
    case performQRAction = "PERFORM_QR_ACTION"
    case executeTransaction = "EXECUTE_TRANSACTION"
    case authorizeDeviceWithQRCode = "AUTHORIZE_DEVICE_WITH_QR"
    case authorizeDeviceWithMnemonics = "AUTHORIZE_DEVICE_WITH_MNEMONICS"
    case initiateDeviceRecovery = "INITIATE_DEVICE_RECOVERY"
    case abortDeviceRecovery = "ABORT_DEVICE_RECOVERY"
    case revokeDevice = "REVOKE_DEVICE"
    case resetPin = "RESET_PIN"
    case logoutAllSessions = "LOGOUT_ALL_SESSIONS"
    case updateBiometricPreference = "UPDATE_BIOMETRIC"
    case showDeviceQR = "SHOW_DEVICE_QR"
    case authorizeSessionWithQRCode = "AUTHORIZE_SESSION_WITH_QR"
}

/// Which workflow a callback is about.
public final class OstWorkflowContext: Sendable {
    public let workflowType: OstWorkflowType
    /// A UUID; empty if the workflow was refused.
    public let workflowId: String

    public init(workflowId: String, workflowType: OstWorkflowType) {
        self.workflowId = workflowId
        self.workflowType = workflowType
    }

    /// `fallback` is the kind that was started, for a kind that this library does not know.
    convenience init(_ context: FlowContext, _ fallback: OstWorkflowType) {
        let type = OstWorkflowType(rawValue: context.workflowType) ?? fallback
        self.init(workflowId: context.workflowID ?? "", workflowType: type)
    }

    public func getWorkflowId() -> String { workflowId }
}

/// The kind of an entity.
public enum OstEntityType: String, Sendable, CaseIterable {
    case device, user, array, session, transaction, recoveryOwner, string, dictionary, tokenHolder, boolean
    /// A wallet card. The SDK does not have this kind.
    case card
}

/// What a callback is about.
public final class OstContextEntity: Sendable {
    public let entityType: OstEntityType
    private let json: JSON

    init(_ entity: FlowEntity) {
        entityType = OstEntityType(rawValue: entity.type) ?? .dictionary
        json = entity.members
    }

    /// The members as values of Swift: `[String: Any]`.
    public var entity: Any? { json.any }
}
