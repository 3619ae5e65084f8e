// SPDX-License-Identifier: GPL-3.0-or-later
import Cards
import Concurrency
import Glibc
import Host
import Readers
import ReadersRemote
import RemoteDevices
import RemoteFeature
import Store
import TestSupport
import Testing
import Text

/// When badged listens, connects, and makes its key.
@Suite(.timeLimit(.minutes(5))) @Loop struct DemandTests {
    @Test("A phone is connected only while a client is connected that may see readers or use cards")
    func battery() async throws {
        let stage = try await RemoteStage.paired { $0.restTime = 0 }
        try await stage.desk.insert()
        try await stage.seesCard()
        stage.holder.close()
        await stage.changes.wait { !stage.lenders.devices.contains { $0.isConnected } }
        await stage.changes.wait { stage.lenders.port == 0 }
        // For a client that only scans for doors, no phone is connected.
        let scanner = try stage.laptop.connect(uid: 1, [.scan])
        _ = await scanner.exchange()
        #expect(stage.lenders.port == 0)
        let client = try stage.laptop.connect(uid: 1, [.cards])
        _ = await client.exchange()
        await stage.changes.wait { stage.lenders.port != 0 }
        await stage.stop()
    }

    @Test("A port of announcements that another program holds is reported, and used when it is free")
    func takenPort() async throws {
        // A program that shares the port with nobody.
        let other = socket(AF_INET6, Int32(SOCK_DGRAM.rawValue) | Int32(SOCK_CLOEXEC.rawValue), 0)
        var address = sockaddr_in6()
        address.sin6_family = sa_family_t(AF_INET6)
        var size = socklen_t(MemoryLayout<sockaddr_in6>.size)
        withUnsafeMutablePointer(to: &address) {
            $0.withMemoryRebound(to: sockaddr.self, capacity: 1) { pointer in
                #expect(bind(other, pointer, size) == 0 && getsockname(other, pointer, &size) == 0)
            }
        }
        let folder = try TemporaryFolder()
        let store = RemoteStore(StateStore(folder: folder))
        var settings = RemoteLenders.Settings(interfaces: ["lo"], name: "laptop")
        settings.port = UInt16(bigEndian: address.sin6_port)
        let lenders = RemoteLenders(store, settings, RemoteDriver(heartbeat: .patient))
        let server = try await TestServer(readers: 0, backends: [lenders.backend]) { _ in
            [RemoteFeature(store, lenders, nil)]
        }
        let client = try server.connect()
        func checks() async -> [String: JSON] {
            let health = await client.ask(#"{"cmd":"GET_HEALTH"}"#, "HEALTH")
            let list = health?["checks"]?.array ?? []
            return Dictionary(list.compactMap { check in check["name"]?.string.map { ($0, check) } }) { $1 }
        }
        var taken = await checks()
        while taken["remote"]?["ok"] != .bool(false), !Task.isCancelled { taken = await checks() }
        #expect(taken["remote"]?["advice"]?.string?.contains("cannot be shared: end AusweisApp on this host") == true)
        #expect(taken["remote announcements"]?["ok"] == .bool(false))
        close(other)
        // A program that another test is starting may hold the port until it is executed.
        var free = await checks()
        while free["remote"]?["ok"] != .bool(true), !Task.isCancelled { free = await checks() }
        #expect(free["remote announcements"]?["datagrams"] == .number("0"))
        #expect(free["remote announcements"]?["advice"]?.string?.contains("firewall") == true)
        // With packets there is no advice; those that are no announcements are counted apart.
        let sender = try PortSocket(.datagrams, port: 0, interface: "lo")
        let place = RemoteAddress(host: .loopback, port: settings.port)
        sender.send(Array("noise".utf8), to: place)
        sender.send(Announcer.offer(String(repeating: "ab", count: 32), "phone", 1), to: place)
        let changes = Changes()
        let observer = lenders.observer
        lenders.observer = {
            observer()
            changes.notify()
        }
        await changes.wait { lenders.offers == 1 }
        let busy = await checks()
        #expect(busy["remote announcements"]?["datagrams"] == .number("2"))
        #expect(busy["remote announcements"]?["announcements"] == .number("1"))
        #expect(busy["remote announcements"]?["advice"] == nil)
        await server.registry.stop()
    }

    @Test("badged that ends while its key is read lends nothing afterwards")
    func endedEarly() async throws {
        let folder = try TemporaryFolder()
        let opening = OneShot<Void>()
        let store = RemoteStore(
            StateStore { () throws(Failure) in
                await opening.value(whenCancelled: ())
                return try Store(folder: folder.path)
            }
        )
        let settings = LendingSettings(readers: ["Simulator"], interfaces: ["lo"], name: "desk")
        let sharing = RemoteSharing(ReaderRegistry(), store, settings, RemoteDriver(heartbeat: .patient))
        sharing.start()
        sharing.stop()
        opening.fill(())
        await sharing.waitForStart()
        #expect(!sharing.isLending)
    }

    @Test("The announcements of this host itself are no device")
    func ownAnnouncement() async throws {
        let stage = try await RemoteStage.paired()
        await stage.changes.wait { stage.lenders.devices.contains { $0.isConnected } }
        let sender = try PortSocket(.datagrams, port: 0, interface: "lo")
        let own = try await stage.laptopStore.identity().fingerprint
        let other = String(repeating: "5a", count: 32)
        for fingerprint in [own, other] {
            let target = RemoteAddress(host: .loopback, port: stage.lenders.port)
            sender.send(Announcer.offer(fingerprint, "x", 1, isPairing: true), to: target)
        }
        await stage.changes.wait { stage.lenders.sightings.contains { $0.device.fingerprint == other } }
        #expect(!stage.lenders.sightings.contains { $0.device.fingerprint == own })
        await stage.stop()
    }

    @Test("A host that lends readers for the first time answers while it makes its key; pairing waits for the key")
    func firstKey() async throws {
        let folder = try TemporaryFolder()
        let asked = OneShot<Void>()
        let store = RemoteStore(
            StateStore { () throws(Failure) in
                await asked.value(whenCancelled: ())
                return try Store(folder: folder.path)
            }
        )
        var made: RemoteSharing?
        let server = try await TestServer { registry in
            let settings = LendingSettings(readers: ["Simulator"], interfaces: ["lo"], name: "desk")
            let sharing = RemoteSharing(registry, store, settings, RemoteDriver(heartbeat: .patient))
            made = sharing
            return [RemoteFeature(store, nil, sharing)]
        }
        let sharing = try #require(made)
        let client = try server.connect()
        sharing.start()
        let state = await client.answer(to: #"{"cmd":"GET_REMOTE"}"#)
        #expect(state?["share"] == .bool(true) && state?["fingerprint"] == nil)
        asked.fill(())
        let code = await client.ask(#"{"cmd":"OPEN_PAIRING"}"#, "PAIRING_CODE")
        #expect(code?["fingerprint"]?.string == (try await store.identity().fingerprint))
        sharing.stop()
    }
}
