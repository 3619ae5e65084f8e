// SPDX-License-Identifier: GPL-3.0-or-later
import Concurrency
import Host
import Keycard
import Server
import TestSupport
import Testing
import Text

@Suite("A card that leaves, a client that does not answer", .timeLimit(.minutes(5)))
@Loop struct LostCardTests {
    private static let words = Array(repeating: "abandon", count: 11).joined(separator: " ") + " about"

    private func card(_ version: String, _ more: String = "") -> String {
        #"{"kind":"keycard","version":"\#(version)"\#(more)}"#
    }

    @Test(
        "when the card leaves, the PIN is asked again, and the answer to the first question is not used",
        arguments: generations
    )
    func pin(version: String) async throws {
        let bench = try await WalletBench()
        try await bench.insert(card(version, #","words":"\#(Self.words)""#))
        let client = try bench.server.connect()
        let first = await client.ask(#"{"cmd":"RUN_WALLET","workflow":"RESET_PIN"}"#, "ENTER_PIN")
        await bench.server.withdraw()
        _ = await client.next("INSERT_CARD")
        try await bench.insertAgain()
        let second = await client.next("ENTER_PIN")
        let (old, new) = (try #require(first?["question"]?.int), try #require(second?["question"]?.int))
        #expect(old != new)
        let late = await client.ask(#"{"cmd":"SET_PIN","question":\#(old),"value":"123456"}"#, "BAD_STATE")
        #expect(late?["error"] == .string("SET_PIN"))
        let asked = await client.ask(#"{"cmd":"SET_PIN","question":\#(new),"value":"123456"}"#, "ENTER_NEW_PIN")
        #expect(asked != nil)
        let end = await client.ask(#"{"cmd":"SET_NEW_PIN","value":"654321"}"#, "FLOW_COMPLETE")
        #expect(end?.entity?["pinTries"]?.int == 3)
    }

    @Test("words are shown once, also if the card is away while the user writes them down", arguments: generations)
    func words(version: String) async throws {
        let bench = try await WalletBench()
        let user = try await bench.user(with: card(version))
        user.pausesAt = "SHOW_PAPER_WALLET"
        let shown = try await user.run(#"{"cmd":"RUN_WALLET","workflow":"SETUP_DEVICE"}"#)
        #expect(shown["msg"] == .string("SHOW_PAPER_WALLET"))
        await bench.server.withdraw()
        user.pausesAt = nil
        user.knowsCard = bench
        user.noteWords(shown)
        await user.client.send(#"{"cmd":"ACCEPT"}"#)
        let end = try await user.untilTheEnd()
        #expect(end.entity?["created"] == .bool(true), "\(end)")
        #expect(user.names.count { $0 == "SHOW_PAPER_WALLET" } == 1)
        #expect(user.names.count { $0 == "ENTER_PIN" } == 2)
    }

    @Test("a cancelled SETUP_DEVICE tells what the card has", arguments: generations)
    func cancelledSetup(version: String) async throws {
        let bench = try await WalletBench()
        let user = try await bench.user(with: card(version, #","initialised":false"#))
        let rows = [
            ("SHOW_PAPER_WALLET", "The card has the new PIN and PUK"), ("REGISTER_DEVICE", "the keys of the words"),
        ]
        for (question, change) in rows {
            user.pausesAt = question
            let asked = try await user.run(#"{"cmd":"RUN_WALLET","workflow":"SETUP_DEVICE"}"#)
            #expect(asked["msg"]?.string == question)
            await user.client.send(#"{"cmd":"CANCEL"}"#)
            let end = await user.client.next("FLOW_INTERRUPTED")
            #expect(end?["error"]?["change"]?.string?.contains(change) == true, "\(question): \(end ?? .null)")
            try await bench.insertAgain()
        }
    }

    @Test("another card gets other words")
    func otherCard() async throws {
        let bench = try await WalletBench()
        let user = try await bench.user(with: card("4.0"))
        user.pausesAt = "SHOW_PAPER_WALLET"
        let first = try await user.run(#"{"cmd":"RUN_WALLET","workflow":"SETUP_DEVICE"}"#)
        await bench.server.withdraw()
        try await bench.insert(card("4.0"))
        user.noteWords(first)
        await user.client.send(#"{"cmd":"ACCEPT"}"#)
        let second = try await user.untilTheEnd()
        #expect(second["msg"] == .string("SHOW_PAPER_WALLET"))
        #expect(first["mnemonics"] != second["mnemonics"])
        user.pausesAt = nil
        user.noteWords(second)
        await user.client.send(#"{"cmd":"ACCEPT"}"#)
        #expect(try await user.untilTheEnd().entity?["created"] == .bool(true))
    }

    @Test("a 4.0 card whose PUK unblocks the duress wallet ends the workflow with WRONG_WALLET")
    func duress() async throws {
        let bench = try await WalletBench()
        let user = try await bench.user(with: card("4.0", #","words":"\#(Self.words)""#))
        user.answers["ENTER_WORDS"] = [#"{"cmd":"SET_WORDS","value":"\#(Self.words)"}"#]
        let known = try await user.run(#"{"cmd":"RUN_WALLET","workflow":"AUTHORIZE_DEVICE_WITH_MNEMONICS"}"#)
        #expect(known["msg"] == .string("FLOW_COMPLETE"))
        try await bench.insertAgain()
        user.answers["ENTER_PIN"] = [#"{"cmd":"SET_PIN","value":"111111"}"#, #"{"cmd":"SET_PIN","value":"000000"}"#]
        user.answers["ENTER_NEW_PIN"] = [
            #"{"cmd":"SET_NEW_PIN","value":"222222"}"#, #"{"cmd":"SET_NEW_PIN","value":"333333"}"#,
        ]
        _ = try await user.run(#"{"cmd":"RUN_WALLET","workflow":"RESET_PIN"}"#)
        try await bench.insertAgain()
        let end = try await user.run(#"{"cmd":"RUN_WALLET","workflow":"RESET_PIN"}"#)
        #expect(end.code == "WRONG_WALLET", "\(user.names)")
        #expect(!user.names.contains("PIN_VALIDATED"))
    }

    /// Inserts a new card whose PIN is blocked, and runs RESET_PIN until the new PIN is asked for.
    private func untilNewPIN(of user: WalletUser, _ bench: WalletBench, _ version: String) async throws {
        try await bench.insert(card(version, #","words":"\#(Self.words)","retryCounter":0"#))
        try await bench.waitForCard()
        user.pausesAt = "ENTER_NEW_PIN"
        _ = try await user.run(#"{"cmd":"RUN_WALLET","workflow":"RESET_PIN","puk":true}"#)
        user.pausesAt = nil
    }

    @Test("an end after UNBLOCK PIN whose answer was lost says which PIN the card has", arguments: generations)
    func lostUnblock(version: String) async throws {
        let bench = try await WalletBench(withFaults: true)
        let faults = try #require(bench.faults)
        let user = try WalletUser(bench)
        // The commands from the PUK on: UNBLOCK PIN, VERIFY PIN, GET STATUS.
        for index in 0..<3 {
            try await untilNewPIN(of: user, bench, version)
            faults.arm((index, .removedAfter))
            await user.client.send(#"{"cmd":"SET_NEW_PIN","value":"\#(WalletUser.newPIN)"}"#)
            _ = await user.client.next("INSERT_CARD")
            faults.arm(nil)
            await user.client.send(#"{"cmd":"CANCEL"}"#)
            let end = await user.client.next("FLOW_INTERRUPTED")
            #expect(try await bench.secrets().pin == WalletUser.newPIN, "\(index)")
            #expect(end?.code == "USER_CANCELED")
            #expect(end?["error"]?["change"]?.string?.contains("new PIN") == true, "\(index): \(end ?? .null)")
        }
    }

    @Test("after a lost answer to UNBLOCK PIN, RESET_PIN goes on with the new PIN", arguments: generations)
    func resumedUnblock(version: String) async throws {
        let bench = try await WalletBench(withFaults: true)
        let faults = try #require(bench.faults)
        let user = try WalletUser(bench)
        try await untilNewPIN(of: user, bench, version)
        faults.arm((0, .removedAfter))
        user.knowsCard = bench
        await user.client.send(#"{"cmd":"SET_NEW_PIN","value":"\#(WalletUser.newPIN)"}"#)
        let end = try await user.untilTheEnd()
        #expect(end["msg"] == .string("FLOW_COMPLETE"), "\(user.names) \(end)")
        #expect(try await bench.secrets().pin == WalletUser.newPIN)
    }

    // MARK: Another card in its place

    /// Runs a workflow until a question. After its answer the card leaves with the answer to the command of this index.
    private func lose(
        _ bench: WalletBench,
        _ user: WalletUser,
        _ members: String,
        at question: String,
        _ answer: String,
        command index: Int = 0
    ) async throws {
        let faults = try #require(bench.faults)
        user.pausesAt = question
        let asked = try await user.run(#"{"cmd":"RUN_WALLET",\#(members)}"#)
        #expect(asked["msg"] == .string(question), "\(asked)")
        if question == "SHOW_PAPER_WALLET" { user.noteWords(asked) }
        faults.arm((index, .removedAfter))
        user.pausesAt = "INSERT_CARD"
        await user.client.send(answer)
        #expect(try await user.untilTheEnd()["msg"] == .string("INSERT_CARD"))
        faults.arm(nil)
        user.pausesAt = nil
    }

    @Test("a new PIN of the duress wallet is found also if the answer to UNBLOCK PIN was lost")
    func lostUnblockOfDuress() async throws {
        let bench = try await WalletBench(withFaults: true)
        let user = try await bench.user(with: card("4.0", #","words":"\#(Self.words)""#))
        user.answers["ENTER_WORDS"] = [#"{"cmd":"SET_WORDS","value":"\#(Self.words)"}"#]
        _ = try await user.run(#"{"cmd":"RUN_WALLET","workflow":"AUTHORIZE_DEVICE_WITH_MNEMONICS"}"#)
        try await bench.insertAgain()
        // The duress PIN is the one that was used last.
        user.answers["ENTER_PIN"] = [#"{"cmd":"SET_PIN","value":"111111"}"#, #"{"cmd":"SET_PIN","value":"000000"}"#]
        _ = try await user.run(#"{"cmd":"RUN_WALLET","workflow":"RESET_PIN"}"#)
        try await bench.insertAgain()
        let newPIN = #"{"cmd":"SET_NEW_PIN","value":"333333"}"#
        try await lose(bench, user, #""workflow":"RESET_PIN""#, at: "ENTER_NEW_PIN", newPIN)
        user.answers["ENTER_PIN"] = [#"{"cmd":"SET_PIN","value":"333333"}"#]
        try await bench.insertAgain()
        #expect(try await user.untilTheEnd().code == "WRONG_WALLET", "\(user.names)")
        #expect(!user.names.contains("PIN_VALIDATED"))
    }

    @Test("a card that takes the place of the one that got INIT has no duress PIN", arguments: ["3.1", "4.0"])
    func swappedAfterInit(version: String) async throws {
        let bench = try await WalletBench(withFaults: true)
        let user = try await bench.user(with: card(version, #","initialised":false"#))
        let members = #""workflow":"SETUP_DEVICE","duressPin":true"#
        let puk = #"{"cmd":"SET_NEW_PUK","value":"\#(WalletUser.puk)"}"#
        try await lose(bench, user, members, at: "ENTER_NEW_PUK", puk)
        try await bench.insert(card(version))
        let end = try await user.untilTheEnd()
        #expect(end.code == "DEVICE_ALREADY_SET", "\(end)")
        #expect(end["error"]?["change"]?.string?.contains("not known whether the card has the new PIN") == true)
        #expect(try await bench.secrets().checks == 0)
    }

    @Test(
        "a card with other keys does not take the place of the one that got the keys of the words",
        arguments: [
            ("", "SHOW_PAPER_WALLET", #"{"cmd":"ACCEPT"}"#, "DIFFERENT_OWNER_DEVICE"),
            (
                #","passphrase":true"#, "ENTER_PASSPHRASE",
                #"{"cmd":"SET_PASSPHRASE","value":"\#(WalletUser.passphrase)"}"#, "DEVICE_ALREADY_SET"
            ),
        ]
    )
    func swappedAfterLoading(members: String, question: String, answer: String, code: String) async throws {
        let bench = try await WalletBench(withFaults: true)
        let user = try await bench.user(with: card("4.0"))
        try await lose(bench, user, #""workflow":"SETUP_DEVICE"\#(members)"#, at: question, answer)
        try await bench.insert(card("4.0", #","words":"\#(Self.words)""#))
        let end = try await user.untilTheEnd()
        #expect(end.code == code, "\(end)")
        #expect(end["error"]?["change"]?.string?.contains("not known whether the card has the keys") == true)
        #expect(try await bench.secrets().checks == 0)
    }

    @Test("keys are removed only from a card that this workflow has loaded", arguments: ["3.1", "4.0"])
    func keepsBackup(version: String) async throws {
        let bench = try await WalletBench(withFaults: true)
        let user = try await bench.user(with: card(version))
        user.answers["ENTER_WORDS"] = [#"{"cmd":"SET_WORDS","value":"\#(Self.words)"}"#]
        let members = #""workflow":"AUTHORIZE_DEVICE_WITH_MNEMONICS""#
        // After VERIFY PIN and GET STATUS comes LOAD KEY.
        try await lose(bench, user, members, at: "ENTER_PIN", #"{"cmd":"SET_PIN","value":"123456"}"#, command: 2)
        #expect(try await bench.info().keyUID != nil)
        // The duress PIN opens a wallet with other keys than those of the words.
        user.answers["ENTER_PIN"] = [#"{"cmd":"SET_PIN","value":"111111"}"#]
        try await bench.insert(card(version, #","words":"\#(Self.words)""#))
        #expect(try await user.untilTheEnd().code == "WRONG_WALLET", "\(user.names)")
        #expect(try await bench.info().keyUID != nil)
    }

    @Test("a blocked card can be reset", arguments: resettable)
    func resetOfBlockedCard(version: String) async throws {
        let bench = try await WalletBench()
        let user = try await bench.user(with: card(version, #","retryCounter":0,"pukCounter":0"#))
        #expect(try await user.run(#"{"cmd":"RUN_WALLET","workflow":"RESET_PIN"}"#).code == "CARD_BLOCKED")
        try await bench.insertAgain()
        let end = try await user.run(#"{"cmd":"RUN_WALLET","workflow":"RESET_CARD","keyUID":""}"#)
        #expect(end.entity?["initialised"] == .bool(false))
    }

    @Test("a question without an answer ends the workflow with REQUEST_TIMED_OUT, and frees the reader")
    func timeout() async throws {
        var limits = ServerLimits()
        limits.promptTimeout = .milliseconds(1)
        let bench = try await WalletBench(limits: limits)
        let user = try await bench.user(with: card("4.0"))
        user.answers["ENTER_PIN"] = []
        #expect(try await user.run(#"{"cmd":"RUN_WALLET","workflow":"RESET_PIN"}"#).code == "REQUEST_TIMED_OUT")
        #expect(!bench.server.isLent())
    }

    @Test("beyond the limit of workflows RUN_WALLET is refused with the name of the limit")
    func tooMany() async throws {
        var limits = ServerLimits()
        limits.workflows = 1
        let bench = try await WalletBench(limits: limits)
        let (first, second) = (try bench.server.connect(), try bench.server.connect())
        _ = await first.ask(#"{"cmd":"RUN_WALLET","workflow":"PAIR"}"#, "INSERT_CARD")
        let refused = await second.ask(#"{"cmd":"RUN_WALLET","workflow":"PAIR"}"#, "FLOW_INTERRUPTED")
        #expect(refused?.code == "TOO_MANY_WORKFLOWS")
        #expect(refused?["error"]?["message"]?.string?.contains("max_workflows") == true)
    }

    @Test("GET_HEALTH says whether the store can be used")
    func health() async throws {
        let rows: [(Bool, JSON?)] = [(true, .bool(true)), (false, nil)]
        for (hasStore, expected) in rows {
            let bench = try await WalletBench(hasStore: hasStore)
            let client = try bench.server.connect()
            let health = await client.ask(#"{"cmd":"GET_HEALTH"}"#, "HEALTH")
            let check = health?["checks"]?.array?.first { $0["name"] == .string("store") }
            #expect(check?["ok"] == expected)
        }
    }
}
