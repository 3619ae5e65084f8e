// SPDX-License-Identifier: GPL-3.0-or-later
import Cards
import Concurrency
import ReadersRemote
import RemoteFeature
import Store
import Synchronization
import TestSupport
import Testing
import Text

/// What badged does when its own key is damaged, or when its store is there later than badged.
@Suite(.timeLimit(.minutes(5))) @Loop struct DamagedStoreTests {
    private static let phone = RemoteDevice(fingerprint: String(repeating: "ab", count: 32), name: "phone")
    private static let laptop = RemoteDevice(fingerprint: String(repeating: "cd", count: 32), name: "laptop")

    private func store(_ folder: TemporaryFolder) -> RemoteStore {
        RemoteStore(StateStore(folder: folder))
    }

    private func check(_ name: String, _ client: TestClient) async -> JSON? {
        let health = await client.ask(#"{"cmd":"GET_HEALTH"}"#, "HEALTH")
        return health?["checks"]?.array?.first { $0["name"] == .string(name) }
    }

    @Test(
        "A damaged key is kept while there is a pairing, and made anew when REMOVE_REMOTE has deleted all of them",
        arguments: ["key", "certificate"]
    )
    func damagedKey(name: String) async throws {
        let folder = try TemporaryFolder()
        let first: String
        do {
            let store = store(folder)
            first = try await store.identity().fingerprint
            try await store.add(Self.laptop, .borrower)
        }
        try await damageRecord(name, in: "remote", of: folder.path)
        let store = store(folder)
        let error = await #expect(throws: Failure.self) { _ = try await store.identity() }
        #expect(error?.advice?.description.contains("REMOVE_REMOTE") == true)
        var made: RemoteSharing?
        let server = try await TestServer { registry in
            let settings = LendingSettings(readers: ["Simulator"], interfaces: ["lo"], name: "desk")
            let sharing = RemoteSharing(registry, store, settings, RemoteDriver(heartbeat: .patient))
            made = sharing
            return [RemoteFeature(store, nil, sharing)]
        }
        let sharing = try #require(made)
        sharing.start()
        await sharing.waitForStart()
        let client = try server.connect()
        let told = await check("remote share", client)
        #expect(told?["ok"] == .bool(false) && told?["advice"]?.string?.contains("REMOVE_REMOTE") == true)
        let state = await client.answer(to: #"{"cmd":"GET_REMOTE"}"#)
        #expect(state?["fingerprint"] == nil && state?["borrowers"]?.array?.count == 1)
        let removal = #"{"cmd":"REMOVE_REMOTE","fingerprint":"\#(Self.laptop.fingerprint)"}"#
        #expect(await client.answer(to: removal)?["error"] == nil)
        let code = await client.ask(#"{"cmd":"OPEN_PAIRING"}"#, "PAIRING_CODE")
        let second = try await store.identity().fingerprint
        #expect(code?["fingerprint"]?.string == second && second != first)
        #expect(await check("remote share", client)?["ok"] == .bool(true))
        sharing.stop()
    }

    @Test("A store that is there later is used then, without a restart")
    func lateStore() async throws {
        let folder = try TemporaryFolder()
        do {
            let store = store(folder)
            _ = try await store.identity()
            try await store.add(Self.phone, .lender)
            try await store.add(Self.laptop, .borrower)
        }
        let isLate = Mutex(true)
        let store = RemoteStore(
            StateStore { () throws(Failure) -> Store? in
                guard !isLate.withLock({ $0 }) else { throw .storeUnavailable("the disk is not there yet") }
                return try await onceLeft { () throws(Failure) in try Store(folder: folder.path) }
            }
        )
        let driver = RemoteDriver(heartbeat: .patient)
        var settings = RemoteLenders.Settings(interfaces: ["lo"], name: "desk")
        settings.port = 0
        let lenders = RemoteLenders(store, settings, driver)
        var made: RemoteSharing?
        let server = try await TestServer(readers: 0, backends: [lenders.backend]) { registry in
            let settings = LendingSettings(readers: ["Simulator"], interfaces: ["lo"], name: "desk")
            let sharing = RemoteSharing(registry, store, settings, driver, besides: lenders)
            made = sharing
            return [RemoteFeature(store, lenders, sharing)]
        }
        let sharing = try #require(made)
        sharing.start()
        await sharing.waitForStart()
        let client = try server.connect()
        for name in ["remote share", "remote pairings"] {
            let told = await check(name, client)
            #expect(told?["cause"]?.string?.contains("not there yet") == true, "\(name): \(told ?? .null)")
        }
        isLate.withLock { $0 = false }
        while await check("remote share", client)?["ok"] != .bool(true), !Task.isCancelled {}
        #expect(await check("remote pairings", client) == nil)
        let state = await client.answer(to: #"{"cmd":"GET_REMOTE"}"#)
        #expect(state?["borrowers"]?.array?.count == 1 && state?["fingerprint"] != nil)
        #expect(state?["lenders"]?.array?.map { $0["paired"] } == [.bool(true)])
        sharing.stop()
        await server.registry.stop()
    }
}
