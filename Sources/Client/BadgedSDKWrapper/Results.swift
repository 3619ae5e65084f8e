// SPDX-License-Identifier: Apache-2.0
import Text

/// How a PIN change ended: the last CHANGE_PIN.
public struct ChangePinResult: Sendable, Equatable {
    /// Whether the card has confirmed the new PIN.
    public let success: Bool
    /// A name from the list of failure reasons.
    public let reason: String?

    public init(success: Bool, reason: String?) {
        self.success = success
        self.reason = reason
    }
}

/// A failure between the app and badged.
public struct WrapperError: Sendable, Equatable {
    /// The name of the command, message or method that failed.
    public let msg: String
    public let error: String

    public init(msg: String, error: String) {
        self.msg = msg
        self.error = error
    }
}

/// Why a workflow pauses.
public enum Cause: String, Sendable {
    /// The card has slipped.
    case BadCardPosition
}

/// The progress of the running workflow: STATUS.
public struct WorkflowProgress: Sendable, Equatable {
    /// nil when no workflow runs.
    public let workflow: WorkflowProgressType?
    /// Percent.
    public let progress: Int?
    /// The message whose answer the workflow waits for, such as `ENTER_PIN`.
    public let state: String?

    public init() { self.init(workflow: nil, progress: nil, state: nil) }

    public init(workflow: WorkflowProgressType?, progress: Int?, state: String?) {
        self.workflow = workflow
        self.progress = progress
        self.state = state
    }

    init(_ json: JSON) {
        self.init(
            workflow: json["workflow"]?.string.flatMap(WorkflowProgressType.init),
            progress: json["progress"]?.int,
            state: json["state"]?.string
        )
    }
}

public enum WorkflowProgressType: String, Sendable {
    case AUTHENTICATION = "AUTH"
    case CHANGE_PIN
}

/// The program that serves the app: INFO. TR-03124-1 2.2.2.1 defines the members.
public struct VersionInfo: Sendable, Equatable {
    public let name: String
    public let implementationTitle: String
    public let implementationVendor: String
    public let implementationVersion: String
    public let specificationTitle: String
    public let specificationVendor: String
    public let specificationVersion: String

    public init(
        name: String,
        implementationTitle: String,
        implementationVendor: String,
        implementationVersion: String,
        specificationTitle: String,
        specificationVendor: String,
        specificationVersion: String
    ) {
        self.name = name
        self.implementationTitle = implementationTitle
        self.implementationVendor = implementationVendor
        self.implementationVersion = implementationVersion
        self.specificationTitle = specificationTitle
        self.specificationVendor = specificationVendor
        self.specificationVersion = specificationVersion
    }

    init?(_ message: JSON) {
        guard let json = message["VersionInfo"], json.members != nil else { return nil }
        func text(_ member: String) -> String { json[member]?.string ?? "" }
        self.init(
            name: text("Name"),
            implementationTitle: text("Implementation-Title"),
            implementationVendor: text("Implementation-Vendor"),
            implementationVersion: text("Implementation-Version"),
            specificationTitle: text("Specification-Title"),
            specificationVendor: text("Specification-Vendor"),
            specificationVersion: text("Specification-Version")
        )
    }
}
