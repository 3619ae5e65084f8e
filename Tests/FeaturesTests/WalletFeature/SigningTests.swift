// SPDX-License-Identifier: GPL-3.0-or-later
import Concurrency
import Crypto
import HDWallet
import Keycard
import TestSupport
import Testing
import Text

@Suite("Signing with a card", .timeLimit(.minutes(5)))
@Loop struct SigningTests {
    private static let words = Array(repeating: "abandon", count: 11).joined(separator: " ") + " about"
    private static let address = "0x9858EfFD232B4033E47d90003D41EC34EcaEda94"
    private static let other = "0x00000000000000000000000000000000000000aa"

    private func bench(_ version: String) async throws -> WalletBench {
        let bench = try await WalletBench()
        try await bench.insert(#"{"kind":"keycard","version":"\#(version)","words":"\#(Self.words)"}"#)
        return bench
    }

    /// The address whose key has signed a digest.
    private func signer(of digest: [UInt8], _ entity: JSON?) throws -> String? {
        let text = try #require(entity?["signature"]?.string)
        #expect(text.hasPrefix("0x"))
        let bytes = try #require(Hex.decode(text.dropFirst(2)))
        #expect(bytes.count == 65)
        let signature = try Signature(compact: Array(bytes.prefix(64)))
        return try signature.recover(id: try #require(bytes.last) - 27, for: digest).map {
            EthereumAddress($0).description
        }
    }

    @Test("ACTIVATE_USER shows the challenge before it asks for a card, and signs it", arguments: generations)
    func activateUser(version: String) async throws {
        let bench = try await bench(version)
        let user = try WalletUser(bench)
        let command = #"{"cmd":"RUN_WALLET","workflow":"ACTIVATE_USER","userId":"u1","challenge":"Some data"}"#
        let end = try await user.run(command)
        #expect(user.names == ["FLOW_STARTED", "VERIFY_DATA", "ENTER_PIN", "PIN_VALIDATED", "FLOW_COMPLETE"])
        let shown = try #require(user.last("VERIFY_DATA"))
        #expect(shown["signing"]?["standard"] == .string("EIP-191"))
        #expect(shown["signing"]?["message"] == .string("Some data"))
        // The hash of the examples of eth_sign: web3.eth.accounts.hashMessage("Some data").
        let digest = "1da44b586eb0729ff70a73c326926f6ed5a25f5b056e7f47fbc6e58d86871655"
        #expect(shown["signing"]?["digest"] == .string(digest))
        #expect(try signer(of: try #require(Hex.decode(digest)), end.entity) == Self.address)
        #expect(end.entity?["signer"] == .string(Self.address))
        #expect(end.entity?["id"] == .string("u1"))
    }

    @Test("nothing is signed that the user does not accept")
    func refused() async throws {
        let bench = try await bench("3.1")
        let user = try WalletUser(bench)
        user.answers["VERIFY_DATA"] = [#"{"cmd":"CANCEL"}"#]
        let end = try await user.run(#"{"cmd":"RUN_WALLET","workflow":"ACTIVATE_USER","challenge":"c"}"#)
        #expect(end.code == "USER_CANCELED")
        #expect(user.names == ["FLOW_STARTED", "VERIFY_DATA", "FLOW_INTERRUPTED"])
    }

    private static let payloads: [(payload: String, workflow: String, type: String)] = [
        (#"{"dd":"AD","ddv":"1.1.0","d":{"da":"\#(other)"}}"#, "AUTHORIZE_DEVICE_WITH_QR", "device"),
        (#"{"dd":"RD","ddv":2,"d":{"da":"\#(other)"}}"#, "REVOKE_DEVICE", "device"),
        (
            #"{"dd":"TX","ddv":"1.1.0","d":{"rn":"Direct Transfer","ads":["\#(other)"],"ams":["1"],"tid":"t1"}}"#,
            "EXECUTE_TRANSACTION", "transaction"
        ),
        (
            #"{"dd":"AS","ddv":"2","d":{"sd":{"da":"\#(address)","sa":"\#(other)","sl":"5","et":99},"#
                + #""sig":"0x\#(String(repeating: "1b", count: 65))"}}"#,
            "AUTHORIZE_SESSION_WITH_QR", "session"
        ),
        (
            "AS|2|\(address.dropFirst(2))|\(other.dropFirst(2))|5|99|\(String(repeating: "1b", count: 65))",
            "AUTHORIZE_SESSION_WITH_QR", "session"
        ),
    ]

    private func escaped(_ payload: String) -> String {
        String(decoding: JSON.array([.string(payload)]).bytes.dropFirst().dropLast(), as: UTF8.self)
    }

    @Test("each payload of a QR code is shown and signed for, as typed data, message or preimage")
    func payloads() async throws {
        let bench = try await bench("4.0")
        let user = try WalletUser(bench)
        let typed =
            #""typedData":{"types":{"EIP712Domain":[{"name":"name","type":"string"}],"Do":[{"name":"to","type":"address"}]},"#
            + #""primaryType":"Do","domain":{"name":"d"},"message":{"to":"\#(Self.other)"}}"#
        for (payload, workflow, type) in Self.payloads {
            for what in [typed, #""message":"m""#, #""preimage":"0x190102""#] {
                let command =
                    #"{"cmd":"RUN_WALLET","workflow":"PERFORM_QR_ACTION","payload":\#(escaped(payload)),\#(what)}"#
                let end = try await user.run(command)
                #expect(end["msg"] == .string("FLOW_COMPLETE"), "\(payload) \(what): \(end)")
                #expect(end["workflowContext"]?["workflowType"] == .string(workflow))
                let shown = try #require(user.last("VERIFY_DATA"))
                #expect(shown["contextEntity"]?["entityType"] == .string(type))
                let digest = try #require(shown["signing"]?["digest"]?.bytesOfHex)
                #expect(try signer(of: digest, end.entity) == Self.address)
                for member in try #require(shown.entity?.members) { #expect(end.entity?[member.key] == member.value) }
                try await bench.insertAgain()
            }
        }
        #expect(Self.payloads.count == 5)
    }

    @Test("VERIFY_DATA names what is shown and not signed")
    func notSigned() async throws {
        let bench = try await bench("4.0")
        let user = try WalletUser(bench)
        user.answers["VERIFY_DATA"] = [#"{"cmd":"CANCEL"}"#]
        let payload = Self.payloads[2].payload
        let all = ["rule_name", "token_holder_addresses", "amounts", "token_id", "user_id"]
        let cases: [(what: String, left: [String])] = [
            (#""preimage":"0x190102""#, all), (#""message":"m""#, all),
            (#""message":" \#(escaped(payload).dropFirst())"#, all),
            (#""message":\#(escaped(payload))"#, ["user_id"]),
        ]
        for (what, left) in cases {
            let members = #""workflow":"PERFORM_QR_ACTION","userId":"u1","payload":\#(escaped(payload))"#
            _ = try await user.run(#"{"cmd":"RUN_WALLET",\#(members),\#(what)}"#)
            let shown = user.last("VERIFY_DATA")?["signing"]?["notSigned"]
            #expect(shown == .array(left.map { .string($0) }), "\(what)")
        }
        _ = try await user.run(#"{"cmd":"RUN_WALLET","workflow":"ACTIVATE_USER","userId":"u","challenge":"c"}"#)
        #expect(user.last("VERIFY_DATA")?["signing"]?["notSigned"] == .array([.string("id")]))
    }

    @Test(
        "what an app shows of a payload is signed by type, number and order, or said not to be signed",
        arguments: PayloadForgery.all
    )
    func forgeries(shown: PayloadForgery) async throws {
        let bench = try await bench("4.0")
        let user = try WalletUser(bench)
        user.answers["VERIFY_DATA"] = [#"{"cmd":"CANCEL"}"#]
        let members =
            #""workflow":"PERFORM_QR_ACTION","payload":\#(escaped(shown.payload)),"typedData":\#(shown.typedData)"#
        let end = try await user.run(#"{"cmd":"RUN_WALLET",\#(members)}"#)
        guard let left = shown.left else { return #expect(end.code == "INVALID_DATA_DEFINATION", "\(end)") }
        #expect(
            user.last("VERIFY_DATA")?["signing"]?["notSigned"] == .array((left + ["user_id"]).map { .string($0) }),
            "\(end)"
        )
    }

    @Test("a QR action that does not say what to sign, or says it wrongly, is refused")
    func refusals() async throws {
        let bench = try await bench("4.0")
        let client = try bench.server.connect()
        let device = escaped(Self.payloads[0].payload)
        let transaction = escaped(Self.payloads[2].payload)
        let wrong: [(members: String, code: String)] = [
            (#""workflow":"PERFORM_QR_ACTION""#, "INSUFFICIENT_DATA"),
            (#""workflow":"PERFORM_QR_ACTION","payload":"x""#, "INVALID_Q_R_CODE"),
            (#""workflow":"PERFORM_QR_ACTION","payload":5"#, "INVALID_Q_R_CODE"),
            (#""workflow":"PERFORM_QR_ACTION","payload":\#(device)"#, "INSUFFICIENT_DATA"),
            (
                #""workflow":"PERFORM_QR_ACTION","payload":\#(device),"message":"m","preimage":"0x190102""#,
                "INSUFFICIENT_DATA"
            ),
            (
                #""workflow":"PERFORM_QR_ACTION","payload":\#(device),"preimage":"0x180102""#,
                "INVALID_DATA_DEFINATION"
            ),
            (#""workflow":"PERFORM_QR_ACTION","payload":\#(device),"typedData":{}"#, "INVALID_DATA_DEFINATION"),
            (
                #""workflow":"PERFORM_QR_ACTION","payload":\#(device),"typedData":{"types":{"Do":[]},"primaryType":"Do","#
                    + #""domain":{},"message":{}}"#,
                "INVALID_DATA_DEFINATION"
            ),
            (#""workflow":"REVOKE_DEVICE","payload":\#(device),"message":"m""#, "INVALID_Q_R_CODE"),
            (
                #""workflow":"EXECUTE_TRANSACTION","tokenId":"t2","payload":\#(transaction),"message":"m""#,
                "INVALID_TOKEN_ID"
            ),
            (#""workflow":"ACTIVATE_USER""#, "INSUFFICIENT_DATA"),
            (#""workflow":"ADD_SESSION","expirationTime":5"#, "INVALID_SPENDING_LIMIT"),
            (#""workflow":"ADD_SESSION","spendingLimit":"5x","expirationTime":5"#, "INVALID_SPENDING_LIMIT"),
            (#""workflow":"ADD_SESSION","spendingLimit":"5""#, "INVALID_EXPIRATION_TIME_STAMP"),
            (#""workflow":"ADD_SESSION","spendingLimit":"5","expirationTime":-1"#, "INVALID_EXPIRATION_TIME_STAMP"),
        ]
        for (members, code) in wrong {
            await client.send(#"{"cmd":"RUN_WALLET",\#(members)}"#)
            #expect(await client.next("FLOW_INTERRUPTED")?.code == code, "\(members)")
        }
    }

    @Test("the key of a session and its limits are signed as a QR code that badged reads", arguments: generations)
    func addSession(version: String) async throws {
        let bench = try await bench(version)
        let user = try WalletUser(bench)
        let command =
            #"{"cmd":"RUN_WALLET","workflow":"ADD_SESSION","userId":"u1","spendingLimit":"1000000000000000000000","#
            + #""expirationTime":1800000000}"#
        let end = try await user.run(command)
        #expect(
            user.names == [
                "FLOW_STARTED", "ENTER_PIN", "PIN_VALIDATED", "VERIFY_DATA", "SHOW_SESSION_KEY", "FLOW_COMPLETE",
            ]
        )
        let session = try #require(end.entity)
        let told = try #require(user.last("SHOW_SESSION_KEY"))
        let key = try PrivateKey(.init(try #require(told["privateKey"]?.bytesOfHex)))
        #expect(session["address"] == .string(EthereumAddress(key.publicKey).description))
        #expect(told["address"] == session["address"])
        let message = try #require(user.last("VERIFY_DATA")?["signing"]?["message"]?.string)
        #expect(message.contains("|1000000000000000000000|1800000000"))
        #expect(try signer(of: EthereumMessage.digest(message), session) == Self.address)

        try await bench.insertAgain()
        let payload = try #require(session["payload"]?.string)
        let authorize =
            #"{"cmd":"RUN_WALLET","workflow":"AUTHORIZE_SESSION_WITH_QR","payload":\#(escaped(payload)),"message":"m"}"#
        let authorized = try await user.run(authorize)
        #expect(authorized.entity?["address"] == session["address"])
        #expect(authorized.entity?["spending_limit"] == session["spending_limit"])
        #expect(authorized.entity?["session_signature"] == session["signature"])
    }

    @Test("a card without PIN or without keys cannot sign", arguments: generations)
    func notSet(version: String) async throws {
        for more in [#","initialised":false"#, ""] {
            let bench = try await WalletBench()
            let user = try await bench.user(with: #"{"kind":"keycard","version":"\#(version)"\#(more)}"#)
            let end = try await user.run(#"{"cmd":"RUN_WALLET","workflow":"ACTIVATE_USER","challenge":"c"}"#)
            #expect(end.code == "DEVICE_NOT_SET")
            #expect(user.names == ["FLOW_STARTED", "VERIFY_DATA", "FLOW_INTERRUPTED"])
        }
    }
}
