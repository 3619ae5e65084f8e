// SPDX-License-Identifier: GPL-3.0-or-later
import HDWallet
import Text
import Wire

/// Reads the members of RUN_WALLET. docs/protocol/wallet.md, Workflows.
extension WalletRequest {
    /// The maximum number of bytes of `userId` and `tokenId`.
    static let maximumNameCount = 256

    /// Reads a command.
    /// - Throws: the failure with which the command is refused.
    static func read(_ command: Command) throws(WalletFailure) -> (WalletRequest, any WalletWorkflow) {
        let name: String
        switch command.string("workflow") {
        case .missing: throw WalletFailure(.invalidWorkflow, "workflow cannot be undefined")
        case .invalid: throw WalletFailure(.invalidWorkflow, "Invalid workflow")
        case .value(let value): name = value
        }
        var request = WalletRequest(
            type: name,
            userID: try command.text("userId", 0...maximumNameCount, .invalidUserID) ?? "",
            tokenID: try command.text("tokenId", 1...maximumNameCount, .invalidTokenID),
            readerName: try command.text("reader", 1...maximumNameCount, .invalidData)
        )
        let body = try body(of: name, command, &request)
        return (request, body)
    }

    private static func body(
        of name: String,
        _ command: Command,
        _ request: inout WalletRequest
    ) throws(WalletFailure) -> any WalletWorkflow {
        switch name {
        case "SETUP_DEVICE":
            return SetupDevice(wordCount: try command.wordCount(), drawsPUK: try command.flag("generatePUK"))
        case "AUTHORIZE_DEVICE_WITH_MNEMONICS":
            return AuthorizeDevice(
                wordCount: try command.wordCount(),
                drawsPUK: try command.flag("generatePUK"),
                keyUID: try command.keyUID()
            )
        case "ACTIVATE_USER": return try SignData.activateUser(command, request)
        case "PERFORM_QR_ACTION", "AUTHORIZE_DEVICE_WITH_QR", "REVOKE_DEVICE", "EXECUTE_TRANSACTION",
            "AUTHORIZE_SESSION_WITH_QR":
            return try SignData.qrAction(command, &request)
        case "ADD_SESSION": return try AddSession(command)
        case "RESET_PIN": return ResetPIN(byPUK: try command.flag("puk"))
        case "PAIR": return Pair()
        case "UNPAIR": return Unpair()
        case "RESET_CARD": return ResetCard(keyUID: try command.keyUIDOrNone())
        case "GET_DEVICE_MNEMONICS":
            throw WalletFailure(.mnemonicsNotStored, "The words cannot be read from a card: use the written copy")
        case "INITIATE_DEVICE_RECOVERY", "ABORT_DEVICE_RECOVERY", "LOGOUT_ALL_SESSIONS", "UPDATE_BIOMETRIC":
            throw WalletFailure(.unsupportedWorkflow, "\(name) needs the platform of OST, which badged does not use")
        default:
            throw WalletFailure(.invalidWorkflow, "There is no workflow with this name")
        }
    }
}

extension Command {
    /// Reads a string with a number of bytes in `counts`; nil if the member is missing.
    func text(
        _ key: StaticString,
        _ counts: ClosedRange<Int>,
        _ code: WalletFailure.Code = .invalidData
    ) throws(WalletFailure) -> String? {
        switch string(key) {
        case .missing: return nil
        case .value(let text) where counts.contains(text.utf8.count): return text
        case .value, .invalid:
            throw WalletFailure(code, "\(key) must be a text of \(counts.lowerBound) to \(counts.upperBound) bytes")
        }
    }

    func flag(_ key: StaticString) throws(WalletFailure) -> Bool {
        switch bool(key) {
        case .missing: false
        case .invalid: throw WalletFailure(.invalidData, "\(key) must be true or false")
        case .value(let value): value
        }
    }

    /// Reads `words`, the number of words; 12 if the member is missing.
    func wordCount() throws(WalletFailure) -> Int {
        switch int("words") {
        case .missing: return 12
        case .value(let count?) where Mnemonic.counts.contains(count): return count
        case .value, .invalid: throw WalletFailure(.invalidData, "words must be 12, 15, 18, 21 or 24")
        }
    }

    /// Reads `keyUID`; nil if the member is missing.
    func keyUID() throws(WalletFailure) -> [UInt8]? {
        switch string("keyUID") {
        case .missing: return nil
        case .value(let text):
            if let uid = Hex.decode(text, limit: 32), uid.count == 32 { return uid }
        case .invalid: break
        }
        throw WalletFailure(.invalidData, "keyUID must have 64 hexadecimal digits")
    }

    /// Reads `keyUID` of RESET_CARD; nil for the empty text, which means a card without keys.
    func keyUIDOrNone() throws(WalletFailure) -> [UInt8]? {
        if case .value("") = string("keyUID") { return nil }
        guard let uid = try keyUID() else {
            throw WalletFailure(.invalidData, "keyUID cannot be undefined; an empty text means a card without keys")
        }
        return uid
    }
}
