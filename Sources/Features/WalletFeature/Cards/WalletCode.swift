// SPDX-License-Identifier: GPL-3.0-or-later
import HDWallet
import ISO7816
import Keycard
import Store
import Text

/// The codes of FLOW_INTERRUPTED. docs/protocol/wallet.md, Errors.
enum WalletCode: String, Sendable, CaseIterable {
    case userCanceled = "USER_CANCELED"
    case accessDenied = "ACCESS_DENIED"
    case requestTimedOut = "REQUEST_TIMED_OUT"
    case invalidWorkflow = "INVALID_WORKFLOW"
    case unsupportedWorkflow = "UNSUPPORTED_WORKFLOW"
    case invalidUserID = "INVALID_USER_ID"
    case invalidTokenID = "INVALID_TOKEN_ID"
    case invalidSpendingLimit = "INVALID_SPENDING_LIMIT"
    case invalidExpirationTime = "INVALID_EXPIRATION_TIME_STAMP"
    case invalidData = "INVALID_DATA"
    case invalidQRCode = "INVALID_Q_R_CODE"
    case insufficientData = "INSUFFICIENT_DATA"
    case invalidDataDefinition = "INVALID_DATA_DEFINATION"
    case mnemonicsNotStored = "MNEMONICS_NOT_STORED"
    case tooManyWorkflows = "TOO_MANY_WORKFLOWS"
    case deviceNotSet = "DEVICE_NOT_SET"
    case deviceAlreadySet = "DEVICE_ALREADY_SET"
    case differentOwnerDevice = "DIFFERENT_OWNER_DEVICE"
    case wrongDeviceAddress = "WRONG_DEVICE_ADDRESS"
    case wrongWallet = "WRONG_WALLET"
    case cardBlocked = "CARD_BLOCKED"
    case pinNotBlocked = "PIN_NOT_BLOCKED"
    case resetPINFailed = "RESET_PIN_FAILED"
    case foreignCard = "FOREIGN_CARD"
    case noFreePairingSlot = "NO_FREE_PAIRING_SLOT"
    case notPaired = "NOT_PAIRED"
    case unsupportedCard = "UNSUPPORTED_CARD"
    case storeUnavailable = "STORE_UNAVAILABLE"
    case signatureFailed = "SIGNATURE_FAILED"
    case cardLost = "CARD_LOST"
    case cardFailed = "CARD_FAILED"
}

extension Failure {
    /// `internalCode`, for reports of faults: the step at which the card failed, and its status word.
    init(_ code: WalletCode, _ text: Phrase, at internalCode: String = "") {
        let details = internalCode.isEmpty ? [] : [JSON.Member("internalCode", .string(internalCode))]
        self.init(Code(code.rawValue), text, details: details)
    }

    var internalCode: String { self["internalCode"]?.string ?? "" }

    /// The code of FLOW_INTERRUPTED.
    var walletCode: WalletCode {
        if let code = WalletCode(rawValue: code.rawValue) { return code }
        return switch code {
        case .cancelled: .userCanceled
        case .timedOut: .requestTimedOut
        case .accessDenied: .accessDenied
        case .tooManyWorkflows: .tooManyWorkflows
        case .wrongArgument, .missingArgument: argumentCode
        default: isOfStore ? .storeUnavailable : .cardFailed
        }
    }

    private var argumentCode: WalletCode {
        switch self["member"]?.string {
        case "challenge" where code == .missingArgument, "payload" where code == .missingArgument: .insufficientData
        case "workflow": .invalidWorkflow
        case "userId": .invalidUserID
        case "tokenId": .invalidTokenID
        case "message", "preimage", "typedData": .invalidDataDefinition
        case "payload": .invalidQRCode
        case "spendingLimit": .invalidSpendingLimit
        case "expirationTime": .invalidExpirationTime
        default: .invalidData
        }
    }

    /// The text for the client at the end of a workflow.
    var walletText: Phrase { walletText(with: change) }

    func walletText(with change: Phrase?) -> Phrase {
        var told = self
        told.change = change
        switch walletCode {
        case .userCanceled: told.text = "The workflow was cancelled"
        case .requestTimedOut: told.text = "A question was not answered in time: start the workflow again"
        case .storeUnavailable: told.text = "badged cannot use its store: \(text)"
        default: break
        }
        return told.message
    }

    // MARK: Common failures

    static let notInitialised = Failure(
        .deviceNotSet,
        "The card has no PIN yet: set it up first (SETUP_DEVICE, badgectl wallet setup)"
    )
    static let noKeys = Failure(
        .deviceNotSet,
        "The card has no keys: set it up first (SETUP_DEVICE, badgectl wallet setup), or load the keys of your words"
            + " (AUTHORIZE_DEVICE_WITH_MNEMONICS, badgectl wallet words)"
    )

    /// PIN and PUK of a card have no tries left.
    static func cardBlocked(_ card: KeycardInfo) -> Failure {
        let remedy: Phrase =
            card.hasFactoryReset
            ? "reset the card (RESET_CARD, badgectl wallet reset-card), and then load the keys of your words"
            : "this version cannot be reset, so take another card and load the keys of your words"
        return Failure(
            .cardBlocked,
            "PIN and PUK of the card have no tries left: \(remedy)"
                + " (AUTHORIZE_DEVICE_WITH_MNEMONICS, badgectl wallet words)"
        )
    }

    /// badged does not support the version of a card.
    static func otherVersion(_ card: KeycardInfo) -> Failure {
        Failure(.unsupportedCard, "The Keycard \(otherVersionText(card))", at: "SELECT")
    }

    /// Such as `has version 2.2; badged supports 3.0, 3.1 and 4.0: use another card`.
    static func otherVersionText(_ card: KeycardInfo) -> Phrase {
        let version = card.version.map(KeycardVersion.text) ?? "unknown"
        return "has version \(version); badged supports \(KeycardVersion.list): use another card"
    }

    /// The failure of a step with the card. The loss of a card is a failure only where the step must not be repeated.
    init(_ error: KeycardError, at step: StaticString) {
        var place = "\(step)"
        if case .status(let status) = error { place += " \(Self.hex(status.value))" }
        if case .channelLost(let status) = error { place += " \(Self.hex(status.value))" }
        let (code, text) = Self.reason(error)
        self.init(code, text, at: place)
        if code == .foreignCard { details.append(JSON.Member("setting", .string("[wallet] cards"))) }
    }

    private static func reason(_ error: KeycardError) -> (WalletCode, Phrase) {
        switch error {
        case .card(let error):
            (.cardLost, "The card did not answer: \(error); put it on the reader again, and start again")
        case .status: (.cardFailed, "The card refused a command: take it out and try again")
        case .channelLost: (.cardFailed, "The card has ended its secure channel: take it out and try again")
        case .malformed(let text):
            (
                .cardFailed,
                "The card does not follow its protocol (\(text)): take it out and try again, or use another card"
            )
        case .noChannel: (.cardFailed, unusable("there is no secure channel"))
        case .wrongState: (.cardFailed, unusable("the state of the card differs from the reported one"))
        case .wrongForm: (.cardFailed, unusable("a value has a wrong form"))
        case .crypto: (.cardFailed, unusable("a cryptographic step failed"))
        case .noApplet: (.unsupportedCard, "The card has no Keycard applet: use a Keycard")
        case .unsupported:
            (.unsupportedCard, "The version of the card does not have this function: use another card")
        case .wrongPairingPassword:
            (.cardFailed, "The card does not know the pairing password: start again and type the right one")
        case .noFreeSlot:
            (
                .noFreePairingSlot,
                "All pairing slots of the card are used: unpair another computer (UNPAIR, badgectl wallet unpair) or"
                    + " phone first"
            )
        case .pairingLost:
            (.notPaired, "The card does not know this computer any more: pair it again (PAIR, badgectl wallet pair)")
        case .foreignCard(let certificate):
            (
                .foreignCard,
                "badged trusts neither the authority of the card, \(Hex.encode(certificate.authority.compressed)), nor"
                    + " the card itself. To trust this card, add the line"
                    + " 'cards = \(Hex.encode(certificate.identity.compressed))' to [wallet] in badged.conf, and restart"
                    + " badged; see badged.conf(5)"
            )
        case .wrongWallet:
            (
                .wrongWallet,
                "The card has other keys than its words: its duress PIN was used, or the card is faulty. Start again"
                    + " with the main PIN. If that fails, reset the card (RESET_CARD, badgectl wallet reset-card) and load"
                    + " the keys of your words (AUTHORIZE_DEVICE_WITH_MNEMONICS, badgectl wallet words)"
            )
        }
    }

    private static func unusable(_ reason: Phrase) -> Phrase {
        "The card cannot be used (\(reason)): take it out and try again"
    }

    private static func hex(_ value: UInt16) -> String { Hex.encode([UInt8(value >> 8), UInt8(value & 0xFF)]) }
}
