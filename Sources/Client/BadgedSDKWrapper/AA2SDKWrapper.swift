// SPDX-License-Identifier: Apache-2.0

/// The entry point of an app. An app that imports this module instead of `AusweisApp2SDKWrapper` uses badged.
public enum AA2SDKWrapper {
    /// The controller of this process. It uses the default socket and calls back on the main queue.
    public static let workflowController = WorkflowController()
}
