// SPDX-License-Identifier: GPL-3.0-or-later
import Cards
import Concurrency
import Foundation
import Glibc
import Host
import Readers
import ReadersRemote
import ReadersVirtual
import RemoteDevices
import RemoteFeature
import Server
import Store
import TestSupport
import Testing
import Text
import VirtualEID

/// Two hosts in one process: the desk shares its virtual reader, and the laptop borrows it over the loopback interface.
@Loop final class RemoteStage {
    let desk: TestServer
    let laptop: TestServer
    let deskStore: RemoteStore
    let laptopStore: RemoteStore
    let sharing: RemoteSharing
    let lenders: RemoteLenders
    /// A client of the laptop, so that the laptop looks for readers.
    let holder: TestClient
    private let folders: [TemporaryFolder]
    /// Notified when the laptop receives another announcement, connects or disconnects.
    let changes = Changes()

    /// RSA keys are slow to make, so all tests use the same ones.
    private static let folders = Task {
        var folders: [TemporaryFolder] = []
        for _ in 0..<2 {
            let folder = try TemporaryFolder()
            _ = try await RemoteStore(StateStore(folder: folder)).identity()
            folders.append(folder)
        }
        return folders
    }

    /// - Parameters:
    ///   - isPaired: whether both stores have the pairing.
    ///   - cable: passes everything of the desk on to the laptop; nil: nothing is in between.
    ///   - heartbeat: the times of both programs.
    ///   - backends: more readers of the desk.
    ///   - laptopFeatures: more features of the laptop.
    ///   - changeLaptop: changes settings of the laptop.
    ///   - changeDesk: changes settings of the desk.
    /// - Throws: when a store or a server cannot be made.
    init(
        isPaired: Bool = false,
        cable: Cable? = nil,
        heartbeat: Heartbeat.Times = .patient,
        backends: [any ReaderBackend] = [],
        laptopFeatures: (ReaderRegistry) -> [any Feature] = { _ in [] },
        laptop changeLaptop: (inout RemoteLenders.Settings) -> Void = { _ in },
        desk changeDesk: (inout LendingSettings) -> Void = { _ in }
    ) async throws {
        // Each stage has copies of both stores.
        let originals = try await Self.folders.value
        folders = try originals.map { original in
            let folder = try TemporaryFolder()
            for name in ["store.db", "store.key"] { try folder.copy(name, from: original) }
            return folder
        }
        let stores = folders.map { folder in
            RemoteStore(StateStore(folder: folder))
        }
        (deskStore, laptopStore) = (stores[0], stores[1])
        if isPaired {
            let (desk, laptop) = (try await deskStore.identity(), try await laptopStore.identity())
            try await deskStore.add(RemoteDevice(fingerprint: laptop.fingerprint, name: "laptop"), .borrower)
            try await laptopStore.add(RemoteDevice(fingerprint: desk.fingerprint, name: "desk"), .lender)
        }
        var own = RemoteLenders.Settings(interfaces: ["lo"], name: "laptop")
        // No limit of time is reached on a busy machine.
        own.times = Self.patient
        (own.port, own.answerTime, own.sightingTime) = (0, 600_000, 600_000)
        own.turnTime = 600_000
        own.firstPause = 0
        changeLaptop(&own)
        let lenders = RemoteLenders(stores[1], own, RemoteDriver(heartbeat: heartbeat))
        self.lenders = lenders
        laptop = try await TestServer(readers: 0, backends: [lenders.backend]) {
            [RemoteFeature(stores[1], lenders, nil)] + laptopFeatures($0)
        }
        let observer = lenders.observer
        lenders.observer = { [changes] in
            observer()
            changes.notify()
        }
        // Without a client the laptop does not listen.
        holder = try laptop.connect()
        await changes.wait { lenders.port != 0 }
        var shared = LendingSettings(readers: ["Simulator"], interfaces: ["lo"], name: "desk")
        shared.offerPort = lenders.port
        if let cable {
            cable.connect(try await stores[0].identity().encodedCertificate, to: lenders.port)
            shared.offerPort = cable.announcementPort
        }
        shared.offerTime = 200
        shared.times = Self.patient
        changeDesk(&shared)
        var made: RemoteSharing?
        desk = try await TestServer(readers: 2, backends: backends) { registry in
            let sharing = RemoteSharing(registry, stores[0], shared, RemoteDriver(heartbeat: heartbeat))
            made = sharing
            return [RemoteFeature(stores[0], nil, sharing)]
        }
        guard let made else { throw CancellationError() }
        sharing = made
        sharing.start()
        await sharing.waitForStart()
    }

    static let patient: LinkTimes = {
        var times = LinkTimes()
        (times.setUp, times.ping, times.pong) = (600_000, 600_000, 600_000)
        return times
    }()

    /// The name of the desk's reader at the laptop.
    func readerName() async throws -> String {
        "desk Simulator (\(try await deskStore.identity().fingerprint.prefix(8)))"
    }

    /// Cuts the cable and inserts a card at the desk; returns when another device can borrow the card.
    func insertWithoutLaptop(_ cable: Cable) async throws {
        try await insertWithoutLaptop(cable, into: "Simulator") { try await desk.insert() }
    }

    /// The same with another reader of the desk.
    func insertWithoutLaptop(
        _ cable: Cable,
        into reader: String,
        _ insert: @Loop () async throws -> Void
    ) async throws {
        cable.isPlugged = false
        // The status of the card is the message that is lost; then the desk is free.
        cable.cut(before: 0)
        try await insert()
        await cable.nextAnnouncement()
        while !desk.registry.hasCard(in: reader, for: ObjectIdentifier(self)) {
            await desk.registry.nextChange()
        }
    }

    /// Makes two hosts that are paired.
    static func paired(
        cable: Cable? = nil,
        heartbeat: Heartbeat.Times = .patient,
        laptop: (inout RemoteLenders.Settings) -> Void = { _ in },
        desk: (inout LendingSettings) -> Void = { _ in }
    ) async throws -> RemoteStage {
        try await RemoteStage(isPaired: true, cable: cable, heartbeat: heartbeat, laptop: laptop, desk: desk)
    }

    /// Pairs both hosts through their sockets.
    func pair() async throws {
        let (open, client, code, fingerprint) = try await openPairing()
        await enterCode(code, of: fingerprint, by: client)
        // A client that hangs up ends the pairing mode, also when only the laptop knows of the pairing yet.
        for (client, command) in [(client, "PAIR_READER"), (open, "OPEN_PAIRING")] {
            var end = await client.next(command)
            while let message = end, message["success"] == nil { end = await client.next(command) }
            guard end?["success"] == .bool(true) else { throw StageError(text: "\(String(describing: end))") }
        }
        open.close()
        client.close()
    }

    struct StageError: Error { let text: String }

    func code(_ message: JSON?) throws -> String {
        guard let code = message?["code"]?.string else { throw StageError(text: "\(String(describing: message))") }
        return code
    }

    /// Waits until the laptop has received the announcement of the desk in this mode, and returns the fingerprint.
    func announced(isPairing: Bool = true) async throws -> String {
        let fingerprint = try await deskStore.identity().fingerprint
        await changes.wait {
            lenders.sightings.contains { $0.device.fingerprint == fingerprint && $0.isPairing == isPairing }
        }
        return fingerprint
    }

    /// Opens the pairing mode of the desk, and waits until the laptop knows of it.
    /// - Returns: a client of each host, the pairing code and the fingerprint of the desk.
    func openPairing() async throws -> (open: TestClient, client: TestClient, code: String, fingerprint: String) {
        let (open, client) = (try desk.connect(), try laptop.connect())
        let code = try code(await open.ask(#"{"cmd":"OPEN_PAIRING"}"#, "PAIRING_CODE"))
        return (open, client, code, try await announced())
    }

    /// Sends PAIR_READER, and the pairing code when it is asked for.
    func enterCode(_ code: String, of fingerprint: String, by client: TestClient) async {
        await client.send(#"{"cmd":"PAIR_READER","fingerprint":"\#(fingerprint)"}"#)
        _ = await client.next("ENTER_PAIRING_CODE")
        await client.send(#"{"cmd":"SET_PAIRING_CODE","value":"\#(code)"}"#)
    }

    /// Makes the changes of a store fail: its journal is on a disk that is full.
    func failWrites(desk: Bool) throws {
        let journal = folders[desk ? 0 : 1].path + "/store.db-journal"
        let number = try #require(
            try FileManager.default.contentsOfDirectory(atPath: "/proc/self/fd").first { name in
                (try? FileManager.default.destinationOfSymbolicLink(atPath: "/proc/self/fd/\(name)")) == journal
            }
        )
        let full = open("/dev/full", O_RDWR | O_CLOEXEC)
        #expect(dup2(full, try #require(Int32(number))) >= 0)
        close(full)
    }

    /// Waits until the laptop sees a card in the reader of the desk, or none. While the connection is made anew it sees no
    /// reader, and may see the card from before afterwards.
    func seesCard(_ isWanted: Bool = true) async throws {
        let name = try await readerName()
        while laptop.registry[name] == nil
            || laptop.registry.hasCard(in: name, for: ObjectIdentifier(self)) != isWanted
        {
            await laptop.registry.nextChange()
            try Task.checkCancellation()
        }
    }

    /// Removes everything from the network.
    func stop() async {
        sharing.stop()
        await laptop.registry.stop()
    }
}

extension TemporaryFolder {
    fileprivate func copy(_ name: String, from other: TemporaryFolder) throws {
        let source = open("\(other.path)/\(name)", O_RDONLY)
        guard source >= 0 else { return }
        defer { close(source) }
        let target = open("\(path)/\(name)", O_WRONLY | O_CREAT, 0o600)
        defer { close(target) }
        var buffer = [UInt8](repeating: 0, count: 1 << 20)
        let count = read(source, &buffer, buffer.count)
        guard count >= 0, Glibc.write(target, buffer, count) == count else { throw CancellationError() }
    }
}
