// SPDX-License-Identifier: GPL-3.0-or-later
import Antelope
import Concurrency
import Crypto
import HDWallet
import Host
import Keycard
import ReadersVirtual
import Server
import ServerDoubles
import Synchronization
import TestSupport
import Testing
import Text
import VirtualKeycard

@Suite("MYKEY operations", .timeLimit(.minutes(10)))
@Loop struct OperationTests {
    private let bench: OperationBench

    init() async throws { bench = try await OperationBench() }

    /// The key that signed a text or a hash, from the text of a signature.
    private func signer(_ text: String?, of digest: [UInt8]) throws -> String? {
        let text = try #require(text)
        let parsed = try KeyText(text, .signature)
        let signature = try #require(CompactSignature(parsed))
        #expect(signature.isCanonical)
        return try signature.recover(digest).map { KeyText($0).description }
    }

    private func digest(_ text: String) throws -> [UInt8] { try DigestAlgorithm.sha256.hash(Array(text.utf8)) }

    private func key() throws -> String { KeyText(try OperationBench.key()).description }

    @Test("SIGN shows the text, signs it and posts it", arguments: generations)
    func sign(version: String) async throws {
        let user = try await bench.user(with: OperationBench.card(version))
        let end = try await user.run(
            #"{"cmd":"WALLET_SIGN","message":"hällo","info":"log in","callbackUrl":"\#(bench.dapp.url)"}"#
        )
        #expect(end.resultCode == 1, "\(end)")
        #expect(
            user.names == ["WALLET_STARTED", "WALLET_REQUEST", "ENTER_PIN", "PIN_VALIDATED", "WALLET_RESULT"]
        )
        let shown = try #require(user.last("WALLET_REQUEST"))
        #expect(shown["operation"] == .string("sign"))
        #expect(shown["text"] == .string("hällo"))
        #expect(shown["info"] == .string("log in"))
        #expect(shown["callback"] == .string(bench.dapp.url))
        #expect(shown["dapp"] == #"{"name":"Shop","icon":null}"#)
        #expect(shown["chainId"] == .null)
        #expect(shown["digest"] == .string(Hex.encode(try digest("hällo"))))
        #expect(try signer(end["sign"]?.string, of: digest("hällo")) == key())
        #expect(end["publicKey"] == .string(try key()))
        let body = try #require(bench.dapp.bodies.first)
        #expect(body.members?.map(\.key) == ["protocol", "version", "message", "sign", "ref", "account"])
        #expect(body["protocol"] == .string("MYKEYSimple"))
        #expect(body["message"] == .string("hällo"))
        #expect(body["sign"] == end["sign"])
        #expect(bench.node.state.questions.isEmpty)
    }

    @Test("TRANSFER shows what is in the packed bytes, and the chain executes it", arguments: generations)
    func transfer(version: String) async throws {
        let user = try await bench.user(with: OperationBench.card(version))
        let end = try await user.run(OperationBench.transfer(#","callbackUrl":"\#(bench.dapp.url)","orderId":"o1""#))
        #expect(end.resultCode == 1, "\(end)")
        let shown = try #require(user.last("WALLET_REQUEST"))
        #expect(
            shown["actions"]
                == #"[{"account":"eosio.token","name":"transfer","authorization":[{"actor":"bobbobbobbob","permission":"active"}],"data":{"from":"bobbobbobbob","to":"alice","quantity":"1.5000 EOS","memo":"hello"},"info":null}]"#
        )
        #expect(shown["chainId"] == .string(Hex.encode(bench.node.state.chain)))
        #expect(shown["expiration"] == .string("2026-11-22T17:31:00"))
        let packed = try #require(bench.node.state.pushed.first)
        let chain = try #require(ChainID(bench.node.state.chain))
        #expect(shown["digest"] == .string(Hex.encode(try Transaction.digest(of: packed, on: chain))))
        let id = try Transaction.id(of: packed)
        #expect(end["txId"] == .string(Hex.encode(id)))
        #expect(end["account"] == .string(OperationBench.account))
        #expect(end["callbackError"] == nil)
        #expect(bench.node.state.executed == [id])
        #expect(bench.node.state.tokens["eosio.token"]?["EOS"]?.balances["alice"] == 15_000)
        let body = try #require(bench.dapp.bodies.first)
        #expect(body.members?.map(\.key) == ["protocol", "version", "tx_id", "ref", "account"])
        #expect(body["tx_id"] == end["txId"])
    }

    @Test("CONTRACT packs each action by the ABI of its contract")
    func contract() async throws {
        let user = try await bench.user()
        let end = try await user.run(
            #"{"cmd":"WALLET_CONTRACT","account":"bobbobbobbob","actions":["#
                + #"{"account":"eosio","name":"buyram","info":"buy","data":{"payer":"bobbobbobbob","receiver":"alice","quant":"1.0000 EOS"}},"#
                + #"{"account":"eosio.token","name":"transfer","data":{"from":"bobbobbobbob","to":"carol","quantity":"0.0001 EOS","memo":""}}]}"#
        )
        #expect(end.resultCode == 1, "\(end)")
        let actions = try #require(user.last("WALLET_REQUEST")?["actions"]?.array)
        #expect(actions.map { $0["name"] } == [.string("buyram"), .string("transfer")])
        #expect(actions.first?["info"] == .string("buy"))
        #expect(bench.node.state.executed.count == 1)
        #expect(bench.node.state.pushed.count == 1)
    }

    @Test("AUTHORIZE binds the card to appKey and UUID; then TRANSFER and SIGN act for the account")
    func authorize() async throws {
        let bench = try await OperationBench(isSecure: true)
        let user = try await bench.user(OperationUser.mykey())
        let unbound = try await user.run(OperationBench.transfer())
        #expect(unbound.resultCode == 10007 && user.names == ["WALLET_RESULT"])

        let end = try await user.run(OperationBench.authorize(#","callbackUrl":"\#(bench.dapp.url)""#))
        #expect(end.resultCode == 1, "\(end)")
        let text = "\(OperationBench.now)\(OperationBench.account)u-1badged"
        #expect(user.last("WALLET_REQUEST")?["text"] == .string(text))
        #expect(user.last("WALLET_REQUEST")?["userName"] == .string("bob"))
        let body = try #require(bench.dapp.bodies.first)
        #expect(
            body.members?.map(\.key) == [
                "protocol", "version", "dapp_key", "uuID", "public_key", "sign", "ref", "timestamp", "account",
            ]
        )
        #expect(body["dapp_key"] == .string("k-1"))
        #expect(body["public_key"]?.string == KeyText(try OperationBench.key()).legacy)
        #expect(try signer(body["sign"]?.string, of: digest(text)) == key())

        // The binding is in the store: another connection has it.
        let other = try await OperationUser(bench, nil)
        let ready = try #require(await other.client.ask(OperationUser.mykey(), "WALLET_READY"))
        #expect(ready["account"] == .string(OperationBench.account))
        #expect(ready["publicKey"] == .string(try key()))
        #expect(ready["node"] == .bool(true))
        try await bench.insertIfAway()
        let transfer =
            #"{"cmd":"WALLET_TRANSFER","to":"alice","amount":2,"symbol":"EOS","contractName":"eosio.token","decimal":4}"#
        #expect(try await other.run(transfer).resultCode == 1)
        #expect(bench.node.state.tokens["eosio.token"]?["EOS"]?.balances["alice"] == 20_000)
        try await bench.insertIfAway()
        #expect(
            try await other.run(#"{"cmd":"WALLET_SIGN","message":"x"}"#)["account"] == .string(OperationBench.account)
        )

        // A second AUTHORIZE, and another UUID with the same card.
        try await bench.insertIfAway()
        #expect(try await other.run(OperationBench.authorize()).resultCode == 10006)
        #expect(!other.names.contains("ENTER_PIN"))
        let second = try await OperationUser(bench, OperationUser.mykey("u-2"))
        try await bench.insertIfAway()
        #expect(try await second.run(OperationBench.authorize()).resultCode == 10009)
        // The binding does not apply to another dapp.
        let stranger = try await OperationUser(bench, OperationUser.mykey("u-2", appKey: "k-2"))
        try await bench.insertIfAway()
        #expect(try await stranger.run(OperationBench.authorize()).resultCode == 1)
        // Another account than the bound one.
        #expect(
            try await other.run(
                OperationBench.transfer().replacing(#""from":"bobbobbobbob""#, with: #""from":"alice""#)
            ).resultCode == 10012
        )
        #expect(other.names == ["WALLET_RESULT"])
        #expect(
            await other.client.ask(#"{"cmd":"WALLET_UNBIND"}"#, "WALLET_UNBOUND")
                == #"{"msg":"WALLET_UNBOUND","account":"bobbobbobbob"}"#
        )
        #expect(
            await other.client.ask(#"{"cmd":"WALLET_UNBIND"}"#, "WALLET_UNBOUND")
                == #"{"msg":"WALLET_UNBOUND","account":null}"#
        )
        #expect(try await other.run(transfer).resultCode == 10007)
    }

    @Test("another card than the bound one is refused before its PIN is asked for")
    func otherCard() async throws {
        let user = try await bench.user(OperationUser.mykey())
        #expect(try await user.run(OperationBench.authorize()).resultCode == 1)
        try await bench.insert(OperationBench.card(words: OperationBench.otherWords))
        let end = try await user.run(OperationBench.transfer())
        #expect(end.resultCode == 10010)
        #expect(!user.names.contains("ENTER_PIN"))
        #expect(try await user.run(OperationBench.authorize()).resultCode == 10010)
        #expect(bench.node.state.pushed.isEmpty)
    }

    @Test(
        "a binding that is removed while an operation waits signs nothing",
        arguments: ["WALLET_REQUEST", "ENTER_PIN"],
        [true, false]
    )
    func unboundMeanwhile(prompt: String, isTransfer: Bool) async throws {
        let command = isTransfer ? OperationBench.transfer() : #"{"cmd":"WALLET_SIGN","message":"a"}"#
        let user = try await bench.user(OperationUser.mykey())
        #expect(try await user.run(OperationBench.authorize()).resultCode == 1)
        try await bench.insertIfAway()
        let other = try await OperationUser(bench, OperationUser.mykey())
        user.hook = (
            prompt,
            { _ = try #require(await other.client.ask(#"{"cmd":"WALLET_UNBIND"}"#, "WALLET_UNBOUND")) }
        )
        let end = try await user.run(command)
        #expect(end.resultCode == 10007 && end["sign"]?.string == nil, "\(end)")
        #expect(user.names.contains("ENTER_PIN") == (prompt == "ENTER_PIN"))
        #expect(bench.node.state.pushed.isEmpty)
        withExtendedLifetime(other) {}
    }

    @Test("a bound card with which this computer is not paired any more is named")
    func notPaired() async throws {
        let user = try await bench.user(with: OperationBench.card("3.1"), OperationUser.mykey())
        #expect(try await user.run(OperationBench.authorize()).resultCode == 1)
        try await bench.insertIfAway()
        await user.client.send(#"{"cmd":"RUN_WALLET","workflow":"UNPAIR"}"#)
        _ = try #require(await user.client.next("ENTER_PIN"))
        _ = try #require(await user.client.ask(#"{"cmd":"SET_PIN","value":"123456"}"#, "FLOW_COMPLETE"))
        try await bench.insertIfAway()
        #expect(try await user.run(OperationBench.transfer()).resultCode == 10008)
        #expect(bench.node.state.pushed.isEmpty)
    }

    @Test("a permission without the key, or with too little weight for it, is refused")
    func missingKey() async throws {
        let user = try await bench.user(with: OperationBench.card(words: OperationBench.otherWords))
        #expect(try await user.run(OperationBench.transfer()).resultCode == 10011)
        try await bench.insert()
        let weak = try await user.run(OperationBench.transfer(#","permission":"owner""#))
        #expect(weak.resultCode == 10011)
        // No single key can fulfil it, so nothing is asked.
        #expect(!user.names.contains("WALLET_REQUEST") && !user.names.contains("ENTER_PIN"), "\(user.names)")
        try await bench.insertIfAway()
        #expect(try await user.run(OperationBench.authorize(#","permission":"posting""#)).resultCode == 10011)
        #expect(!user.names.contains("WALLET_REQUEST") && !user.names.contains("ENTER_PIN"), "\(user.names)")
        #expect(bench.node.state.pushed.isEmpty)
        #expect(try await bench.counter("retryCounter") == 3)
    }

    @Test("CANCEL at the request ends with code 0, and the card gets no command")
    func cancel() async throws {
        let user = try await bench.user()
        user.answers["WALLET_REQUEST"] = #"{"cmd":"CANCEL"}"#
        let before = try await bench.card().apdus
        #expect(try await user.run(OperationBench.transfer()).resultCode == 0)
        #expect(try await bench.card().apdus == before)
        user.answers["WALLET_REQUEST"] = #"{"cmd":"ACCEPT"}"#
        user.answers["ENTER_PIN"] = #"{"cmd":"CANCEL"}"#
        #expect(try await user.run(OperationBench.transfer()).resultCode == 0)
        #expect(bench.node.state.pushed.isEmpty)
    }

    @Test("a card whose signatures no node accepts signs 32 times and no more", arguments: generations)
    func refusedSignatures(version: String) async throws {
        let count = Mutex(0)
        var card = VirtualKeycardDescription()
        card.version = try #require(KeycardVersion.allCases.first { $0.description == version })
        card.words = SecretBox(Secret(OperationBench.words.utf8))
        let sign = card.sources.sign
        card.sources.sign = { (hash, key) throws(CryptoError) in
            count.withLock { $0 += 1 }
            while true {
                let signature = try sign(hash, key)
                // DER begins r with a zero if its first bit is set. Such a signature is not canonical.
                if signature[3] == 33 { return signature }
            }
        }
        try await bench.insert(card)
        let user = try await OperationUser(bench)
        count.withLock { $0 = 0 }
        let end = try await user.run(OperationBench.transfer())
        #expect(end.resultCode == 10001)
        #expect(end["message"]?.string?.contains("32 tries") == true, "\(end)")
        // 4.0 signs also when it shows its certificate.
        #expect(count.withLock { $0 } - (version == "4.0" ? 1 : 0) == 32)
        #expect(bench.node.state.pushed.isEmpty)
        #expect(try await bench.counter("retryCounter") == 3)
    }

    @Test("CANCEL with only a card without the applet in the reader ends with code 10002")
    func otherApplet() async throws {
        let user = try await bench.user(with: #"{"kind":"eid"}"#)
        user.answers["INSERT_CARD"] = #"{"cmd":"CANCEL"}"#
        #expect(try await user.run(OperationBench.transfer()).resultCode == 10002)
    }

    @Test("a blocked card, a card without keys and a missing WALLET_INIT have their codes", arguments: generations)
    func cards(version: String) async throws {
        let user = try await bench.user(with: OperationBench.card(version, #","retryCounter":0,"pukCounter":0"#))
        #expect(try await user.run(OperationBench.transfer()).resultCode == 10003)
        try await bench.insert(#"{"kind":"keycard","version":"\#(version)"}"#)
        #expect(try await user.run(OperationBench.transfer()).resultCode == 10004)
        try await bench.insert(#"{"kind":"keycard","version":"\#(version)","initialised":false}"#)
        #expect(try await user.run(OperationBench.transfer()).resultCode == 10004)
        let other = try await OperationUser(bench, nil)
        for command in ["TRANSFER", "AUTHORIZE", "SIGN", "CONTRACT"] {
            let refused = try await other.run(#"{"cmd":"WALLET_\#(command)","request":5}"#)
            #expect(refused.resultCode == 10004)
            #expect(refused["request"] == .number("5"))
        }
    }

    @Test("after a wrong PIN the right one goes on, and a blocked PIN asks for the PUK", arguments: generations)
    func pin(version: String) async throws {
        let user = try await bench.user(with: OperationBench.card(version, #","retryCounter":1"#))
        user.answers["ENTER_PIN"] = #"{"cmd":"SET_PIN","value":"000000"}"#
        #expect(try await user.run(OperationBench.transfer()).resultCode == 1)
        #expect(
            user.names == [
                "WALLET_STARTED", "WALLET_REQUEST", "ENTER_PIN", "INVALID_PIN", "ENTER_PUK", "ENTER_NEW_PIN",
                "PIN_VALIDATED", "WALLET_RESULT",
            ]
        )
    }

    @Test(
        "a PUK that is not entered in time: code 10003, whether the PIN was blocked before or is now",
        arguments: generations,
        [0, 1]
    )
    func unansweredPUK(version: String, tries: Int) async throws {
        let user = try await bench.user(with: OperationBench.card(version, #","retryCounter":\#(tries)"#))
        user.answers["ENTER_PIN"] = #"{"cmd":"SET_PIN","value":"000000"}"#
        user.answers["ENTER_PUK"] = nil
        // The next prompt has no time.
        user.hook = (tries == 0 ? "WALLET_REQUEST" : "ENTER_PIN", { bench.server.server.limits.promptTimeout = .zero })
        let end = try await user.run(OperationBench.transfer())
        #expect(end.resultCode == 10003, "\(end)")
        #expect(user.names.suffix(2) == ["ENTER_PUK", "WALLET_RESULT"])
        #expect(try await bench.counter("pukCounter") == 5)
        #expect(!bench.server.isLent())
    }

    @Test("a balance that is too small is found before anything is shown, and at the node")
    func balance() async throws {
        let user = try await bench.user()
        let early = try await user.run(OperationBench.transfer().replacing("\"1.5\"", with: "\"10.0001\""))
        #expect(early.resultCode == 10013)
        #expect(!user.names.contains("WALLET_REQUEST"))
        user.hook = ("ENTER_PIN", { bench.node.change { $0.tokens["eosio.token"]?["EOS"]?.balances = [:] } })
        #expect(try await user.run(OperationBench.transfer()).resultCode == 10013)
        #expect(bench.node.state.executed.isEmpty)
    }

    private static let badFields = [
        transferWith(#""amount":"1.50001""#), transferWith(#""amount":"-1""#), transferWith(#""amount":"0""#),
        transferWith(#""amount":"1e3""#), transferWith(#""amount":true"#), transferWith(#""amount":null"#),
        transferWith(#""to":"Alice""#), transferWith(#""to":"""#), transferWith(#""to":7"#),
        transferWith(#""symbol":"eos""#), transferWith(#""symbol":"TOOLONGS""#), transferWith(#""decimal":19"#),
        transferWith(#""decimal":"4.0""#), transferWith(#""contractName":"no token!""#),
        transferWith(#""memo":"\#(String(repeating: "x", count: 257))""#), transferWith(#""callbackUrl":"ftp://x""#),
        transferWith(#""callbackUrl":"http://example.org/""#), transferWith(#""callbackUrl":7"#),
        transferWith(#""permission":"UPPER""#), transferWith(#""reader":7"#),
        // Known only to the node: the precision, the token, the contract.
        transferWith(#""decimal":3"#), transferWith(#""decimal":null"#), transferWith(#""symbol":"WAX""#),
        transferWith(#""contractName":"missing""#), transferWith(#""from":"nobody""#),
        #"{"cmd":"WALLET_SIGN"}"#, #"{"cmd":"WALLET_SIGN","message":""}"#, #"{"cmd":"WALLET_SIGN","message":7}"#,
        #"{"cmd":"WALLET_AUTHORIZE"}"#, #"{"cmd":"WALLET_AUTHORIZE","account":"nobody"}"#,
        contractWith("[]"), contractWith("7"), contractWith("[7]"), contractWith(#"[{"account":"eosio"}]"#),
        contractWith(#"[{"account":"eosio","name":"buyram","data":7}]"#),
        contractWith(#"[{"account":"eosio","name":"missing","data":{}}]"#),
        contractWith(
            #"[{"account":"eosio","name":"buyram","data":{"payer":"bobbobbobbob","receiver":"alice","quant":"1 EOS","more":1}}]"#
        ),
        contractWith(#"[{"account":"eosio","name":"buyram","data":{"payer":"bobbobbobbob","receiver":"alice"}}]"#),
        contractWith(
            #"[{"account":"eosio.token","name":"transfer","data":{"from":"bobbobbobbob","to":"alice","quantity":"1.31 EOS","memo":""}}]"#
        ),
        #"{"cmd":"WALLET_SIMPLEWALLET"}"#, #"{"cmd":"WALLET_SIMPLEWALLET","param":7}"#,
        #"{"cmd":"WALLET_SIMPLEWALLET","param":"{"}"#, #"{"cmd":"WALLET_SIMPLEWALLET","param":{"action":"vote"}}"#,
        #"{"cmd":"WALLET_SIMPLEWALLET","param":{"action":"login","protocol":"Other"}}"#,
        #"{"cmd":"WALLET_SIMPLEWALLET","account":"bobbobbobbob","param":{"action":"login","uuID":"1"}}"#,
        #"{"cmd":"WALLET_SIMPLEWALLET","param":{"action":"sign","message":"x","expired":1}}"#,
        #"{"cmd":"WALLET_SIMPLEWALLET","param":{"action":"transfer","to":"alice","amount":1,"contract":"eosio.token","symbol":"EOS"}}"#,
        #"{"cmd":"WALLET_SIMPLEWALLET","param":"simplewallet://eos.io?param=%7"}"#,
    ]

    nonisolated private static func transferWith(_ member: String) -> String {
        #"{"cmd":"WALLET_TRANSFER","from":"bobbobbobbob","to":"alice","amount":"1.5","symbol":"EOS","contractName":"eosio.token","decimal":4,\#(member)}"#
    }

    nonisolated private static func contractWith(_ actions: String) -> String {
        #"{"cmd":"WALLET_CONTRACT","account":"bobbobbobbob","actions":\#(actions)}"#
    }

    @Test("a bad field is refused with code 10012, and nothing is shown or signed")
    func fields() async throws {
        let user = try await bench.user()
        for command in Self.badFields {
            let end = try await user.run(command)
            #expect(end.resultCode == 10012, "\(command.prefix(200)) \(end)")
            #expect(!user.names.contains("WALLET_REQUEST"), "\(command.prefix(200))")
        }
        #expect(bench.node.state.pushed.isEmpty)
    }

    @Test("the text of a bad field says what is wrong with it")
    func fieldTexts() async throws {
        let user = try await bench.user()
        let actions = "actions must be a list of 1 to 64 values, each an object with account, name and the object data"
        for (command, text) in [
            (Self.transferWith(#""amount":"99999999999999999999999""#), "amount: the amount is too large"),
            (Self.transferWith(#""amount":"1e3""#), "amount: '1e3' is not a decimal number"),
            (Self.contractWith("[{}]"), actions), (Self.contractWith("[]"), actions),
        ] {
            #expect(try await user.run(command)["message"]?.string == text)
        }
    }

    @Test("an ABI that is wrong or too large is refused with code 10012")
    func badABI() async throws {
        let user = try await OperationUser(bench)
        for abi in [[], [0xFF], [UInt8](repeating: 0, count: 600_000)] {
            bench.node.change { $0.abis["eosio.token"] = abi }
            let end = try await user.run(OperationBench.transfer())
            #expect(end.resultCode == 10012)
            // The node is not to blame for the ABI of a contract.
            let message = try #require(end["message"]?.string)
            #expect(message.hasPrefix("contract eosio.token: ") && !message.contains("node"), "\(message)")
        }
        bench.node.change { $0.faults["get_raw_abi"] = .huge }
        #expect(try await user.run(OperationBench.transfer()).resultCode == 2)
        #expect(!user.names.contains("WALLET_REQUEST"))
    }

    @Test("without a node only SIGN works; a node of another chain is refused")
    func nodes() async throws {
        let without = try await OperationBench(hasNode: false)
        try await without.insert()
        let user = try await OperationUser(without)
        for command in [OperationBench.transfer(), OperationBench.authorize()] {
            let end = try await user.run(command)
            #expect(end.resultCode == 2 && end["setting"]?.string == "[wallet] node", "\(end)")
        }
        #expect(try await user.run(#"{"cmd":"WALLET_SIGN","message":"x"}"#).resultCode == 1)

        let bench = try await OperationBench()
        bench.node.change { $0.chain = [UInt8](repeating: 5, count: 32) }
        let other = try await OperationUser(bench)
        for command in [OperationBench.transfer(), OperationBench.authorize()] {
            let end = try await other.run(command)
            #expect(end.resultCode == 2)
            #expect(end["message"]?.string?.contains("belongs to the chain 0505") == true)
            #expect(!other.names.contains("WALLET_REQUEST"))
        }
    }

    @Test("a transaction that became too old is shown again, and only the new one is signed")
    func age() async throws {
        let user = try await bench.user()
        user.hook = (
            "ENTER_PIN",
            {
                bench.clock.advance(by: .seconds(300))
                bench.node.change { $0.time += 300 }
            }
        )
        #expect(try await user.run(OperationBench.transfer()).resultCode == 1)
        let shown = user.heard.filter { $0["msg"] == .string("WALLET_REQUEST") }
        #expect(shown.count == 2)
        #expect(shown.first?["error"] == nil)
        #expect(shown.last?["error"]?.string?.contains("too old") == true)
        #expect(shown.first?["digest"] != shown.last?["digest"])
        #expect(shown.first?["actions"] == shown.last?["actions"])
        let packed = try #require(bench.node.state.pushed.first)
        let chain = try #require(ChainID(bench.node.state.chain))
        #expect(shown.last?["digest"] == .string(Hex.encode(try Transaction.digest(of: packed, on: chain))))
        #expect(bench.node.state.executed.count == 1)
    }

    @Test("a card that leaves at the second question brings no signature of what was not accepted")
    func leavesAtSecondQuestion() async throws {
        let user = try await bench.user()
        user.hook = (
            "ENTER_PIN",
            {
                bench.clock.advance(by: .seconds(300))
                bench.node.change { $0.time += 300 }
                user.answers["WALLET_REQUEST"] = nil
                user.hook = (
                    "WALLET_REQUEST",
                    {
                        await bench.server.withdraw()
                        user.hook = ("ENTER_PIN", { user.answers["WALLET_REQUEST"] = #"{"cmd":"ACCEPT"}"# })
                    }
                )
            }
        )
        #expect(try await user.run(OperationBench.transfer()).resultCode == 1)
        let shown = user.heard.filter { $0["msg"] == .string("WALLET_REQUEST") }
        #expect(shown.count == 3)
        #expect(shown.last?["error"]?.string?.contains("too old") == true)
        let packed = try #require(bench.node.state.pushed.first)
        let chain = try #require(ChainID(bench.node.state.chain))
        #expect(shown.last?["digest"] == .string(Hex.encode(try Transaction.digest(of: packed, on: chain))))
    }

    @Test("ACCEPT with the number of another prompt, or twice, is refused")
    func accept() async throws {
        let user = try await OperationUser(bench)
        await user.client.send(#"{"cmd":"WALLET_SIGN","message":"x"}"#)
        let number = try #require(await user.client.next("WALLET_REQUEST")?["question"]?.int)
        #expect(await user.client.ask(#"{"cmd":"ACCEPT","question":\#(number + 1)}"#, "BAD_STATE") != nil)
        #expect(await user.client.ask(#"{"cmd":"WALLET_SIGN","message":"y"}"#, "BAD_STATE") != nil)
        #expect(
            await user.client.ask(#"{"cmd":"WALLET_INIT","mode":"MYKEYSimple","dappName":"x"}"#, "BAD_STATE") != nil
        )
        _ = try #require(await user.client.ask(#"{"cmd":"ACCEPT","question":\#(number)}"#, "INSERT_CARD"))
        #expect(await user.client.ask(#"{"cmd":"ACCEPT"}"#, "BAD_STATE") != nil)
        _ = try #require(await user.client.ask(#"{"cmd":"CANCEL"}"#, "WALLET_RESULT"))
    }

    @Test(
        "a wrong WALLET_INIT changes nothing",
        arguments: [
            "{}", #"{"mode":"OTHER","dappName":"x"}"#, #"{"mode":"MYKEY","dappName":"x"}"#, #"{"mode":"MYKEYSimple"}"#,
            #"{"mode":"MYKEY","appKey":"","UUID":"u","dappName":"x"}"#, #"{"mode":7,"dappName":"x"}"#,
            #"{"mode":"MYKEYSimple","dappName":"x","disableInstall":"no"}"#,
            #"{"mode":"MYKEYSimple","dappName":"\#(String(repeating: "x", count: 256))"}"#,
        ]
    )
    func badInit(members: String) async throws {
        let user = try await OperationUser(bench, nil)
        let command = #"{"cmd":"WALLET_INIT""# + (members == "{}" ? "}" : "," + members.dropFirst())
        #expect(await user.client.ask(command, "WALLET_READY")?["error"] != nil)
        #expect(try await user.run(#"{"cmd":"WALLET_SIGN","message":"x"}"#).resultCode == 10004)
    }

    // MARK: SimpleWallet

    @Test("SimpleWallet: login, transfer, transaction and sign, with the link back")
    func simpleWallet() async throws {
        let user = try await bench.user(nil)
        func run(_ parameter: String) async throws -> JSON {
            try await bench.insertIfAway()
            return try await user.run(#"{"cmd":"WALLET_SIMPLEWALLET","account":"bobbobbobbob","param":\#(parameter)}"#)
        }
        let login = try await run(
            #"{"protocol":"SimpleWallet","version":"1.0","dappName":"Shop","action":"login","uuID":"q-1","loginUrl":"\#(bench.dapp.url)","loginMemo":"hi","expired":0,"callback":"app://back?action=login"}"#
        )
        #expect(login.resultCode == 1, "\(login)")
        #expect(login["callback"] == .string("app://back?action=login&result=1"))
        #expect(user.last("WALLET_REQUEST")?["info"] == .string("hi"))
        let body = try #require(bench.dapp.bodies.first)
        #expect(body["protocol"] == .string("SimpleWallet"))
        #expect(body["timestamp"] == .number("\(OperationBench.now)"))
        #expect(try signer(body["sign"]?.string, of: digest("\(OperationBench.now)bobbobbobbobq-1badged")) == key())

        let transfer = try await run(
            #"{"action":"transfer","to":"alice","amount":0.5,"contract":"eosio.token","symbol":"EOS","precision":4,"dappData":"k=v","desc":"a book","callback":"app://back"}"#
        )
        #expect(transfer.resultCode == 1, "\(transfer)")
        let id = try #require(transfer["txId"]?.string)
        #expect(transfer["callback"] == .string("app://back?result=1&txID=\(id)"))
        #expect(user.last("WALLET_REQUEST")?["actions"]?.array?.first?["data"]?["memo"] == .string("k=v"))

        let transaction = try await run(
            #"{"action":"transaction","ContractRequest":[{"account":"eosio.token","name":"transfer","TransferDataRequest":{"from":"bobbobbobbob","to":"alice","quantity":"0.1000 EOS","memo":""}}]}"#
        )
        #expect(transaction.resultCode == 1, "\(transaction)")
        let text = #"{\"action\":\"sign\",\"message\":\"x y\",\"callback\":\"app://back?a=1\"}"#
        let sign = try await run("\"\(text)\"")
        #expect(sign.resultCode == 1, "\(sign)")
        let link =
            "simplewallet://eos.io?param=%7B%22action%22%3A%22sign%22%2C%22message%22%3A%22x%22%2C%22callback%22%3A%22app%3A%2F%2Fback%22%7D"
        user.answers["WALLET_REQUEST"] = #"{"cmd":"CANCEL"}"#
        let cancelled = try await run("\"\(link)\"")
        #expect(cancelled.resultCode == 0, "\(cancelled)")
        #expect(cancelled["callback"] == .string("app://back?result=0"))
        let wrong = try await run(#"{"action":"sign","callback":"app://back"}"#)
        #expect(wrong.resultCode == 10012)
        #expect(wrong["callback"] == .string("app://back?result=2"))
        for (link, back) in [
            ("app://back#top", "app://back?result=0#top"), ("app://back?a=1#top", "app://back?a=1&result=0#top"),
            ("app://back?#top", "app://back?result=0#top"), ("app://back#a?b", "app://back?result=0#a?b"),
        ] {
            let end = try await run(#"{"action":"sign","message":"x","callback":"\#(link)"}"#)
            #expect(end["callback"] == .string(back), "\(link)")
        }
        let twice = try await run(#"{"action":"sign","message":"x","message":"y"}"#)
        #expect(twice.resultCode == 10012, "another reader could take the other message")
    }

    @Test("decimals are a number or, as in the SDK, a text")
    func decimals() async throws {
        let user = try await bench.user()
        user.answers["WALLET_REQUEST"] = #"{"cmd":"CANCEL"}"#
        for decimals in ["4", #""4""#, #""04""#] {
            let transfer = OperationBench.transfer(#","decimal":\#(decimals)"#)
            #expect(try await user.run(transfer).resultCode == 0, "\(decimals)")
            try await bench.insertIfAway()
        }
        for decimals in [#""""#, #""x""#, #""19""#, #""4.0""#, #""-4""#, "19", "true"] {
            let transfer = OperationBench.transfer(#","decimal":\#(decimals)"#)
            #expect(try await user.run(transfer).resultCode == 10012, "\(decimals)")
        }
    }
}
