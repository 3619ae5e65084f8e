// SPDX-License-Identifier: GPL-3.0-or-later
import Concurrency
import Document
import DoorReaders
import DoorTestSupport
import Host
import MobileDocument
import ReadersVirtual
import Server
import TestSupport
import Testing
import Text

@testable import Bluetooth
@testable import MdocFeature
@testable import VirtualDocument

/// RUN_READ_MDOC over a socket, with an emulated bluetoothd on a real bus.
@Suite("Reading a phone over Bluetooth", .timeLimit(.minutes(5)))
@Loop struct BluetoothPhoneTests {
    /// Makes the card of one phone, which bluetoothd reaches, too.
    private struct SharedKind: VirtualCardKind, VirtualCardDescription {
        let name = "shared"
        let options = VirtualCardOptions()
        /// First the card uses it, and then bluetoothd.
        nonisolated(unsafe) let wallet: VirtualWallet

        func describe(simulator: JSON?, card: JSON?) -> any VirtualCardDescription { self }

        func makeCard() throws(Malformed) -> VirtualCard { try VirtualCard(VirtualPhone(wallet), options) }
    }

    @Loop final class Stage {
        let bus: PrivateBus
        let phone: PlayedPhone
        let owner = RadioOwner()
        let phones: BluetoothPhones
        let server: TestServer
        let client: TestClient

        /// `card`: the entries of the virtual phone; `settings`: main.conf of bluetoothd.
        init(
            _ card: String = "",
            settings: String = "",
            hasAdapter: Bool = true,
            change: (inout BluetoothPhones.Limits) -> Void = { _ in }
        ) async throws {
            let kind = VirtualMdocKind()
            let entries = #"{"kind":"mdoc","transports":["bleCentral","blePeripheral"]\#(card)}"#
            let wallet = try VirtualMdocDescription(try kind.issuer(), card: try JSON(entries.utf8)).makeWallet()
            bus = try await PrivateBus.start()
            phone = try await PlayedPhone(bus.address, wallet)
            // Only a phone that does not come ends a wait: the machine may be busy.
            var limits = BluetoothPhones.Limits()
            limits.answer = 120_000
            limits.line = 120_000
            limits.central = 120_000
            limits.centralFirst = 120_000
            limits.centralAgain = 120_000
            limits.peripheral = 120_000
            limits.part = 120_000
            change(&limits)
            folder = try TemporaryFolder()
            let file = try folder.write("main.conf", settings.utf8)
            let phones = BluetoothPhones(address: bus.address, owner: owner, limits: limits, settingsFile: file) {
                hasAdapter
            }
            self.phones = phones
            server = try await TestServer(
                permissions: .all,
                moreCards: [SharedKind(wallet: wallet)],
                moreFeatures: {
                    [
                        MdocFeature(
                            $0,
                            authorities: { _ in
                                var authorities = MdocAuthorities()
                                if let own = try? kind.issuer().certificate,
                                    let certificate = try? DocumentCertificate(own)
                                {
                                    try? authorities.anchors.trust(certificate)
                                }
                                return authorities
                            },
                            bluetooth: phones
                        )
                    ]
                }
            )
            client = try server.connect()
            _ = await client.exchange()
        }

        private let folder: TemporaryFolder

        func begin(_ members: String = "") async {
            let engagement = #""engagement":"\#(phone.wallet.code)""#
            await client.send(#"{"cmd":"RUN_READ_MDOC","ageOver":18,\#(engagement)\#(members)}"#)
            _ = await client.next("MDOC")
        }

        /// How often the handover was selected.
        var selects: JSON? {
            get async {
                let counters = await server.readers?.card(in: "Simulator")?.counters ?? []
                return counters.first { $0.key == "selects" }?.value
            }
        }

        /// Reads the phone whose QR code was scanned, and returns the final message.
        func read(_ members: String = "") async -> JSON? {
            await begin(members)
            return await client.next("MDOC")
        }
    }

    private nonisolated static let ways = ["bleCentral", "blePeripheral"]

    private static func only(_ way: String) -> String { #","transports":["\#(way)"]"# }

    // MARK: Both modes

    @Test(
        "a phone proves an age in either mode, with each MTU, and nothing of it stays",
        arguments: ["bleCentral", "blePeripheral"],
        [23, 185, 517] as [UInt16]
    )
    func reads(way: String, mtu: UInt16) async throws {
        let stage = try await Stage()
        stage.phone.mtu = mtu
        let end = try #require(await stage.read(Self.only(way)))
        #expect(end["verdict"] == .string("genuine") && end["age"]?["answer"] == .string("yes"), "\(end)")
        #expect(end["transport"] == .string(way) && end["engagement"] == .string("qr") && end["reader"] == nil)
        #expect(!stage.owner.isInUse(nil))
        await stage.phones.waitUntilIdle()
        #expect(stage.phone.kept.isEmpty && stage.phone.advertised.isEmpty)
        #expect(stage.phone.states.last == [2])
        let isCentral = way == "bleCentral"
        #expect(stage.phone.calls.contains("RegisterAdvertisement") == isCentral)
        #expect(stage.phone.calls.contains("StartDiscovery") == !isCentral)
        guard isCentral else { return #expect(stage.phone.states.first == [1]) }
        // Before the decision how to go on, and for the adapter.
        #expect(stage.phone.calls.count { $0 == "GetManagedObjects" } == 2)
        #expect(stage.phone.properties["Type"] == "peripheral")
        let code = try DeviceEngagement(qr: stage.phone.wallet.code)
        #expect(stage.phone.identOfReader == (try MdocSession.ident(code)))
    }

    @Test("a phone that was found before the search is read")
    func known() async throws {
        let stage = try await Stage()
        stage.phone.isKnown = true
        #expect(await stage.read(Self.only("blePeripheral"))?["verdict"] == .string("genuine"))
        #expect(!stage.phone.calls.contains("StartDiscovery"))
    }

    @Test("a phone with its UUID as local name is read, and a stranger with this name is not connected")
    func localName() async throws {
        let stage = try await Stage()
        stage.phone.hasLocalName = true
        let end = await stage.read(Self.only("blePeripheral"))
        #expect(end?["verdict"] == .string("genuine"), "\(String(describing: end))")
        await stage.phones.waitUntilIdle()
        #expect(stage.phone.kept.isEmpty)
    }

    @Test("a phone that puts an end to the session into its answer, or takes its time, is read", arguments: ways)
    func endsWithData(way: String) async throws {
        let stage = try await Stage(#","quirks":["endsWithData"],"consentMs":20"#)
        #expect(await stage.read(Self.only(way))?["verdict"] == .string("genuine"))
    }

    /// A scan whose discovery ends late.
    private final class LateScan: RadioScan {
        let isAsked = OneShot<Void>()
        let isLeft = OneShot<Void>()
        /// Filled when the scan gets the radio back, with what bluetoothd was asked for until then.
        let isBack = OneShot<[String]>()
        let readsDevices = true
        private let phone: PlayedPhone
        init(_ phone: PlayedPhone) { self.phone = phone }
        func reserve(_ adapter: Int, _ isReserved: Bool) { if !isReserved { isBack.fill(phone.calls) } }
        func waitUntilLeft(_ adapter: Int, within limit: Milliseconds) async {
            isAsked.fill(())
            await isLeft.value(whenCancelled: ())
        }
        func searches(_ adapter: Int) -> Bool { true }
        func beginConnection(to address: DeviceAddress, adapter: Int) async -> Bool { false }
        func endConnection(to address: DeviceAddress, adapter: Int) {}
    }

    @Test("a phone is searched for when the door scan has left the radio")
    func lateScan() async throws {
        let stage = try await Stage()
        let scan = LateScan(stage.phone)
        stage.owner.scan = scan
        await stage.begin(Self.only("blePeripheral"))
        await scan.isAsked.value(whenCancelled: ())
        #expect(!stage.phone.calls.contains("StartDiscovery"))
        scan.isLeft.fill(())
        #expect(await stage.client.next("MDOC")?["verdict"] == .string("genuine"))
        #expect(stage.phone.calls.contains("StartDiscovery"))
    }

    @Test(
        "after a search in vain, the door scan goes on when bluetoothd has ended the search",
        arguments: [true, false]
    )
    func vainSearch(isCancelled: Bool) async throws {
        let stage = try await Stage { if !isCancelled { $0.peripheral = 3000 } }
        let (phone, scan) = (stage.phone, LateScan(stage.phone))
        (stage.owner.scan, phone.isServer) = (scan, false)
        scan.isLeft.fill(())
        await stage.begin(Self.only("blePeripheral"))
        await phone.wait { phone.calls.contains("StartDiscovery") }
        if isCancelled { await stage.client.send(#"{"cmd":"CANCEL"}"#) }
        #expect(await stage.client.next("MDOC")?["success"] == .bool(false))
        #expect(await scan.isBack.value(whenCancelled: []).contains("StopDiscovery"))
    }

    @Test(
        "badged advertises if the phone offers both modes, unless bluetoothd loses long values",
        arguments: [
            (true, "", "bleCentral"), (false, "", "blePeripheral"),
            (false, "[GATT]\nExchangeMTU = 517\n", "blePeripheral"),
            (false, "[GATT]\nExchangeMTU = 513\n", "bleCentral"),
        ]
    )
    func preference(reportsVersion: Bool, settings: String, way: String) async throws {
        let stage = try await Stage(settings: settings)
        stage.phone.reportsVersion = reportsVersion
        #expect(await stage.read()?["transport"] == .string(way))
    }

    @Test("a phone that does not connect is searched for, and the other way round")
    func otherMode() async throws {
        let stage = try await Stage { $0.centralFirst = 300 }
        stage.phone.isClient = false
        #expect(await stage.read()?["transport"] == .string("blePeripheral"))
        #expect(stage.phone.advertised.isEmpty)
        let other = try await Stage { $0.peripheral = 300 }
        other.phone.reportsVersion = false
        other.phone.isServer = false
        #expect(await other.read()?["transport"] == .string("bleCentral"))
    }

    @Test("the handover on a reader goes on over Bluetooth", arguments: ["static", "negotiated"])
    func handover(kind: String) async throws {
        let stage = try await Stage(#","handover":"\#(kind)""#)
        _ = await stage.client.ask(#"{"cmd":"RUN_READ_MDOC","ageOver":18}"#, "INSERT_CARD")
        await stage.client.send(#"{"cmd":"SET_CARD","name":"Simulator","card":{"kind":"shared"}}"#)
        let end = await stage.client.next("MDOC")
        #expect(end?["verdict"] == .string("genuine"), "\(String(describing: end))")
        #expect(end?["engagement"] == .string(kind == "static" ? "nfcStatic" : "nfcNegotiated"))
        #expect(end?["transport"] == .string("bleCentral") && end?["reader"] == .string("Simulator"))
        // The phone stays on the reader, and starts nothing new.
        #expect(await stage.selects == .number("1"))
    }

    @Test("a phone that is taken away and put back while Bluetooth runs starts nothing new")
    func putBack() async throws {
        let stage = try await Stage(#","consent":"never""#)
        _ = await stage.client.ask(#"{"cmd":"RUN_READ_MDOC","ageOver":18}"#, "INSERT_CARD")
        await stage.client.send(#"{"cmd":"SET_CARD","name":"Simulator","card":{"kind":"shared"}}"#)
        while let status = await stage.client.next("STATUS"), status["step"] != .string("waitingForHolder") {}
        // The virtual card has left its reader with the end of the handover.
        #expect(try await stage.server.readers?.insert(nil, into: "Simulator") == true)
        while let seen = await stage.client.next("READER"), seen["card"] == .null {}
        #expect(await stage.client.ask(#"{"cmd":"CANCEL"}"#, "MDOC")?["error"] == .string("User_Cancelled"))
        #expect(await stage.selects == .number("1"))
    }

    @Test("a phone that is taken away after the handover goes on over Bluetooth", arguments: ["static", "negotiated"])
    func takenAway(kind: String) async throws {
        let stage = try await Stage(#","handover":"\#(kind)""#)
        _ = await stage.client.ask(#"{"cmd":"RUN_READ_MDOC","ageOver":18}"#, "INSERT_CARD")
        await stage.client.send(#"{"cmd":"SET_CARD","name":"Simulator","card":{"kind":"shared"}}"#)
        while let status = await stage.client.next("STATUS"), status["step"] != .string("connecting") {}
        await stage.server.removeCard(from: "Simulator")
        let end = await stage.client.next("MDOC")
        #expect(end?["verdict"] == .string("genuine"), "\(String(describing: end))")
        #expect(end?["transport"] == .string("bleCentral"))
    }

    // MARK: Strangers

    @Test(
        "who connects first and is not the phone makes badged advertise again, once",
        arguments: [[[0, 0xA0]], [[2]], [[0, 0xBF]]] as [[[UInt8]]]
    )
    func stranger(values: [[UInt8]]) async throws {
        let stage = try await Stage()
        stage.phone.strangers = [values]
        let end = await stage.read(Self.only("bleCentral"))
        #expect(end?["verdict"] == .string("genuine"), "\(String(describing: end))")
        await stage.phones.waitUntilIdle()
        #expect(stage.phone.kept.isEmpty)
        let twice = try await Stage()
        twice.phone.strangers = [values, values]
        #expect(await twice.read(Self.only("bleCentral"))?["error"] == .string("SessionError"))
        #expect(twice.phone.calls.filter { $0 == "RegisterAdvertisement" }.count == 2)
    }

    @Test("while the phone is connected, nobody else counts")
    func intruder() async throws {
        let stage = try await Stage()
        stage.phone.intruder = [0, 0xA0]
        #expect(await stage.read(Self.only("bleCentral"))?["verdict"] == .string("genuine"))
        #expect(stage.phone.refusals == ["org.bluez.Error.NotPermitted"])
    }

    @Test(
        "a phone that is paired with this computer stays connected and known",
        arguments: ["bleCentral", "blePeripheral"]
    )
    func paired(way: String) async throws {
        let stage = try await Stage()
        stage.phone.isPaired = true
        #expect(await stage.read(Self.only(way))?["verdict"] == .string("genuine"))
        await stage.phones.waitUntilIdle()
        #expect(!stage.phone.calls.contains("RemoveDevice") && !stage.phone.calls.contains("Disconnect"))
    }

    // MARK: Faults

    @Test(
        "what a phone does wrong has its word, in either mode",
        arguments: [
            ("end", "Declined"), ("cut", "ConnectionLost"), ("leave", "ConnectionLost"), ("firstByte", "SessionError"),
            ("empty", "SessionError"),
        ],
        ["bleCentral", "blePeripheral"]
    )
    func faults(fault: (String, String), way: String) async throws {
        let stage = try await Stage { $0.centralAgain = 1 }
        switch fault.0 {
        case "end": stage.phone.spoil = { _ in [[]] }
        case "cut": stage.phone.spoil = { $0.map { [1] + $0.dropFirst() } + [[]] }
        case "firstByte": stage.phone.spoil = { $0.map { [2] + $0.dropFirst() } }
        case "empty": stage.phone.spoil = { [[1]] + $0 }
        default: stage.phone.leaves = true
        }
        let end = await stage.read(Self.only(way))
        #expect(end?["error"] == .string(fault.1), "\(String(describing: end))")
        #expect(!stage.owner.isInUse(nil))
    }

    @Test("short parts and an empty last part are no fault", arguments: ["bleCentral", "blePeripheral"])
    func parts(way: String) async throws {
        let stage = try await Stage()
        stage.phone.spoil = { parts in
            let short = parts.flatMap { [[1] + $0.dropFirst().prefix(1), [1] + $0.dropFirst(2)] }
            return short.filter { $0.count > 1 } + [[0]]
        }
        #expect(await stage.read(Self.only(way))?["verdict"] == .string("genuine"))
    }

    @Test(
        "parts that never end are waited for, until the next one is late",
        arguments: ["bleCentral", "blePeripheral"]
    )
    func neverEnds(way: String) async throws {
        let stage = try await Stage { ($0.part, $0.centralAgain) = (300, 1) }
        stage.phone.spoil = { $0.map { [1] + $0.dropFirst() } }
        #expect(await stage.read(Self.only(way))?["error"] == .string("ConnectionLost"))
        #expect(!stage.owner.isInUse(nil))
    }

    @Test("on a bluetoothd that loses long values, a message that cannot be read names the cause")
    func lostValues() async throws {
        let stage = try await Stage { $0.centralAgain = 1 }
        stage.phone.reportsVersion = false
        stage.phone.spoil = { $0.suffix(1) }
        let end = await stage.read(Self.only("bleCentral"))
        #expect(end?["error"] == .string("SessionError"))
        #expect(end?["message"]?.string?.contains("ExchangeMTU = 513") == true, "\(String(describing: end))")
    }

    @Test("a phone that does not come, and an adapter that is off, are named")
    func nobody() async throws {
        let stage = try await Stage { ($0.central, $0.centralAgain, $0.peripheral) = (200, 1, 200) }
        (stage.phone.isClient, stage.phone.isServer) = (false, false)
        for way in ["bleCentral", "blePeripheral"] {
            #expect(await stage.read(Self.only(way))?["error"] == .string("ConnectionFailed"))
        }
        #expect(stage.phone.advertised.isEmpty && !stage.owner.isInUse(nil))
    }

    @Test(
        "a phone that looks for another reader is waited for in vain",
        arguments: [("uuid", "bleCentral"), ("uuid", "blePeripheral"), ("ident", "bleCentral")]
    )
    func otherReader(difference: String, way: String) async throws {
        let stage = try await Stage { ($0.central, $0.centralAgain, $0.peripheral) = (1000, 1, 1000) }
        let code = stage.phone.wallet.code
        if difference == "uuid" {
            stage.phone.wallet.uuid = [UInt8](repeating: 7, count: 16)
        } else {
            stage.phone.expectedIdent = [UInt8](repeating: 7, count: 16)
        }
        #expect(code == stage.phone.wallet.code)
        let end = await stage.read(Self.only(way))
        #expect(end?["error"] == .string("ConnectionFailed"), "\(String(describing: end))")
        await stage.phones.waitUntilIdle()
        #expect(stage.phone.kept.isEmpty && !stage.phone.calls.contains("Connect") && !stage.owner.isInUse(nil))
    }

    @Test("what a host lacks for a phone with Bluetooth alone is named at once, with what helps")
    func lacks() async throws {
        let stage = try await Stage()
        func lack(_ stage: Stage, _ members: String = "") async -> String? {
            let end = await stage.read(members)
            let isWord = end?["error"] == .string("EngagementUnsupported")
            return isWord ? end?["message"]?.string : "\(String(describing: end))"
        }
        stage.phone.advertises = false
        #expect(
            await lack(stage, Self.only("bleCentral")) == "the Bluetooth adapter cannot advertise: use another one"
        )
        stage.phone.isPowered = false
        #expect(await lack(stage) == "the Bluetooth adapter is switched off: bluetoothctl power on")
        stage.phone.end()
        #expect(await lack(stage) == "bluetoothd does not run: systemctl start bluetooth")
        let without = try await Stage(hasAdapter: false)
        #expect(await lack(without) == "there is no Bluetooth adapter: plug one in")
        #expect(
            await lack(without, #","transports":["nfc"]"#)
                == "badged cannot talk to this phone: it offers only ways that the command excludes"
        )
    }

    @Test("the first value of a phone begins the session, or it is not the phone")
    func noStart() async throws {
        let stage = try await Stage { $0.centralAgain = 1 }
        stage.phone.start = [3]
        #expect(await stage.read(Self.only("bleCentral"))?["error"] == .string("ConnectionFailed"))
    }

    // MARK: The adapter

    @Test("CANCEL frees the adapter, and the phone is forgotten", arguments: ["bleCentral", "blePeripheral"])
    func cancel(way: String) async throws {
        let stage = try await Stage(#","consent":"never""#)
        await stage.begin(Self.only(way))
        while let status = await stage.client.next("STATUS"), status["step"] != .string("waitingForHolder") {}
        #expect(stage.owner.isInUse(0))
        #expect(await stage.client.ask(#"{"cmd":"CANCEL"}"#, "MDOC")?["error"] == .string("User_Cancelled"))
        #expect(!stage.owner.isInUse(nil))
        await stage.phones.waitUntilIdle()
        #expect(stage.phone.kept.isEmpty && stage.phone.states.last == [2])
    }

    @Test("CANCEL while bluetoothd is asked for its adapters is no fault of the phone")
    func cancelAtOnce() async throws {
        let stage = try await Stage()
        let phone = stage.phone
        phone.isSilent = true
        await stage.begin()
        await phone.wait { phone.calls.contains("GetManagedObjects") }
        #expect(await stage.client.ask(#"{"cmd":"CANCEL"}"#, "MDOC")?["error"] == .string("User_Cancelled"))
    }

    @Test("CANCEL ends the search and the advertisement", arguments: ["bleCentral", "blePeripheral"])
    func cancelConnecting(way: String) async throws {
        let stage = try await Stage()
        (stage.phone.isClient, stage.phone.isServer) = (false, false)
        await stage.begin(Self.only(way))
        let phone = stage.phone
        await phone.wait { phone.calls.contains("StartDiscovery") || !phone.advertised.isEmpty }
        #expect(await stage.client.ask(#"{"cmd":"CANCEL"}"#, "MDOC")?["error"] == .string("User_Cancelled"))
        #expect(!stage.owner.isInUse(nil))
        await phone.wait { phone.calls.contains("StopDiscovery") || phone.calls.contains("UnregisterAdvertisement") }
    }

    @Test("a reading waits in line while the adapter opens a door")
    func line() async throws {
        let stage = try await Stage()
        #expect(stage.owner.begin(.opening, on: 0) == nil)
        await stage.begin()
        while let status = await stage.client.next("STATUS"), status["step"] != .string("connecting") {}
        #expect(stage.phone.advertised.isEmpty)
        stage.owner.end(on: 0)
        #expect(await stage.client.next("MDOC")?["verdict"] == .string("genuine"))
        let busy = try await Stage { $0.line = 100 }
        #expect(busy.owner.begin(.opening, on: 0) == nil)
        #expect(await busy.read()?["error"] == .string("ConnectionFailed"))
    }

    // MARK: GET_HEALTH

    @Test(
        "GET_HEALTH says which lines bluetoothd needs",
        arguments: [
            (true, "[GATT]\nCache = yes\n", [] as [String]), (true, "", ["Cache = yes"]),
            (true, "[GATT]\nCache = always\n", ["Cache = yes"]),
            (
                false, "",
                [
                    "MinAdvertisementInterval = 32", "MaxAdvertisementInterval = 48", "ExchangeMTU = 513",
                    "Cache = yes",
                ]
            ),
            (
                false,
                "[LE]\nMinAdvertisementInterval=32\nMaxAdvertisementInterval=48\n[GATT]\n#\nExchangeMTU=512\nCache=no\n",
                []
            ),
        ]
    )
    func health(reportsVersion: Bool, settings: String, lines: [String]) async throws {
        let stage = try await Stage(settings: settings)
        stage.phone.reportsVersion = reportsVersion
        let checks = await stage.client.ask(#"{"cmd":"GET_HEALTH"}"#, "HEALTH")?["checks"]?.array
        let check = try #require(checks?.first { $0["name"] == .string("mdoc") })
        #expect(check["ok"] == .bool(lines.isEmpty))
        let advice = check["advice"]?.string ?? ""
        for line in lines { #expect(advice.contains(line), "\(advice)") }
        #expect((check["cause"]?.string?.contains("a file about each phone") == true) == lines.contains("Cache = yes"))
        #expect((check["cause"]?.string?.contains("slowly") == true) == (lines.count > 1))
        #expect(lines.count == advice.split(separator: " = ").count - (lines.isEmpty ? 0 : 1))
    }
}

@Suite("Parts of a message over Bluetooth")
struct BluetoothPartsTests {
    @Test(
        "a message is divided and put together again",
        arguments: [0, 1, 18, 19, 20, 511, 512, 5000],
        [1, 20, 182, 514]
    )
    func roundTrip(length: Int, capacity: Int) throws {
        let message = (0..<length).map { UInt8(truncatingIfNeeded: $0) }
        let values = BluetoothParts.divide(message, capacity: capacity)
        #expect(values.allSatisfy { $0.count <= max(min(capacity, 512), 2) })
        var parts = BluetoothParts()
        for value in values.dropLast() { #expect(try parts.add(value) == nil) }
        #expect(try parts.add(try #require(values.last)) == message)
        #expect(!parts.isInside && parts.count == 0)
    }

    @Test("parts that break their form, or are too many, are refused")
    func bounds() throws {
        for part in [[], [2, 1], [0xFF], [1]] as [[UInt8]] {
            var parts = BluetoothParts()
            #expect(throws: MdocTransportError.self) { try parts.add(part) }
        }
        var parts = BluetoothParts()
        let part = [1] + [UInt8](repeating: 7, count: 511)
        for _ in 0..<MdocMessage.maximumBytes / 511 { #expect(try parts.add(part) == nil) }
        #expect(throws: MdocTransportError.tooLarge) { try parts.add(part) }
    }
}
