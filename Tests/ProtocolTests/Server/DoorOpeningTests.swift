// SPDX-License-Identifier: GPL-3.0-or-later
import Concurrency
import Crypto
import DoorOpening
import DoorReaders
import DoorTestSupport
import Host
import Scanners
import Server
import Synchronization
import TestSupport
import Testing
import Text

/// A key store in memory.
private final class FewKeys: CredentialProvider {
    /// The only user with a key.
    static let owner: UInt32 = 1000
    private let isBroken: Bool
    let uses = Mutex<[String]>([])

    init(isBroken: Bool = false) { self.isBroken = isBroken }

    func used(uid: UInt32, keyID: String) async { uses.withLock { $0.append("\(uid) \(keyID)") } }

    func credentials(uid: UInt32, keyID: String?) async throws(Failure) -> [DoorCredential] {
        if isBroken { throw Failure(.internalError, "the key store cannot be read") }
        guard uid == Self.owner, keyID == nil || keyID == "front" else { return [] }
        do {
            let site = try DoorSite(
                identifier: Array(repeating: 0x51, count: 16),
                siteKey: ModelReader.key(OpeningStage.siteScalar).publicKey.uncompressed
            )
            return [DoorCredential(id: "front", key: try ModelKey(), sites: [site], lastUpdate: 1)]
        } catch {
            throw Failure(.internalError, "no key")
        }
    }
}

/// A server with a scripted radio, a manual clock, and a reader in software.
@Loop private struct OpeningStage {
    nonisolated static let siteScalar = [UInt8](repeating: 5, count: 32)
    let server: TestServer
    let scanner = ScriptedScanner()
    let clock = ManualClock()
    let connector = ModelConnector(ModelReader(signer: siteScalar))
    let keys: FewKeys?

    init(keys: FewKeys? = FewKeys()) async throws {
        self.keys = keys
        let radio = Radio(scanners: [scanner], clock: clock)
        server = try await TestServer(
            readers: 0,
            radio: radio,
            opener: DoorOpener(connector),
            credentials: keys
        )
    }

    static let address = DeviceAddress(bits: 0xC000_0000_0001, isRandom: true)
    nonisolated static let id = "pkoc-C0:00:00:00:00:01"

    /// Connects a client that scans and has received a PKOC reader in range.
    func scanning(uid: UInt32? = FewKeys.owner, _ permissions: Permissions = .all) async throws -> TestClient {
        let client = try server.connect(uid: uid, permissions)
        // The key signs in the loop of all tests, which may be busy.
        _ = try #require(await client.ask(#"{"cmd":"SET_TIMEOUTS","apduMs":60000}"#, "TIMEOUTS", "ACCESS_DENIED"))
        _ = try #require(await client.answer(to: #"{"cmd":"START_SCAN","lockServiceCodes":[],"updates":0}"#))
        return client
    }

    /// The reader advertises; strong enough for the range of proximity, or too weak.
    func advertise(
        _ rssi: Int8 = -35,
        times: Int = 6,
        _ data: [UInt8] = [3, 3, 0xF0, 0xFF],
        from address: DeviceAddress = Self.address
    ) {
        for _ in 0..<times {
            clock.advance(100)
            scanner.receive(data, from: address, rssi)
        }
    }

    nonisolated static func open(_ members: String = "") -> String {
        #"{"cmd":"OPEN_READER","reader":"\#(id)","openingType":"proximity"\#(members)}"#
    }
}

@Suite("Opening door readers over the socket", .timeLimit(.minutes(5)))
@Loop struct DoorOpeningTests {
    private let stage: OpeningStage
    private let client: TestClient

    init() async throws {
        stage = try await OpeningStage()
        client = try await stage.scanning()
    }

    @Test("a client opens a reader and gets each state, and the reader cools down")
    func opens() async throws {
        stage.advertise()
        let first = try #require(await client.ask(OpeningStage.open(#","request":7"#), "OPENING"))
        #expect((first["state"], first["request"]?.int) == (.string("connecting"), 7))
        let token = try #require(first["token"]?.int)
        for state in ["connected", "authenticating"] {
            let next = try #require(await client.next("OPENING"))
            #expect((next["state"], next["token"]?.int) == (.string(state), token))
        }
        let result = try #require(await client.next("OPENING_RESULT"))
        #expect(result["status"] == .string("success"))
        #expect(result["accessDecision"] == .string("granted"))
        #expect((result["payload"], result["key"]) == (.string("03"), .string("front")))
        #expect((result["token"]?.int, result["reader"]) == (token, .string(OpeningStage.id)))
        #expect(result["durationMs"]?.int != nil)
        await stage.connector.waitForEnd()
        #expect(stage.connector.open == 0)
        #expect(stage.connector.addresses == [OpeningStage.address])
        #expect(stage.scanner.demand != nil)

        #expect(stage.server.logged.contains { $0.hasSuffix("\(OpeningStage.id) grants access") })
        let again = try #require(await client.ask(OpeningStage.open(), "OPENING_RESULT"))
        #expect(again["status"] == .string("busy"))
        stage.clock.advance(2300)
        stage.advertise()
        #expect(await client.ask(OpeningStage.open(#","key":"front""#), "OPENING") != nil)
        #expect(await client.next("OPENING_RESULT")?["status"] == .string("success"))
        #expect(stage.connector.connections == 2)
        #expect(stage.keys?.uses.withLock(\.self) == ["1000 front", "1000 front"])
    }

    @Test("a client that watches openings is told of those of another client, until it loses the permission")
    func reports() async throws {
        let watcher = try stage.server.connect(uid: 1001, .openings)
        let stranger = try stage.server.connect(uid: 1002, [.scan, .open])
        #expect(await stranger.ask(#"{"cmd":"START_OPENINGS"}"#, "ACCESS_DENIED") != nil)
        #expect(await watcher.ask(#"{"cmd":"START_OPENINGS"}"#, "OPENINGS")?["watching"] == .bool(true))
        stage.advertise()
        _ = try #require(await client.ask(OpeningStage.open(), "OPENING"))
        _ = try #require(await client.next("OPENING_RESULT"))
        let report = try #require(await watcher.next("OPENING_REPORT"))
        #expect((report["number"]?.int, report["user"]?.int) == (1, 1000))
        #expect((report["reader"], report["key"]) == (.string(OpeningStage.id), .string("front")))
        #expect((report["status"], report["accessDecision"]) == (.string("success"), .string("granted")))
        #expect(report["openingType"] == .string("proximity") && report["durationMs"]?.int != nil)
        #expect((report["time"]?.int ?? 0) > 1_700_000_000_000)
        #expect(await watcher.ask(#"{"cmd":"STOP_OPENINGS"}"#, "OPENINGS")?["watching"] == .bool(false))
        _ = await client.exchange()
        #expect(!client.hasReceived("OPENING_REPORT"))
    }

    @Test("an opening is reported also when its client has left")
    func reportOfClientThatLeft() async throws {
        let watcher = try stage.server.connect(uid: 1001, .openings)
        #expect(await watcher.ask(#"{"cmd":"START_OPENINGS"}"#, "OPENINGS") != nil)
        stage.advertise()
        _ = try #require(await client.ask(OpeningStage.open(), "OPENING"))
        client.close()
        #expect(await watcher.next("OPENING_REPORT")?["reader"] == .string(OpeningStage.id))
    }

    @Test(
        "an opening that is not possible ends with the reason, and no reader is connected",
        arguments: [
            (#"{"cmd":"OPEN_READER","reader":"other","openingType":"proximity"}"#, "outOfRange"),
            (OpeningStage.open().replacing("proximity", with: "motion"), "motionNotSupported"),
            (OpeningStage.open().replacing("proximity", with: "enhancedTap"), "tapNotSupported"),
            (OpeningStage.open().replacing("proximity", with: "seamless"), "openingTypeNotSupported"),
            (#"{"cmd":"TRIGGER","openingType":"motion"}"#, "motionNotSupported"),
        ]
    )
    func notPossible(_ line: String, _ status: String) async throws {
        stage.advertise()
        let result = try #require(await client.ask(line, "OPENING_RESULT"))
        #expect(result["status"] == .string(status))
        #expect(result["reason"]?.string != nil)
        #expect(stage.connector.connections == 0)
    }

    @Test("a reader without a driver is listed and never touched")
    func noDriver() async throws {
        let seos: [UInt8] = [17, 0x07, 2, 0, 0, 0x7A, 0x17, 0, 0, 0x80, 0, 0x10, 0, 0, 0, 0x98, 0, 0]
        #expect(await client.ask(#"{"cmd":"SET_AUTO_OPEN","mode":"on"}"#, "AUTO_OPEN") != nil)
        stage.advertise(-35, seos)
        let line = OpeningStage.open().replacing("pkoc", with: "seos")
        let result = try #require(await client.ask(line, "OPENING_RESULT"))
        #expect(result["status"] == .string("openingTypeNotSupported"))
        #expect(result["reason"]?.string?.contains("no driver") == true)
        #expect(stage.connector.connections == 0)
    }

    @Test(
        "a wrong command is refused",
        arguments: [
            ("", "reader is missing: it must be "), (#","reader":5"#, "reader must be "),
            (#","reader":"x""#, "openingType is missing: it must be "),
            (#","reader":"x","openingType":"y""#, "openingType must be proximity, "),
        ]
    )
    func wrong(_ members: String, error: String) async throws {
        let result = try #require(await client.ask(#"{"cmd":"OPEN_READER"\#(members)}"#, "OPENING_RESULT"))
        #expect(result["error"]?.string?.hasPrefix(error) == true)
        #expect(result["status"] == nil)
    }

    @Test("without a key the answer says which key is missing, and another user's key is not used")
    func keys() async throws {
        let client = try await stage.scanning(uid: 1001)
        stage.advertise()
        #expect(await client.ask(OpeningStage.open(#","key":"front""#), "OPENING") != nil)
        let result = try #require(await client.next("OPENING_RESULT"))
        #expect(result["status"] == .string("keyNotFound"))
        #expect(result["reason"] == .string("there is no active key front, or it has expired"))
        #expect(result["reasonWords"]?["values"]?.array == [.string("front")])
        // The log says of a door only what has happened.
        let failure = "opening \(OpeningStage.id) failed: keyNotFound. there is no active key front, or it has expired"
        #expect(stage.server.logged.contains { $0.hasSuffix(failure) })

        let bare = try await OpeningStage(keys: nil)
        let other = try await bare.scanning()
        bare.advertise()
        let missing = try #require(await other.ask(OpeningStage.open(), "OPENING_RESULT"))
        #expect(missing["status"] == .string("keyNotFound"))
        #expect(missing["reason"]?.string?.contains("no key store") == true)

        let broken = try await OpeningStage(keys: FewKeys(isBroken: true))
        let third = try await broken.scanning()
        broken.advertise()
        #expect(await third.ask(OpeningStage.open(), "OPENING") != nil)
        let failed = try #require(await third.next("OPENING_RESULT"))
        #expect(failed["reason"] == .string("the key store cannot be read"))
        #expect(stage.connector.connections + bare.connector.connections + broken.connector.connections == 0)
    }

    @Test("each command needs the permissions scan and open")
    func permissions() async throws {
        for permissions in [Permissions.scan, .open, .all.subtracting(.open)] {
            let client = try stage.server.connect(uid: FewKeys.owner, permissions)
            for name in ["OPEN_READER", "TRIGGER", "ALLOW_OPEN", "SET_TIMEOUTS", "SET_AUTO_OPEN"] {
                #expect(await client.ask(#"{"cmd":"\#(name)"}"#, "ACCESS_DENIED") != nil)
            }
        }
    }

    @Test("a gesture opens the closest reader in range")
    func trigger() async throws {
        let command = #"{"cmd":"TRIGGER","openingType":"proximity"}"#
        #expect(await client.ask(command, "OPENING_RESULT")?["status"] == .string("outOfRange"))
        stage.advertise(-90)
        #expect(await client.ask(command, "OPENING_RESULT")?["status"] == .string("outOfRange"))
        stage.advertise(-30, times: 12)
        #expect(await client.ask(command, "OPENING")?["reader"] == .string(OpeningStage.id))
        #expect(await client.next("OPENING_RESULT")?["status"] == .string("success"))
    }

    @Test("time limits are set in bounds")
    func timeouts() async throws {
        let client = try stage.server.connect(uid: FewKeys.owner)
        let initial = try #require(await client.ask(#"{"cmd":"SET_TIMEOUTS"}"#, "TIMEOUTS"))
        #expect(
            (initial["fragmentMs"]?.int, initial["apduMs"]?.int, initial["connectMs"]?.int) == (300, 1200, 3200)
        )
        let changed = try #require(await client.ask(#"{"cmd":"SET_TIMEOUTS","apduMs":5000}"#, "TIMEOUTS"))
        #expect((changed["fragmentMs"]?.int, changed["apduMs"]?.int) == (300, 5000))
        for wrong in [#""apduMs":49"#, #""connectMs":60001"#, #""fragmentMs":"x""#] {
            let answer = try #require(await client.ask(#"{"cmd":"SET_TIMEOUTS",\#(wrong)}"#, "TIMEOUTS"))
            #expect(answer["error"] != nil)
            #expect((answer["fragmentMs"]?.int, answer["apduMs"]?.int) == (300, 5000))
        }
    }

    @Test("an opening waits as long as its client has set, and only its client")
    func usedTimeouts() async throws {
        let other = try await stage.scanning()
        stage.advertise()
        #expect(await client.ask(#"{"cmd":"SET_TIMEOUTS","connectMs":50}"#, "TIMEOUTS") != nil)
        stage.connector.reader.fault = .silentAtEnd
        for client in [client, other] {
            #expect(await client.ask(OpeningStage.open(), "OPENING") != nil)
            #expect(await client.next("OPENING_RESULT")?["status"] == .string("readerTimedOutAPDU"))
        }
        #expect(stage.connector.limits == [50, 3200])
    }

    @Test("an adapter opens one reader at a time, and a client four")
    func limits() async throws {
        stage.connector.holds = true
        // Two readers at the first adapter, one at each of four others.
        for (number, adapter) in [0, 0, 1, 2, 3, 4].enumerated() {
            let address = DeviceAddress(bits: 0xC000_0000_0001 + UInt64(number), isRandom: true)
            stage.scanner.receive([3, 3, 0xF0, 0xFF], from: address, -35, adapter: adapter)
        }
        func open(_ number: Int) -> String {
            OpeningStage.open().replacing("00:01", with: "00:0\(number)").replacing(
                "proximity",
                with: "applicationSpecific"
            )
        }
        #expect(await client.ask(open(1), "OPENING") != nil)
        await stage.connector.wait(connections: 1)
        #expect(await client.ask(open(2), "OPENING") != nil)
        let second = try #require(await client.next("OPENING_RESULT"))
        #expect((second["status"], second["reason"]) == (.string("busy"), .string("hci0 opens another reader")))
        // What the adapter does has its own translation, and so has each reason with a value.
        let doing = JSON.object([JSON.Member("template", .string("opens another reader"))])
        #expect(second["reasonWords"]?["values"]?.array == [.string("0"), doing])
        for number in 3...5 { #expect(await client.ask(open(number), "OPENING") != nil) }
        let sixth = try #require(await client.ask(open(6), "OPENING_RESULT"))
        #expect((sixth["status"], sixth["token"]) == (.string("busy"), .null))
        #expect(sixth["reason"] == .string("this client opens 4 readers already"))
        #expect(sixth["reasonWords"]?["template"] == .string("this client opens {0} readers already"))
        await stage.connector.wait(connections: 4)
        stage.connector.release()
        for _ in 0..<4 { #expect(await client.next("OPENING_RESULT") != nil) }
        #expect(await client.ask(open(6), "OPENING") != nil)
        #expect(await client.next("OPENING_RESULT") != nil)
        // The radio was never stopped.
        #expect(stage.scanner.demand != nil)
    }

    @Test("after a success the reader cools down for every client and every way to open it")
    func coolsDown() async throws {
        let other = try await stage.scanning()
        stage.advertise(-30, times: 12)
        #expect(await other.ask(#"{"cmd":"SET_AUTO_OPEN","mode":"ask"}"#, "AUTO_OPEN") != nil)
        let token = try #require(await other.next("ASK_OPEN")?["token"]?.int)
        #expect(await client.ask(OpeningStage.open(), "OPENING") != nil)
        #expect(await client.next("OPENING_RESULT")?["status"] == .string("success"))
        let allow = #"{"cmd":"ALLOW_OPEN","token":\#(token),"allow":true}"#
        for command in [OpeningStage.open(), #"{"cmd":"TRIGGER","openingType":"proximity"}"#, allow] {
            let refused = try #require(await other.ask(command, "OPENING_RESULT"))
            #expect((refused["status"], refused["token"]) == (.string("busy"), .null), "\(command)")
        }
        let closest = #"{"cmd":"GET_CLOSEST_DOOR_READER","openingType":"proximity"}"#
        #expect(await other.ask(closest, "CLOSEST_DOOR_READER")?["reason"] == .string("coolingDown"))
        stage.clock.advance(2199)
        #expect(await other.ask(closest, "CLOSEST_DOOR_READER")?["reason"] == .string("coolingDown"))
        stage.clock.advance(1)
        stage.advertise(-30, times: 1)
        #expect(await other.ask(closest, "CLOSEST_DOOR_READER")?["reader"]?["id"] == .string(OpeningStage.id))
        #expect(stage.connector.connections == 1)
    }

    @Test("a reader that is allowed too late is not opened")
    func allowedLate() async throws {
        for isScanning in [true, false] {
            stage.advertise(-30, times: 12)
            #expect(await client.ask(#"{"cmd":"SET_AUTO_OPEN","mode":"ask"}"#, "AUTO_OPEN") != nil)
            let token = try #require(await client.next("ASK_OPEN")?["token"]?.int)
            if isScanning {
                stage.clock.advance(10_100)
            } else {
                #expect(await client.answer(to: #"{"cmd":"STOP_SCAN"}"#) != nil)
            }
            let line = #"{"cmd":"ALLOW_OPEN","token":\#(token),"allow":true}"#
            let refused = try #require(await client.ask(line, "OPENING_RESULT"))
            #expect((refused["status"], refused["token"]) == (.string("outOfRange"), .null))
        }
        #expect(stage.connector.connections == 0)
    }

    @Test("automatic opening is off, and when it asks, a reader is opened once per visit if the client allows it")
    func ask() async throws {
        stage.advertise(-30, times: 12)
        let state = try #require(await client.ask(#"{"cmd":"SET_AUTO_OPEN","mode":"ask"}"#, "AUTO_OPEN"))
        #expect((state["mode"], state["openingType"]) == (.string("ask"), .string("proximity")))
        #expect(stage.connector.connections == 0)
        let question = try #require(await client.next("ASK_OPEN"))
        #expect((question["reader"], question["expiresMs"]?.int) == (.string(OpeningStage.id), 10_000))
        let token = try #require(question["token"]?.int)
        #expect(await client.ask(#"{"cmd":"ALLOW_OPEN","token":0,"allow":true}"#, "BAD_STATE") != nil)
        #expect(await client.ask(#"{"cmd":"ALLOW_OPEN","token":\#(token)}"#, "OPENING_RESULT")?["error"] != nil)
        let allow = #"{"cmd":"ALLOW_OPEN","token":\#(token),"allow":true}"#
        #expect(await client.ask(allow, "OPENING") != nil)
        #expect(await client.next("OPENING_RESULT")?["status"] == .string("success"))
        #expect(await client.ask(allow, "BAD_STATE") != nil)
        // The reader stays in range, also after its cool-down: no second question.
        stage.advertise(-30, times: 40)
        // After the range was left, the next visit has its question.
        stage.advertise(-95, times: 60)
        stage.advertise(-30, times: 40)
        let second = try #require(await client.next("ASK_OPEN")?["token"]?.int)
        #expect(second > token)
        let deny = #"{"cmd":"ALLOW_OPEN","token":\#(second),"allow":false}"#
        #expect(await client.ask(deny, "AUTO_OPEN") != nil)
        #expect(stage.connector.connections == 1)
    }

    @Test("automatic opening without questions opens a reader that comes into range")
    func automatic() async throws {
        #expect(
            await client.ask(#"{"cmd":"SET_AUTO_OPEN","mode":"sometimes"}"#, "AUTO_OPEN")?["error"] != nil
        )
        #expect(await client.ask(#"{"cmd":"SET_AUTO_OPEN","mode":"on"}"#, "AUTO_OPEN")?["error"] == nil)
        stage.advertise(-30, times: 12)
        #expect(await client.next("OPENING")?["state"] == .string("connecting"))
        #expect(await client.next("OPENING_RESULT")?["status"] == .string("success"))
        #expect(stage.connector.connections == 1)
    }

    @Test("a reader that comes into range while its adapter opens another one is opened afterwards")
    func automaticInTurn() async throws {
        #expect(await client.ask(#"{"cmd":"SET_AUTO_OPEN","mode":"on"}"#, "AUTO_OPEN") != nil)
        let other = DeviceAddress(bits: 0xC000_0000_0002, isRandom: true)
        stage.connector.holds = true
        stage.advertise(-30, times: 12)
        // The opening of the first reader has begun, but may not have reached its adapter yet.
        stage.advertise(-30, times: 12, from: other)
        await stage.connector.wait(connections: 1)
        stage.advertise(-30, times: 3, from: other)
        stage.connector.release()
        let first = try #require(await client.next("OPENING_RESULT"))
        #expect((first["reader"], first["status"]) == (.string(OpeningStage.id), .string("success")))
        stage.advertise(-30, times: 3, from: other)
        let second = try #require(await client.next("OPENING_RESULT"))
        #expect((second["reader"], second["status"]) == (.string("pkoc-C0:00:00:00:00:02"), .string("success")))
        #expect(stage.connector.addresses == [OpeningStage.address, other])
    }

    @Test("a reader that was allowed while its adapter opens another one is asked for again")
    func askedAgain() async throws {
        #expect(await client.ask(#"{"cmd":"SET_AUTO_OPEN","mode":"ask"}"#, "AUTO_OPEN") != nil)
        let other = DeviceAddress(bits: 0xC000_0000_0002, isRandom: true)
        stage.advertise(-30, times: 12)
        let first = try #require(await client.next("ASK_OPEN")?["token"]?.int)
        stage.advertise(-30, times: 12, from: other)
        let second = try #require(await client.next("ASK_OPEN")?["token"]?.int)
        stage.connector.holds = true
        await client.send(#"{"cmd":"ALLOW_OPEN","token":\#(first),"allow":true}"#)
        await stage.connector.wait(connections: 1)
        await client.send(#"{"cmd":"ALLOW_OPEN","token":\#(second),"allow":true}"#)
        #expect(await client.next("OPENING_RESULT")?["status"] == .string("busy"))
        stage.connector.release()
        #expect(await client.next("OPENING_RESULT")?["status"] == .string("success"))
        stage.advertise(-30, times: 3, from: other)
        #expect(await client.next("ASK_OPEN")?["reader"] == .string("pkoc-C0:00:00:00:00:02"))
    }

    @Test("a reader that is silent while it is connected is opened once in a visit")
    func silentWhileConnected() async throws {
        #expect(await client.ask(#"{"cmd":"SET_AUTO_OPEN","mode":"on"}"#, "AUTO_OPEN") != nil)
        stage.connector.holds = true
        stage.advertise(-30, times: 12)
        await stage.connector.wait(connections: 1)
        // The connection takes longer than a reader stays in range, and bluetoothd takes its time to end it.
        stage.clock.advance(4000)
        stage.connector.release()
        #expect(await client.next("OPENING_RESULT")?["status"] == .string("success"))
        stage.clock.advance(4000)
        stage.advertise(-30, times: 40)
        let list = #"{"cmd":"GET_DOOR_READER_LIST"}"#
        #expect(await client.ask(list, "DOOR_READER_LIST")?["readers"]?.array?.count == 1)
        #expect(stage.connector.connections == 1)
        // After a silence of a reader that is not being opened, the next visit has its opening.
        stage.clock.advance(4000)
        stage.advertise(-30, times: 12)
        #expect(await client.next("OPENING_RESULT")?["status"] == .string("success"))
        #expect(stage.connector.connections == 2)
    }

    @Test("the opening of a client that leaves is cancelled")
    func leaves() async throws {
        stage.advertise()
        stage.connector.holds = true
        #expect(await client.ask(OpeningStage.open(), "OPENING") != nil)
        await stage.connector.wait(connections: 1)
        client.close()
        await stage.server.clients(0)
        stage.connector.release()
        await stage.connector.waitForEnd()
        #expect(stage.connector.reader.visitors.isEmpty)
    }
}
