// SPDX-License-Identifier: GPL-3.0-or-later
import Concurrency
import DoorReaders
import Host
import Scanners
import Server
import Store
import TestSupport
import Testing
import Text

@Suite("Identity resolving keys over the socket", .timeLimit(.minutes(5))) @Loop struct ReaderKeyTests {
    /// The sample of Bluetooth Core, Vol 3, Part H, appendix D.7.
    nonisolated private static let key = "ec0234a357c8ad05341010a60a397d9b"
    nonisolated private static let reversedKey =
        stride(from: 30, through: 0, by: -2).map { key.dropFirst($0).prefix(2) }.joined()
    private static let address = DeviceAddress("70:81:94:0D:FB:AA", isRandom: true)

    private let folder: TemporaryFolder
    private let store: StateStore
    private let scanner = ScriptedScanner()
    private let server: TestServer

    init() async throws {
        folder = try TemporaryFolder()
        let path = folder.path + "/state"
        store = StateStore(folder: path)
        server = try await Self.server(store, scanner)
    }

    private static func server(_ store: StateStore, _ scanner: ScriptedScanner) async throws -> TestServer {
        try await TestServer(
            readers: 0,
            permissions: .all,
            radio: Radio(scanners: [scanner], clock: ManualClock()),
            store: store
        )
    }

    nonisolated private static func add(_ name: String, _ irk: String = key) -> String {
        #"{"cmd":"ADD_READER_KEY","name":"\#(name)","value":"\#(irk)"}"#
    }

    private static let list = #"{"cmd":"GET_READER_KEYS"}"#

    @Test(
        "a reader has the name of its key, in either order, also after a restart, until the key is removed",
        arguments: [
            ("front", key.uppercased(), "mostSignificantFirst"), ("back.2", reversedKey, "leastSignificantFirst"),
        ]
    )
    func identified(_ name: String, _ irk: String, _ order: String) async throws {
        let first = try server.connect()
        #expect(
            await first.ask(Self.add(name, irk), "READER_KEYS")
                == #"{"keys":[{"name":"\#(name)","order":null}],"msg":"READER_KEYS"}"#
        )
        // badged is started again.
        let restarted = try await Self.server(store, scanner)
        let client = try restarted.connect()
        #expect(await client.ask(Self.list, "READER_KEYS")?["keys"]?.array?.count == 1)
        _ = try #require(await client.answer(to: #"{"cmd":"START_SCAN","lockServiceCodes":[]}"#))
        scanner.receive([3, 3, 0xF0, 0xFF], from: try #require(Self.address), -60)
        #expect(await client.next("DOOR_READER")?["reader"]?["id"]?.string == "pkoc-irk-\(name)")
        let listed = await client.ask(Self.list, "READER_KEYS")
        #expect(listed?["keys"]?.array?.first?["order"]?.string == order)
        let remove = #"{"cmd":"REMOVE_READER_KEY","name":"\#(name)"}"#
        // The answer and the event come in any order.
        let one = await client.ask(remove, "READER_KEYS", "DOOR_READER_LOST")
        let other = await client.next("READER_KEYS", "DOOR_READER_LOST")
        #expect([one, other].contains { $0?["keys"]?.array?.isEmpty == true })
        #expect([one, other].contains { $0?["id"]?.string == "pkoc-irk-\(name)" })
        #expect(await client.ask(remove, "READER_KEYS")?["error"]?.string?.contains("no key with this name") == true)
        withExtendedLifetime((first, restarted)) {}
    }

    @Test("two clients that change keys at the same time leave in memory what is on the disk")
    func sameTime() async throws {
        let clients = try (0..<2).map { _ in try server.connect() }
        for round in 0..<30 {
            // A key is added and removed in any order.
            for (number, client) in clients.enumerated() {
                let change = Self.add("a")
                let removal = #"{"cmd":"REMOVE_READER_KEY","name":"a"}"#
                await client.send((round + number) % 2 == 0 ? change : removal)
            }
            for client in clients { _ = try #require(await client.next("READER_KEYS")) }
            let listed = await clients[0].ask(Self.list, "READER_KEYS")?["keys"]?.array?.map { $0["name"]?.string }
            let kept = try await store.required().transaction { values throws(Failure) in
                try values.names(in: StoreSpace("reader keys"))
            }
            #expect(listed == kept.map { $0 }, "round \(round)")
        }
        withExtendedLifetime(clients) {}
    }

    @Test(
        "a wrong key is refused and nothing is stored",
        arguments: [
            (add("a", "00"), "value"), (add("a", key + "00"), "value"), (add("a", "g" + key.dropFirst()), "value"),
            (add(""), "name"), (add("a b"), "name"), (add("ä"), "name"),
            (add(String(repeating: "a", count: 65)), "name"),
            (#"{"cmd":"ADD_READER_KEY","name":"a"}"#, "value"), (#"{"cmd":"REMOVE_READER_KEY"}"#, "name"),
        ]
    )
    func refused(_ command: String, _ member: String) async throws {
        let client = try server.connect()
        #expect(await client.ask(command, "READER_KEYS")?["error"]?.string?.contains(member) == true)
        #expect(await client.ask(Self.list, "READER_KEYS")?["keys"]?.array?.isEmpty == true)
    }

    @Test("a name belongs to one key, and there are 32 keys at most")
    func bounds() async throws {
        let client = try server.connect()
        for number in 0..<32 { #expect(await client.ask(Self.add("k\(number)"), "READER_KEYS")?["error"] == nil) }
        #expect(await client.ask(Self.add("k3"), "READER_KEYS")?["error"]?.string?.contains("with this name") == true)
        #expect(await client.ask(Self.add("more"), "READER_KEYS")?["error"]?.string?.contains("32 keys") == true)
        #expect(await client.ask(Self.list, "READER_KEYS")?["keys"]?.array?.count == 32)
    }

    @Test("only administrators see and change keys, and no answer has the bytes")
    func secret() async throws {
        let (admin, user) = (try server.connect(), try server.connect(uid: 1000, Permissions.all.subtracting(.admin)))
        let answer = try #require(await admin.ask(Self.add("front"), "READER_KEYS"))
        #expect(!"\(answer)".contains(Self.key))
        for command in [Self.add("x"), Self.list, #"{"cmd":"REMOVE_READER_KEY","name":"front"}"#] {
            #expect(await user.ask(command, "ACCESS_DENIED") != nil)
        }
        #expect(await admin.ask(Self.list, "READER_KEYS")?["keys"]?.array?.count == 1)
    }
}
