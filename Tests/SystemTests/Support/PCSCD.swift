// SPDX-License-Identifier: GPL-3.0-or-later
import Foundation
import Synchronization
import TestSupport
import Testing

/// A real pcscd, with readers of our own. For use inside `in-namespace.sh` only, where /run is ours.
final class PCSCD: Sendable {
    static let folder = "/run/pcscd"
    static let socket = "/run/pcscd/pcscd.comm"

    struct Reader: Sendable {
        fileprivate let entry: String
        /// As pcscd calls its slots.
        let names: [String]

        /// A virtual reader of vsmartcard with two slots, at `port` and `port + 1`. Its driver serves one reader per file,
        /// hence the copies.
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

        /// A reader that a `FakeReader` at `path` plays. It must be there before pcscd starts.
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

    /// Starts pcscd and does not wait for it.
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
        thread { [self] in
            waitpid(process, nil, 0)
            hasEnded.withLock { $0 = true }
            continuation.finish()
        }
    }

    /// Asks it to end (SIGTERM) or ends it (SIGKILL), and waits for that.
    func end(_ signal: Int32 = SIGTERM) async {
        hasEnded.withLock { hasEnded in
            if !hasEnded { _ = Glibc.kill(process, signal) }
        }
        for await _ in ended {}
    }

    /// As on a machine where pcscd was never started.
    static func cleanUp() { try? FileManager.default.removeItem(atPath: folder) }
}
