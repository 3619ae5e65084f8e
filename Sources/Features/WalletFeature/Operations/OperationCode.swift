// SPDX-License-Identifier: GPL-3.0-or-later

/// How an operation ended: `code` of WALLET_RESULT. docs/protocol/wallet.md, Codes.
enum OperationCode: Int, Sendable, CaseIterable {
    case cancelled = 0
    case done = 1
    case failed = 2
    /// The reader or the card has failed, and there is no better name.
    case cardFailed = 10001
    /// The card has no supported applet.
    case unsupportedCard = 10002
    case cardBlocked = 10003
    /// There was no WALLET_INIT, or the card has no key.
    case notReady = 10004
    /// The transaction that was pushed may have an effect.
    case outcomeUnknown = 10005
    /// The UUID is bound to this card and account already.
    case alreadyBound = 10006
    case notBound = 10007
    /// There is a binding, but this computer is not paired with the card any more.
    case notPaired = 10008
    /// The card is bound to another UUID of the dapp.
    case boundToOtherUUID = 10009
    case boundToOtherCard = 10010
    /// The permission of the account does not have the key of the card.
    case keyNotInAccount = 10011
    case badField = 10012
    case balanceTooSmall = 10013
}

/// Why an operation failed. The text is for people and has no secret.
struct OperationFailure: Error, Sendable, Equatable {
    var code: OperationCode
    var message: String
    /// Why the POST to the callback failed, if this is the reason.
    var callbackError: String?

    init(_ code: OperationCode, _ message: String, callbackError: String? = nil) {
        (self.code, self.message, self.callbackError) = (code, message, callbackError)
    }

    static let cancelled = OperationFailure(.cancelled, "The operation was cancelled")

    /// The failure of a dialogue with a card.
    init(_ failure: WalletFailure) {
        let code: OperationCode =
            switch failure.code {
            case .userCanceled: .cancelled
            case .requestTimedOut, .storeUnavailable, .tooManyWorkflows: .failed
            case .cardBlocked: .cardBlocked
            case .deviceNotSet: .notReady
            case .unsupportedCard: .unsupportedCard
            default: .cardFailed
            }
        let prefix = failure.code == .requestTimedOut ? "Prompt_Timeout: " : ""
        let place = failure.internalCode.isEmpty ? "" : " (\(failure.internalCode))"
        self.init(code, code == .cancelled ? Self.cancelled.message : prefix + failure.message + place)
    }
}
