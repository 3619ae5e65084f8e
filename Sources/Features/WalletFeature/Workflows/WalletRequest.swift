// SPDX-License-Identifier: GPL-3.0-or-later
import HDWallet
import Server
import Text

/// Reads the members of RUN_WALLET. docs/protocol/wallet.md, Workflows.
extension WalletRequest {
    /// The maximum number of bytes of `userId` and `tokenId`.
    static let maximumNameCount = 256

    /// Reads the members.
    /// - Throws: the failure with which the command is refused.
    static func read(_ arguments: Arguments) throws(Failure) -> (WalletRequest, any WalletWorkflow) {
        let name = try arguments.text("workflow", 1...64)
        var request = WalletRequest(
            type: name,
            userID: try arguments.optionalText("userId", 0...maximumNameCount) ?? "",
            tokenID: try arguments.optionalText("tokenId", 1...maximumNameCount),
            readerName: try arguments.optionalText("reader", 1...maximumNameCount)
        )
        let body = try body(of: name, arguments, &request)
        return (request, body)
    }

    private static func body(
        of name: String,
        _ arguments: Arguments,
        _ request: inout WalletRequest
    ) throws(Failure) -> any WalletWorkflow {
        switch name {
        case "SETUP_DEVICE":
            return SetupDevice(wordCount: try arguments.wordCount(), choices: try SetupChoices(arguments))
        case "AUTHORIZE_DEVICE_WITH_MNEMONICS":
            return AuthorizeDevice(
                wordCount: try arguments.wordCount(),
                choices: try SetupChoices(arguments),
                keyUID: try arguments.optionalHash("keyUID")
            )
        case "ACTIVATE_USER": return try SignData.activateUser(arguments, request)
        case "PERFORM_QR_ACTION", "AUTHORIZE_DEVICE_WITH_QR", "REVOKE_DEVICE", "EXECUTE_TRANSACTION",
            "AUTHORIZE_SESSION_WITH_QR":
            return try SignData.qrAction(arguments, &request)
        case "ADD_SESSION": return try AddSession(arguments)
        case "RESET_PIN": return ResetPIN(byPUK: try arguments.isSet("puk"))
        case "PAIR": return Pair()
        case "UNPAIR": return try arguments.isSet("others") ? UnpairOthers() : Unpair()
        case "RESET_CARD": return ResetCard(keyUID: try arguments.keyUIDOrNone())
        case "GET_DEVICE_MNEMONICS":
            throw Failure(.mnemonicsNotStored, "The words cannot be read from a card: use the written copy")
        case "INITIATE_DEVICE_RECOVERY", "ABORT_DEVICE_RECOVERY", "LOGOUT_ALL_SESSIONS", "UPDATE_BIOMETRIC":
            throw Failure(.unsupportedWorkflow, "\(name) needs the platform of OST, which badged does not use")
        default:
            throw Failure(.invalidWorkflow, "There is no workflow with this name")
        }
    }
}

extension SetupChoices {
    init(_ arguments: Arguments) throws(Failure) {
        drawsPUK = try arguments.isSet("generatePUK")
        hasDuressPIN = try arguments.isSet("duressPin")
        hasPassphrase = try arguments.isSet("passphrase")
    }
}

/// The members of RUN_WALLET.
extension Arguments {
    /// `words`, the number of words; 12 if the member is missing.
    func wordCount() throws(Failure) -> Int {
        try optional("words", "12, 15, 18, 21 or 24") { value in
            value.int.flatMap { Mnemonic.counts.contains($0) ? $0 : nil }
        } ?? 12
    }

    /// `keyUID` of RESET_CARD; nil for the empty text, which means a card without keys.
    func keyUIDOrNone() throws(Failure) -> [UInt8]? {
        let form = "64 hexadecimal digits, or empty for a card without keys"
        let uid = try required("keyUID", form) { $0 == .string("") ? [] : Self.hash($0) }
        return uid.isEmpty ? nil : uid
    }
}
