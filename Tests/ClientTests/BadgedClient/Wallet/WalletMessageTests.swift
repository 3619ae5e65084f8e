// SPDX-License-Identifier: GPL-3.0-or-later
import TestSupport
import Testing
import Text

@testable import BadgedClient

@Suite("Messages of wallet cards", .timeLimit(.minutes(5))) struct WalletMessageTests {
    private typealias Played = PlayedWallet

    private static let context = FlowContext(
        workflowID: "1b9d6bcd-bbfd-4b2d-9b5d-ab8dfbbd4bed",
        workflowType: "SETUP_DEVICE"
    )
    private static let reader = Reader(
        name: "R",
        card: Card(members: [
            "initialised": .bool(true), "keyUID": .null, "kind": .string("keycard"), "paired": .bool(true),
            "pinTries": .number("3"), "pukTries": .number("5"), "trusted": .null, "version": .string("3.1"),
        ])
    )

    private static let cases = [
        MessageCase(Played.started("SETUP_DEVICE"), FlowMessage(context: context)),
        MessageCase(
            Played.complete("SETUP_DEVICE", Played.card),
            FlowMessage(
                context: context,
                outcome: FlowResult(
                    context: context,
                    entity: FlowEntity(
                        type: "card",
                        members: .object([.init("initialised", .bool(true)), .init("version", .string("3.1"))])
                    )
                )
            )
        ),
        MessageCase(
            Played.interrupted("SETUP_DEVICE", "CARD_LOST"),
            FlowMessage(
                context: context,
                outcome: FlowResult(
                    context: context,
                    error: FlowError(code: "CARD_LOST", internalCode: "SIGN 6F00", message: "It failed.")
                )
            )
        ),
        MessageCase(
            #"{"msg":"FLOW_INTERRUPTED","workflowContext":{"workflowType":"X","workflowId":null}}"#,
            UnreadableMessage(name: "FLOW_INTERRUPTED", member: "error")
        ),
        MessageCase(#"{"msg":"FLOW_COMPLETE"}"#, UnreadableMessage(name: "FLOW_COMPLETE", member: "workflowContext")),
        MessageCase(Played.validated, PINValidated(userID: "u")),
        MessageCase(Played.invalid("PIN", left: 2), InvalidValue(kind: .pin, userID: "u", retryCounter: 2)),
        MessageCase(Played.invalid("PUK", left: 4), InvalidValue(kind: .puk, userID: "u", retryCounter: 4)),
        MessageCase(
            Played.enter("PIN", 7, left: 2, error: "E"),
            SecretQuestion(kind: .pin, reader: reader, error: "E", number: 7, retryCounter: 2, userID: "u")
        ),
        MessageCase(
            Played.enter("NEW_PUK", 8),
            SecretQuestion(kind: .newPUK, reader: reader, number: 8, userID: "u")
        ),
        MessageCase(
            Played.enter("PAIRING_PASSWORD", 9),
            SecretQuestion(kind: .pairingPassword, reader: reader, number: 9, userID: "u")
        ),
        MessageCase(
            Played.enter("PAIRING_PASSWORD", 9, error: "E").dropLast() + #","wrong":true}"#,
            SecretQuestion(kind: .pairingPassword, reader: reader, error: "E", isWrong: true, number: 9, userID: "u")
        ),
        MessageCase(
            Played.enter("DURESS_PIN", 9, error: "E"),
            SecretQuestion(kind: .duressPIN, reader: reader, error: "E", number: 9, userID: "u")
        ),
        MessageCase(
            #"{"msg":"ENTER_PASSPHRASE","userId":"u","question":4,"error":"E"}"#,
            PassphraseQuestion(userID: "u", error: "E", number: 4)
        ),
        MessageCase(Played.paperWallet(3), PaperWallet(userID: "u", mnemonics: Played.words, number: 3)),
        MessageCase(
            #"{"msg":"SHOW_PAPER_WALLET","mnemonics":"abandon"}"#,
            UnreadableMessage(name: "SHOW_PAPER_WALLET", member: "mnemonics")
        ),
        MessageCase(
            Played.enterWords(4, #""positions":[3,7,11]"#),
            WordsQuestion(userID: "u", wanted: .positions([3, 7, 11]), number: 4)
        ),
        MessageCase(
            Played.enterWords(4, #""count":24"#, error: "E"),
            WordsQuestion(userID: "u", wanted: .all(24), error: "E", number: 4)
        ),
        MessageCase(#"{"msg":"ENTER_WORDS"}"#, UnreadableMessage(name: "ENTER_WORDS", member: "count")),
        MessageCase(Played.showPUK(2), NewPUK(userID: "u", puk: "123456789012", number: 2)),
        MessageCase(
            #"{"msg":"SHOW_SESSION_KEY","userId":"u","address":"0x1","privateKey":"00","question":1}"#,
            SessionKey(userID: "u", address: "0x1", privateKey: "00", number: 1)
        ),
        MessageCase(
            #"{"msg":"REGISTER_DEVICE","apiParams":[]}"#,
            UnreadableMessage(name: "REGISTER_DEVICE", member: "apiParams")
        ),
        MessageCase(
            Played.verifyData(6),
            DataToVerify(
                context: FlowContext(workflowID: context.workflowID, workflowType: "REVOKE_DEVICE"),
                entity: FlowEntity(type: "device", members: .object([.init("address", .string("0x2"))])),
                signing: SigningData(standard: "EIP-191", digest: Played.digest, content: .message("revoke 0x2")),
                number: 6
            )
        ),
        MessageCase(
            #"{"msg":"VERIFY_DATA","workflowContext":{"workflowType":"X"},"contextEntity":{"entityType":"user","entity":{}},"#
                + #""signing":{"standard":"EIP-191","digest":"00"}}"#,
            UnreadableMessage(name: "VERIFY_DATA", member: "signing")
        ),
        MessageCase(
            Played.ready("alice"),
            WalletReady(
                mode: "MYKEYSimple",
                dappName: "D",
                chainID: Played.chain,
                hasNode: true,
                account: "alice"
            )
        ),
        MessageCase(
            #"{"msg":"WALLET_READY","error":"dappName is missing"}"#,
            Refusal(name: "WALLET_READY", error: "dappName is missing")
        ),
        MessageCase(#"{"msg":"WALLET_UNBOUND","account":"alice"}"#, WalletUnbound(account: "alice")),
        MessageCase(
            Played.request(1, error: "E"),
            WalletRequest(
                operation: "transfer",
                dappName: "D",
                info: "an order",
                chainID: Played.chain,
                account: "alice",
                permission: "active",
                actions: [
                    WalletAction(
                        account: "eosio.token",
                        name: "transfer",
                        authorization: ["alice@active"],
                        data: .object([
                            .init("from", .string("alice")), .init("to", .string("bob")),
                            .init("quantity", .string("1.3100 EOS")), .init("memo", .string("\u{1b}[2Jhi")),
                        ])
                    )
                ],
                expiration: "2026-11-22T17:30:00",
                digest: Played.digest,
                error: "E",
                number: 1
            )
        ),
        MessageCase(
            #"{"msg":"WALLET_REQUEST","operation":"transfer","dapp":{"name":"D"},"digest":"00","actions":[{"account":"x"}]}"#,
            UnreadableMessage(name: "WALLET_REQUEST", member: "actions")
        ),
        MessageCase(
            #"{"msg":"WALLET_REQUEST","operation":"transfer","dapp":{"name":"D"},"digest":"00","actions":[{"account":"x","#
                + #""name":"y","data":{},"authorization":[{"actor":"a"}]}]}"#,
            UnreadableMessage(name: "WALLET_REQUEST", member: "actions")
        ),
        MessageCase(Played.operationStarted("sign"), WalletOperationMessage(operation: "sign")),
        MessageCase(
            Played.result("transfer", 10005, #","txId":"00","callbackError":"E","callback":"d://x?result=2""#),
            WalletOperationMessage(
                operation: "transfer",
                outcome: WalletResult(
                    operation: "transfer",
                    code: 10005,
                    message: "Message 10005.",
                    account: "alice",
                    publicKey: Played.publicKey,
                    transactionID: "00",
                    callbackError: "E",
                    callback: "d://x?result=2"
                )
            )
        ),
        MessageCase(
            #"{"msg":"WALLET_RESULT","operation":"sign"}"#,
            UnreadableMessage(name: "WALLET_RESULT", member: "code")
        ),
    ]

    @Test("Each message is read as its type, whatever the order of its members", arguments: cases)
    func read(_ message: MessageCase) throws { try message.check() }

    @Test("Only messages with words, a PUK or a private key contain a secret, also when they cannot be read")
    func secrets() throws {
        for text in [
            Played.paperWallet(1), Played.showPUK(1), #"{"msg":"SHOW_SESSION_KEY"}"#,
            #"{"msg":"SHOW_PAPER_WALLET","mnemonics":{}}"#,
        ] {
            #expect(try event(text).tellsSecret, "\(text)")
        }
        for text in [Played.validated, Played.enterWords(1, #""count":12"#), Played.request(1), "{}"] {
            #expect(try !event(text).tellsSecret, "\(text)")
        }
    }

    @Test("A request is shown with everything that is signed")
    func facts() throws {
        let request = try #require(try event(Played.request(1)).message as? WalletRequest)
        #expect(
            request.facts.map { "\($0.name)=\($0.text)" } == [
                "app=D", "says=an order", "account=alice@active", "action=transfer of eosio.token", "  by=alice@active",
                "  from=alice", "  to=bob", "  quantity=1.3100 EOS", "  memo=\u{1b}[2Jhi",
                "expires=2026-11-22 17:30:00 UTC", "chain=\(Played.chain)", "digest=\(Played.digest)",
            ]
        )
        let data = try #require(try event(Played.verifyData(1)).message as? DataToVerify)
        #expect(
            data.facts.map { "\($0.name)=\($0.text)" } == [
                "purpose=revoke device", "device=", "  address=0x2", "standard=EIP-191", "text=revoke 0x2",
                "digest=\(Played.digest)",
            ]
        )
    }

    @Test("A Keycard in READER has its pairing and its trust")
    func keycard() throws {
        let card = Self.reader.card?.keycard
        let expected = Keycard(version: "3.1", isInitialised: true, pinTries: 3, pukTries: 5, isPaired: true)
        #expect(card == expected)
    }
}
