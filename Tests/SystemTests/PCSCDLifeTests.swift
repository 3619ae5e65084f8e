// SPDX-License-Identifier: GPL-3.0-or-later
import Foundation
import Host
import ISO7816
import Readers
import ReadersPCSC
import TestSupport
import Testing

extension RealServices {
    /// Tests that the backend follows the start and the end of pcscd.
    @Suite("start and end of pcscd")
    struct PCSCDLifeTests {
        private let one = "Virtual One 00 00", two = "Virtual One 00 01"

        @Test("the backend follows pcscd through start, stop, restart, SIGKILL and a stale socket")
        func lifecycle() async throws {
            PCSCD.cleanUp()
            let readers = [try PCSCD.Reader.vpcd("Virtual One", port: 36_000)]
            let events = Events(PCSCBackend())
            #expect(try await events.next() == "health pcscd")
            #expect(events.checks.first?.advice?.contains("does not exist") == true)

            var pcscd = try PCSCD(readers)
            #expect(try await events.next(3) == ["health ok", "added \(one)", "added \(two)"])

            let card = VPCDCard(port: 36_000)
            #expect(card.insert())
            #expect(try await events.next() == "inserted \(one)")
            await pcscd.end()
            #expect(
                try await events.next(4) == ["withdrawn \(one)", "removed \(one)", "removed \(two)", "health pcscd"]
            )
            #expect(events.checks.first?.advice?.contains("does not exist") == true)

            // A card is inserted after pcscd starts again.
            pcscd = try PCSCD(readers)
            #expect(try await events.next() == "health ok")
            try await events.wait(for: "added \(two)")
            let second = VPCDCard(port: 36_001)
            #expect(second.insert())
            #expect(try await events.next() == "inserted \(two)")

            await pcscd.end(SIGKILL)
            #expect(
                try await events.next(4) == ["removed \(one)", "withdrawn \(two)", "removed \(two)", "health pcscd"]
            )
            #expect(events.checks.first?.advice?.contains("no process listens") == true)

            pcscd = try PCSCD(readers)
            #expect(try await events.next(3) == ["health ok", "added \(one)", "added \(two)"])
            await pcscd.end()
        }

        @Test("an immediate restart after SIGKILL is detected")
        func quickRestart() async throws {
            PCSCD.cleanUp()
            let readers = [try PCSCD.Reader.vpcd("Virtual One", port: 36_000)]
            let events = Events(PCSCBackend())
            var pcscd = try PCSCD(readers)
            try await events.wait(for: "added \(two)")
            for _ in 0..<3 {
                await pcscd.end(SIGKILL)
                pcscd = try PCSCD(readers)
                try await events.wait(for: "removed \(two)")
                try await events.wait(for: "added \(two)")
            }
            await pcscd.end()
        }

        @Test("a replaced socket is detected while the old pcscd still runs")
        func socketReplaced() async throws {
            PCSCD.cleanUp()
            let events = Events(PCSCBackend())
            let old = try PCSCD([.vpcd("Virtual Old", port: 36_000)])
            try await events.wait(for: "added Virtual Old 00 01")
            // A second pcscd starts only without the socket and the process id file of the first.
            try FileManager.default.removeItem(atPath: PCSCD.socket)
            #expect(
                try await events.next(3) == ["removed Virtual Old 00 00", "removed Virtual Old 00 01", "health pcscd"]
            )
            try FileManager.default.removeItem(atPath: PCSCD.folder + "/pcscd.pid")
            let new = try PCSCD([.vpcd("Virtual New", port: 36_010)])
            #expect(
                try await events.next(3) == ["health ok", "added Virtual New 00 00", "added Virtual New 00 01"]
            )
            await old.end(SIGKILL)
            let card = VPCDCard(port: 36_010)
            #expect(card.insert())
            #expect(try await events.next() == "inserted Virtual New 00 00")
            await new.end()
        }

        @Test("a pcscd that hangs before badged starts is reported, and used when it goes on")
        func hang() async throws {
            PCSCD.cleanUp()
            let pcscd = try PCSCD([.vpcd("Virtual One", port: 36_000)])
            _ = try await OtherProgram()
            pcscd.signal(SIGSTOP)
            let events = Events(PCSCBackend())
            #expect(try await events.next() == "health pcscd")
            #expect(events.checks.first?.advice?.contains("does not answer") == true)
            pcscd.signal(SIGCONT)
            #expect(try await events.next(3) == ["health ok", "added \(one)", "added \(two)"])
            await pcscd.end()
        }

        @Test("a pcscd that hangs later is reported by GET_HEALTH, to all who ask at once")
        func laterHang() async throws {
            PCSCD.cleanUp()
            let pcscd = try PCSCD([.vpcd("Virtual One", port: 36_000)])
            let backend = PCSCBackend()
            let events = Events(backend)
            try await events.wait(for: "added \(two)")
            #expect(await backend.currentHealth().allSatisfy { $0.ok })
            pcscd.signal(SIGSTOP)
            async let first = backend.currentHealth()
            async let second = backend.currentHealth()
            for checks in await [first, second] {
                #expect(checks.first { $0.name == "pcscd" }?.advice?.contains("does not answer") == true)
            }
            pcscd.signal(SIGCONT)
            while await !backend.currentHealth().allSatisfy({ $0.ok }) { try Task.checkCancellation() }
            await pcscd.end()
        }

        @Test("a pcscd without a free place is reported as that, and used when there is one")
        func full() async throws {
            PCSCD.cleanUp()
            let pcscd = try PCSCD([.vpcd("Virtual One", port: 36_000)])
            var others: [OtherProgram] = []
            for _ in 0..<200 { others.append(try await OtherProgram()) }
            let events = Events(PCSCBackend())
            #expect(try await events.next() == "health pcscd")
            #expect(events.checks.first?.advice?.contains("no place left") == true, "\(events.checks)")
            others = []
            #expect(try await events.next(3) == ["health ok", "added \(one)", "added \(two)"])
            await pcscd.end()
        }

        @Test("the removal and new creation of the socket directory are detected")
        func folderRemoved() async throws {
            PCSCD.cleanUp()
            let events = Events(PCSCBackend())
            var pcscd = try PCSCD([.vpcd("Virtual One", port: 36_000)])
            try await events.wait(for: "added \(two)")
            await pcscd.end(SIGKILL)
            try await events.wait(for: "health pcscd")
            PCSCD.cleanUp()
            pcscd = try PCSCD([.vpcd("Virtual One", port: 36_000)])
            try await events.wait(for: "added \(two)")
            await pcscd.end()
        }

        @Test("a closed connection is reported as an access fault, and another protocol version is reported")
        func deniedAndOtherVersion() async throws {
            PCSCD.cleanUp()
            try FileManager.default.createDirectory(atPath: PCSCD.folder, withIntermediateDirectories: true)
            let events = Events(PCSCBackend())
            #expect(try await events.next() == "health pcscd")

            // When polkit denies access, pcscd closes the connection without reading the data or answering.
            let refusing = try #require(UnixListener(PCSCD.socket) { $0.hangUpUnread() })
            // polkit refuses nothing to root.
            let isRoot = getuid() == 0
            try await events.wait(for: isRoot ? "health pcscd" : "health pcscdAccess")
            while isRoot, events.checks.first?.advice?.contains("closes each connection") != true {
                try await events.wait(for: "health pcscd")
            }
            #expect(isRoot != events.checks.contains { $0.advice?.contains("polkit") == true })
            refusing.end()
            unlink(PCSCD.socket)
            try await events.wait(for: "health pcscd")

            // The first message negotiates the version: size, command, major, minor and code, with 32 bits each.
            let other = try #require(
                UnixListener(PCSCD.socket) { stream in
                    guard stream.read(8 + 12) != nil else { return stream.close() }
                    stream.write([9, 0, 0, 0, 9, 0, 0, 0, 0x1E, 0x00, 0x10, 0x80])
                    _ = stream.read(1)
                    stream.close()
                }
            )
            while events.checks.first?.advice?.contains("protocol version") != true {
                #expect(try await events.next() == "health pcscd")
            }
            other.end()
            unlink(PCSCD.socket)

            let pcscd = try PCSCD([])
            try await events.wait(for: "health ok")
            await pcscd.end()
        }

        @Test("the end of the event consumer ends the threads, with and without pcscd", arguments: [true, false])
        func end(isThere: Bool) async throws {
            PCSCD.cleanUp()
            let pcscd = isThere ? try PCSCD([.vpcd("Virtual One", port: 36_000)]) : nil
            let backend = PCSCBackend()
            let (started, continuation) = AsyncStream.makeStream(of: Void.self)
            let consumer = Task {
                for await event in backend.events {
                    if case .added = event { continuation.finish() }
                    if case .health(let checks) = event, checks.contains(where: { !$0.ok }), !isThere {
                        continuation.finish()
                    }
                }
            }
            for await _ in started {}
            #expect(!Threads.now.ofDriver.isEmpty)
            consumer.cancel()
            await consumer.value
            try await until { Threads.now.ofDriver.isEmpty }
            await pcscd?.end()
        }

        @Test("after the end of pcscd a connection reports an unavailable service, and old insertions are removed")
        func connectWithoutPCSCD() async throws {
            PCSCD.cleanUp()
            let backend = PCSCBackend()
            let events = Events(backend)
            let pcscd = try PCSCD([.vpcd("Virtual One", port: 36_000)])
            try await events.wait(for: "added \(two)")
            let card = VPCDCard(port: 36_000)
            #expect(card.insert())
            let insertion = try await events.insertion(in: one)
            let connection = try await backend.connect(insertion)
            await pcscd.end(SIGKILL)
            await #expect(throws: CardError.serviceUnavailable) {
                try await connection.transmit(CommandAPDU(0, 0xA4, 0, 0))
            }
            await connection.disconnect(reset: true)
            try await events.wait(for: "health pcscd")
            await #expect(throws: CardError.serviceUnavailable) { try await backend.connect(insertion) }
            let again = try PCSCD([.vpcd("Virtual One", port: 36_000)])
            try await events.wait(for: "added \(two)")
            await #expect(throws: CardError.removed) { try await backend.connect(insertion) }
            await again.end()
        }
    }
}
