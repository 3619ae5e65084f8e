// SPDX-License-Identifier: GPL-3.0-or-later
import Glibc
import Host
import TestSupport
import Testing

@testable import Concurrency

@Suite("The signs of life of a loop", .timeLimit(.minutes(5)))
@Loop struct SignsOfLifeTests {
    @Test("the service manager gets a sign at once and then as often as it asks for, also below a second")
    func often() async throws {
        let folder = try TemporaryFolder()
        let path = "\(folder.path)/notify.sock"
        let manager = try UnixSocket.bind(to: path, SOCK_DGRAM)
        defer { close(manager) }
        let variables = ["NOTIFY_SOCKET": path, "WATCHDOG_USEC": "40000"]
        let signs = SignsOfLife(ServiceNotification { variables[$0] })
        // The signs are timed from the begin of the turn.
        let begin = Loop.turn
        signs.tell()
        let received = await withCheckedContinuation { continuation in
            _ = startThread("test-manager") {
                let list = (0..<4).map { _ in BlockingSocket.receive(from: manager) ?? [] }
                continuation.resume(returning: list)
            }
        }
        #expect(received.allSatisfy { $0 == Array("WATCHDOG=1".utf8) })
        // Three pauses of 20 ms: it does not spin.
        #expect(Loop.clock - begin >= 60_000)
        _ = signs
    }

    @Test("a manager that does not watch gets none")
    func unwatched() async throws {
        let folder = try TemporaryFolder()
        let path = "\(folder.path)/notify.sock"
        let manager = try UnixSocket.bind(to: path, SOCK_DGRAM)
        defer { close(manager) }
        let service = ServiceNotification { $0 == "NOTIFY_SOCKET" ? path : nil }
        SignsOfLife(service).tell()
        service.stopping()
        #expect(BlockingSocket.receive(from: manager) == Array("STOPPING=1".utf8))
    }
}
