// SPDX-License-Identifier: GPL-3.0-or-later
import Concurrency
import Glibc
import Host
import Testing

@Suite("Sockets at which others arrive", .timeLimit(.minutes(5)))
@Loop struct ListenerTests {
    @Test("a listener that can take nobody pauses, and tries again after a while, also if nothing happens meanwhile")
    func shortage() async throws {
        // accept(2) fails, as it does without a descriptor, and the socket stays readable.
        var pair: [Int32] = [-1, -1]
        try #require(socketpair(AF_UNIX, Int32(SOCK_STREAM.rawValue), 0, &pair) == 0)
        defer { for socket in pair { close(socket) } }
        try #require(write(pair[1], [0], 1) == 1)
        let (attempts, attempted) = AsyncStream<Bool>.makeStream()
        let listener = try Listener(pair[0]) { listener in
            do throws(SystemError) { _ = try listener.accept() } catch {}
            attempted.yield(listener.isReading)
        }
        defer { listener.cancel() }
        var readings: [Bool] = []
        for await isReading in attempts {
            readings.append(isReading)
            if readings.count == 2 { break }
        }
        #expect(readings == [false, false])
    }
}
