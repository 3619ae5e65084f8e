// SPDX-License-Identifier: GPL-3.0-or-later
import BadgedClient
import BadgedMYKEYWallet
import Dispatch
import FoundationEssentials
import TestSupport
import Testing
import Text

/// Agrees or not, and gives one PIN.
struct Signer: WalletUser {
    var agrees = true
    var isAutomatic = false

    func agree(to request: WalletRequest) async -> Bool { agrees }
    func answer(_ question: SecretQuestion) async -> SecretBox? { SecretBox(Secret("123456".utf8)) }
}

extension Lines {
    /// Records the end of an operation.
    var response: MYKEYResponse {
        MYKEYResponse { [self] in
            add("end success \($0)")
        } failure: { [self] in
            add("end failure \($0)")
        } cancelled: { [self] in
            add("end cancelled")
        }
    }
}

@Suite("BadgedMYKEYWallet with a scripted badged", .timeLimit(.minutes(5))) struct MYKEYWalletTests {
    private typealias Played = PlayedWallet

    private func wallet(_ peer: ScriptedPeer, agrees: Bool = true) -> MYKEYWallet {
        let wallet = MYKEYWallet(
            socketPath: peer.path,
            callbackQueue: DispatchQueue(label: "callbacks"),
            user: Signer(agrees: agrees)
        )
        let request = InitSimpleRequest()
        request.dappName = "D"
        request.scheme = "demoscheme"
        wallet.initWalletSimple(initSimpleData: request)
        return wallet
    }

    @Test("An app may call its own response")
    func response() {
        let lines = Lines()
        let response: MYKEYApiResponse = lines.response
        response.onSuccess("a")
        response.onError("b")
        #expect(lines.all == ["end success a", "end failure b"])
    }

    private func played(
        _ command: String,
        _ operation: String,
        code: Int = 1,
        _ more: String = ""
    ) throws -> ScriptedPeer {
        try ScriptedPeer { peer in
            peer.answer("WALLET_INIT", Played.ready())
            peer.command(command)
            peer.send(Played.operationStarted(operation))
            if code == 0 {
                peer.prompt(Played.request(1), "CANCEL")
            } else {
                peer.prompt(Played.request(1), "ACCEPT")
                peer.prompt(Played.enter("PIN", 2, left: 3), "SET_PIN")
            }
            peer.send(Played.result(operation, code, more))
            peer.hangUp()
        }
    }

    /// What each operation sends: the members of its command.
    private static let operations: [(String, String, @Sendable (MYKEYWallet, MYKEYResponse) -> Void, String)] = [
        (
            "WALLET_AUTHORIZE", "authorize",
            { wallet, response in
                let request = AuthorizeRequest()
                request.userName = "uchihamadara"
                request.account = "alice"
                request.info = "Test information"
                request.callBackUrl = "https://dappserver.xxx.url"
                wallet.authorize(authorizeRequest: request, response: response)
            },
            #"{"account":"alice","userName":"uchihamadara","info":"Test information","#
                + #""callbackUrl":"https://dappserver.xxx.url"}"#
        ),
        (
            "WALLET_SIGN", "sign",
            { wallet, response in
                let request = SignRequest()
                request.message = "text"
                wallet.sign(signRequest: request, response: response)
            }, #"{"message":"text"}"#
        ),
        (
            "WALLET_TRANSFER", "transfer",
            { wallet, response in
                let request = TransferRequest()
                request.from = "alice"
                request.to = "bob"
                request.amount = 0.02
                request.decimal = 4
                request.symbol = "BLACK"
                request.contractName = "mykeytoken12"
                request.memo = "m"
                request.orderId = "BH19004"
                wallet.transfer(transferRequest: request, response: response)
            },
            #"{"amount":"0.02","symbol":"BLACK","contractName":"mykeytoken12","from":"alice","to":"bob","memo":"m","#
                + #""decimal":4,"orderId":"BH19004"}"#
        ),
        (
            "WALLET_CONTRACT", "contract",
            { wallet, response in
                let data = TransferData()
                (data.from, data.to, data.quantity, data.memo) = ("alice", "bob", "1.3100 EOS", "m")
                let transfer = TransferAction()
                (transfer.account, transfer.name, transfer.info, transfer.data) = (
                    "eosio.token", WalletActionConstants.TRANSFER.rawValue, "i", data
                )
                let dictionary = ContractAction()
                (dictionary.account, dictionary.name) = ("eosio", "buyram")
                dictionary.data = ["payer": "alice", "bytes": 3] as [String: Any]
                let text = ContractAction()
                (text.account, text.name, text.data) = ("eosio", "buyram", #"{"payer":"alice"}"#)
                let request = ContractRequest()
                request.actions = [transfer, dictionary, text]
                request.account = "alice"
                wallet.contract(contractRequest: request, response: response)
            },
            #"{"account":"alice","actions":[{"account":"eosio.token","name":"transfer","info":"i","data":{"from":"alice","#
                + #""to":"bob","quantity":"1.3100 EOS","memo":"m"}},{"account":"eosio","name":"buyram","data":{"payer":"alice","#
                + #""bytes":3}},{"account":"eosio","name":"buyram","data":{"payer":"alice"}}]}"#
        ),
        (
            "WALLET_SIMPLEWALLET", "transfer",
            { wallet, response in
                wallet.simpleWallet(param: #"{"action":"transfer"}"#, account: "alice", response: response)
            }, #"{"param":"{\"action\":\"transfer\"}","account":"alice"}"#
        ),
    ]

    @Test("Every operation sends its members, and calls success with the result", arguments: 0..<5)
    func success(index: Int) async throws {
        let (command, operation, start, members) = Self.operations[index]
        let peer = try played(command, operation, #","txId":"ab","sign":"SIG_K1_x""#)
        let lines = Lines()
        start(wallet(peer), lines.response)
        let end = await lines.next("end")
        let result = try JSON(Array(end.dropFirst("end success ".count).utf8))
        #expect(result["code"]?.int == 1 && result["txId"] == .string("ab") && result["sign"] == .string("SIG_K1_x"))
        #expect(result["account"] == .string("alice") && result["publicKey"] == .string(Played.publicKey))
        let received = await peer.received()
        let sent = try JSON(Array(try #require(received.first { $0.contains(command) }).utf8))
        let own = (sent.members ?? []).filter { !["cmd", "request"].contains($0.key) }
        #expect(JSON.object(own) == (try JSON(Array(members.utf8))))
        #expect(received.filter { $0.contains("SET_PIN") }.count == 1)
    }

    @Test("Every operation calls cancelled after a user who does not agree", arguments: 0..<5)
    func cancelled(index: Int) async throws {
        let (command, operation, start, _) = Self.operations[index]
        let peer = try played(command, operation, code: 0)
        let lines = Lines()
        start(wallet(peer, agrees: false), lines.response)
        #expect(await lines.next("end") == "end cancelled")
        #expect(await !peer.commands().contains("SET_PIN"))
    }

    @Test("Every operation calls failure with the code and the message", arguments: 0..<5, [2, 10003, 10005])
    func failure(index: Int, code: Int) async throws {
        let (command, operation, start, _) = Self.operations[index]
        let lines = Lines()
        let peer = try played(command, operation, code: code, #","txId":"ab""#)
        start(wallet(peer), lines.response)
        let end = await lines.next("end")
        let result = try JSON(Array(end.dropFirst("end failure ".count).utf8))
        #expect(result["code"]?.int == code && result["message"] == .string("Message \(code)."))
        #expect(ErrorCode(rawValue: code) != nil)
        #expect(await peer.commands().contains(command))
    }

    /// A badged that leaves after these questions of an operation.
    private func leaving(_ command: String, _ operation: String, after questions: [String]) throws -> ScriptedPeer {
        try ScriptedPeer { peer in
            peer.answer("WALLET_INIT", Played.ready())
            peer.command(command)
            peer.send(Played.operationStarted(operation))
            for question in questions { peer.prompt(question, "ACCEPT") }
            peer.hangUp()
        }
    }

    @Test("When badged leaves after the consent to a transaction, the outcome is not known", arguments: [2, 3, 4])
    func unknownOutcome(index: Int) async throws {
        let (command, operation, start, _) = Self.operations[index]
        let peer = try leaving(command, operation, after: [Played.request(1)])
        let lines = Lines()
        start(wallet(peer), lines.response)
        let end = await lines.next("end")
        #expect(end.hasPrefix(#"end failure {"code":10005,"message":"badged has closed the connection; it is not"#))
    }

    @Test("When badged leaves before the consent, or after that to sign a text, nothing was sent", arguments: [1, 2])
    func nothingSent(index: Int) async throws {
        let (command, operation, start, _) = Self.operations[index]
        let peer = try leaving(command, operation, after: operation == "sign" ? [Played.signRequest(1)] : [])
        let lines = Lines()
        start(wallet(peer), lines.response)
        #expect(await lines.next("end").hasPrefix(#"end failure {"code":2,"message":"badged has closed"#))
    }

    @Test("The init is sent before each operation, and its members are those of the request")
    func initData() async throws {
        let peer = try played("WALLET_SIGN", "sign")
        let wallet = wallet(peer)
        #expect(wallet.scheme == "demoscheme" && wallet.protocol == "MYKEYSimple")
        let identifier = UUID()
        let request = InitRequest()
        (request.appKey, request.dappName, request.dappIcon) = ("9mDxSbyR", "SDK-Demo", "https://i.example/x.png")
        request.UUID = identifier
        wallet.initWallet(initData: request)
        #expect(wallet.appKey == "9mDxSbyR" && wallet.uuid == identifier.uuidString && wallet.protocol == "MYKEY")
        let lines = Lines()
        wallet.sign(signRequest: SignRequest(), response: lines.response)
        #expect(await lines.next("end").hasPrefix("end success"))
        let sent = try JSON(Array(try #require(await peer.received().first).utf8))
        #expect(sent["cmd"] == .string("WALLET_INIT") && sent["mode"] == .string("MYKEY"))
        #expect(
            sent["UUID"] == .string(identifier.uuidString) && sent["dappIcon"] == .string("https://i.example/x.png")
        )
    }

    @Test("A user who is no person gives the PIN as an automatic answer")
    func automatic() async throws {
        let peer = try played("WALLET_SIGN", "sign")
        let wallet = wallet(peer)
        wallet.user = Signer(isAutomatic: true)
        let lines = Lines()
        wallet.sign(signRequest: SignRequest(), response: lines.response)
        #expect(await lines.next("end").hasPrefix("end success"))
        let received = await peer.received()
        let sent = try JSON(Array(try #require(received.first { $0.contains("SET_PIN") }).utf8))
        #expect(sent["automatic"] == .bool(true))
    }

    @Test("A refused init, wrong arguments and a missing badged are failures with their codes")
    func refusals() async throws {
        let peer = try ScriptedPeer { peer in
            peer.answer("WALLET_INIT", #"{"msg":"WALLET_READY","error":"dappName is missing"}"#)
        }
        let lines = Lines()
        wallet(peer).sign(signRequest: SignRequest(), response: lines.response)
        #expect(await lines.next("end") == #"end failure {"code":10012,"message":"dappName is missing"}"#)
        let alone = MYKEYWallet(socketPath: "/nowhere/x.sock", callbackQueue: DispatchQueue(label: "q"), user: Signer())
        alone.sign(signRequest: SignRequest(), response: lines.response)
        #expect(await lines.next("end").hasPrefix(#"end failure {"code":10001,"message":"badged is not running"#))
        let contract = ContractRequest()
        let action = ContractAction()
        (action.name, action.data) = ("buyram", [1, 2])
        contract.actions = [action]
        alone.contract(contractRequest: contract, response: lines.response)
        #expect(await lines.next("end").hasPrefix(#"end failure {"code":10012,"message":"the data of buyram"#))
        let transfer = TransferRequest()
        transfer.decimal = "four"
        // Without a closure for cancelled.
        let response = MYKEYApiResponse(success: nil) { lines.add("end \($0)") }
        alone.transfer(transferRequest: transfer, response: response)
        #expect(await lines.next("end").hasPrefix(#"end {"code":10012"#))
    }

    @Test("handleUrl takes the callback of an ended operation once, and URLs of the app; a URL completes no operation")
    func handleUrl() async throws {
        let peer = try played("WALLET_SIMPLEWALLET", "transfer", #","callback":"other://done?result=1&txID=ab""#)
        let wallet = wallet(peer)
        let callback = try #require(URL(string: "other://done?result=1&txID=ab"))
        #expect(!wallet.handleUrl(url: callback))
        let lines = Lines()
        wallet.simpleWallet(param: "{}", response: lines.response)
        #expect(await lines.next("end").contains(#""callback":"other://done?result=1&txID=ab""#))
        #expect(wallet.handleUrl(url: callback))
        #expect(!wallet.handleUrl(url: callback))
        #expect(wallet.handleUrl(url: try #require(URL(string: "DemoScheme://x?result=1"))))
        #expect(!wallet.handleUrl(url: try #require(URL(string: "https://x.example/"))))
        #expect(lines.all.count == 1)
    }

    @Test(
        "A number is sent with decimal digits, without an exponent",
        arguments: [
            (0.02, "0.02"), (4, "4"), (1.31, "1.31"), (0.000001, "0.000001"), (1e-10, "0.0000000001"),
            (12e20, "1200000000000000000000"), (1.5e17, "150000000000000000"), (-0.5, "-0.5"), (.infinity, ""),
            (1.25e-7, "0.000000125"),
        ] as [(Double, String)]
    )
    func numbers(number: Double, text: String) { #expect(number.decimalText == text) }
}
