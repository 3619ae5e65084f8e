// SPDX-License-Identifier: GPL-3.0-or-later
import Concurrency
import Host
import Readers
import ReadersRemote
import ReadersVirtual
import RemoteDevices
import RemoteFeature
import TestSupport
import Testing
import Text
import VirtualEID

@Suite(.timeLimit(.minutes(5))) @Loop struct RemoteTests {
    /// Changes the PIN at the laptop, and returns the final message.
    private func changePIN(_ client: TestClient, _ old: String? = "123456", _ new: String? = "654321") async -> JSON? {
        func command(_ name: String, _ value: String?) -> String {
            value.map { #"{"cmd":"\#(name)","value":"\#($0)"}"# } ?? #"{"cmd":"\#(name)"}"#
        }
        await client.send(#"{"cmd":"RUN_CHANGE_PIN","handleInterrupt":false}"#)
        while let message = await client.next() {
            switch message["msg"]?.string {
            case "ENTER_PIN": await client.send(command("SET_PIN", old))
            case "ENTER_NEW_PIN": await client.send(command("SET_NEW_PIN", new))
            case "CHANGE_PIN" where message["success"] != nil: return message
            default: break
            }
        }
        return nil
    }

    private func reader(_ client: TestClient, _ isReady: (JSON) -> Bool) async -> JSON? {
        while let message = await client.next("READER") { if isReady(message) { return message } }
        return nil
    }

    @Test("A PIN change goes through a borrowed reader, which READER shows as remote")
    func changePIN() async throws {
        let stage = try await RemoteStage.paired()
        let client = try stage.laptop.connect()
        try await stage.desk.insert()
        let name = try await stage.readerName()
        let seen = await reader(client) { $0["card"] != .null && $0["attached"] == .bool(true) }
        #expect(seen?["name"] == .string(name))
        #expect(seen?["remote"] == .bool(true))
        #expect(seen?["keypad"] == .bool(false))
        #expect(await changePIN(client)?["success"] == .bool(true))
        #expect(await changePIN(client, "654321", "123456")?["success"] == .bool(true))
        await stage.stop()
    }

    @Test("A borrowed reader with a keypad asks for the PIN there")
    func keypad() async throws {
        let stage = try await RemoteStage.paired()
        let client = try stage.laptop.connect()
        try await stage.desk.insert(.card { $0.hasKeypad = true })
        let seen = await reader(client) { $0["card"] != .null && $0["keypad"] == .bool(true) }
        #expect(seen?["remote"] == .bool(true))
        #expect(await changePIN(client, nil, nil)?["success"] == .bool(true))
        await stage.stop()
    }

    @Test("A reader that a local workflow has is busy for other devices, and the other way round")
    func exclusion() async throws {
        let stage = try await RemoteStage.paired()
        let (local, remote) = (try stage.desk.connect(), try stage.laptop.connect())
        try await stage.desk.insert()
        _ = await reader(remote) { $0["card"] != .null && $0["attached"] == .bool(true) }
        await local.send(#"{"cmd":"RUN_CHANGE_PIN"}"#)
        _ = await local.next("ENTER_PIN")
        // The desk reports that there is no card now.
        _ = await reader(remote) { $0["card"] == .null }
        await local.send(#"{"cmd":"CANCEL"}"#)
        // A virtual card leaves its reader at the end of the workflow.
        await local.wait {
            let messages = local.transcript
            let reader = messages.last { $0["msg"] == .string("READER") && $0["name"] == .string("Simulator") }
            return reader?["card"] == .null
                && messages.contains { $0["msg"] == .string("CHANGE_PIN") && $0["success"] == .bool(false) }
        }
        try await stage.desk.insert()
        await remote.send(#"{"cmd":"RUN_CHANGE_PIN"}"#)
        _ = await remote.next("ENTER_PIN")
        let answers = await local.exchange(#"{"cmd":"GET_READER","name":"Simulator"}"#, #"{"cmd":"GET_REMOTE"}"#)
        #expect(answers.last { $0["msg"] == .string("READER") }?["busy"] == .bool(true))
        #expect(answers.last { $0["msg"] == .string("REMOTE") }?["used"] == .array([.string("Simulator")]))
        await stage.stop()
    }

    @Test("A card that leaves the shared reader asks again, and costs no try")
    func removal() async throws {
        let stage = try await RemoteStage.paired()
        let client = try stage.laptop.connect()
        try await stage.desk.insert()
        _ = await reader(client) { $0["card"] != .null && $0["attached"] == .bool(true) }
        await client.send(#"{"cmd":"RUN_CHANGE_PIN"}"#)
        _ = await client.next("ENTER_PIN")
        await stage.desk.withdraw()
        _ = await client.next("INSERT_CARD")
        try await stage.desk.insert()
        let prompt = await client.next("ENTER_PIN")
        #expect(prompt?["reader"]?["card"]?["retryCounter"] == .number("3"))
        await stage.stop()
    }

    @Test("A device that is forgotten is refused, and a pairing is never removed by the other side")
    func forgotten() async throws {
        let stage = try await RemoteStage.paired()
        let (local, remote) = (try stage.desk.connect(), try stage.laptop.connect())
        _ = await reader(remote) { $0["attached"] == .bool(true) }
        let laptop = try await stage.laptopStore.identity().fingerprint
        let answer = await local.answer(to: #"{"cmd":"REMOVE_REMOTE","fingerprint":"\#(laptop)"}"#)
        #expect(answer?["error"] == nil)
        _ = await reader(remote) { $0["attached"] == .bool(false) }
        #expect(stage.lenders.devices.count == 1)
        #expect(try await stage.laptopStore.devices(.lender).count == 1)
        #expect(try await stage.deskStore.devices(.borrower).isEmpty)
        await stage.stop()
    }

    @Test("Three wrong codes end the pairing mode; the laptop is not paired")
    func wrongCodes() async throws {
        let stage = try await RemoteStage()
        let (open, client) = (try stage.desk.connect(), try stage.laptop.connect())
        let code = try stage.code(await open.ask(#"{"cmd":"OPEN_PAIRING"}"#, "PAIRING_CODE"))
        let wrong = code == "0000" ? "0001" : "0000"
        let fingerprint = try await stage.announced()
        await client.send(#"{"cmd":"PAIR_READER","fingerprint":"\#(fingerprint)"}"#)
        for _ in 0..<3 {
            _ = await client.next("ENTER_PAIRING_CODE")
            await client.send(#"{"cmd":"SET_PAIRING_CODE","value":"\#(wrong)"}"#)
        }
        let end = await open.next("OPEN_PAIRING")
        #expect(end?["success"] == .bool(false))
        #expect(end?["error"] == .string("Three wrong codes were entered"))
        #expect(try await stage.laptopStore.devices(.lender).isEmpty)
        #expect(try await stage.deskStore.devices(.borrower).isEmpty)
        await stage.stop()
    }

    @Test("The pairing mode ends by itself")
    func pairingEnds() async throws {
        let stage = try await RemoteStage(desk: { $0.pairingTime = 50 })
        let client = try stage.desk.connect()
        _ = await client.ask(#"{"cmd":"OPEN_PAIRING"}"#, "PAIRING_CODE")
        let end = await client.next("OPEN_PAIRING")
        #expect(end?["error"] == .string("No device has paired in time"))
        #expect(await client.answer(to: #"{"cmd":"GET_REMOTE"}"#)?["error"] == nil)
        await stage.stop()
    }

    @Test("Without the permission there is no pairing and no removal; without [remote] they are refused")
    func permission() async throws {
        let stage = try await RemoteStage()
        let client = try stage.desk.connect(uid: 1, [.readers, .cards])
        for name in ["OPEN_PAIRING", "PAIR_READER", "REMOVE_REMOTE", "SET_PAIRING_CODE"] {
            #expect(await client.ask(#"{"cmd":"\#(name)"}"#, "ACCESS_DENIED")?["error"] == .string(name))
        }
        let off = try await TestServer { _ in [RemoteFeature()] }
        let other = try off.connect()
        #expect(await other.answer(to: #"{"cmd":"GET_REMOTE"}"#)?["enabled"] == .bool(false))
        #expect(await other.ask(#"{"cmd":"OPEN_PAIRING"}"#, "OPEN_PAIRING")?["success"] == .bool(false))
        #expect(await other.ask(#"{"cmd":"PAIR_READER","fingerprint":"x"}"#, "PAIR_READER")?["success"] == .bool(false))
        let unknown = String(repeating: "0", count: 64)
        for (fingerprint, text) in [
            ("x", "fingerprint must be 64 hexadecimal digits"),
            (unknown, "Remote readers are off: set [remote] enabled = yes or share = yes"),
        ] {
            let answer = await other.answer(to: #"{"cmd":"REMOVE_REMOTE","fingerprint":"\#(fingerprint)"}"#)
            #expect(answer?["error"] == .string(text))
        }
        await stage.stop()
    }
}
