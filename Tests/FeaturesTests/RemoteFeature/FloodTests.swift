// SPDX-License-Identifier: GPL-3.0-or-later
import Cards
import Concurrency
import Glibc
import Host
import ReadersRemote
import ReadersVirtual
import RemoteDevices
import RemoteFeature
import Store
import TestSupport
import Testing
import Text
import VirtualEID

/// Strangers that send more than devices do.
@Suite(.timeLimit(.minutes(5))) @Loop struct FloodTests {
    private static func fingerprint(_ number: Int) -> String {
        Hex.encode(UInt64(number)) + String(repeating: "0", count: 48)
    }

    @Test("Each source has its share of the announcements that are parsed, and each paired device its own")
    func budget() {
        let (flooder, phone) = (RemoteAddress.Host.loopback, RemoteAddress.Host.four(0x7F00_0002))
        let paired = Self.fingerprint(0)
        var budget = AnnouncementBudget()
        var admitted = (strangers: 0, phone: 0, paired: 0, read: 0)
        for now in 0..<Int64(1000) {
            for _ in 0..<10 {
                if budget.count(flooder, at: now) { admitted.read += 1 }
                if budget.admits(flooder, paired: nil) { admitted.strangers += 1 }
            }
            // Both are the last of their round.
            guard now % AnnouncementBudget.round == AnnouncementBudget.round - 1 else { continue }
            _ = budget.count(phone, at: now)
            if budget.admits(phone, paired: nil) { admitted.phone += 1 }
            _ = budget.count(flooder, at: now)
            if budget.admits(flooder, paired: paired) { admitted.paired += 1 }
        }
        #expect(admitted.strangers == 80)
        #expect(admitted.phone == 20)
        #expect(admitted.paired == 20)
        #expect(admitted.read == 20 * 255)
        let flood = budget.flood(at: 1000)
        #expect(flood?.source == flooder)
        #expect((flood?.datagrams ?? 0) > 9000)
        #expect(budget.flood(at: 20_000) == nil)
        // Many sources together have a limit, too.
        var many = AnnouncementBudget()
        let taken = (0..<200).count { number in
            let source = RemoteAddress.Host.four(0x0A00_0000 + UInt32(number))
            return many.count(source, at: 0) && many.admits(source, paired: nil)
        }
        #expect(taken == 16)
    }

    @Test("Devices at their usual pace are no flood")
    func quiet() {
        var budget = AnnouncementBudget()
        for second in 0..<Int64(20) {
            for number in 0..<40 {
                let source = RemoteAddress.Host.four(0x0A00_0000 + UInt32(number))
                let mayGoOn = budget.count(source, at: second * 1000 + Int64(number) * 25)
                let isAdmitted = budget.admits(source, paired: nil)
                #expect(mayGoOn && isAdmitted)
            }
        }
        #expect(budget.flood(at: 20_000) == nil)
    }

    @Test("A flood from one source fills a part of the table, and the paired phone stays in it and is connected")
    func flood() async throws {
        let cable = try Cable()
        let stage = try await RemoteStage.paired(cable: cable)
        let phone = try await stage.deskStore.identity().fingerprint
        await stage.changes.wait { stage.lenders.devices.contains { $0.isConnected } }
        cable.isPlugged = false
        cable.cut(before: 0)
        try await stage.desk.insert()
        await stage.changes.wait { !stage.lenders.devices.contains { $0.isConnected } }
        let sender = try PortSocket(.datagrams, port: 0, interface: "lo")
        let laptop = RemoteAddress(host: .loopback, port: stage.lenders.port)
        var number = 0
        let flood = Repetition(every: 10) {
            for _ in 0..<40 { sender.send(Array("garbage".utf8), to: laptop) }
            number += 1
            sender.send(Announcer.offer(Self.fingerprint(number), "x\(number)", 1, isPairing: true), to: laptop)
        }
        await stage.changes.wait { stage.lenders.sightings.count >= 16 }
        cable.isPlugged = true
        await stage.changes.wait { stage.lenders.devices.contains { $0.isConnected } }
        #expect(stage.lenders.sightings.contains { $0.device.fingerprint == phone })
        #expect(stage.lenders.sightings.count <= 17)
        let client = try stage.laptop.connect()
        let health = await client.ask(#"{"cmd":"GET_HEALTH"}"#, "HEALTH")
        let check = health?["checks"]?.array?.first { $0["name"] == .string("remote announcements") }
        #expect(check?["ok"] == .bool(false))
        #expect(check?["cause"]?.string?.contains("most of them from 127.0.0.1") == true)
        #expect(check?["advice"]?.string?.hasPrefix("127.0.0.1 is this host: end the program") == true)
        flood.stop()
        await stage.stop()
    }

    @Test("REMOTE is told at once, then after a pause with the newest state")
    func coalesced() async throws {
        let folder = try TemporaryFolder()
        let store = RemoteStore(StateStore(folder: folder))
        var settings = RemoteLenders.Settings(interfaces: ["lo"], name: "laptop")
        (settings.port, settings.sightingTime) = (0, 600_000)
        let lenders = RemoteLenders(store, settings, RemoteDriver(heartbeat: .patient))
        let feature = RemoteFeature(store, lenders, nil, reportPause: 600_000)
        let server = try await TestServer(readers: 0, backends: [lenders.backend]) { _ in [feature] }
        let client = try server.connect()
        let changes = Changes()
        let observer = lenders.observer
        lenders.observer = {
            observer()
            changes.notify()
        }
        _ = await client.exchange(#"{"cmd":"SET_API_LEVEL","level":3}"#)
        await changes.wait { lenders.port != 0 }
        let sender = try PortSocket(.datagrams, port: 0, interface: "lo")
        let flood = Repetition(every: 20) {
            let offer = Announcer.offer(Self.fingerprint(lenders.sightings.count), "x", 1)
            sender.send(offer, to: RemoteAddress(host: .loopback, port: lenders.port))
        }
        await changes.wait { lenders.sightings.count == 16 }
        flood.stop()
        let messages = await client.exchange(#"{"cmd":"GET_REMOTE","request":1}"#).filter {
            $0["msg"] == .string("REMOTE")
        }
        #expect(messages.last?["lenders"]?.array?.count == 16)
        // The open port or the first device, and the answer.
        #expect(client.transcript.count { $0["msg"] == .string("REMOTE") } == 2)
        await server.registry.stop()
    }

    @Test("A flood of connections to the shared readers is told with its source", arguments: [true, false])
    func connections(isSilent: Bool) async throws {
        let cable = try Cable()
        let stage = try await RemoteStage.paired(cable: cable)
        await stage.changes.wait { stage.lenders.devices.contains { $0.isConnected } }
        // A connected device is not announced to, so its port is known from before.
        let sockets = try (0..<150).map { _ in
            let socket = try LoopbackSocket.connect(port: cable.desk)
            // What is no TLS ends at once.
            if !isSilent { _ = send(socket, "garbage\r\n\r\n", 11, Int32(MSG_NOSIGNAL)) }
            return socket
        }
        let client = try stage.desk.connect()
        var check: JSON?
        while check?["ok"] != .bool(false), !Task.isCancelled {
            let health = try #require(await client.ask(#"{"cmd":"GET_HEALTH"}"#, "HEALTH"))
            check = health["checks"]?.array?.first { $0["name"] == .string("remote share") }
        }
        #expect(check?["cause"]?.string?.hasPrefix("a flood of connections, most of them from 127.0.0.1: ") == true)
        #expect(check?["advice"]?.string?.hasPrefix("127.0.0.1 is this host: end the program") == true)
        // The device that is connected stays.
        #expect(stage.lenders.devices.contains { $0.isConnected })
        for socket in sockets { close(socket) }
        await stage.stop()
    }

    @Test(
        "Connections that say nothing, or stop in the handshake, do not keep a paired device out",
        arguments: [[], [0x16], [0x16, 3, 1, 2, 0]] as [[UInt8]]
    )
    func silent(_ bytes: [UInt8]) async throws {
        let cable = try Cable()
        let stage = try await RemoteStage.paired(cable: cable, desk: { $0.handshakeTime = 10 })
        await stage.changes.wait { stage.lenders.devices.contains { $0.isConnected } }
        cable.isPlugged = false
        cable.cut(before: 0)
        try await stage.desk.insert()
        await stage.changes.wait { !stage.lenders.devices.contains { $0.isConnected } }
        await cable.nextAnnouncement()
        let sockets = try (0..<40).map { _ in try LoopbackSocket.connect(port: cable.desk) }
        for socket in sockets where !bytes.isEmpty { _ = send(socket, bytes, bytes.count, Int32(MSG_NOSIGNAL)) }
        let raw = try await RawBorrower(stage, cable)
        #expect(await raw.establishContext() != nil)
        for socket in sockets { close(socket) }
        raw.link.close()
        await stage.stop()
    }

    @Test("A device that is connected again takes the place of its old connection; another one is told that it waits")
    func places() async throws {
        let cable = try Cable()
        let stage = try await RemoteStage(cable: cable)
        // Another device is paired first.
        let other = try await RemoteIdentity.generate()
        let open = try stage.desk.connect()
        let code = try stage.code(await open.ask(#"{"cmd":"OPEN_PAIRING"}"#, "PAIRING_CODE"))
        await cable.nextAnnouncement()
        let desk = RemoteAddress(host: .loopback, port: cable.desk)
        let security = LinkSecurity.pairing(code: SecretBox(Secret(code.utf8)))
        let pairing = RemoteLink.connect(to: desk, other, security, times: RemoteStage.patient)
        for await event in pairing.events {
            switch event {
            case .opened:
                let hello = IFDMessage.establishContext(protocolName: IFDVersion.two.rawValue, deviceName: "other")
                pairing.send(IFDEnvelope(context: nil, hello).encode(.two))
            case .message: pairing.close()
            case .ended: break
            }
        }
        while let end = await open.next("OPEN_PAIRING"), end["success"] == nil {}
        #expect(try await stage.deskStore.devices(.borrower).map(\.name) == ["other"])
        try await stage.pair()
        await stage.changes.wait { stage.lenders.devices.contains { $0.isConnected } }
        let trusted = LinkSecurity.paired(trusted: [try await stage.deskStore.identity().fingerprint])
        let second = RemoteLink.connect(to: desk, other, trusted, times: RemoteStage.patient)
        var events: [RemoteLink.Event] = []
        for await event in second.events { events.append(event) }
        #expect(events.last == .ended(.closed(1008)))
        #expect(events.count == 2)
        // The laptop itself is not refused.
        cable.isPlugged = false
        let raw = try await RawBorrower(stage, cable)
        #expect(await raw.establishContext() != nil)
        await stage.changes.wait { !stage.lenders.devices.contains { $0.isConnected } }
        raw.link.close()
        await stage.stop()
    }
}
