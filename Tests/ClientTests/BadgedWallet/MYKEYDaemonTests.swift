// SPDX-License-Identifier: GPL-3.0-or-later
import BadgedClient
import BadgedMYKEYWallet
import Dispatch
import FoundationEssentials
import Glibc
import ServerDoubles
import TestSupport
import Testing
import Text

@Suite("BadgedMYKEYWallet with badged, its virtual Keycard and a fake node", .timeLimit(.minutes(5)))
struct MYKEYDaemonTests {
    private static let words = "legal winner thank year wave sausage worth useful legal winner thank yellow"

    /// badged, the node of its configuration, and the server of the app.
    private struct Bench {
        let node: AntelopeNodeDouble
        let dapp: CallbackDouble
        let daemon: RunningDaemon

        init() async throws {
            node = try AntelopeNodeDouble()
            dapp = try CallbackDouble()
            node.change { $0.time = UInt32(time(nil)) }
            let folder = try TemporaryFolder()
            let chain = node.state.chain.map { $0 < 16 ? "0" + String($0, radix: 16) : String($0, radix: 16) }.joined()
            let settings = "[wallet]\nnode = \(node.address)\nchain_id = \(chain)\nhttp_callbacks = yes\n"
            try folder.write("badged.conf", Array(settings.utf8))
            daemon = try await RunningDaemon(
                ["--no-ble", "--config", folder.path + "/badged.conf"],
                in: folder,
                environment: ["STATE_DIRECTORY": folder.path]
            )
        }

        func wallet(agrees: Bool = true) throws -> MYKEYWallet {
            MYKEYWallet(
                socketPath: daemon.path,
                callbackQueue: DispatchQueue(label: "callbacks"),
                user: Signer(agrees: agrees),
                virtualCard: VirtualCardInsertion(
                    card: try JSON(Array(#"{"kind":"keycard","words":"\#(MYKEYDaemonTests.words)"}"#.utf8))
                )
            )
        }
    }

    private func simple(_ wallet: MYKEYWallet) {
        let request = InitSimpleRequest()
        request.dappName = "D"
        wallet.initWalletSimple(initSimpleData: request)
    }

    private func result(_ lines: Lines) async throws -> (String, JSON) {
        let line = await lines.next("end")
        let parts = line.split(separator: " ", maxSplits: 2)
        guard parts.count == 3 else { return (String(parts.last ?? ""), .null) }
        return (String(parts[1]), try JSON(Array(parts[2].utf8)))
    }

    private func transfer(_ amount: String, from: String = "") -> TransferRequest {
        let request = TransferRequest()
        (request.from, request.to, request.amount, request.symbol) = (from, "alice", amount, "EOS")
        return request
    }

    @Test("Every operation succeeds: sign, authorize, transfer, contract and SimpleWallet")
    func success() async throws {
        let bench = try await Bench()
        let (wallet, lines) = (try bench.wallet(), Lines())
        simple(wallet)
        let text = SignRequest()
        text.message = "hello"
        wallet.sign(signRequest: text, response: lines.response)
        let (end, signed) = try await result(lines)
        #expect(end == "success", "\(signed)")
        #expect(signed["sign"]?.string?.hasPrefix("SIG_K1_") == true)
        let key = try #require(signed["publicKey"]?.string)
        bench.node.change { state in
            state.accounts["bobbobbobbob"] = ["active": .init(keys: [key: 1])]
            state.tokens["eosio.token"]?["EOS"]?.balances["bobbobbobbob"] = 100_000
        }

        let app = InitRequest()
        (app.appKey, app.UUID, app.dappName) = ("key", UUID(), "D")
        wallet.initWallet(initData: app)
        let authorize = AuthorizeRequest()
        (authorize.userName, authorize.account, authorize.callbackUrl) = ("bob", "bobbobbobbob", bench.dapp.url)
        wallet.authorize(authorizeRequest: authorize, response: lines.response)
        let authorized = try await result(lines)
        #expect(authorized.0 == "success", "\(authorized)")
        #expect(bench.dapp.bodies.first?["account"] == .string("bobbobbobbob"))

        wallet.transfer(transferRequest: transfer("1.3100"), response: lines.response)
        let sent = try await result(lines)
        #expect(sent.0 == "success" && sent.1["txId"]?.string?.count == 64, "\(sent)")

        let action = TransferAction()
        (action.account, action.name) = ("eosio.token", WalletActionConstants.TRANSFER.rawValue)
        (action.data.from, action.data.to, action.data.quantity) = ("bobbobbobbob", "alice", "0.5000 EOS")
        let contract = ContractRequest()
        contract.actions = [action]
        wallet.contract(contractRequest: contract, response: lines.response)
        let called = try await result(lines)
        #expect(called.0 == "success", "\(called)")

        let param =
            #"{"protocol":"SimpleWallet","version":"1.0","action":"transfer","dappName":"D","from":"bobbobbobbob","to":"alice","#
            + #""amount":0.25,"contract":"eosio.token","symbol":"EOS","precision":4,"callback":"demo://done"}"#
        wallet.simpleWallet(param: param, response: lines.response)
        let paid = try await result(lines)
        #expect(paid.0 == "success", "\(paid)")
        let callback = try #require(paid.1["callback"]?.string)
        #expect(wallet.handleUrl(url: try #require(URL(string: callback))))
        #expect(bench.node.state.executed.count == 3)
        #expect(bench.node.state.tokens["eosio.token"]?["EOS"]?.balances["alice"] == 20_600)
    }

    @Test("Failures have their codes, and a user who does not agree cancels every operation")
    func failures() async throws {
        let bench = try await Bench()
        let lines = Lines()
        // No init.
        try bench.wallet().transfer(transferRequest: transfer("1.0000", from: "bobbobbobbob"), response: lines.response)
        #expect(try await result(lines).1["code"]?.int == ErrorCode.uninitialized.rawValue)
        let wallet = try bench.wallet()
        simple(wallet)
        wallet.transfer(transferRequest: transfer("much", from: "bobbobbobbob"), response: lines.response)
        #expect(try await result(lines).1["code"]?.int == ErrorCode.illegalParameter.rawValue)
        bench.node.change { state in
            state.accounts["bobbobbobbob"] = [
                "active": .init(keys: ["EOS6MRyAjQq8ud7hVNYcfnVPJqcVpscN5So8BhtHuGYqET5GDW5CV": 1])
            ]
            state.tokens["eosio.token"]?["EOS"]?.balances["bobbobbobbob"] = 100_000
        }
        wallet.transfer(transferRequest: transfer("1.0000", from: "bobbobbobbob"), response: lines.response)
        let foreign = try await result(lines)
        #expect(foreign.1["code"]?.int == ErrorCode.MYKEYAccountNotExist.rawValue, "\(foreign)")
        // Without a binding.
        let app = InitRequest()
        (app.appKey, app.UUID, app.dappName) = ("key", "user", "D")
        wallet.initWallet(initData: app)
        wallet.transfer(transferRequest: transfer("1.0000"), response: lines.response)
        let unbound = try await result(lines)
        #expect(unbound.1["code"]?.int == ErrorCode.unbound.rawValue, "\(unbound)")

        let refusing = try bench.wallet(agrees: false)
        simple(refusing)
        let text = SignRequest()
        text.message = "hello"
        refusing.sign(signRequest: text, response: lines.response)
        #expect(try await result(lines).0 == "cancelled")
        #expect(bench.node.state.pushed.isEmpty)
    }
}
