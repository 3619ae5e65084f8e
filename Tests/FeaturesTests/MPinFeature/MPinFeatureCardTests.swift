// SPDX-License-Identifier: GPL-3.0-or-later
import Concurrency
import Host
import Keycard
import ReadersVirtual
import Store
import TestSupport
import Testing
import Text
import VirtualKeycard

@testable import MPinFeature

@Suite("Tokens of M-Pin under a Keycard", .timeLimit(.minutes(5)))
@Loop struct CardTests {
    @Test("a login needs the card, its PIN and the PIN of M-Pin, also after a new start", arguments: channels)
    func wholeWay(version: String) async throws {
        let stage = try await MPinStage.withCard(version)
        await stage.registerWithCard()
        #expect(stage.names == ["MPIN_STARTED", "ENTER_PIN", "PIN_VALIDATED", "ENTER_NEW_PIN", "MPIN_RESULT"])
        let keyUID = try #require(stage.heard.last?["user"]?["keyUID"]?.string)
        #expect(Hex.decode(keyUID)?.count == 32)
        #expect(await stage.logIn().status == "OK")
        #expect(stage.names == ["MPIN_STARTED", "ENTER_PIN", "PIN_VALIDATED", "ENTER_PIN", "MPIN_RESULT"])
        let questions = stage.heard.filter { $0["msg"]?.string == "ENTER_PIN" }
        #expect(questions.map { $0["retryCounter"]?.int } == [3, nil])
        #expect(questions.map { $0["factor"]?.int } == [nil, 0])
        #expect(await stage.logIn(#""mode":"OTP""#)["otp"]?["otp"]?.string?.utf8.count == 6)
        #expect(!stage.server.isLent())

        let later = try await MPinStage.withCard(version, after: stage)
        #expect(await later.setBackend() == "OK")
        let users = await later.run("MPIN_USERS")["users"]?.array
        #expect(users?.first?["keyUID"]?.string == keyUID)
        #expect(await later.status("MPIN_START_AUTHENTICATION", stage.who) == "OK")
        #expect(await later.status("MPIN_FINISH_AUTHENTICATION", stage.who) == "OK", "\(later.heard)")
        #expect(try await later.tries() == MPinStage.CardTries(pin: 3, puk: 5, checks: 1))
        for secret in ["123456", "1234"] {
            #expect(!later.server.logged.contains { $0.contains(secret) })
            #expect(!later.client.hasReceived(#""\#(secret)""#))
        }
    }

    @Test("the store has no token that it could open without the card", arguments: channels)
    func sealed(version: String) async throws {
        let stage = try await MPinStage.withCard(version)
        await stage.registerWithCard()
        // Salt, point and tag.
        #expect(try await tokenCount(stage) == 32 + 65 + 16)
        let plain = try await MPinStage()
        await plain.register()
        #expect(try await tokenCount(plain) == 65)
    }

    /// The length of the only token in the store.
    private func tokenCount(_ stage: MPinStage) async throws -> Int? {
        let (store, space) = (try #require(stage.store), StoreSpace("mpin tokens"))
        let names = try await store.names(in: space)
        return try await store.value(try #require(names.first), in: space)?.take()?.count
    }

    @Test("users of MPinMFA log in and sign with the card, also with an identity that is made again")
    func mfa() async throws {
        let stage = try await MPinStage.withCard("4.0", name: "dora+renew")
        await stage.registerMFA(#","card":true"#)
        try await stage.registerSigner()
        let id = await stage.run("MPIN_USERS")["users"]?.array?.first?["mpinId"]
        #expect(await stage.logInMFA().status == "OK")
        #expect(await stage.run("MPIN_USERS")["users"]?.array?.first?["mpinId"] != id)
        #expect(await stage.logInMFA().status == "OK")
        #expect(stage.names == ["MPIN_STARTED", "ENTER_PIN", "PIN_VALIDATED", "ENTER_PIN", "MPIN_RESULT"])
        #expect(await stage.sign()["signature"] != nil)
        #expect(stage.names == ["MPIN_STARTED", "ENTER_PIN", "PIN_VALIDATED", "ENTER_PIN", "MPIN_RESULT"])
        #expect(await stage.logInMFA(pin: "0000").status == "INCORRECT_PIN")
    }

    @Test(
        "a registration that ends while the card is opened says nothing about the card",
        arguments: [nil, 0, 2],
        ["CANCEL", "close"]
    )
    func ended(command: Int?, ending: String) async throws {
        let description = #"{"kind":"keycard","version":"4.0","words":"\#(MPinStage.words)"}"#
        let kinds = VirtualReaders(count: 1, kinds: [VirtualKeycardKind()])
        let made = try kinds.describe(simulator: nil, card: try JSON(description.utf8)) as? any VirtualCardDescription
        let card = try #require(made).makeCard()
        let reader = HeldReader(card)
        let stage = try await MPinStage(held: reader)
        reader.insert()
        try await stage.waitForCard()
        await stage.confirm()

        let register = #"{"cmd":"MPIN_FINISH_REGISTRATION",\#(stage.who),"card":true}"#
        let watcher = try stage.server.connect()
        if let command { reader.holdCommand(command) } else { reader.hold() }
        await stage.client.send(register)
        if command == nil {
            while let told = await stage.client.next("INSERT_CARD"), told["reader"] == nil {}
        } else {
            await reader.arrival()
        }
        if ending == "close" { stage.client.close() } else { await stage.client.send(#"{"cmd":"CANCEL"}"#) }
        reader.openGate()
        if ending == "close" { await stage.server.clients(1) } else { _ = await stage.client.next("MPIN_RESULT") }
        await stage.server.released(HeldReader.name)
        reader.letGo()

        let shown = await watcher.answer(to: #"{"cmd":"GET_READER","name":"Desk"}"#)
        #expect(shown?["card"]?["kind"] == .string("keycard"))
        await watcher.send(#"{"cmd":"RUN_WALLET","workflow":"RESET_PIN"}"#)
        #expect(await watcher.next("ENTER_PIN")?["reader"]?["card"]?["kind"] == .string("keycard"))
        #expect(try await card.tries() == MPinStage.CardTries(pin: 3, puk: 5, checks: 0))
    }

    @Test("another card is named, and its PIN is not asked", arguments: channels)
    func wrongCard(version: String) async throws {
        let stage = try await MPinStage.withCard(version)
        await stage.registerWithCard()
        await stage.server.withdraw()
        try await stage.insert(version, words: MPinStage.otherWords)
        #expect(await stage.status("MPIN_START_AUTHENTICATION", stage.who) == "OK")
        let line = #"{"cmd":"MPIN_FINISH_AUTHENTICATION",\#(stage.who)}"#
        let told = await stage.client.ask(line, "INSERT_CARD", "ENTER_PIN")
        #expect(told?["error"]?.string?.contains("not the one that seals the token") == true, "\(told ?? .null)")
        #expect(try await stage.tries() == MPinStage.CardTries(pin: 3, puk: 5, checks: 0))
        await stage.server.withdraw()
        try await stage.insert(version)
        let asked = await stage.client.next("ENTER_PIN")
        #expect(asked?["reader"] != nil)
        _ = await stage.client.ask(#"{"cmd":"SET_PIN","value":"123456"}"#, "ENTER_PIN")
        #expect(await stage.client.ask(#"{"cmd":"SET_PIN","value":"1234"}"#, "MPIN_RESULT")?.status == "OK")
    }

    @Test("a wrong PIN of the card is counted by the card alone, and asked again", arguments: channels)
    func wrongCardPIN(version: String) async throws {
        let stage = try await MPinStage.withCard(version)
        let url = stage.servers.url("none")
        await stage.registerWithCard(at: url)
        #expect(await stage.status("MPIN_START_AUTHENTICATION", stage.who) == "OK")
        let before = try await stage.servers.paths(below: url).count
        let line = #"{"cmd":"MPIN_FINISH_AUTHENTICATION",\#(stage.who)}"#
        await stage.insertIfAway()
        _ = await stage.client.ask(line, "ENTER_PIN")
        let wrong = await stage.client.ask(#"{"cmd":"SET_PIN","value":"000000"}"#, "INVALID_PIN")
        #expect(wrong?["retryCounter"]?.int == 2)
        #expect(await stage.client.next("ENTER_PIN")?["retryCounter"]?.int == 2)
        #expect(try await stage.servers.paths(below: url).count == before)
        _ = await stage.client.ask(#"{"cmd":"SET_PIN","value":"123456"}"#, "PIN_VALIDATED")
        _ = await stage.client.next("ENTER_PIN")
        #expect(await stage.client.ask(#"{"cmd":"SET_PIN","value":"1234"}"#, "MPIN_RESULT")?.status == "OK")
        #expect(try await stage.tries().pin == 3)
    }

    @Test("a registration under a wallet that badged knows refuses the duress PIN", arguments: channels)
    func duressAtRegistration(version: String) async throws {
        let stage = try await MPinStage.withCard(version)
        // badged knows the wallet when it has compared its words with the card.
        let owner = try WalletUser(stage.server.connect())
        owner.typedWords = MPinStage.words
        let known = try await owner.run(#"{"cmd":"RUN_WALLET","workflow":"AUTHORIZE_DEVICE_WITH_MNEMONICS"}"#)
        #expect(known["msg"] == .string("FLOW_COMPLETE"), "\(known)")
        owner.client.close()
        await stage.insertIfAway()
        try await stage.waitForCard()
        await stage.confirm()
        stage.cardPIN = "111111"
        let refused = await stage.run("MPIN_FINISH_REGISTRATION", #"\#(stage.who),"card":true"#)
        #expect(refused.status == "STORAGE_ERROR")
        #expect(refused["errorMessage"]?.string?.contains("WRONG_WALLET") == true, "\(refused)")
        #expect(!stage.heard.contains { $0["factor"] != nil }, "no PIN of M-Pin is asked for")
        stage.cardPIN = "123456"
        #expect(await stage.status("MPIN_FINISH_REGISTRATION", #"\#(stage.who),"card":true"#) == "OK")
    }

    @Test("the duress PIN opens no token, and nothing is sent to the server", arguments: channels)
    func duress(version: String) async throws {
        let stage = try await MPinStage.withCard(version)
        let url = stage.servers.url("none")
        await stage.registerWithCard(at: url)
        #expect(await stage.status("MPIN_START_AUTHENTICATION", stage.who) == "OK")
        let before = try await stage.servers.paths(below: url).count
        stage.cardPIN = "111111"
        let end = await stage.run("MPIN_FINISH_AUTHENTICATION", stage.who)
        #expect(end.status == "STORAGE_ERROR")
        #expect(end["errorMessage"]?.string?.contains("duress") == true)
        #expect(!stage.heard.contains { $0["factor"] != nil })
        #expect(try await stage.servers.paths(below: url).count == before)
        stage.cardPIN = "123456"
        #expect(await stage.status("MPIN_FINISH_AUTHENTICATION", stage.who) == "OK")
    }

    @Test("a card without tries, without keys or without a PIN seals nothing", arguments: channels)
    func uselessCard(version: String) async throws {
        let rows = [
            (#","retryCounter":0,"pukCounter":0"#, MPinStage.words, "CARD_BLOCKED"),
            (#","initialised":false"#, MPinStage.words, "DEVICE_NOT_SET"),
        ]
        for (members, words, code) in rows {
            let stage = try await MPinStage(readers: FaultyReaders(kinds: [VirtualKeycardKind()]))
            try await stage.insert(version, words: words, members)
            await stage.confirm()
            let end = await stage.run("MPIN_FINISH_REGISTRATION", #"\#(stage.who),"card":true"#)
            #expect(end.status == "STORAGE_ERROR", "\(members)")
            #expect(end["errorMessage"]?.string?.contains(code) == true, "\(end)")
            // The client secret is still there.
            #expect(await stage.status("MPIN_FINISH_REGISTRATION", stage.who) == "OK")
        }
    }

    @Test("CANCEL at each question costs no try, and the next login succeeds", arguments: channels)
    func cancel(version: String) async throws {
        let stage = try await MPinStage.withCard(version)
        await stage.registerWithCard()
        #expect(await stage.status("MPIN_START_AUTHENTICATION", stage.who) == "OK")
        let before = try await stage.tries()
        let line = #"{"cmd":"MPIN_FINISH_AUTHENTICATION",\#(stage.who)}"#

        await stage.server.withdraw()
        _ = await stage.client.ask(line, "INSERT_CARD")
        #expect(await stage.client.ask(#"{"cmd":"CANCEL"}"#, "MPIN_RESULT")?.status == "PIN_INPUT_CANCELED")
        await stage.insertIfAway()
        _ = await stage.client.ask(line, "ENTER_PIN")
        #expect(await stage.client.ask(#"{"cmd":"CANCEL"}"#, "MPIN_RESULT")?.status == "PIN_INPUT_CANCELED")
        #expect(!stage.server.isLent())
        #expect(try await stage.tries() == before)
        await stage.insertIfAway()
        _ = await stage.client.ask(line, "ENTER_PIN")
        _ = await stage.client.ask(#"{"cmd":"SET_PIN","value":"123456"}"#, "ENTER_PIN")
        // The card is not needed any more.
        #expect(!stage.server.isLent())
        #expect(await stage.client.ask(#"{"cmd":"CANCEL"}"#, "MPIN_RESULT")?.status == "PIN_INPUT_CANCELED")
        #expect(try await stage.tries().pin == 3)
        #expect(await stage.status("MPIN_FINISH_AUTHENTICATION", stage.who) == "OK")
    }

    @Test("a card that leaves at its question is asked for; at the PIN of M-Pin it may leave", arguments: channels)
    func removal(version: String) async throws {
        let stage = try await MPinStage.withCard(version)
        await stage.registerWithCard()
        #expect(await stage.status("MPIN_START_AUTHENTICATION", stage.who) == "OK")
        await stage.insertIfAway()
        let first = await stage.client.ask(#"{"cmd":"MPIN_FINISH_AUTHENTICATION",\#(stage.who)}"#, "ENTER_PIN")
        await stage.server.withdraw()
        _ = await stage.client.next("INSERT_CARD")
        await stage.insertIfAway()
        let second = await stage.client.next("ENTER_PIN")
        #expect(first?["question"] != second?["question"])
        _ = await stage.client.ask(#"{"cmd":"SET_PIN","value":"123456"}"#, "ENTER_PIN")
        await stage.server.withdraw()
        #expect(await stage.client.ask(#"{"cmd":"SET_PIN","value":"1234"}"#, "MPIN_RESULT")?.status == "OK")
        #expect(try await stage.tries().pin == 3)
    }

    @Test("another user of the system has a user of the same name, and a token of his own under the same card")
    func otherUser() async throws {
        let stage = try await MPinStage.withCard("4.0")
        await stage.registerWithCard()
        let other = try stage.server.connect(uid: 1001, .all)
        let url = #""url":"\#(stage.servers.url)""#
        _ = await stage.run("MPIN_INIT", by: other)
        #expect(await stage.run("MPIN_SET_BACKEND", url, by: other).status == "OK")
        #expect(await stage.run("MPIN_USERS", by: other)["users"]?.array == [])
        for command in ["START_AUTHENTICATION", "FINISH_AUTHENTICATION", "DELETE_USER"] {
            #expect(await stage.run("MPIN_\(command)", stage.who, by: other).status == "FLOW_ERROR")
        }
        for command in ["MAKE_USER", "START_REGISTRATION", "CONFIRM_REGISTRATION"] {
            #expect(await stage.run("MPIN_\(command)", stage.who, by: other).status == "OK")
        }
        let finish = #"\#(stage.who),"card":true"#
        #expect(await stage.run("MPIN_FINISH_REGISTRATION", finish, pin: "9876", by: other).status == "OK")
        let start = await stage.run("MPIN_START_AUTHENTICATION", stage.who, by: other)
        #expect(start.status == "OK", "\(start)")
        let login = await stage.run("MPIN_FINISH_AUTHENTICATION", stage.who, pin: "9876", by: other)
        #expect(login.status == "OK")
        #expect(await stage.logIn().status == "OK")
    }

    @Test("a sealed token is opened by its key, for its owner, and unchanged only")
    func seal() throws {
        let token = Secret([UInt8](repeating: 4, count: 65))
        let seal = CardSeal(keyUID: [], Secret([UInt8](repeating: 7, count: 32)))
        let sealed = try seal.seal(token, of: "1000/a/login")
        let opened = try seal.open(sealed, of: "1000/a/login")?.take()?.withBytes { Array($0) }
        #expect(opened == token.withBytes { Array($0) })
        #expect(try seal.open(sealed, of: "1000/a/signing") == nil)
        #expect(try seal.open(sealed, of: "1001/a/login") == nil)
        let other = CardSeal(keyUID: [], Secret([UInt8](repeating: 8, count: 32)))
        #expect(try other.open(sealed, of: "1000/a/login") == nil)
        let bytes = sealed.withBytes { Array($0) }
        for wrong in changed(bytes) { #expect(try seal.open(Secret(wrong), of: "1000/a/login") == nil) }
        for count in [0, 1, 32, 48, bytes.count - 1] {
            #expect(try seal.open(Secret(bytes.prefix(count)), of: "1000/a/login") == nil, "\(count)")
        }
        // The same token is never sealed in the same way.
        #expect(try seal.seal(token, of: "1000/a/login").withBytes { Array($0) } != bytes)
    }
}
