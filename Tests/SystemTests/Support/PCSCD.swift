// SPDX-License-Identifier: GPL-3.0-or-later
import Foundation
import Synchronization
import TestSupport
import Testing

/// A real pcscd with test readers. Use this class only inside `in-namespace.sh`, which has a private /run.
final class PCSCD: Sendable {
    static let folder = "/run/pcscd"
    static let socket = "/run/pcscd/pcscd.comm"
    /// The milliseconds in which pcscd notices the removal of a card, on a busy machine.
    static let absenceTime = 5000

    struct Reader: Sendable {
        fileprivate let entry: String
        /// The names of the slots in pcscd.
        let names: [String]

        /// Returns a virtual reader of vsmartcard with two slots, at `port` and `port + 1`.
        ///
        /// The driver serves one reader per library file, so each reader has a copy of the file.
        static func vpcd(_ name: String, port: UInt16) throws -> Reader {
            let copy = "/run/libifdvpcd-\(port).so"
            if !FileManager.default.fileExists(atPath: copy) {
                try FileManager.default.copyItem(
                    at: URL(filePath: "/usr/lib/pcsc/drivers/serial/libifdvpcd.so").resolvingSymlinksInPath(),
                    to: URL(filePath: copy)
                )
            }
            let hex = "0x" + String(port, radix: 16)
            return Reader(
                entry: "FRIENDLYNAME \"\(name)\"\nDEVICENAME /dev/null:\(hex)\nLIBPATH \(copy)\nCHANNELID \(hex)\n\n",
                names: ["\(name) 00 00", "\(name) 00 01"]
            )
        }

        /// Returns a reader that is simulated by a `FakeReader` at `path`, which must exist before pcscd starts.
        static func fake(_ name: String, path: String) throws -> Reader {
            let driver = try #require(ProcessInfo.processInfo.environment["BADGED_IFD_KEYPAD"])
            return Reader(
                entry: "FRIENDLYNAME \"\(name)\"\nDEVICENAME \(path)\nLIBPATH \(driver)\nCHANNELID 1\n\n",
                names: ["\(name) 00 00"]
            )
        }
    }

    private let process: pid_t
    private let ended: AsyncStream<Void>
    private let hasEnded = Mutex(false)

    /// Starts pcscd without waiting until it is ready.
    init(_ readers: [Reader]) throws {
        try FileManager.default.createDirectory(atPath: Self.folder, withIntermediateDirectories: true)
        let configuration = "/run/reader-\(UUID()).conf"
        try readers.map(\.entry).joined().write(toFile: configuration, atomically: false, encoding: .utf8)
        let isVerbose = ProcessInfo.processInfo.environment["BADGED_PCSCD_DEBUG"] != nil
        process = try Spawn.start(
            ["/usr/sbin/pcscd", "--foreground", "--config", configuration] + (isVerbose ? ["--debug"] : []),
            files: isVerbose ? [:] : [1: "/dev/null", 2: "/dev/null"],
            environment: ProcessInfo.processInfo.environment
        )
        let (ended, continuation) = AsyncStream.makeStream(of: Void.self)
        self.ended = ended
        Thread.detachNewThread { [self] in
            waitpid(process, nil, 0)
            hasEnded.withLock { $0 = true }
            continuation.finish()
        }
    }

    /// Sends a signal (SIGTERM or SIGKILL) and waits until pcscd has ended.
    func end(_ signal: Int32 = SIGTERM) async {
        hasEnded.withLock { hasEnded in
            if !hasEnded { _ = Glibc.kill(process, signal) }
        }
        for await _ in ended {}
    }

    /// Stops pcscd (SIGSTOP), or lets it go on (SIGCONT).
    func signal(_ signal: Int32) {
        hasEnded.withLock { hasEnded in
            if !hasEnded { _ = Glibc.kill(process, signal) }
        }
    }

    /// Removes the directory of pcscd, as before its first start.
    static func cleanUp() { try? FileManager.default.removeItem(atPath: folder) }
}
