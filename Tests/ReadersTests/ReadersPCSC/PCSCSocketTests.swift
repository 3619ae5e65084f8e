// SPDX-License-Identifier: GPL-3.0-or-later
import Foundation
import TestSupport
import Testing

@testable import ReadersPCSC

@Suite("pcscd socket", .timeLimit(.minutes(5)))
struct PCSCSocketTests {
    private let root = FileManager.default.temporaryDirectory.appending(path: "pcsc-\(UUID())").path
    private let files = FileManager.default

    private func folder(_ path: String) throws {
        try files.createDirectory(atPath: root + path, withIntermediateDirectories: true)
    }

    @Test("the parent directories of a socket are listed from the nearest to the root")
    func folders() {
        #expect(PCSCSocket(path: "/run/pcscd/pcscd.comm").folders == ["/run/pcscd", "/run", "/"])
    }

    @Test("a connection attempt distinguishes a missing file, a stale socket and a listening process")
    func connect() throws {
        try folder("/a")
        defer { try? files.removeItem(atPath: root) }
        let socket = PCSCSocket(path: root + "/a/s")
        #expect(socket.tryConnect() == ENOENT)
        let listener = try #require(Listener(socket.path, listens: false))
        #expect(socket.tryConnect() == ECONNREFUSED)
        listener.listen()
        #expect(socket.tryConnect() == 0)
        #expect(PCSCSocket(path: "/" + String(repeating: "x", count: 200)).tryConnect() == ENAMETOOLONG)
    }

    @Test("replacing the socket file changes its identity, and changing its mode does not")
    func identity() throws {
        try folder("/a")
        defer { try? files.removeItem(atPath: root) }
        let socket = PCSCSocket(path: root + "/a/s")
        #expect(socket.identity == nil)
        // Both files exist at the same time, so that the second does not reuse the inode number of the first.
        let first = try #require(Listener(socket.path))
        let second = try #require(Listener(root + "/a/t"))
        let before = socket.identity
        #expect(before != nil)
        chmod(socket.path, 0o600)
        #expect(socket.identity == before)
        #expect(rename(second.path, first.path) == 0)
        #expect(socket.identity != nil)
        #expect(socket.identity != before)
    }

    enum Change: String, CaseIterable, Sendable {
        case socketAppears, socketGoes, socketIsReplaced, modeChanges, folderAppears, foldersAppear, folderGoes, signal
    }

    /// The watcher must wake for each change. Without a wake-up the test ends at its time limit.
    @Test("every change of the socket or its parent directories wakes the watcher", arguments: Change.allCases)
    func wakes(change: Change) throws {
        try folder("")
        defer { try? files.removeItem(atPath: root) }
        let socket = PCSCSocket(path: root + "/a/b/s")
        if change != .folderAppears, change != .foldersAppear { try folder("/a/b") } else { try folder("") }
        if change == .folderAppears { try folder("/a") }
        let before = [.socketGoes, .socketIsReplaced, .modeChanges].contains(change) ? Listener(socket.path) : nil
        let other = change == .socketIsReplaced ? Listener(root + "/s") : nil
        let watch = try #require(SocketWatch(socket))
        watch.arm()
        switch change {
        case .socketAppears: _ = Listener(socket.path)
        case .socketGoes: unlink(socket.path)
        case .socketIsReplaced: rename(root + "/s", socket.path)
        case .modeChanges: chmod(socket.path, 0o600)
        case .folderAppears: try folder("/a/b")
        case .foldersAppear: try folder("/a/b")
        case .folderGoes: try files.removeItem(atPath: root + "/a")
        case .signal: watch.signal()
        }
        watch.wait(milliseconds: nil)
        // After the change the watcher observes the current directories.
        watch.arm()
        try folder("/a/b")
        watch.arm()
        unlink(socket.path)
        watch.wait(milliseconds: 0)
        let late = try #require(Listener(socket.path))
        watch.wait(milliseconds: nil)
        withExtendedLifetime((before, other, late)) {}
    }

    @Test("without a change the watcher waits for the whole timeout")
    func quiet() throws {
        try folder("/a")
        defer { try? files.removeItem(atPath: root) }
        let watch = try #require(SocketWatch(PCSCSocket(path: root + "/a/s")))
        watch.arm()
        let start = ContinuousClock.now
        watch.wait(milliseconds: 50)
        #expect(ContinuousClock.now - start >= .milliseconds(49))
    }

    @Test(
        "retries back off and end, and a fault is reported only after several attempts",
        arguments: [
            (PCSCFault.noSocket, [5, 10, 20, nil], 3), (.refused, [5, 10, 20, 40, 80, 160, 320, 640, nil], 3),
            (.denied, [5, 10, 20, 40, 80, 160, 320, 640, nil], 8),
            (.versionMismatch, [5, 10, 20, 40, 80, 160, 320, 640, nil], 8),
        ] as [(PCSCFault, [Int?], Int)]
    )
    func backoff(fault: PCSCFault, pauses: [Int?], sureAfter: Int) {
        var backoff = Watch.Backoff()
        let steps = (0..<pauses.count + 1).map { _ in backoff.next(fault) }
        #expect(steps.map(\.pause) == pauses + [nil])
        #expect(steps.map(\.isSure) == steps.indices.map { $0 >= sureAfter })
    }

    @Test("after one denied attempt, a closed connection also counts as denied")
    func deniedOnce() {
        var backoff = Watch.Backoff()
        let seen: [PCSCFault] = [.hungUp, .denied, .hungUp, .hungUp, .noSocket]
        #expect(seen.map { backoff.next($0).fault } == [.hungUp, .denied, .denied, .denied, .noSocket])
    }
}

/// A socket file, optionally in the listening state.
private final class Listener {
    let path: String
    private let fd: Int32

    init?(_ path: String, listens: Bool = true) {
        self.path = path
        guard let fd = try? UnixSocket.bind(to: path) else { return nil }
        self.fd = fd
        if listens { listen() }
    }

    func listen() { Glibc.listen(fd, 4) }
    deinit { close(fd) }
}
