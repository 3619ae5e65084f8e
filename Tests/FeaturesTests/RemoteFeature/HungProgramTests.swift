// SPDX-License-Identifier: GPL-3.0-or-later
import Concurrency
import Dispatch
import Glibc
import Host
import ReadersRemote
import RemoteDevices
import RemoteFeature
import Store
import TestSupport
import Testing
import Text

/// A badged-remote that hangs: it is noticed, reported, ended and started again.
@Suite(.timeLimit(.minutes(5))) @Loop struct HungProgramTests {
    private func check(_ name: String, _ client: TestClient) async -> JSON? {
        let health = await client.ask(#"{"cmd":"GET_HEALTH"}"#, "HEALTH")
        return health?["checks"]?.array?.first { $0["name"]?.string == name }
    }

    /// Stops a process, and returns when all of its threads are stopped.
    private func stop(_ process: Int32) async throws {
        kill(process, SIGSTOP)
        try await until {
            (Folder.names(in: "/proc/\(process)/task") ?? []).allSatisfy { thread in
                guard case .bytes(let bytes) = PlainFile.read("/proc/\(process)/task/\(thread)/stat", limit: 4096)
                else { return false }
                return String(decoding: bytes, as: UTF8.self).contains(") T ")
            }
        }
    }

    @Test("The reader of a stopped badged-remote leaves, GET_HEALTH says why, and the next run finds the reader again")
    func borrower() async throws {
        let stage = try await RemoteStage.paired(heartbeat: Heartbeat.Times())
        await stage.changes.wait { stage.lenders.devices.contains { $0.isConnected } }
        let stopped = try #require(stage.lenders.driver.process)
        try await stop(stopped)
        let client = try stage.laptop.connect()
        let told = await check("remote", client)
        let words = "the program badged-remote did not answer"
        #expect(told?["ok"] == .bool(false) && told?["advice"]?.string?.hasPrefix(words) == true, "\(told)")
        await stage.changes.wait { !stage.lenders.devices.contains { $0.isConnected } }
        try await until { stage.lenders.driver.process.map { $0 != stopped } ?? false }
        await stage.changes.wait { stage.lenders.port != 0 }
        #expect(await check("remote", client)?["ok"] == .bool(true))
        await stage.stop()
    }

    @Test("A stopped badged-remote of shared readers is noticed without a question of a client")
    func lender() async throws {
        let stage = try await RemoteStage.paired(heartbeat: Heartbeat.Times())
        await stage.changes.wait { stage.lenders.devices.contains { $0.isConnected } }
        let stopped = try #require(stage.sharing.driver.process)
        try await stop(stopped)
        try await until { stage.sharing.driver.process.map { $0 != stopped } ?? false }
        await stage.changes.wait { stage.lenders.devices.contains { $0.isConnected } }
        await stage.stop()
    }

    @Test("Readers are shared after a first run that says nothing")
    func firstRun() async throws {
        let folder = try TemporaryFolder()
        let path = "\(folder.path)/remote.sock"
        let listener = try UnixSocket.listen(on: path, type: SOCK_SEQPACKET)
        let program = try #require(ChildProcess.path(of: "badged-remote"))
        let isTold = DispatchSemaphore(value: 0)
        defer { isTold.signal() }
        _ = startThread("runs") {
            // The first one hangs before its first word, and nobody takes the next one before that is told.
            let hung = accept(listener, nil, nil)
            isTold.wait()
            while case let run = accept(listener, nil, nil), run >= 0 {
                startReaped(program, with: run)
                close(run)
            }
            close(hung)
            close(listener)
        }
        let store = RemoteStore(StateStore(folder: folder))
        var made: RemoteSharing?
        let server = try await TestServer { registry in
            let settings = LendingSettings(readers: ["Simulator"], interfaces: ["lo"], name: "desk")
            let sharing = RemoteSharing(registry, store, settings, RemoteDriver(socket: path))
            made = sharing
            return [RemoteFeature(store, nil, sharing)]
        }
        let sharing = try #require(made)
        sharing.start()
        await sharing.waitForStart()
        let client = try server.connect()
        let told = await check("remote share", client)
        #expect(told?["ok"] == .bool(false) && told?["cause"] == .string("badged-remote does not answer"), "\(told)")
        isTold.signal()
        while await check("remote share", client)?["ok"] != .bool(true), !Task.isCancelled {}
        #expect(await client.ask(#"{"cmd":"OPEN_PAIRING"}"#, "PAIRING_CODE")?["code"] != nil)
        sharing.stop()
        shutdown(listener, Int32(SHUT_RDWR))
    }
}
