// SPDX-License-Identifier: GPL-3.0-or-later
import BadgedClient
import Text

/// The actions that change a wallet card: workflows of RUN_WALLET.
enum WalletFlows {
    @Sendable static func setUp(_ invocation: Invocation) async throws(Failure) -> ExitStatus {
        let flow = WalletFlow.setupDevice(words: words(invocation), generatesPUK: !invocation.has("--own-puk"))
        return try await run(flow, invocation, notDone: "the card was not set up") { entity, user in
            let isNew = entity.members["created"]?.bool ?? true
            user.say(isNew ? "The card is ready." : "The card has keys already, and keeps them.")
            user.tell(result: device(entity))
        }
    }

    @Sendable static func restore(_ invocation: Invocation) async throws(Failure) -> ExitStatus {
        let flow = WalletFlow.authorizeDeviceWithMnemonics(
            words: words(invocation),
            keyUID: try keyUID(invocation).flatMap { $0.isEmpty ? nil : $0 },
            generatesPUK: !invocation.has("--own-puk")
        )
        return try await run(flow, invocation, notDone: "the card was not restored") { entity, user in
            let isNew = entity.members["created"]?.bool ?? true
            user.say(isNew ? "The card has the keys of these words." : "The card had the keys of these words already.")
            user.tell(result: device(entity))
        }
    }

    @Sendable static func changePIN(_ invocation: Invocation) async throws(Failure) -> ExitStatus {
        try await run(.resetPIN(), invocation, notDone: "the PIN was not changed") { _, user in
            user.tell(result: "The PIN has been changed.")
        }
    }

    @Sendable static func unblock(_ invocation: Invocation) async throws(Failure) -> ExitStatus {
        try await run(.resetPIN(withPUK: true), invocation, notDone: "the PIN was not unblocked") { _, user in
            user.tell(result: "The PIN is unblocked, and the card has the new PIN.")
        }
    }

    @Sendable static func unpair(_ invocation: Invocation) async throws(Failure) -> ExitStatus {
        try await run(.unpair, invocation, notDone: "the pairing was not given back") { _, user in
            user.tell(result: "This computer is no longer paired with the card.")
        }
    }

    @Sendable static func reset(_ invocation: Invocation) async throws(Failure) -> ExitStatus {
        guard let keyUID = try keyUID(invocation) else {
            throw invocation.usage("wallet reset-card needs --key-uid UID; badgectl wallet status shows it")
        }
        let notDone = "the card was not reset"
        return try await run(.resetCard(keyUID: keyUID), invocation, notDone: notDone) { user throws(Failure) in
            try await confirm(keyUID, user, notDone)
        } show: { _, user in
            user.tell(result: "The card is in its factory state: PIN, PUK and keys are destroyed.")
        }
    }

    /// Has the user type the key UID.
    private static func confirm(
        _ keyUID: String,
        _ user: CommandLineUser,
        _ notDone: String
    ) async throws(Failure) {
        guard !user.invocation.has("--yes") else { return }
        user.say(
            "This destroys the PIN, PUK and keys of the card. Without the words, the accounts of these keys are lost."
        )
        let wanted = keyUID.isEmpty ? "no keys" : keyUID
        let request = keyUID.isEmpty ? "Type \"no keys\" to go on: " : "Type the key UID of the card to go on: "
        let reply = await user.source.ask(request)
        guard case .text(let typed) = reply else {
            user.giveUp(
                reply,
                hint: "run badgectl in a terminal; a script that has checked the key UID itself uses --yes"
            )
            throw user.ending ?? Failure(.failed, notDone)
        }
        guard typed.lowercased().filter({ !$0.isWhitespace }) == wanted.filter({ !$0.isWhitespace }) else {
            throw Failure(
                .failed,
                "that is another key UID: \(notDone)",
                hint: "badgectl wallet status shows the key UID"
            )
        }
    }

    // MARK: One workflow

    private static func words(_ invocation: Invocation) -> Int {
        invocation.value(of: "--words").flatMap { Int($0) } ?? 12
    }

    /// The value of `--key-uid` in lower case; empty: a card without keys; nil without the option.
    private static func keyUID(_ invocation: Invocation) throws(Failure) -> String? {
        guard let uid = invocation.value(of: "--key-uid"), !uid.isEmpty else {
            return invocation.value(of: "--key-uid")
        }
        guard uid.utf8.count == 64, uid.utf8.allSatisfy({ Hex.value($0) != nil }) else {
            throw invocation.usage("\(uid) is not a key UID: a key UID has 64 hexadecimal digits")
        }
        return uid.lowercased()
    }

    private static func device(_ entity: FlowEntity) -> String {
        let rows = [("address", "address"), ("API signer", "api_signer_address"), ("key UID", "keyUID")]
        return Help.columns(rows.compactMap { row in entity.text(row.1).map { (row.0, $0) } }, indentation: "")
    }

    private static func run(
        _ flow: WalletFlow,
        _ invocation: Invocation,
        notDone: String,
        before: @escaping @Sendable (CommandLineUser) async throws(Failure) -> Void = { _ in },
        show: @escaping @Sendable (FlowEntity, CommandLineUser) -> Void
    ) async throws(Failure) -> ExitStatus {
        let workflow = try await WorkflowRun(invocation, notDone: notDone)
        try await workflow.checkReader(invocation)
        return try await workflow.run { () throws(Failure) in
            try await before(workflow.user)
            let result = try await workflow.ask { () throws(ClientError) in
                try await workflow.connection.runWallet(
                    flow,
                    reader: invocation.value(of: "--reader"),
                    user: workflow.user
                )
            }
            guard let entity = result.entity else {
                throw failure(result.error ?? FlowError(code: ""), notDone, workflow.user)
            }
            show(entity, workflow.user)
        }
    }

    private static func failure(_ error: FlowError, _ notDone: String, _ user: CommandLineUser) -> Failure {
        // badged does not know the reason of a cancellation by this program.
        if error.code == "USER_CANCELED" {
            return user.ending ?? Failure(.failed, "cancelled: \(notDone)", hint: "run badgectl wallet again")
        }
        return failure(error, notDone)
    }

    /// Why a workflow with a wallet card has failed. `error.code` is one of docs/protocol/wallet.md, Errors.
    static func failure(_ error: FlowError, _ notDone: String) -> Failure {
        var text = error.message.isEmpty ? "\(notDone) (\(error.code))" : error.message
        while text.last == "." { text.removeLast() }
        let hint =
            switch error.code {
            case "REQUEST_TIMED_OUT": "nothing was typed in time; run badgectl wallet again"
            case "DEVICE_NOT_SET": "set the card up: badgectl wallet setup"
            case "DIFFERENT_OWNER_DEVICE":
                "use another card, or destroy the keys of this one: badgectl wallet reset-card"
            case "CARD_BLOCKED":
                "badgectl wallet reset-card, and then badgectl wallet words with the words that you have"
            case "PIN_NOT_BLOCKED": "the PIN still has tries: badgectl wallet pin"
            case "RESET_PIN_FAILED": "the card has the new PIN or the old one: try each once, the new one first"
            case "FOREIGN_CARD": "[wallet] card_authorities in badged.conf(5) names the authorities that badged trusts"
            case "NO_FREE_PAIRING_SLOT": "run badgectl wallet unpair on a computer that no longer needs the card"
            case "CARD_LOST", "CARD_FAILED": "put the card back and look at its state: badgectl wallet status"
            case "TOO_MANY_WORKFLOWS": "try again later"
            default: Failure.seeLog
            }
        return Failure(.failed, text, hint: hint)
    }
}
