// SPDX-License-Identifier: GPL-3.0-or-later
import Cards
import Concurrency
import Drivers
import Glibc
import Host
import ISO7816
import Readers
import ReadersRemote
import ReadersVirtual
import RemoteFeature
import Store
import TestSupport
import Testing
import Text
import VirtualEID

@Suite("Devices that come while the card of the one before is released", .timeLimit(.minutes(5)))
@Loop struct LeavingDeviceTests {
    /// A program in the place of badged-remote, which says that its ports are open and keeps what badged answers.
    private final class StandIn: Sendable {
        let path: String
        let reports: AsyncStream<DriverReport>
        private let listener: Int32

        init(in folder: TemporaryFolder) throws {
            path = "\(folder.path)/remote.sock"
            listener = try UnixSocket.listen(on: path, type: SOCK_SEQPACKET)
            let (reports, sink) = AsyncStream.makeStream(of: DriverReport.self)
            self.reports = reports
            _ = startThread("stand-in") { [listener] in
                while case let run = accept(listener, nil, nil), run >= 0 {
                    Self.send(DriverReport.hello(program: "badged-remote", version: Version.current).bytes, run)
                    var buffer = [UInt8](repeating: 0, count: DriverMessage.maximumSize)
                    while case let count = recv(run, &buffer, buffer.count, 0), count > 0 {
                        let message = Array(buffer.prefix(count))
                        if message == Heartbeat.message {
                            Self.send(message, run)
                        } else if let report = DriverReport(bytes: message) {
                            sink.yield(report)
                        } else if case .lend? = RemoteRequest(bytes: message) {
                            var state = LendingState()
                            state.isOpen = true
                            Self.send(RemoteReport.lending(state).bytes, run)
                        }
                    }
                    close(run)
                }
                close(listener)
            }
        }

        func end() { shutdown(listener, Int32(SHUT_RDWR)) }

        private static func send(_ message: [UInt8], _ run: Int32) {
            _ = Glibc.send(run, message, message.count, Int32(MSG_NOSIGNAL))
        }
    }

    private static func device(_ digit: String) -> RemoteDevice {
        RemoteDevice(fingerprint: String(repeating: digit, count: 64), name: "device \(digit)")
    }

    @Test("each request of a device is answered, also if its pairing is removed before the card is free")
    func removed() async throws {
        let card = try VirtualCard()
        let backend = ScriptedReaders { _ throws(CardError) in ScriptedConnection(to: card) }
        backend.add(ReaderDescription(name: "Desk"))
        let folder = try TemporaryFolder()
        let standIn = try StandIn(in: folder)
        defer { standIn.end() }
        let store = RemoteStore(StateStore(folder: folder))
        let (first, second) = (Self.device("a"), Self.device("b"))
        for device in [first, second] { try await store.add(device, .borrower) }
        var made: RemoteSharing?
        let server = try await TestServer(backends: [backend]) { registry in
            let settings = LendingSettings(readers: ["Desk"], interfaces: ["lo"], name: "desk")
            let sharing = RemoteSharing(registry, store, settings, RemoteDriver(socket: standIn.path))
            made = sharing
            return [RemoteFeature(store, nil, sharing)]
        }
        let sharing = try #require(made)
        sharing.start()
        await sharing.waitForStart()
        await server.ready(["Desk"])
        backend.insert(into: "Desk")
        while !server.registry.hasCard(in: "Desk", for: ObjectIdentifier(sharing)) {
            await server.registry.nextChange()
        }

        // The release of the card takes until the end of the test.
        let mayEnd = OneShot<Void>()
        backend.onConnect { _ throws(CardError) in
            ScriptedConnection { command throws(CardError) in
                try await card.answer(command)
            } disconnect: { _ in
                await mayEnd.value
            }
        }
        #expect(sharing.handle(RemoteReport.guest(first)))
        sharing.handle(DriverRequest.look(sources: []))
        sharing.handle(DriverRequest.card(.connect, of: 1, id: 1))
        for await report in standIn.reports {
            if case .answer(id: 1, .success(.done)) = report { break }
        }
        #expect(sharing.handle(RemoteReport.guest(nil)))
        #expect(sharing.handle(RemoteReport.guest(second)))
        for request in [
            DriverRequest.look(sources: []), .health(id: 2), .card(.connect, of: 1, id: 3),
            .record(reader: "Desk", id: 4),
        ] {
            sharing.handle(request)
        }
        sharing.removed(second.fingerprint)
        var answered: [UInt32] = []
        for await report in standIn.reports {
            switch report {
            case .health(let id, _), .answer(let id, .failure(.removed)): answered.append(id)
            case .answer, .event, .hello: break
            }
            if answered.count == 3 { break }
        }
        #expect(answered == [2, 3, 4])
        mayEnd.fill(())
        sharing.stop()
        withExtendedLifetime(server) {}
    }
}
