// SPDX-License-Identifier: GPL-3.0-or-later
import Concurrency
import DoorReaders
import Host
import Scanners
import Server
import TestSupport
import Testing
import Text

/// A server with a scripted radio and a manual clock.
@Loop private struct RadioFixture {
    let server: TestServer
    let scanner = ScriptedScanner()
    let spare = ScriptedScanner("spare")
    let clock = ManualClock()
    let radio: Radio

    init(permissions: Permissions = .all) async throws {
        radio = Radio(scanners: [scanner, spare], clock: clock)
        server = try await TestServer(readers: 0, permissions: permissions, radio: radio)
    }

    /// Connects a client and sends START_SCAN with these additional members.
    func scanning(_ members: String = "") async throws -> TestClient {
        let client = try server.connect()
        let answer = try #require(await client.answer(to: #"{"cmd":"START_SCAN"\#(members)}"#))
        #expect(answer["error"] == nil || scanner.status.fault != nil)
        return client
    }

    static let listening = ScannerStatus(
        isListening: true,
        adapters: [RadioAdapter(name: "hci0", address: "00:11:22:33:44:55", isPowered: true)]
    )

    /// Returns an advertisement of a Seos reader with this lock service code.
    static func seos(_ code: UInt8 = 2) -> [UInt8] {
        [17, 0x07, code, 0, 0, 0x7A, 0x17, 0, 0, 0x80, 0, 0x10, 0, 0, 0, 0x98, 0, 0]
    }

    static func door(_ number: UInt64) -> DeviceAddress {
        DeviceAddress(bits: 0xC000_0000_0000 | number, isRandom: true)
    }
}

@Suite("Door readers over the socket", .timeLimit(.minutes(5)))
@Loop struct DoorReaderTests {
    private let fixture: RadioFixture

    init() async throws { fixture = try await RadioFixture() }

    @Test("a scan reports a reader, lists it, names it as the closest and reports its loss")
    func scan() async throws {
        let client = try await fixture.scanning()
        #expect(fixture.scanner.calls == ["scan powerSaving 2"])
        fixture.scanner.change(RadioFixture.listening)
        let state = try #require(await client.next("SCAN"))
        #expect(state["radio"] == .bool(true))
        #expect(state["wanted"] == .bool(true))
        #expect(state["backend"] == .string("scripted"))
        #expect(state["adapters"]?.array?.first?["name"] == .string("hci0"))
        #expect(state["lastAdvertAgo"] == .null)

        fixture.scanner.receive(RadioFixture.seos(), from: RadioFixture.door(1), -60)
        let appeared = try #require(await client.next("DOOR_READER")?["reader"])
        #expect(appeared["id"]?.string == "seos-C0:00:00:00:00:01")
        #expect(appeared["lockServiceCode"]?.int == 2)
        #expect(appeared["lockServiceCodes"] == "[2]")
        #expect(appeared["rssi"]?["last"]?.int == -60)
        #expect(appeared["rssi"]?["mean"] == .null)
        #expect(appeared["rssi"]?["history"] == nil)
        #expect(appeared["limits"]?["motion"] == #"{"dBm":-74,"source":"default"}"#)
        #expect(appeared["trust"] == .string("unauthenticated"))

        fixture.clock.advance(100)
        fixture.scanner.receive(RadioFixture.seos(), from: RadioFixture.door(1), -62)
        // A reader that comes into range is reported at once.
        let near = try #require(await client.next("DOOR_READER")?["reader"])
        #expect(near["inRange"] == #"{"motion":true,"proximity":false}"#)
        #expect(near["rssi"]?["mean"] == .number("-61.0"))
        let list = try #require(await client.ask(#"{"cmd":"GET_DOOR_READER_LIST"}"#, "DOOR_READER_LIST"))
        #expect(list["readers"]?.array?.count == 1)
        #expect(list["readers"]?.array?.first?["rssi"]?["history"] == "[-62,-60]")
        let closest = #"{"cmd":"GET_CLOSEST_DOOR_READER","openingType":"motion"}"#
        #expect(
            await client.ask(closest, "CLOSEST_DOOR_READER")?["reader"]?["id"]?.string == "seos-C0:00:00:00:00:01"
        )
        let tap = #"{"cmd":"GET_CLOSEST_DOOR_READER","openingType":"proximity","request":7}"#
        #expect(
            await client.ask(tap, "CLOSEST_DOOR_READER")
                == #"{"msg":"CLOSEST_DOOR_READER","reader":null,"reason":"outOfRange","request":7}"#
        )
        fixture.clock.advance(11_000)
        #expect(await client.next("DOOR_READER_LOST") == #"{"id":"seos-C0:00:00:00:00:01","msg":"DOOR_READER_LOST"}"#)
        #expect(await client.ask(tap, "CLOSEST_DOOR_READER")?["reason"] == .string("none"))
        let stopped = try #require(await client.answer(to: #"{"cmd":"STOP_SCAN"}"#))
        #expect(stopped["wanted"] == .bool(false))
        #expect(fixture.scanner.calls.last == "stop")
        #expect(fixture.clock.alarm == nil)
    }

    @Test("one scan covers the requests of all clients and ends with the last client")
    func union() async throws {
        let first = try await fixture.scanning(#","lockServiceCodes":[33]"#)
        let second = try await fixture.scanning(#","mode":"performance","lockServiceCodes":[7]"#)
        let third = try await fixture.scanning(#","lockServiceCodes":[]"#)
        #expect(
            fixture.scanner.calls == ["scan powerSaving 33", "scan performance 7+33", "scan performance any"]
        )
        third.close()
        await fixture.server.clients(2)
        _ = await second.answer(to: #"{"cmd":"STOP_SCAN"}"#)
        first.close()
        await fixture.server.clients(1)
        #expect(fixture.scanner.calls.suffix(3) == ["scan performance 7+33", "scan powerSaving 33", "stop"])
        #expect(fixture.clock.alarm == nil)
    }

    @Test("each client receives only the door readers that match its filter")
    func filters() async throws {
        let two = try await fixture.scanning()
        let any = try await fixture.scanning(#","lockServiceCodes":[]"#)
        let silent = try fixture.server.connect()
        fixture.scanner.change(RadioFixture.listening)
        fixture.scanner.receive(RadioFixture.seos(9), from: RadioFixture.door(1), -60)
        fixture.scanner.receive(RadioFixture.seos(2), from: RadioFixture.door(2), -60)
        #expect(await two.next("DOOR_READER")?["reader"]?["lockServiceCode"]?.int == 2)
        #expect(await any.next("DOOR_READER")?["reader"]?["lockServiceCode"]?.int == 9)
        #expect(await any.next("DOOR_READER")?["reader"]?["lockServiceCode"]?.int == 2)
        #expect(await silent.exchange().allSatisfy { $0["msg"] != .string("DOOR_READER") })
        // A client that connects later receives the known readers.
        let late = try await fixture.scanning()
        #expect(await late.next("DOOR_READER")?["reader"]?["lockServiceCode"]?.int == 2)
    }

    @Test("a reader is reported once in `updates` milliseconds, with the newest values")
    func updates() async throws {
        let client = try await fixture.scanning(#","updates":1000"#)
        for _ in 0..<30 {
            fixture.scanner.receive(RadioFixture.seos(), from: RadioFixture.door(1), -90)
            fixture.clock.advance(100)
        }
        fixture.scanner.receive(RadioFixture.seos(), from: RadioFixture.door(1), -91)
        fixture.clock.advance(2000)
        let readers = await client.exchange().filter { $0["msg"] == .string("DOOR_READER") }
        #expect(readers.count == 5)
        #expect(readers.last?["reader"]?["rssi"]?["last"]?.int == -91)
    }

    @Test("many new readers are reported at a bounded rate, delay no other client and expire")
    func flood() async throws {
        let client = try await fixture.scanning()
        let other = try fixture.server.connect()
        let advert = RadioFixture.seos()
        let rate = FullTables.areWanted ? 5000 : 1000
        for second in 0..<5 {
            for number in 0..<rate {
                fixture.scanner.receive(advert, from: RadioFixture.door(UInt64(second * rate + number)), -90)
                if number.isMultiple(of: rate / 1000) { fixture.clock.advance(1) }
            }
            #expect(await other.ask(#"{"cmd":"GET_INFO"}"#, "INFO") != nil)
        }
        let reports = await client.exchange().filter { $0["msg"] == .string("DOOR_READER") }
        #expect((100...1200).contains(reports.count))
        #expect(fixture.radio.tracker.readers.count == 4096)
        fixture.clock.advance(700_000)
        #expect(fixture.radio.tracker.readers.isEmpty)
    }

    @Test("every advertisement is sent, at any rate; a slow client gets the number of those that it has missed")
    func everyAdvert() async throws {
        let client = try await fixture.scanning(#","adverts":"raw""#)
        for number in 0..<1000 { fixture.scanner.receive([2, 1, 6], from: RadioFixture.door(UInt64(number)), -60) }
        for number in 0..<1000 {
            let advert = try #require(await client.next("ADVERT"))
            #expect(advert["address"]?.string == RadioFixture.door(UInt64(number)).description)
            #expect(advert["lost"] == nil)
        }
        // More than the socket and the buffer of the session take while the client does not read.
        var (total, sent, lost) = (10_000, 0, 0)
        for number in 0..<total { fixture.scanner.receive([2, 1, 6], from: RadioFixture.door(UInt64(number)), -60) }
        while sent + lost < total {
            // The count comes with the next advertisement for which there is room.
            fixture.scanner.receive([2, 1, 6], from: RadioFixture.door(0), -60)
            total += 1
            let batch = await client.exchange().filter { $0["msg"] == .string("ADVERT") }
            sent += batch.count
            lost += batch.reduce(0) { $0 + ($1["lost"]?.int ?? 0) }
        }
        #expect(sent + lost == total)
        #expect(lost > 0 && sent > 1000)
    }

    @Test("a pause of the radio makes no reader leave the range")
    func pause() async throws {
        let client = try await fixture.scanning()
        var status = RadioFixture.listening
        fixture.scanner.change(status)
        for _ in 0..<3 {
            fixture.scanner.receive(RadioFixture.seos(), from: RadioFixture.door(1), -60)
            fixture.clock.advance(100)
        }
        let closest = #"{"cmd":"GET_CLOSEST_DOOR_READER","openingType":"motion"}"#
        for _ in 0..<3 {
            status.isPausing = true
            fixture.scanner.change(status)
            fixture.clock.advance(4000)
            let answer = await client.ask(closest, "CLOSEST_DOOR_READER")
            #expect(answer?["reader"]?["inRange"]?["motion"] == .bool(true))
            #expect(answer?["reader"]?["rssi"]?["mean"] == .number("-60.0"))
            status.isPausing = false
            fixture.scanner.change(status)
            fixture.scanner.receive(RadioFixture.seos(), from: RadioFixture.door(1), -60)
        }
        fixture.clock.advance(3500)
        #expect(await client.ask(closest, "CLOSEST_DOOR_READER")?["reason"] == .string("outOfRange"))
    }

    @Test(
        "wrong parameters are refused and change nothing",
        arguments: [
            #""mode":"fast""#, #""mode":1"#, #""openingTypes":[]"#, #""openingTypes":["door"]"#,
            #""openingTypes":"motion""#,
            #""lockServiceCodes":[0]"#, #""lockServiceCodes":[16777216]"#, #""lockServiceCodes":["2"]"#,
            #""profiles":["nfc"]"#,
            #""updates":-1"#, #""updates":"1""#, #""adverts":"all""#,
        ]
    )
    func refusals(member: String) async throws {
        let client = try await fixture.scanning()
        let answer = try #require(await client.answer(to: #"{"cmd":"START_SCAN",\#(member)}"#))
        let name = member.split(separator: "\"")[0]
        #expect(answer["error"]?.string?.hasPrefix("\(name) must be ") == true)
        #expect(answer["wanted"] == .bool(true))
        #expect(fixture.scanner.calls.count == 1)
    }

    private nonisolated static let types = "proximity, motion, seamless, applicationSpecific or enhancedTap"

    @Test(
        "invalid queries are answered with an error",
        arguments: [
            (#"{"cmd":"GET_CLOSEST_DOOR_READER"}"#, "openingType is missing: it must be \(Self.types)"),
            (#"{"cmd":"GET_CLOSEST_DOOR_READER","openingType":1}"#, "openingType must be \(Self.types)"),
            (#"{"cmd":"GET_CLOSEST_DOOR_READER","openingType":"x"}"#, "openingType must be \(Self.types)"),
            (#"{"cmd":"GET_DOOR_READER_LIST","activeOnly":1}"#, "activeOnly must be true or false"),
        ]
    )
    func questions(line: String, error: String) async throws {
        let client = try await RadioFixture().server.connect()
        #expect(await client.ask(line, "CLOSEST_DOOR_READER", "DOOR_READER_LIST")?["error"]?.string == error)
    }

    @Test("without the permission scan every command about door readers is denied")
    func permission() async throws {
        let fixture = try await RadioFixture(permissions: [.readers, .cards])
        let client = try fixture.server.connect()
        for command in ["START_SCAN", "STOP_SCAN", "GET_SCAN", "GET_DOOR_READER_LIST", "GET_CLOSEST_DOOR_READER"] {
            #expect(await client.ask(#"{"cmd":"\#(command)"}"#, "ACCESS_DENIED")?["error"] == .string(command))
        }
        #expect(fixture.scanner.calls.isEmpty)
    }

    @Test("raw advertisements need the permission admin; hashed ones hide the address and keep its type")
    func adverts() async throws {
        let denied = try await RadioFixture(permissions: [.scan])
        let restricted = try denied.server.connect()
        let answer = await restricted.answer(to: #"{"cmd":"START_SCAN","adverts":"raw"}"#)
        #expect(answer?["error"]?.string == "adverts must be left out: it needs the permission admin")
        let hashed = try await fixture.scanning(#","adverts":"hashed""#)
        let raw = try await fixture.scanning(#","adverts":"raw""#)
        fixture.scanner.receive([2, 1, 6], from: RadioFixture.door(1), -60)
        fixture.scanner.receive([2, 1, 6], from: RadioFixture.door(1), -60)
        let first = try #require(await hashed.next("ADVERT"))
        let again = try #require(await hashed.next("ADVERT"))
        #expect(first == again)
        #expect(first["address"]?.string != "C0:00:00:00:00:01")
        #expect(first["addressType"] == .string("static"))
        #expect(
            await raw.next("ADVERT")
                == #"{"adapter":"hci0","address":"C0:00:00:00:00:01","addressType":"static","data":"020106","msg":"ADVERT","rssi":-60,"scanResponse":false}"#
        )
    }

    @Test("SCAN and GET_HEALTH report a fault with advice and age, and SCAN reports its end")
    func fault() async throws {
        let client = try await fixture.scanning()
        let fault = ScannerFault(.service, "bluetoothd does not run", advice: "systemctl start bluetooth")
        fixture.scanner.change(ScannerStatus(fault: fault))
        let bad = try #require(await client.next("SCAN"))
        #expect(bad["error"]?.string == "bluetoothd does not run: systemctl start bluetooth")
        #expect(bad["radio"] == .bool(false))
        fixture.clock.advance(5000)
        #expect(await client.answer(to: #"{"cmd":"GET_SCAN"}"#)?["errorAgo"]?.int == 5000)
        let health = try #require(await client.ask(#"{"cmd":"GET_HEALTH"}"#, "HEALTH")?["checks"]?.array)
        let line = try #require(health.first { $0["name"] == .string("bluetooth") })
        #expect(line["ok"] == .bool(false))
        #expect(line["cause"] == .string("bluetoothd does not run"))
        #expect(line["advice"] == .string("systemctl start bluetooth"))
        #expect(line["errorAgo"]?.int == 5000)
        // What needs the service is not called good.
        for name in ["bluetoothAccess", "bluetoothAdapter", "bluetoothScan"] {
            let check = health.first { $0["name"] == .string(name) }
            #expect(check?["ok"] == .bool(false) && check?["unknown"] == .bool(true))
        }
        #expect(health.filter { $0["errorAgo"] != nil }.count == 1)
        fixture.scanner.change(RadioFixture.listening)
        #expect(await client.next("SCAN")?["error"] == nil)
    }

    @Test(
        "without a scan GET_HEALTH inspects the radio once, starts no scan and reports its fault",
        arguments: [
            (nil, nil), (ScannerFault.noAdapter, "bluetoothAdapter"), (.adapterOff, "bluetoothAdapter"),
            (ScannerFault(.service, "bluetoothd does not run", advice: "x"), "bluetooth"),
            (ScannerFault(.access, "bluetoothd may not be asked", advice: "x"), "bluetoothAccess"),
        ] as [(ScannerFault?, String?)]
    )
    func idleHealth(fault: ScannerFault?, name: String?) async throws {
        fixture.scanner.idle = ScannerStatus(fault: fault)
        let client = try fixture.server.connect()
        let health = try #require(await client.ask(#"{"cmd":"GET_HEALTH"}"#, "HEALTH")?["checks"]?.array)
        let radio = health.filter { $0["name"]?.string?.hasPrefix("bluetooth") == true }
        #expect(radio.compactMap { $0["name"]?.string } == ["bluetooth", "bluetoothAccess", "bluetoothAdapter"])
        #expect(
            radio.filter { $0["ok"] == .bool(false) && $0["unknown"] == nil }.compactMap { $0["name"]?.string }
                == [name].compactMap(\.self)
        )
        let names = ["bluetooth", "bluetoothAccess", "bluetoothAdapter"]
        let unknown = names.drop { $0 != name }.dropFirst()
        #expect(radio.filter { $0["unknown"] == .bool(true) }.compactMap { $0["name"]?.string } == Array(unknown))
        #expect(radio.compactMap { $0["cause"]?.string }.first == fault?.text.description)
        #expect(radio.compactMap { $0["advice"]?.string } == [fault?.advice.description].compactMap(\.self))
        #expect(fixture.scanner.calls == ["inspect"])
        #expect(fixture.spare.calls.isEmpty)
        #expect(fixture.clock.alarm == nil)
    }

    @Test("GET_HEALTH ignores a scanner with a permanent fault while another scanner works")
    func idleFallback() async throws {
        fixture.scanner.idle = ScannerStatus(fault: ScannerFault(.access, "refused", advice: "x", isPermanent: true))
        let client = try fixture.server.connect()
        let health = try #require(await client.ask(#"{"cmd":"GET_HEALTH"}"#, "HEALTH")?["checks"]?.array)
        #expect(!health.contains { $0["ok"] == .bool(false) && $0["name"]?.string?.hasPrefix("bluetooth") == true })
        #expect(fixture.spare.calls == ["inspect"])
    }

    @Test("a scanner with a permanent fault is replaced by the next scanner")
    func fallback() async throws {
        let client = try await fixture.scanning()
        fixture.scanner.change(ScannerStatus(fault: ScannerFault(.access, "refused", advice: "", isPermanent: true)))
        #expect(fixture.spare.calls == ["scan powerSaving 2"])
        #expect(await client.next("SCAN")?["backend"] == .string("spare"))
        fixture.spare.change(RadioFixture.listening)
        fixture.spare.receive(RadioFixture.seos(), from: RadioFixture.door(1), -60)
        #expect(await client.next("DOOR_READER") != nil)
    }

    @Test("an opening that outlasts the scan knows its scanner, and the next scan begins with the preferred one again")
    func lastScanner() async throws {
        fixture.spare.readsDevices = true
        #expect(!fixture.radio.readsDevices)
        let client = try await fixture.scanning()
        fixture.scanner.change(ScannerStatus(fault: ScannerFault(.access, "refused", advice: "", isPermanent: true)))
        #expect(await client.next("SCAN")?["backend"] == .string("spare"))
        #expect(fixture.radio.readsDevices)
        #expect(await client.ask(#"{"cmd":"STOP_SCAN"}"#, "SCAN") != nil)
        #expect(fixture.radio.readsDevices)
        #expect(await client.ask(#"{"cmd":"START_SCAN"}"#, "SCAN")?["backend"] == .string("scripted"))
        #expect(!fixture.radio.readsDevices)
        client.close()
    }

    @Test("silence starts the recovery steps and is reported until the next advertisement")
    func silence() async throws {
        fixture.scanner.steps = [.restart, .reopen, .powerCycle]
        let client = try await fixture.scanning()
        fixture.scanner.change(RadioFixture.listening)
        fixture.scanner.receive(RadioFixture.seos(), from: RadioFixture.door(1), -60)
        fixture.clock.advance(20_000)
        // This scanner does not support `renew`, so the next step follows at once.
        #expect(fixture.scanner.calls.suffix(2) == ["renew", "restart"])
        fixture.clock.advance(10_000)
        #expect(fixture.scanner.calls.suffix(3) == ["restart", "reopen", "powerCycle"])
        while let next = await client.next("SCAN"), next["error"] == nil {}
        let health = try #require(await client.ask(#"{"cmd":"GET_HEALTH"}"#, "HEALTH")?["checks"]?.array)
        let line = try #require(health.first { $0["name"] == .string("bluetoothScan") })
        #expect(line["ok"] == .bool(false))
        #expect(line["advice"]?.string?.hasPrefix("no advertisement was received for 30 s") == true)
        #expect(line["errorAgo"]?.int == 30_000)
        fixture.scanner.receive(RadioFixture.seos(), from: RadioFixture.door(1), -60)
        #expect(await client.ask(#"{"cmd":"GET_SCAN"}"#, "DOOR_READER") != nil)
        #expect(fixture.radio.state.error == nil)
    }

    /// Lets the first adapter receive one advertisement a second for `seconds`.
    private func receiveAtFirstAdapter(seconds: Int) {
        for _ in 0..<seconds {
            fixture.clock.advance(1000)
            fixture.scanner.receive(RadioFixture.seos(), from: RadioFixture.door(1), -60)
        }
    }

    private static let both = ScannerStatus(
        isListening: true,
        adapters: (0..<2).map { RadioAdapter(name: "hci\($0)", address: "", isPowered: true, isListening: true) }
    )

    @Test("recovery of a silent adapter leaves other adapters alone and is reported until it receives again")
    func silentAdapter() async throws {
        fixture.scanner.steps = [.probe, .renew, .restart, .powerCycle]
        let client = try await fixture.scanning()
        fixture.scanner.change(Self.both)
        receiveAtFirstAdapter(seconds: 21)
        #expect(fixture.scanner.calls.suffix(1) == ["probe hci1"])
        #expect(fixture.radio.state.error == nil)
        receiveAtFirstAdapter(seconds: 14)
        // `reconnect` is left out because it would interrupt the other adapter.
        let ladder = ["probe hci1", "renew hci1", "restart hci1", "reopen hci1", "powerCycle hci1", "usbReset hci1"]
        #expect(fixture.scanner.calls.suffix(6) == ladder[...])
        #expect(fixture.radio.state.error?.contains("received by hci1, although") == true)
        #expect(fixture.radio.state.isListening)
        let health = try #require(await client.ask(#"{"cmd":"GET_HEALTH"}"#, "HEALTH")?["checks"]?.array)
        let line = try #require(health.first { $0["name"] == .string("bluetoothScan") })
        #expect(line["ok"] == .bool(false))
        #expect(line["advice"]?.string?.hasPrefix("hci1 received nothing for 35 s, but other adapters did") == true)
        fixture.scanner.receive(RadioFixture.seos(), from: RadioFixture.door(1), -60, adapter: 1)
        #expect(fixture.radio.state.error == nil)
        receiveAtFirstAdapter(seconds: 19)
        #expect(fixture.scanner.calls.suffix(6) == ladder[...])
    }

    @Test("of a gap on all adapters only five seconds count, and a single adapter is never probed")
    func gap() async throws {
        fixture.scanner.steps = Set(RecoveryStep.allCases)
        let client = try await fixture.scanning()
        fixture.scanner.change(Self.both)
        receiveAtFirstAdapter(seconds: 1)
        fixture.clock.advance(15_000)
        receiveAtFirstAdapter(seconds: 13)
        #expect(fixture.scanner.calls.count == 1)
        receiveAtFirstAdapter(seconds: 2)
        #expect(fixture.scanner.calls.last == "probe hci1")
        var one = Self.both
        one.adapters.removeLast()
        fixture.scanner.change(one)
        receiveAtFirstAdapter(seconds: 60)
        #expect(fixture.scanner.calls.count == 2)
        #expect(fixture.radio.state.error == nil)
        client.close()
    }

    @Test("a silent adapter is found when the others receive only one sender, which advertises seldom")
    func silentAdapterWithSlowSender() async throws {
        fixture.scanner.steps = Set(RecoveryStep.allCases)
        let client = try await fixture.scanning()
        fixture.scanner.change(Self.both)
        for _ in 0..<5 {
            fixture.clock.advance(6000)
            fixture.scanner.receive(RadioFixture.seos(), from: RadioFixture.door(1), -60)
        }
        #expect(fixture.scanner.calls.contains("probe hci1"))
        #expect(!fixture.scanner.calls.contains("probe hci0"))
        client.close()
    }

    @Test("a silent scan is found although the radio stops listening for a moment every 12 seconds")
    func flickeringScan() async throws {
        fixture.scanner.steps = Set(RecoveryStep.allCases)
        let client = try await fixture.scanning()
        var off = RadioFixture.listening
        off.isListening = false
        for _ in 0..<2 {
            fixture.scanner.change(RadioFixture.listening)
            fixture.clock.advance(12_000)
            fixture.scanner.change(off)
            fixture.clock.advance(1)
        }
        #expect(fixture.scanner.calls.contains("probe"))
        client.close()
    }

    @Test("clients see that the radio does not listen after two seconds without it, or at once with a fault")
    func radioFlickers() async throws {
        let client = try await fixture.scanning()
        fixture.scanner.change(RadioFixture.listening)
        #expect(await client.next("SCAN")?["radio"] == .bool(true))
        var off = RadioFixture.listening
        off.isListening = false
        fixture.scanner.change(off)
        fixture.clock.advance(1000)
        fixture.scanner.change(RadioFixture.listening)
        fixture.clock.advance(5000)
        #expect(fixture.radio.state.isListening)
        fixture.scanner.change(off)
        fixture.clock.advance(1900)
        #expect(fixture.radio.state.isListening)
        fixture.clock.advance(200)
        #expect(!fixture.radio.state.isListening)
        // No SCAN tells of the flicker.
        let next = await client.next("SCAN")
        #expect((next?["radio"], next?["error"]) == (.bool(false), nil))
        fixture.scanner.change(RadioFixture.listening)
        off.fault = .adapterOff
        fixture.scanner.change(off)
        #expect(!fixture.radio.state.isListening)
        client.close()
    }

    @Test(
        "an adapter that is gone for a moment keeps its readers; one that stays away, or has another address, does not",
        arguments: [(1000, "00:11:22:33:44:55", true), (3000, "", false), (1000, "00:11:22:33:44:66", false)]
            as [(Milliseconds, String, Bool)]
    )
    func adapterFlickers(_ gap: Milliseconds, address: String, isKept: Bool) async throws {
        let client = try await fixture.scanning()
        fixture.scanner.change(RadioFixture.listening)
        fixture.scanner.receive(RadioFixture.seos(), from: RadioFixture.door(1), -60)
        #expect(fixture.radio.tracker.readers.map(\.isLost) == [false])
        fixture.scanner.observer?.adapterRemoved(0)
        fixture.scanner.change(ScannerStatus())
        fixture.clock.advance(gap)
        if !address.isEmpty {
            var back = RadioFixture.listening
            back.adapters[0].address = address
            fixture.scanner.change(back)
        }
        fixture.clock.advance(1000)
        #expect(fixture.radio.tracker.readers.contains { !$0.isLost } == isKept)
        client.close()
    }

    @Test("the pauses of power saving do not hide a silent adapter")
    func silentAdapterWithPauses() async throws {
        fixture.scanner.steps = Set(RecoveryStep.allCases)
        let client = try await fixture.scanning()
        var status = Self.both
        for _ in 0..<3 {
            status.isPausing = false
            fixture.scanner.change(status)
            receiveAtFirstAdapter(seconds: 7)
            fixture.clock.advance(1000)
            status.isPausing = true
            fixture.scanner.change(status)
            fixture.clock.advance(4000)
        }
        #expect(fixture.scanner.calls.contains("probe hci1"))
        #expect(!fixture.scanner.calls.contains("probe hci0"))
        client.close()
    }

    @Test("GET_HEALTH counts system messages that cannot be decoded")
    func malformed() async throws {
        let client = try await fixture.scanning()
        var status = RadioFixture.listening
        for (count, advice) in [(0, nil), (3, "3 messages")] as [(Int, String?)] {
            status.malformed = count
            fixture.scanner.change(status)
            let health = try #require(await client.ask(#"{"cmd":"GET_HEALTH"}"#, "HEALTH")?["checks"]?.array)
            let line = try #require(health.first { $0["name"] == .string("bluetoothMessages") })
            #expect(line["ok"] == .bool(count == 0))
            #expect(line["advice"]?.string?.prefix(10) == advice?[...])
        }
    }

    @Test("START_SCAN without a radio returns an error")
    func noRadio() async throws {
        let client = try await TestServer(readers: 0).connect()
        let answer = await client.answer(to: #"{"cmd":"START_SCAN"}"#)
        let error =
            "badged runs without the Bluetooth radio: set enabled = yes in [ble] of badged.conf, leave out the option "
            + "--no-ble, and restart badged"
        #expect(answer?["error"]?.string == error)
        #expect(answer?["wanted"] == .bool(false))
    }
}
