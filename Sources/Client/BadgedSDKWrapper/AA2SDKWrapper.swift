// SPDX-License-Identifier: Apache-2.0

/// The way in: replace the import of `AusweisApp2SDKWrapper` by that of this module, and the app speaks to badged.
public enum AA2SDKWrapper {
    /// The controller of this process: the default socket, callbacks on the main queue.
    public static let workflowController = WorkflowController()
}
