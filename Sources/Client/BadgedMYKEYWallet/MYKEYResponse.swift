// SPDX-License-Identifier: Apache-2.0

/// Receives how an operation ended, on the callback queue.
public class MYKEYApiResponse {
    private let success: ((String) -> Void)?
    private let failure: ((String) -> Void)?

    /// - Parameters:
    ///   - success: called with a JSON object: `code` 1, `message`, `account`, `publicKey`, and `txId` or `sign`.
    ///   - failure: called with a JSON object: `code` and `message`.
    public init(success: ((String) -> Void)?, failure: ((String) -> Void)?) {
        self.success = success
        self.failure = failure
    }

    public func onSuccess(_ response: String) { success?(response) }

    public func onError(_ errorValue: String) { failure?(errorValue) }

    /// The user has cancelled. Without an own closure for this it is a failure with the code 0.
    func onCancelled(_ value: String) { onError(value) }
}

/// Receives how an operation ended, on the callback queue. One of the closures is called, once.
public final class MYKEYResponse: MYKEYApiResponse {
    private let cancelled: (() -> Void)?

    /// - Parameters:
    ///   - success: called with a JSON object: `code` 1, `message`, `account`, `publicKey`, and `txId` or `sign`.
    ///   - failure: called with a JSON object: `code`, one of `ErrorCode`, and `message`.
    ///   - cancelled: called when the user has cancelled.
    public init(
        success: ((String) -> Void)? = nil,
        failure: ((String) -> Void)? = nil,
        cancelled: (() -> Void)? = nil
    ) {
        self.cancelled = cancelled
        super.init(success: success, failure: failure)
    }

    public func onCancel() { cancelled?() }

    override func onCancelled(_ value: String) { onCancel() }
}

/// The codes of `failure`. docs/protocol/wallet.md says what they mean for a card.
public enum ErrorCode: Int, Sendable, CaseIterable {
    case cancel = 0
    case success = 1
    case failure = 2
    case cannotWakeUp = 10001
    case notInstall = 10002
    case freezed = 10003
    case uninitialized = 10004
    case timeOut = 10005
    case duplicateBound = 10006
    case unbound = 10007
    case dappBounded = 10008
    case MYKEYBounded = 10009
    case boundInfoMismatch = 10010
    case MYKEYAccountNotExist = 10011
    case illegalParameter = 10012
    case insufficientBalance = 10013
    case MYKEYAccountUnavailable = 10014
}
