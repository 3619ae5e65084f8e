// SPDX-License-Identifier: GPL-3.0-or-later
import BadgedClient
import Host
import Text

/// The actions with which an account signs.
enum WalletOperations {
    @Sendable static func sign(_ invocation: Invocation) async throws {
        let operation = WalletOperation.sign(invocation.others[0], account: invocation.value(of: .account))
        try await run(operation, invocation, notDone: tr("nothing was signed")) { result, user in
            user.show(result: [result.signature, result.publicKey].compactMap { $0 }.joined(separator: "\n"))
        }
    }

    @Sendable static func transfer(_ invocation: Invocation) async throws {
        let (from, to, quantity) = (invocation.others[0], invocation.others[1], invocation.others[2])
        let parts = quantity.split(separator: " ")
        guard parts.count == 2 else {
            throw invocation.usage(tr("\(quantity) is not an amount with its symbol, such as \"1.3100 EOS\""))
        }
        var decimals: Int?
        if let text = invocation.value(of: .decimals) {
            decimals = Int(text).flatMap { (0...18).contains($0) ? $0 : nil }
            if decimals == nil { throw invocation.usage(tr("--decimals needs a number from 0 to 18")) }
        }
        let operation = WalletOperation.transfer(
            String(parts[0]),
            symbol: String(parts[1]),
            contract: invocation.value(of: .contract) ?? "eosio.token",
            from: from,
            to: to,
            decimals: decimals,
            memo: invocation.others.count > 3 ? invocation.others[3] : nil,
            options(invocation)
        )
        try await run(operation, invocation, notDone: tr("nothing was sent"), show: showTransaction)
    }

    @Sendable static func contract(_ invocation: Invocation) async throws {
        let file = try ContractFile(path: invocation.others[0])
        var options = options(invocation)
        if options.permission == nil { options.permission = file.permission }
        options.info = file.info
        let operation = WalletOperation.contract(
            file.actions,
            account: invocation.value(of: .account) ?? file.account,
            options
        )
        try await run(operation, invocation, notDone: tr("nothing was sent"), show: showTransaction)
    }

    private static func options(_ invocation: Invocation) -> WalletOperation.Options {
        WalletOperation.Options(permission: invocation.value(of: .permission))
    }

    @Sendable private static func showTransaction(_ result: WalletResult, _ user: CommandLineUser) {
        user.show(result: result.transactionID ?? "")
    }

    // MARK: One operation

    private static func run(
        _ operation: WalletOperation,
        _ invocation: Invocation,
        notDone: String,
        show: @escaping @Sendable (WalletResult, CommandLineUser) -> Void
    ) async throws {
        try await WorkflowRun.run(invocation, notDone: notDone) { workflow in
            try await workflow.connection.initWallet(WalletDapp(name: "badgectl"))
            let result: WalletResult
            do {
                result = try await workflow.connection.runWallet(
                    operation,
                    reader: invocation.value(of: .reader),
                    user: workflow.user
                )
            } catch {
                throw workflow.failureWithEffect(error)
            }
            // badged has said what has become of the transaction.
            workflow.user.notDone = notDone
            guard result.isSuccess else {
                // badged does not know the reason of a cancellation by this program.
                if result.isCancelled, result.change == nil { throw workflow.user.ending ?? failure(result, notDone) }
                throw failure(result, notDone)
            }
            show(result, workflow.user)
        }
    }

    /// Why an operation has failed. `code` is one of docs/protocol/wallet.md.
    static func failure(_ result: WalletResult, _ notDone: String) -> CommandFailure {
        var text = result.message.isEmpty ? tr("\(notDone) (code \(result.code))") : DaemonWords.text(result.message)
        while text.last == "." { text.removeLast() }
        let hint: String
        switch result.code {
        case 0 where result.change == nil: (text, hint) = (tr("cancelled: \(notDone)"), tr("run badgectl wallet again"))
        case 0: hint = tr("look at the state of the card: badgectl wallet status")
        case 10002: hint = tr("put the Keycard on the reader")
        case 10003: hint = tr("badgectl wallet status shows the tries left; badgectl wallet unblock needs the PUK")
        case 10004: hint = tr("set the card up: badgectl wallet setup")
        case 10005:
            let id = result.transactionID.map { tr(" for the transaction \($0)") } ?? ""
            hint = tr("it is not known whether it was carried out: look at the chain\(id) before you repeat it")
        case 10011: hint = tr("give the account this key, or name the right one: --permission NAME")
        case 10012: hint = tr("correct the arguments; badgectl wallet --help has examples")
        case 10013: hint = tr("send less")
        default:
            hint =
                result.setting == nil
                ? CommandFailure.seeLog : tr("after the line is in badged.conf: systemctl restart badged")
        }
        return CommandFailure(text, hint: hint)
    }
}

/// The actions in a file: an array, or an object with `actions`, `account`, `permission` and `info`.
struct ContractFile {
    var actions: [WalletAction]
    var account: String?
    var permission: String?
    var info: String?

    /// A command has at most 1 MiB.
    private static let limit = 1 << 20

    init(path: String) throws {
        let text = try FileContent.read(path, limit: Self.limit)
        let json = try translating(
            { CommandFailure(tr("\(path) is not JSON: \($0.text)"), hint: tr("correct the file")) },
            { () throws(Malformed) in try JSON(text) }
        )
        try self.init(json, path)
    }

    init(_ json: JSON, _ path: String) throws {
        let hint = tr("the file needs an array of objects with account, name and data; see badgectl wallet --help")
        guard let list = json.array ?? json["actions"]?.array, !list.isEmpty else {
            throw CommandFailure(tr("\(path) has no actions"), hint: hint)
        }
        actions = []
        for (index, entry) in list.enumerated() {
            guard let account = entry["account"]?.string, let name = entry["name"]?.string,
                let data = entry["data"], data.members != nil
            else { throw CommandFailure(tr("action \(index + 1) in \(path) is incomplete"), hint: hint) }
            actions.append(WalletAction(account: account, name: name, data: data, info: entry["info"]?.string))
        }
        account = json["account"]?.string
        permission = json["permission"]?.string
        info = json["info"]?.string
    }
}
