// SPDX-License-Identifier: GPL-3.0-or-later
import Dispatch
import Glibc

/// The program badged with virtual readers on a temporary socket; deinit kills it.
package final class RunningDaemon: Sendable {
    /// The path of its socket.
    package let path: String
    package let program: RunningProgram
    /// What the configuration names; removed after the daemon.
    private let folder: TemporaryFolder?

    /// Starts badged and returns when it accepts connections.
    ///
    /// `environment` has variables for badged, such as STATE_DIRECTORY.
    package init(
        _ arguments: [String] = [],
        in folder: TemporaryFolder? = nil,
        environment: [String: String] = [:]
    ) async throws {
        self.folder = folder
        path = UnixSocket.temporaryPath
        let notify = path + ".notify"
        let socket = try UnixSocket.bind(to: notify, SOCK_DGRAM)
        defer {
            close(socket)
            unlink(notify)
        }
        program = try RunningProgram(
            "badged",
            ["--virtual", "--no-pcsc", "--no-nfc", "--socket", path] + arguments,
            environment: environment.merging(["NOTIFY_SOCKET": notify]) { $1 }
        )
        guard await Self.isReady(socket) else {
            throw RunningProgram.StartError(text: "badged is not ready: \(program.text(.error))")
        }
    }

    deinit { unlink(path) }

    /// Waits for READY=1 of sd_notify(3), at most two minutes after the previous notification.
    private static func isReady(_ socket: Int32) async -> Bool {
        await withCheckedContinuation { continuation in
            DispatchQueue(label: "readiness").async {
                var waiting = pollfd(fd: socket, events: Int16(POLLIN), revents: 0)
                var bytes = [UInt8](repeating: 0, count: 4096)
                while poll(&waiting, 1, 120_000) == 1 {
                    let count = recv(socket, &bytes, bytes.count, 0)
                    guard count > 0 else { break }
                    if String(decoding: bytes[..<count], as: UTF8.self).split(separator: "\n").contains("READY=1") {
                        continuation.resume(returning: true)
                        return
                    }
                }
                continuation.resume(returning: false)
            }
        }
    }
}
