// SPDX-License-Identifier: GPL-3.0-or-later
import Concurrency
import HDWallet
import Host
import Keycard
import TestSupport
import Testing
import Text
import VirtualKeycard

/// The versions of cards, as `version` of SET_CARD.
let generations = ["3.0", "3.1", "4.0"]
/// Those that can be reset.
let resettable = ["3.1", "4.0"]

@Suite("Workflows with the card itself", .timeLimit(.minutes(5)))
@Loop struct CardWorkflowTests {
    private let bench: WalletBench

    init() async throws { bench = try await WalletBench() }

    private static let words = "legal winner thank year wave sausage worth useful legal winner thank yellow"

    private func card(_ version: String, _ more: String = "") -> String {
        #"{"kind":"keycard","version":"\#(version)","words":"\#(Self.words)"\#(more)}"#
    }

    @Test("RESET_PIN changes the PIN of a card with the old one", arguments: generations)
    func changePIN(version: String) async throws {
        let user = try await bench.user(with: card(version))
        let end = try await user.run(#"{"cmd":"RUN_WALLET","workflow":"RESET_PIN","userId":"u1"}"#)
        #expect(end["msg"] == .string("FLOW_COMPLETE"))
        #expect(user.names == ["FLOW_STARTED", "ENTER_PIN", "PIN_VALIDATED", "ENTER_NEW_PIN", "FLOW_COMPLETE"])
        #expect(user.last("ENTER_PIN")?["retryCounter"]?.int == 3)
        #expect(user.last("ENTER_PIN")?["userId"] == .string("u1"))
        #expect(end["workflowContext"] == user.last("FLOW_STARTED")?["workflowContext"])
        #expect(end["contextEntity"]?["entityType"] == .string("card"))

        try await bench.insertAgain()
        user.answers["ENTER_PIN"] = [
            #"{"cmd":"SET_PIN","value":"\#(WalletUser.pin)"}"#, #"{"cmd":"SET_PIN","value":"\#(WalletUser.newPIN)"}"#,
        ]
        user.answers["ENTER_NEW_PIN"] = [#"{"cmd":"SET_NEW_PIN","value":"111222"}"#]
        _ = try await user.run(#"{"cmd":"RUN_WALLET","workflow":"RESET_PIN"}"#)
        #expect(
            user.names == [
                "FLOW_STARTED", "ENTER_PIN", "INVALID_PIN", "ENTER_PIN", "PIN_VALIDATED", "ENTER_NEW_PIN",
                "FLOW_COMPLETE",
            ]
        )
        #expect(user.last("INVALID_PIN")?["retryCounter"]?.int == 2)
    }

    @Test("after three wrong PINs the card takes the PUK and a new PIN", arguments: generations)
    func unblock(version: String) async throws {
        let user = try await bench.user(with: card(version, #","retryCounter":1"#))
        user.answers["ENTER_PIN"] = [#"{"cmd":"SET_PIN","value":"000000"}"#]
        user.answers["ENTER_PUK"] = [
            #"{"cmd":"SET_PUK","value":"000000000000"}"#, #"{"cmd":"SET_PUK","value":"\#(WalletUser.puk)"}"#,
        ]
        let end = try await user.run(#"{"cmd":"RUN_WALLET","workflow":"RESET_PIN"}"#)
        #expect(
            user.names == [
                "FLOW_STARTED", "ENTER_PIN", "INVALID_PIN", "ENTER_PUK", "ENTER_NEW_PIN", "INVALID_PUK", "ENTER_PUK",
                "ENTER_NEW_PIN", "PIN_VALIDATED", "FLOW_COMPLETE",
            ]
        )
        #expect(user.last("INVALID_PIN")?["retryCounter"]?.int == 0)
        #expect(user.last("INVALID_PUK")?["retryCounter"]?.int == 4)
        #expect(end.entity?["pinTries"]?.int == 3)
        #expect(end.entity?["pukTries"]?.int == 5)
    }

    @Test("a card without any tries ends the workflow", arguments: generations)
    func blocked(version: String) async throws {
        let user = try await bench.user(with: card(version, #","retryCounter":0,"pukCounter":1"#))
        user.answers["ENTER_PUK"] = [#"{"cmd":"SET_PUK","value":"000000000000"}"#]
        let end = try await user.run(#"{"cmd":"RUN_WALLET","workflow":"RESET_PIN"}"#)
        #expect(end.code == "CARD_BLOCKED")
        #expect(user.names.filter { $0 == "ENTER_PUK" }.count == 1)
    }

    @Test("RESET_PIN by the PUK is refused while the PIN has tries", arguments: generations)
    func notBlocked(version: String) async throws {
        let user = try await bench.user(with: card(version))
        let end = try await user.run(#"{"cmd":"RUN_WALLET","workflow":"RESET_PIN","puk":true}"#)
        #expect(end.code == "PIN_NOT_BLOCKED")
        #expect(user.names == ["FLOW_STARTED", "FLOW_INTERRUPTED"])
    }

    @Test("after PAIR the counters of a 3.1 card are known, and UNPAIR frees the slot")
    func pairing() async throws {
        let user = try await bench.user(with: card("3.1"))
        let paired = try await user.run(#"{"cmd":"RUN_WALLET","workflow":"PAIR"}"#)
        #expect(user.names == ["FLOW_STARTED", "FLOW_COMPLETE"])
        #expect(paired.entity?["paired"] == .bool(true))
        #expect(paired.entity?["pinTries"]?.int == 3)
        #expect(try await bench.info().freeSlots == 4)

        try await bench.insertAgain()
        var reader = await user.client.next("READER")
        while reader?["card"]?["kind"] == nil { reader = await user.client.next("READER") }
        #expect(reader?["card"]?["paired"] == .bool(true))
        #expect(reader?["card"]?["pukTries"]?.int == 5)

        let unpaired = try await user.run(#"{"cmd":"RUN_WALLET","workflow":"UNPAIR"}"#)
        #expect(user.names == ["FLOW_STARTED", "ENTER_PIN", "PIN_VALIDATED", "FLOW_COMPLETE"])
        #expect(unpaired.entity?["paired"] == .bool(false))
        #expect(try await bench.info().freeSlots == 5)

        try await bench.insertAgain()
        let again = try await user.run(#"{"cmd":"RUN_WALLET","workflow":"UNPAIR"}"#)
        #expect(again.code == "NOT_PAIRED")
    }

    @Test("UNPAIR with others frees the slots of other computers after the PIN, and keeps the own one")
    func unpairOthers() async throws {
        let user = try await bench.user(with: card("3.1"))
        // Lost computers: each has paired, and nobody has its key.
        for _ in 1...4 {
            let applet = try await KeycardApplet.select(on: VirtualCardChannel(try await bench.card()))
            _ = try await applet.pairWithStandardPassword()
        }
        let done = try await user.run(#"{"cmd":"RUN_WALLET","workflow":"UNPAIR","others":true}"#)
        #expect(user.names == ["FLOW_STARTED", "ENTER_PIN", "PIN_VALIDATED", "FLOW_COMPLETE"], "\(done)")
        #expect(done.entity?["freeSlots"]?.int == 4 && done.entity?["usedSlots"]?.int == 1, "\(done)")
        #expect(done.entity?["paired"] == .bool(true))
        #expect(try await bench.info().freeSlots == 4)
        // The own pairing still works.
        try await bench.insertAgain()
        let pin = try await user.run(#"{"cmd":"RUN_WALLET","workflow":"RESET_PIN"}"#)
        #expect(pin["msg"] == .string("FLOW_COMPLETE"), "\(pin)")
        #expect(try await bench.info().freeSlots == 4)
    }

    @Test("a 3.1 card with its own pairing password asks for it, and a wrong one uses no slot")
    func pairingPassword() async throws {
        let user = try await bench.user(with: card("3.1", #","pairingPassword":"own password""#))
        user.answers["ENTER_PAIRING_PASSWORD"] = [
            #"{"cmd":"SET_PAIRING_PASSWORD","value":""}"#, #"{"cmd":"SET_PAIRING_PASSWORD","value":"wrong"}"#,
            #"{"cmd":"SET_PAIRING_PASSWORD","value":"own password"}"#,
        ]
        _ = try await user.run(#"{"cmd":"RUN_WALLET","workflow":"PAIR"}"#)
        #expect(
            user.names == ["FLOW_STARTED"] + Array(repeating: "ENTER_PAIRING_PASSWORD", count: 3) + ["FLOW_COMPLETE"]
        )
        #expect(
            user.heard.dropFirst().map { $0["error"]?.string } == [
                nil, "You must provide 1 - 128 ASCII characters", "The card does not know this pairing password", nil,
            ]
        )
        // Only the last one was tried with the card.
        #expect(user.heard.dropFirst().map { $0["wrong"]?.bool } == [nil, nil, true, nil])
        #expect(try await bench.info().freeSlots == 4)
    }

    @Test("a card of a foreign authority is refused by the name of the authority")
    func foreign() async throws {
        let bench = try await WalletBench(trustsVirtualCards: false)
        let user = try await bench.user(with: card("4.0"))
        let end = try await user.run(#"{"cmd":"RUN_WALLET","workflow":"RESET_PIN"}"#)
        #expect(end.code == "FOREIGN_CARD")
        let message = try #require(end["error"]?["message"]?.string)
        let authority = try VirtualKeycardDescription.authority().publicKey.compressed
        #expect(message.contains(Hex.encode(authority)))
        let identity = try #require(try await bench.info().certificate?.identity.compressed)
        #expect(message.contains("add the line 'cards = \(Hex.encode(identity))' to [wallet]"), "\(message)")
    }

    @Test("a 4.0 card needs no pairing", arguments: ["PAIR", "UNPAIR"])
    func noPairing(workflow: String) async throws {
        let user = try await bench.user(with: card("4.0"))
        #expect(try await user.run(#"{"cmd":"RUN_WALLET","workflow":"\#(workflow)"}"#).code == "UNSUPPORTED_CARD")
    }

    @Test("without a store no 3.1 card is paired")
    func noStore() async throws {
        let bench = try await WalletBench(hasStore: false)
        let user = try await bench.user(with: card("3.1"))
        #expect(try await user.run(#"{"cmd":"RUN_WALLET","workflow":"PAIR"}"#).code == "STORE_UNAVAILABLE")
        #expect(try await bench.info().freeSlots == 5)
    }

    @Test("RESET_CARD resets the card with this key UID only", arguments: resettable)
    func reset(version: String) async throws {
        let user = try await bench.user(with: card(version))
        let uid = try await keyUID(user)
        let other = String(repeating: "0", count: 64)
        await user.client.send(#"{"cmd":"RUN_WALLET","workflow":"RESET_CARD","keyUID":"\#(other)"}"#)
        let waiting = await user.client.next("INSERT_CARD")
        #expect(waiting?["error"]?.string?.contains("does not have the keys") == true)
        await user.client.send(#"{"cmd":"CANCEL"}"#)
        #expect(await user.client.next("FLOW_INTERRUPTED")?.code == "USER_CANCELED")

        let end = try await user.run(#"{"cmd":"RUN_WALLET","workflow":"RESET_CARD","keyUID":"\#(uid)"}"#)
        #expect(end["msg"] == .string("FLOW_COMPLETE"))
        #expect(end.entity?["initialised"] == .bool(false))
        #expect(end.entity?["keyUID"] == .null)
    }

    @Test("RESET_CARD of a 3.0 card is refused, and the way of a blocked one is another card")
    func notResettable() async throws {
        let user = try await bench.user(with: card("3.0"))
        let uid = try await keyUID(user)
        let end = try await user.run(#"{"cmd":"RUN_WALLET","workflow":"RESET_CARD","keyUID":"\#(uid)"}"#)
        #expect(end.code == "UNSUPPORTED_CARD")
        #expect(end["error"]?["change"] == nil)
        #expect(try await bench.secrets().isInitialized)
        try await bench.insert(card("3.0", #","retryCounter":0,"pukCounter":0"#))
        let blocked = try await user.run(#"{"cmd":"RUN_WALLET","workflow":"RESET_PIN"}"#)
        #expect(blocked.code == "CARD_BLOCKED")
        #expect(blocked["error"]?["message"]?.string?.contains("cannot be reset") == true, "\(blocked)")
    }

    @Test(
        "a card of another version is refused by name before any question",
        arguments: [0x0102, 0x0202, 0x0300 - 1, 0x0302, 0x0401, 0x0500] as [UInt16],
        ["3.1", "4.0"]
    )
    func otherVersion(version: UInt16, form: String) async throws {
        try await bench.insert(card(form))
        await bench.server.withdraw()
        try await bench.card().tell(version)
        try await bench.insertAgain()
        let user = try WalletUser(bench)
        let uid = try await keyUID(user)
        let name = "has version \(version >> 8).\(version & 0xFF); badged supports 3.0, 3.1 and 4.0"
        let workflows = [
            #""SETUP_DEVICE""#, #""AUTHORIZE_DEVICE_WITH_MNEMONICS""#, #""RESET_PIN""#, #""RESET_PIN","puk":true"#,
            #""PAIR""#, #""UNPAIR""#, #""ACTIVATE_USER","challenge":"c""#,
            #""ADD_SESSION","spendingLimit":"1","expirationTime":2"#, #""RESET_CARD","keyUID":"\#(uid)""#,
            #""RESET_CARD","keyUID":"""#,
        ]
        for workflow in workflows {
            let end = try await user.run(#"{"cmd":"RUN_WALLET","workflow":\#(workflow)}"#)
            #expect(end.code == "UNSUPPORTED_CARD", "\(workflow): \(end)")
            #expect(end["error"]?["message"]?.string?.contains(name) == true, "\(end)")
            #expect(user.names == ["FLOW_STARTED", "FLOW_INTERRUPTED"], "\(workflow)")
        }
        let client = try bench.server.connect()
        let health = await client.ask(#"{"cmd":"GET_HEALTH"}"#, "HEALTH")
        let check = health?["checks"]?.array?.first { $0["name"] == .string("wallet card") }
        #expect(check?["advice"]?.string?.contains(name) == true, "\(health ?? .null)")
        let readers = await client.ask(#"{"cmd":"GET_READER_LIST"}"#, "READER_LIST")
        let told = readers?["readers"]?.array?.first?["card"] ?? readers?["reader"]?.array?.first?["card"]
        #expect(told?["supported"] == .bool(false), "\(readers ?? .null)")
    }

    @Test("after the duress PIN, the PUK opens the main wallet of a 3.1 card")
    func unblockAfterDuress() async throws {
        let user = try await bench.user(with: card("3.1"))
        user.answers["ENTER_WORDS"] = [#"{"cmd":"SET_WORDS","value":"\#(Self.words)"}"#]
        let known = try await user.run(#"{"cmd":"RUN_WALLET","workflow":"AUTHORIZE_DEVICE_WITH_MNEMONICS"}"#)
        let address = try #require(known.entity?["address"])
        try await bench.insertAgain()
        user.answers["ENTER_PIN"] = [
            #"{"cmd":"SET_PIN","value":"111111"}"#, #"{"cmd":"SET_PIN","value":"000000"}"#,
        ]
        let duress = try await user.run(#"{"cmd":"RUN_WALLET","workflow":"ACTIVATE_USER","challenge":"c"}"#)
        #expect(duress.entity?["signer"] != address)
        try await bench.insertAgain()
        let end = try await user.run(#"{"cmd":"RUN_WALLET","workflow":"ACTIVATE_USER","challenge":"c"}"#)
        #expect(user.names.contains("ENTER_PUK"))
        #expect(end.entity?["signer"] == address, "\(end)")
    }

    /// The key UID in READER.
    private func keyUID(_ user: WalletUser) async throws -> String {
        while let reader = await user.client.next("READER") {
            if let uid = reader["card"]?["keyUID"]?.string { return uid }
        }
        throw WalletTestError.connectionClosed
    }

    @Test("RUN_WALLET without the permission, twice, or with wrong members is refused")
    func refusals() async throws {
        let bench = try await WalletBench(permissions: [.readers, .cards])
        let user = try WalletUser(bench)
        let denied = await user.client.ask(#"{"cmd":"RUN_WALLET","workflow":"PAIR"}"#, "ACCESS_DENIED")
        #expect(denied?["error"] == .string("RUN_WALLET"))

        let open = try await WalletBench()
        let client = try open.server.connect()
        let long = String(repeating: "u", count: 257)
        let wrong: [(members: String, code: String)] = [
            ("", "INVALID_WORKFLOW"), (#""workflow":7"#, "INVALID_WORKFLOW"),
            (#""workflow":"FLY""#, "INVALID_WORKFLOW"),
            (#""workflow":"GET_DEVICE_MNEMONICS""#, "MNEMONICS_NOT_STORED"),
            (#""workflow":"INITIATE_DEVICE_RECOVERY""#, "UNSUPPORTED_WORKFLOW"),
            (#""workflow":"ABORT_DEVICE_RECOVERY""#, "UNSUPPORTED_WORKFLOW"),
            (#""workflow":"LOGOUT_ALL_SESSIONS""#, "UNSUPPORTED_WORKFLOW"),
            (#""workflow":"UPDATE_BIOMETRIC""#, "UNSUPPORTED_WORKFLOW"),
            (#""workflow":"PAIR","userId":"\#(long)""#, "INVALID_USER_ID"),
            (#""workflow":"PAIR","tokenId":"""#, "INVALID_TOKEN_ID"),
            (#""workflow":"PAIR","reader":5"#, "INVALID_DATA"),
            (#""workflow":"RESET_PIN","puk":"yes""#, "INVALID_DATA"),
            (#""workflow":"RESET_CARD""#, "INVALID_DATA"), (#""workflow":"RESET_CARD","keyUID":"00""#, "INVALID_DATA"),
        ]
        for (members, code) in wrong {
            let comma = members.isEmpty ? "" : ","
            await client.send(#"{"cmd":"RUN_WALLET","request":1\#(comma)\#(members)}"#)
            let answer = await client.next("FLOW_INTERRUPTED")
            #expect(answer?.code == code, "\(members)")
            #expect(answer?["request"]?.int == 1)
            #expect(answer?["workflowContext"]?["workflowId"] == .null)
        }
        await client.send(#"{"cmd":"RUN_WALLET","workflow":"PAIR"}"#, #"{"cmd":"RUN_WALLET","workflow":"PAIR"}"#)
        #expect(await client.next("BAD_STATE")?["error"] == .string("RUN_WALLET"))
    }
}
