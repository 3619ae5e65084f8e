// SPDX-License-Identifier: GPL-3.0-or-later
import BadgedClient
import Host
import Text

/// The actions that change a wallet card: workflows of RUN_WALLET.
enum WalletFlows {
    @Sendable static func setUp(_ invocation: Invocation) async throws {
        let flow = WalletFlow.setupDevice(
            words: words(invocation),
            generatesPUK: !invocation.has(.ownPuk),
            hasDuressPIN: invocation.has(.duressPin),
            hasPassphrase: invocation.has(.passphrase)
        )
        try await run(flow, invocation, notDone: tr("the card was not set up")) { entity, user in
            let isNew = entity.members["created"]?.bool ?? true
            user.say(isNew ? tr("The card is ready.") : tr("The card has keys already, and keeps them."))
            user.show(result: device(entity))
        }
    }

    @Sendable static func restore(_ invocation: Invocation) async throws {
        let flow = WalletFlow.authorizeDeviceWithMnemonics(
            words: words(invocation),
            keyUID: try keyUID(invocation).flatMap { $0.isEmpty ? nil : $0 },
            generatesPUK: !invocation.has(.ownPuk),
            hasDuressPIN: invocation.has(.duressPin),
            hasPassphrase: invocation.has(.passphrase)
        )
        try await run(flow, invocation, notDone: tr("the card was not restored")) { entity, user in
            let isNew = entity.members["created"]?.bool ?? true
            user.say(
                isNew
                    ? tr("The card has the keys of these words.") : tr("The card had the keys of these words already.")
            )
            user.show(result: device(entity))
        }
    }

    @Sendable static func changePIN(_ invocation: Invocation) async throws {
        try await run(.resetPIN(), invocation, notDone: tr("the PIN was not changed")) { _, user in
            user.show(result: tr("The PIN has been changed."))
        }
    }

    @Sendable static func unblock(_ invocation: Invocation) async throws {
        try await run(.resetPIN(withPUK: true), invocation, notDone: tr("the PIN was not unblocked")) { _, user in
            user.show(result: tr("The PIN is unblocked, and the card has the new PIN."))
        }
    }

    @Sendable static func pair(_ invocation: Invocation) async throws {
        try await run(.pair, invocation, notDone: tr("the card was not paired"), asksFirst: false) { _, user in
            user.show(result: tr("This computer is paired with the card."))
        }
    }

    @Sendable static func unpair(_ invocation: Invocation) async throws {
        guard !invocation.has(.others) else {
            return try await run(.unpairOthers, invocation, notDone: tr("no other computer was unpaired")) {
                entity,
                user in
                let free = entity.members["freeSlots"]?.int.map { tr("; \($0) slots are free") } ?? ""
                user.show(result: tr("The card is paired with this computer only\(free)."))
            }
        }
        try await run(.unpair, invocation, notDone: tr("the pairing was not given back")) { _, user in
            user.show(result: tr("This computer is no longer paired with the card."))
        }
    }

    @Sendable static func reset(_ invocation: Invocation) async throws {
        guard let keyUID = try keyUID(invocation) else {
            throw invocation.usage(tr("wallet reset-card needs --key-uid UID; badgectl wallet status shows it"))
        }
        guard !invocation.has(.pinentry) || invocation.has(.yes) else {
            throw invocation.usage(
                tr("wallet reset-card asks for the key UID in the terminal: leave out --pinentry, or use --yes")
            )
        }
        let notDone = tr("the card was not reset")
        try await run(.resetCard(keyUID: keyUID), invocation, notDone: notDone, asksFirst: false) { user in
            try await confirm(keyUID, user, notDone)
        } show: { _, user in
            user.show(result: tr("The card is in its factory state: PIN, PUK and keys are destroyed."))
        }
    }

    /// Has the user type the key UID.
    private static func confirm(
        _ keyUID: String,
        _ user: CommandLineUser,
        _ notDone: String
    ) async throws {
        guard !user.invocation.has(.yes) else { return }
        user.say(
            tr(
                "This destroys the PIN, PUK and keys of the card. Without the words, the accounts of these keys are lost."
            )
        )
        let wanted = keyUID.isEmpty ? tr("no keys") : keyUID
        let request =
            keyUID.isEmpty ? tr("Type \"\(wanted)\" to go on: ") : tr("Type the key UID of the card to go on: ")
        let reply = await user.source.ask(request)
        guard case .text(let typed) = reply else {
            user.giveUp(
                reply,
                hint: tr("run badgectl in a terminal; a script that has checked the key UID itself uses --yes")
            )
            throw user.ending ?? CommandFailure(notDone)
        }
        guard typed.asAnswer == wanted.asAnswer else {
            throw CommandFailure(
                tr("that is another key UID: \(notDone)"),
                hint: tr("badgectl wallet status shows the key UID")
            )
        }
    }

    // MARK: One workflow

    private static func words(_ invocation: Invocation) -> Int {
        invocation.value(of: .words).flatMap { Int($0) } ?? 12
    }

    /// The value of `--key-uid` in lower case; empty: a card without keys; nil without the option.
    private static func keyUID(_ invocation: Invocation) throws -> String? {
        guard let uid = invocation.value(of: .keyUid), !uid.isEmpty else {
            return invocation.value(of: .keyUid)
        }
        guard uid.utf8.count == 64, uid.utf8.allSatisfy({ Hex.value($0) != nil }) else {
            throw invocation.usage(tr("\(uid) is not a key UID: a key UID has 64 hexadecimal digits"))
        }
        return uid.lowercased()
    }

    private static func device(_ entity: FlowEntity) -> String {
        let rows = [
            (tr("address"), "address"), (tr("API signer"), "api_signer_address"),
            (tr("key UID"), "keyUID"),
        ]
        return Help.columns(rows.compactMap { row in entity.text(row.1).map { (row.0, $0) } }, indentation: "")
    }

    /// Runs a workflow. `notDone` is what an early end means before the card can have changed, and `asksFirst` whether
    /// badged asks for a secret before it changes the card.
    private static func run(
        _ flow: WalletFlow,
        _ invocation: Invocation,
        notDone: String,
        asksFirst: Bool = true,
        before: @escaping @Sendable (CommandLineUser) async throws -> Void = { _ in },
        show: @escaping @Sendable (FlowEntity, CommandLineUser) -> Void
    ) async throws {
        try await WorkflowRun.run(invocation, notDone: notDone) { workflow in
            try await before(workflow.user)
            workflow.user.whenAnswered(notDone: mayBeChanged)
            if !asksFirst { workflow.user.noteAnswer() }
            let result: FlowResult
            do {
                result = try await workflow.connection.runWallet(
                    flow,
                    reader: invocation.value(of: .reader),
                    user: workflow.user
                )
            } catch {
                throw workflow.failureWithEffect(error)
            }
            // badged has said what has changed.
            workflow.user.notDone = notDone
            guard let entity = result.entity else {
                throw failure(result.error ?? FlowError(code: ""), notDone, workflow.user)
            }
            show(entity, workflow.user)
        }
    }

    private static func failure(_ error: FlowError, _ notDone: String, _ user: CommandLineUser) -> CommandFailure {
        // badged does not know the reason of a cancellation by this program.
        if error.code == "USER_CANCELED" {
            guard let change = error.change else {
                return user.ending
                    ?? CommandFailure(tr("cancelled: \(notDone)"), hint: tr("run badgectl wallet again"))
            }
            return CommandFailure(tr("cancelled: \(notDone). \(DaemonWords.text(change))"), hint: Self.statusHint)
        }
        return failure(error, notDone)
    }

    private static let mayBeChanged = tr("the card may have been changed; badgectl wallet status shows its state")

    private static let statusHint = tr("look at the state of the card: badgectl wallet status")

    /// Why a workflow with a wallet card has failed. `error.code` is one of docs/protocol/wallet.md, Errors.
    static func failure(_ error: FlowError, _ notDone: String) -> CommandFailure {
        var text = error.message.isEmpty ? "\(notDone) (\(error.code))" : DaemonWords.text(error.message)
        while text.last == "." { text.removeLast() }
        let hint =
            switch error.code {
            case "REQUEST_TIMED_OUT": tr("nothing was typed in time; run badgectl wallet again")
            case _ where error.change != nil: statusHint
            case "DEVICE_NOT_SET": tr("set the card up: badgectl wallet setup")
            case "DEVICE_ALREADY_SET": tr("badgectl wallet status shows the state of the card")
            case "DIFFERENT_OWNER_DEVICE":
                tr("use another card, or destroy the keys of this one: badgectl wallet reset-card")
            case "CARD_BLOCKED":
                tr("badgectl wallet reset-card, and then badgectl wallet words with the words that you have")
            case "PIN_NOT_BLOCKED": tr("the PIN still has tries: badgectl wallet pin")
            case "RESET_PIN_FAILED": tr("the card has the new PIN or the old one: try each once, the new one first")
            case "FOREIGN_CARD": tr("after the line is in badged.conf: systemctl restart badged")
            case "WRONG_WALLET":
                tr("type the main PIN; if that fails, badgectl wallet reset-card and badgectl wallet words")
            case "UNSUPPORTED_CARD": tr("badgectl wallet status shows the version of the card")
            case "NOT_PAIRED": tr("badgectl wallet pair pairs this computer with the card")
            case "NO_FREE_PAIRING_SLOT":
                tr(
                    "run badgectl wallet unpair on a computer that no longer needs the card, or wallet unpair --others on"
                )
                    + tr(" one that does; if no computer is paired any more, only badgectl wallet reset-card helps")
            case "CARD_LOST", "CARD_FAILED": tr("put the card back and look at its state: badgectl wallet status")
            case "ACCESS_DENIED":
                tr("ask the administrator for the permissions cards and wallet in [access] of badged.conf")
            case "TOO_MANY_WORKFLOWS": tr("try again later")
            default: CommandFailure.seeLog
            }
        return CommandFailure(text, hint: hint)
    }
}
