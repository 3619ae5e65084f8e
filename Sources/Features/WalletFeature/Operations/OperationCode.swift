// SPDX-License-Identifier: GPL-3.0-or-later
import Text

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

extension Failure {
    /// How an operation ended. `callbackError` is why the POST to the callback failed, if this is the reason; `setting`
    /// is that of badged.conf that would help.
    init(operation code: OperationCode, _ text: Phrase, callbackError: String? = nil, setting: String? = nil) {
        let details = [("callbackError", callbackError), ("setting", setting)].compactMap { name, text in
            text.map { JSON.Member(name, .string($0)) }
        }
        self.init(Code("WALLET_RESULT \(code.rawValue)"), text, details: details)
    }

    /// `code` of WALLET_RESULT.
    var operationCode: OperationCode {
        let code = code
        if let own = OperationCode.allCases.first(where: { code == Code("WALLET_RESULT \($0.rawValue)") }) {
            return own
        }
        return switch walletCode {
        case .userCanceled: .cancelled
        case .requestTimedOut, .storeUnavailable, .tooManyWorkflows, .accessDenied: .failed
        case .cardBlocked: .cardBlocked
        case .deviceNotSet: .notReady
        case .unsupportedCard: .unsupportedCard
        default: code == .wrongArgument || code == .missingArgument ? .badField : .cardFailed
        }
    }

    /// `message` of WALLET_RESULT.
    var operationText: Phrase {
        var told = self
        told.text = walletText(with: nil)
        switch code {
        case .cancelled: told.text = "The operation was cancelled"
        case .timedOut: told.text = "Prompt_Timeout: \(told.text)"
        case .accessDenied: told.text = "Access_Denied: \(told.text)"
        default: if !internalCode.isEmpty { told.text = "\(told.text) (\(internalCode))" }
        }
        told.advice = nil
        return told.message
    }
}
