// SPDX-License-Identifier: Apache-2.0

/// What a card asks beyond the functions of the SDK. A workflow asks its delegate if the delegate also conforms to this
/// protocol.
///
/// Only such an app can set up a new card, because its PUK and words exist once: the app shows them, and asks the words
/// back. For other delegates, each of these questions ends the workflow before the card gets a PIN or keys.
public protocol OstCardDelegate: AnyObject {
    /// A card is needed. `error` says why the card in `reader` cannot be used.
    func insertCard(error: String?, reader: String?)

    /// The new PIN of the card, 6 digits. `error` says what was wrong with the last one.
    func getNewPin(_ userId: String, error: String?, delegate: any OstPinAcceptDelegate)

    /// The PIN is blocked, and the card needs its PUK, 12 digits. The new PIN follows.
    func getPuk(_ userId: String, retryCounter: Int?, delegate: any OstPinAcceptDelegate)

    /// The PUK of a new card, 12 digits. It is shown once. `dataVerified` means that the user has written it down.
    func showPuk(_ puk: String, delegate: any OstValidateDataDelegate)

    /// The words at these positions of the words of `showPaperWallet`, which count from 1. `error` says what was wrong
    /// with the last ones.
    func verifyMnemonics(positions: [Int], error: String?, delegate: any OstMnemonicsAcceptDelegate)

    /// All words of a wallet. `error` says what was wrong with the last ones.
    func getMnemonics(count: Int, error: String?, delegate: any OstMnemonicsAcceptDelegate)

    /// The pairing password of a card that was paired with its own one.
    func getPairingPassword(_ userId: String, delegate: any OstPinAcceptDelegate)

    /// The private key of a new session, 64 hexadecimal digits. It is passed on once. `dataVerified` means that the app
    /// keeps it.
    func keepSessionKey(address: String, privateKey: String, delegate: any OstValidateDataDelegate)
}

extension OstCardDelegate {
    public func insertCard(error: String?, reader: String?) {}

    public func getPairingPassword(_ userId: String, delegate: any OstPinAcceptDelegate) {
        delegate.cancelFlow(OstError("", .notPaired))
    }

    public func getMnemonics(count: Int, error: String?, delegate: any OstMnemonicsAcceptDelegate) {
        delegate.cancelFlow(OstError("", .invalidMnemonics))
    }

    public func keepSessionKey(address: String, privateKey: String, delegate: any OstValidateDataDelegate) {
        delegate.cancelFlow(OstError("", .unsupportedWorkflow))
    }
}
