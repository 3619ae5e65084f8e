// SPDX-License-Identifier: GPL-3.0-or-later
import Synchronization
import TestSupport
import Testing
import Text

@testable import BadgedClient

/// Answers everything, and keeps a log of the questions.
private final class Owner: WalletUser {
    private let secrets: Mutex<[String]>
    private let entries = Mutex<[String]>([])
    private let agrees: Bool

    /// - Parameters:
    ///   - secrets: the answers to the questions for secrets and words, in order. After the last one the workflow is cancelled.
    ///   - agrees: whether the user agrees to requests.
    init(_ secrets: [String] = [], agrees: Bool = true) {
        self.secrets = Mutex(secrets)
        self.agrees = agrees
    }

    var log: [String] { entries.withLock { $0 } }

    private func note(_ entry: String) { entries.withLock { $0.append(entry) } }

    private func next() -> SecretBox? {
        secrets.withLock { $0.isEmpty ? nil : SecretBox(Secret($0.removeFirst().utf8)) }
    }

    func answer(_ question: SecretQuestion) async -> SecretBox? {
        let last = question.last.map { " after \($0.kind) \($0.outcome)" } ?? ""
        note("\(question.kind) \(question.triesLeft ?? -1)\(last)")
        return next()
    }

    func words(_ question: WordsQuestion) async -> SecretBox? {
        note("words \(question.wanted) \(question.error ?? "")")
        return next()
    }

    func show(_ wallet: PaperWallet) async -> Bool {
        note("paper \(wallet.mnemonics.count)")
        return agrees
    }

    func show(_ puk: NewPUK) async -> Bool {
        note("puk \(puk.puk)")
        return agrees
    }

    func register(_ device: DeviceRegistration) async -> JSON? {
        note("register \(device.address ?? "")")
        return .object([.init("device", device.apiParams)])
    }

    func verify(_ data: DataToVerify) async -> Bool {
        note("verify \(data.context.workflowType)")
        return agrees
    }

    func agree(to request: WalletRequest) async -> Bool {
        note("agree \(request.operation)\(request.error.map { " \($0)" } ?? "")")
        return agrees
    }

    func other(_ event: Event) async {
        switch event.message {
        case is PINValidated, is InvalidValue, is RequestAcknowledged: note(event.name)
        default: return
        }
    }
}

/// A user of the eID functions alone.
private struct CardHolder: EIDUser {
    func answer(_ question: SecretQuestion) async -> SecretBox? { nil }
}

@Suite("Workflows of wallet cards with a scripted badged", .timeLimit(.minutes(5))) struct WalletWorkflowTests {
    private typealias Played = PlayedWallet

    private func commands(_ lines: [String]) -> [String] {
        lines.compactMap { line in
            guard let json = try? JSON(line.utf8), let name = json["cmd"]?.string else { return nil }
            let number = json["question"]?.int.map { " \($0)" } ?? ""
            return name + number + (json["value"]?.string.map { " \($0)" } ?? "")
        }
    }

    @Test("A new card is set up: every question reaches the user, and each answer has the number of its question")
    func setup() async throws {
        let user = Owner(["123456", "able absorb access"])
        let lines = try await withPeer {
            $0.playSetup()
        } body: { badged in
            let result = try await badged.runWallet(
                .setupDevice(generatesPUK: true),
                userID: "u",
                tokenID: "t",
                user: user
            )
            #expect(result.isComplete)
            #expect(result.context.workflowType == "SETUP_DEVICE")
            #expect(result.entity?.type == "device")
            #expect(result.entity?.text("keyUID") == Played.keyUID)
        }
        #expect(
            user.log == [
                "newPIN -1", "puk 123456789012", "PIN_VALIDATED", "paper 12", "words positions([3, 7, 11]) ",
                "register \(Played.address)", "REQUEST_ACKNOWLEDGED",
            ]
        )
        #expect(
            commands(lines) == [
                "RUN_WALLET", "SET_NEW_PIN 1 123456", "ACCEPT 2", "ACCEPT 3", "SET_WORDS 4 able absorb access",
                "DEVICE_REGISTERED 5",
            ]
        )
        let start = try JSON(Array(try #require(lines.first).utf8))
        #expect(start["workflow"] == .string("SETUP_DEVICE"))
        #expect(start["userId"] == .string("u") && start["tokenId"] == .string("t"))
        #expect(start["generatePUK"] == .bool(true) && start["words"] == nil)
        let registration = try JSON(Array(try #require(lines.last).utf8))
        #expect(registration["apiResponse"]?["device"]?["address"] == .string(Played.address))
    }

    @Test("Wrong PINs and PUKs: the next question says which value was wrong and how many tries are left")
    func tries() async throws {
        let user = Owner(["111111", "222222", "000000000000", "333333", "123456789012", "444444"])
        try await withPeer {
            $0.playResetPIN(lastTries: 4)
        } body: { badged in
            let result = try await badged.runWallet(.resetPIN(), user: user)
            #expect(result.isComplete)
        }
        #expect(
            user.log == [
                "pin 2", "INVALID_PIN", "pin 1 after pin wrong", "INVALID_PIN", "puk 5 after pin wrong", "newPIN -1",
                "INVALID_PUK", "puk 4 after puk wrong", "newPIN -1", "PIN_VALIDATED",
            ]
        )
    }

    @Test("Words that are refused are asked for again")
    func restore() async throws {
        let user = Owner(["one", "two"])
        let lines = try await withPeer { peer in
            peer.command("RUN_WALLET")
            peer.send(Played.started("AUTHORIZE_DEVICE_WITH_MNEMONICS"))
            peer.prompt(Played.enterWords(1, #""count":24"#), "SET_WORDS")
            peer.prompt(Played.enterWords(1, #""count":24"#, error: "Word 1 is not in the list"), "SET_WORDS")
            peer.send(Played.interrupted("AUTHORIZE_DEVICE_WITH_MNEMONICS", "DIFFERENT_OWNER_DEVICE"))
        } body: { badged in
            let flow = WalletFlow.authorizeDeviceWithMnemonics(words: 24, keyUID: "00")
            let result = try await badged.runWallet(flow, user: user)
            #expect(result.error?.code == "DIFFERENT_OWNER_DEVICE" && !result.isComplete)
        }
        #expect(user.log == ["words all(24) ", "words all(24) Word 1 is not in the list"])
        let start = try JSON(Array(try #require(lines.first).utf8))
        #expect(start["words"]?.int == 24 && start["keyUID"] == .string("00"))
        #expect(commands(lines) == ["RUN_WALLET", "SET_WORDS 1 one", "SET_WORDS 1 two"])
    }

    @Test(
        "A user who does not agree cancels, and nothing else is sent",
        arguments: [Played.paperWallet(1), Played.showPUK(1), Played.verifyData(1)]
    )
    func refused(message: String) async throws {
        let user = Owner(agrees: false)
        let lines = try await withPeer { peer in
            peer.command("RUN_WALLET")
            peer.send(Played.started("SETUP_DEVICE"))
            peer.prompt(message, "CANCEL")
            peer.send(Played.interrupted("SETUP_DEVICE", "USER_CANCELED"))
        } body: { badged in
            let result = try await badged.runWallet(.setupDevice(), user: user)
            #expect(result.error?.code == "USER_CANCELED")
        }
        #expect(commands(lines) == ["RUN_WALLET", "CANCEL"])
    }

    @Test("The defaults of a user agree to nothing and show nothing")
    func defaults() async throws {
        let user = WalletClosures { _ in nil }
        let messages = [
            Played.paperWallet(1), Played.showPUK(1), Played.verifyData(1), Played.request(1),
            Played.enterWords(1, #""count":12"#), Played.enter("PIN", 1),
            #"{"msg":"SHOW_SESSION_KEY","userId":"u","address":"0x1","privateKey":"00","question":1}"#,
        ]
        for message in messages {
            let lines = try await withPeer { peer in
                peer.command("RUN_WALLET")
                peer.send(message)
                peer.command("CANCEL")
                peer.send(Played.interrupted("X", "USER_CANCELED"))
            } body: { badged in
                _ = try await badged.runWallet(WalletFlow("X"), user: user)
            }
            #expect(commands(lines) == ["RUN_WALLET", "CANCEL"], "\(message)")
        }
    }

    @Test("A question of a wallet in a workflow of another card cancels that workflow")
    func otherUser() async throws {
        let lines = try await withPeer { peer in
            peer.command("RUN_CHANGE_PIN")
            peer.send(Played.paperWallet(1))
            peer.command("CANCEL")
            peer.send(#"{"msg":"CHANGE_PIN","success":false,"reason":"User_Cancelled"}"#)
        } body: { badged in
            await #expect(throws: ClientError.unexpectedAnswer("SHOW_PAPER_WALLET")) {
                try await badged.changePIN(user: CardHolder())
            }
        }
        #expect(commands(lines) == ["RUN_CHANGE_PIN", "CANCEL"])
    }

    @Test("A refused workflow is a result, a missing permission is thrown")
    func refusals() async throws {
        try await withPeer { peer in
            peer.answer("RUN_WALLET", Played.interrupted("UPDATE_BIOMETRIC", "UNSUPPORTED_WORKFLOW"))
            peer.answer("RUN_WALLET", #"{"msg":"ACCESS_DENIED","error":"RUN_WALLET"}"#)
            peer.answer("WALLET_SIGN", Played.result("sign", 10004))
        } body: { badged in
            let result = try await badged.runWallet(WalletFlow("UPDATE_BIOMETRIC"), user: Owner())
            #expect(result.error?.code == "UNSUPPORTED_WORKFLOW")
            await #expect(throws: ClientError.accessDenied(command: "RUN_WALLET")) {
                try await badged.runWallet(.pair, user: Owner())
            }
            let signed = try await badged.runWallet(.sign("x"), user: Owner())
            #expect(signed.code == 10004)
        }
    }

    @Test("A transfer is shown, and shown again after it has expired; the result has the transaction")
    func transfer() async throws {
        let user = Owner(["123456"])
        let lines = try await withPeer { peer in
            peer.answer("WALLET_INIT", Played.ready())
            peer.command("WALLET_TRANSFER")
            peer.send(Played.operationStarted("transfer"))
            peer.prompt(Played.request(1), "ACCEPT")
            peer.prompt(Played.enter("PIN", 2, left: 3), "SET_PIN")
            peer.send(Played.validated)
            peer.prompt(Played.request(3, error: "expired"), "ACCEPT")
            peer.send(Played.result("transfer", 1, #","txId":"ab""#))
        } body: { badged in
            let ready = try await badged.initWallet(WalletDapp(mode: .mykey(appKey: "k", uuid: "i"), name: "D"))
            #expect(ready.hasNode)
            let operation = WalletOperation.transfer(
                "1.31",
                symbol: "EOS",
                from: "alice",
                to: "bob",
                decimals: 4,
                memo: "m",
                WalletOperation.Options(info: "i", callbackURL: "https://c", orderID: "o", permission: "p")
            )
            let result = try await badged.runWallet(operation, reader: "R", user: user)
            #expect(result.isSuccess && result.transactionID == "ab")
        }
        #expect(user.log == ["agree transfer", "pin 3", "PIN_VALIDATED", "agree transfer expired"])
        #expect(
            commands(lines) == ["WALLET_INIT", "WALLET_TRANSFER", "ACCEPT 1", "SET_PIN 2 123456", "ACCEPT 3"]
        )
        let initData = try JSON(Array(lines[0].utf8))
        #expect(initData["mode"] == .string("MYKEY") && initData["UUID"] == .string("i"))
        let expected: [String: JSON] = [
            "amount": .string("1.31"), "symbol": .string("EOS"), "contractName": .string("eosio.token"),
            "from": .string("alice"), "to": .string("bob"), "decimal": .number("4"), "memo": .string("m"),
            "info": .string("i"), "callbackUrl": .string("https://c"), "orderId": .string("o"),
            "permission": .string("p"), "reader": .string("R"),
        ]
        let sent = try JSON(Array(lines[1].utf8))
        for (name, value) in expected { #expect(sent[name] == value, "\(name)") }
    }

    @Test("A PIN is not called wrong because the next card has fewer tries, in an operation, too")
    func otherCard() async throws {
        let user = Owner(["123456", "654321"])
        try await withPeer { peer in
            peer.command("WALLET_SIGN")
            for (number, left) in [(1, 3), (2, 2)] {
                // An operation names no user.
                let question = Played.enter("PIN", number, left: left).replacing(#""userId":"u","#, with: "")
                peer.prompt(question, "SET_PIN")
                if number == 1 { peer.send(#"{"msg":"INSERT_CARD"}"#) }
            }
            peer.send(Played.result("sign", 1))
        } body: { badged in
            #expect((try? await badged.runWallet(.sign("x"), user: user))?.isSuccess == true)
        }
        #expect(user.log == ["pin 3", "pin 2 after pin void"])
    }

    @Test("A request that cannot be read completely is not shown, and the operation is cancelled")
    func unreadable() async throws {
        let lines = try await withPeer { peer in
            peer.command("WALLET_CONTRACT")
            peer.send(
                #"{"msg":"WALLET_REQUEST","operation":"contract","dapp":{"name":"D"},"digest":"00","actions":[{}]}"#
            )
            peer.command("CANCEL")
            peer.send(Played.result("contract", 0))
        } body: { badged in
            let action = WalletAction(account: "c", name: "n", data: .object([]))
            await #expect(throws: ClientError.malformed(.unusable(member: "actions", of: "WALLET_REQUEST"))) {
                try await badged.runWallet(.contract([action]), user: Owner())
            }
        }
        #expect(commands(lines) == ["WALLET_CONTRACT", "CANCEL"])
    }
}
