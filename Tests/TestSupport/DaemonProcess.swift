// SPDX-License-Identifier: GPL-3.0-or-later
import CLinux
package import Concurrency
import FoundationEssentials
import Glibc
import Host

/// The real daemon as a child process, with virtual readers and a socket in a temporary folder.
@Loop package final class DaemonProcess {
    package let pid: Int32
    package let socketPath: String
    private let folder: TemporaryFolder
    private let errorPipe: Int32
    private var registration: Loop.Registration?
    private let changes = Changes()
    private var partial: [UInt8] = []
    private var isReaped = false
    private var status: Int32 = 0
    /// The lines that the daemon has written to its standard error.
    package private(set) var log: [String] = []
    /// The time when its standard error was closed, which is the end of the daemon.
    package private(set) var end: ContinuousClock.Instant?

    /// Starts the daemon and returns when it accepts connections.
    /// - Parameters:
    ///   - configuration: the lines of badged.conf.
    ///   - usesNFC: whether the daemon loads the driver of libnfc.
    ///   - openFiles: the limit of open files; nil for the limit of the system.
    ///   - environment: its environment. By default it is empty, so the daemon inherits no sockets and sends no
    ///     notifications.
    /// - Throws: `SystemError` when the daemon cannot be started.
    package init(
        configuration: String = "",
        usesNFC: Bool = false,
        openFiles: UInt? = nil,
        environment: [String: String] = [:]
    ) async throws {
        folder = try TemporaryFolder()
        socketPath = folder.path + "/badged.sock"
        try folder.write("badged.conf", Array(configuration.utf8))

        var ends: [Int32] = [-1, -1]
        guard pipe(&ends) == 0 else { throw SystemError("pipe") }
        for end in ends { clinux_set_cloexec(end) }
        clinux_set_nonblocking(ends[0])
        errorPipe = ends[0]
        var arguments = [
            RunningProgram.programs + "/badged", "--virtual", "--no-pcsc", "--no-ble", "--log-level", "debug",
            "--socket", socketPath, "--config", folder.path + "/badged.conf",
        ]
        if !usesNFC { arguments.append("--no-nfc") }
        if let openFiles { arguments = ["/usr/bin/prlimit", "--nofile=\(openFiles):\(openFiles)"] + arguments }
        pid = try Spawn.start(arguments, descriptors: [2: ends[1]], environment: environment)
        close(ends[1])
        registration = try Loop.watch(errorPipe, .read) { [weak self] _ in self?.readable() }
        await wait { $0.log.contains { $0.contains("serving") } }
        guard end == nil else { throw SystemError("badged: \(log)", ECHILD) }
    }

    isolated deinit {
        registration?.cancel()
        close(errorPipe)
        if end == nil { kill(pid, SIGKILL) }
        reap()
    }

    /// Replaces the configuration file; SIGHUP loads the new one.
    package func configure(_ configuration: String) throws {
        try folder.write("badged.conf", Array(configuration.utf8))
    }

    private func readable() {
        var chunk = [UInt8](repeating: 0, count: 65_536)
        let count = read(errorPipe, &chunk, chunk.count)
        if count < 0, errno == EAGAIN || errno == EINTR { return }
        if count > 0 {
            partial += chunk[..<count]
            while let end = partial.firstIndex(of: 0x0A) {
                log.append(String(decoding: partial[..<end], as: UTF8.self))
                partial.removeFirst(end + 1)
            }
        } else {
            end = .now
            registration?.cancel()
        }
        changes.notify()
    }

    /// Waits until `condition` holds or the daemon has ended.
    package func wait(until condition: (DaemonProcess) -> Bool) async {
        await changes.wait { condition(self) || end != nil }
    }

    /// The number of disconnected clients in the log.
    package var disconnections: Int { log.filter { $0.contains(" disconnected: ") }.count }

    /// Sends a signal.
    package func signal(_ number: Int32) { kill(pid, number) }

    /// Waits for the end of the daemon and returns its exit code; nil when a signal ended it.
    package func exitCode() async -> Int32? {
        await wait { _ in false }
        reap()
        return status & 0x7F == 0 ? status >> 8 & 0xFF : nil
    }

    private func reap() {
        guard !isReaped else { return }
        isReaped = true
        waitpid(pid, &status, 0)
    }

    /// Connects a client to the daemon.
    /// - Throws: `SystemError` when the connection is refused.
    package func connect() throws -> TestClient {
        let descriptor = try UnixSocket.connect(to: socketPath)
        clinux_set_nonblocking(descriptor)
        return try TestClient(socket: descriptor)
    }

    // MARK: Memory

    /// The programs of badged that the daemon has started. A sanitizer starts one of its own.
    package var children: [Int32] {
        let processes = (try? FileManager.default.contentsOfDirectory(atPath: "/proc")) ?? []
        return processes.compactMap { Int32($0) }.filter { process in
            let status = FileManager.default.contents(atPath: "/proc/\(process)/status") ?? Data()
            let text = String(decoding: status, as: UTF8.self)
            return text.hasPrefix("Name:\tbadged-") && text.contains("\nPPid:\t\(pid)\n")
        }
    }

    /// The anonymous memory of the daemon in bytes: heap and stacks, without the pages of files.
    package var anonymousMemory: Int {
        let text = FileManager.default.contents(atPath: "/proc/\(pid)/smaps_rollup") ?? Data()
        let line = String(decoding: text, as: UTF8.self).split(separator: "\n").first { $0.hasPrefix("Anonymous:") }
        return line?.split(separator: " ").dropFirst().first.flatMap { Int($0) }.map { $0 * 1024 } ?? 0
    }

    /// Whether the test can read the daemon's memory.
    package nonisolated static var canReadMemory: Bool { ProcessMemory.isReadable }

    /// Returns how often these bytes occur in the daemon's memory.
    package func occurrences(of bytes: [UInt8]) throws -> Int { try ProcessMemory.occurrences(of: bytes, in: pid) }
}
