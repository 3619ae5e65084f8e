// SPDX-License-Identifier: GPL-3.0-or-later
import HDWallet
import ISO7816
import Keycard
import Store
import Text

/// Why a workflow of a wallet card failed: the error of FLOW_INTERRUPTED. No text has a secret.
struct WalletFailure: Error, Sendable, Equatable {
    var code: Code
    /// For people: what happened and what to do.
    var message: String
    /// For reports of faults: the step at which the card failed, and its status word.
    var internalCode: String

    init(_ code: Code, _ message: String, at internalCode: String = "") {
        (self.code, self.message, self.internalCode) = (code, message, internalCode)
    }

    /// The names of the errors. docs/protocol/wallet.md, Errors.
    enum Code: String, Sendable, CaseIterable {
        case userCanceled = "USER_CANCELED"
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

    // MARK: Common failures

    static let userCanceled = WalletFailure(.userCanceled, "The workflow was cancelled")
    static let requestTimedOut = WalletFailure(
        .requestTimedOut,
        "A question was not answered in time: start the workflow again"
    )
    static let cardBlocked = WalletFailure(
        .cardBlocked,
        "PIN and PUK of the card have no tries left: reset the card and restore its keys from their words"
    )
    static let notInitialised = WalletFailure(
        .deviceNotSet,
        "The card has no PIN yet: set it up first"
    )
    static let noKeys = WalletFailure(
        .deviceNotSet,
        "The card has no keys: set it up first, or restore the keys from their words"
    )

    init(_ error: StoreError) {
        self.init(.storeUnavailable, "badged cannot use its store: \(error.text)")
    }

    /// The failure of a step with the card. The loss of a card is a failure only where the step must not be repeated.
    init(_ error: KeycardError, at step: StaticString) {
        switch error {
        case .card(let error):
            self.init(.cardLost, "The card did not answer: \(error)", at: "\(step)")
        case .status(let status):
            self.init(.cardFailed, "The card refused a command", at: "\(step) \(Self.hex(status.value))")
        case .channelLost(let status):
            self.init(
                .cardFailed,
                "The card has ended its secure channel: take it out and try again",
                at: "\(step) \(Self.hex(status.value))"
            )
        case .malformed(let text):
            self.init(.cardFailed, "The card does not follow its protocol: \(text)", at: "\(step)")
        case .noChannel, .wrongState, .wrongForm, .crypto, .mnemonic:
            self.init(.cardFailed, "The card cannot be used: \(Self.text(error))", at: "\(step)")
        case .noApplet:
            self.init(.unsupportedCard, "The card has no Keycard applet", at: "\(step)")
        case .unsupported:
            self.init(.unsupportedCard, "The version of the card does not have this function", at: "\(step)")
        case .wrongPairingPassword:
            self.init(.cardFailed, "The card does not know the pairing password", at: "\(step)")
        case .noFreeSlot:
            self.init(
                .noFreePairingSlot,
                "All five pairing slots of the card are used: unpair another computer or phone first",
                at: "\(step)"
            )
        case .pairingLost:
            self.init(.notPaired, "The card does not know this computer any more", at: "\(step)")
        case .foreignCard(let authority):
            self.init(
                .foreignCard,
                "badged does not trust the authority of the card, \(Hex.encode(authority)): see [wallet]"
                    + " card_authorities and cards in badged.conf(5)",
                at: "\(step)"
            )
        case .wrongWallet:
            self.init(
                .wrongWallet,
                "The keys of the card do not match its words: its duress PIN was used, or the card is faulty",
                at: "\(step)"
            )
        }
    }

    private static func hex(_ value: UInt16) -> String { Hex.encode([UInt8(value >> 8), UInt8(value & 0xFF)]) }

    private static func text(_ error: KeycardError) -> String {
        switch error {
        case .noChannel: "there is no secure channel"
        case .wrongState: "the state of the card differs from the reported one"
        case .wrongForm: "a value has a wrong form"
        case .crypto: "a cryptographic step failed"
        case .mnemonic: "the words are not a valid mnemonic"
        default: "\(error)"
        }
    }
}
