// SPDX-License-Identifier: GPL-3.0-or-later
import Concurrency
import Glibc
import Host
import ISO7816
import Readers
import TestSupport
import Testing
import Text

@testable import Drivers

/// A program of a driver that somebody has taken over: it lives, and keeps what it was asked.
@Suite("A driver that owes an answer", .timeLimit(.minutes(5))) @Loop struct SilentDriverTests {
    /// A program that answers heartbeats, has one reader with a card, and does not answer some requests.
    private final class StandIn: Driver {
        nonisolated let name = "test"
        nonisolated let program = "badged-test"
        nonisolated let socket: String?
        var isNeeded: Bool { true }
        private let folder: TemporaryFolder
        private let listener: Int32

        init(_ isSilent: @escaping @Sendable (DriverRequest) -> Bool) throws {
            folder = try TemporaryFolder()
            let path = "\(folder.path)/test.sock"
            socket = path
            listener = try UnixSocket.listen(on: path, type: SOCK_SEQPACKET)
            _ = startThread("stand-in") { [listener] in
                while case let run = accept(listener, nil, nil), run >= 0 {
                    Self.send(.hello(program: "badged-test", version: Version.current), run)
                    var buffer = [UInt8](repeating: 0, count: DriverMessage.maximumSize)
                    while case let count = recv(run, &buffer, buffer.count, 0), count > 0 {
                        let message = Array(buffer.prefix(count))
                        if message == Heartbeat.message {
                            _ = Glibc.send(run, message, count, Int32(MSG_NOSIGNAL))
                        } else if let request = DriverRequest(bytes: message), !isSilent(request) {
                            for report in Self.answers(request) { Self.send(report, run) }
                        }
                    }
                    close(run)
                }
                // Here, so that no other test gets this number while the thread still accepts.
                close(listener)
            }
        }

        func start(_ client: DriverClient) {}
        func stop() {}

        nonisolated func end() {
            shutdown(listener, Int32(SHUT_RDWR))
        }

        private nonisolated static func answers(_ request: DriverRequest) -> [DriverReport] {
            switch request {
            case .look:
                let insertion = Insertion(reader: "Desk", number: 1)
                return [
                    .event(.added(ReaderDescription(name: "Desk", hasKeypad: true))),
                    .event(.inserted(insertion, answerToReset: [])),
                ]
            case .card(.transmit, _, let id): return [.answer(id: id, .success(.response(ResponseAPDU(.ok))))]
            case .card(_, _, let id): return [.answer(id: id, .success(.done))]
            case .health(let id): return [.health(id: id, [])]
            case .record(_, let id): return [.answer(id: id, .success(.frames([])))]
            case .progress, .cancel: return []
            }
        }

        private nonisolated static func send(_ report: DriverReport, _ run: Int32) {
            _ = Glibc.send(run, report.bytes, report.bytes.count, Int32(MSG_NOSIGNAL))
        }
    }

    enum Silence: CaseIterable {
        case connect, transmit, release, establishPACE, destroyPACE, modifyPIN

        func covers(_ request: DriverRequest) -> Bool {
            guard case .card(let request, _, _) = request else { return false }
            return switch (self, request) {
            case (.connect, .connect), (.transmit, .transmit), (.release, .release),
                (.establishPACE, .establishPACE), (.destroyPACE, .destroyPACE), (.modifyPIN, .modifyPIN):
                true
            default: false
            }
        }
    }

    private func insertion(_ events: inout AsyncStream<ReaderEvent>.Iterator) async throws -> Insertion {
        while let event = await events.next(isolation: #isolation) {
            if case .inserted(let insertion, _) = event { return insertion }
        }
        throw Malformed("the events have ended")
    }

    @Test("a driver whose program has ended answers for it, and does not keep GET_HEALTH waiting")
    func ended() async throws {
        let standIn = try StandIn { _ in false }
        let backend = DriverBackend(standIn)
        // As when the program ends between the sign of life and the question for its checks.
        #expect(await backend.client.session.currentHealth().isEmpty)
        standIn.end()
    }

    @Test(
        "a request that is not answered ends the program, the card leaves, and the program is started again",
        arguments: Silence.allCases
    )
    func request(silence: Silence) async throws {
        let standIn = try StandIn(silence.covers)
        let backend = DriverBackend(standIn)
        var events = backend.events.makeAsyncIterator()
        let card = try await insertion(&events)
        let session = backend.client.session
        func shorten() {
            switch silence {
            case .establishPACE, .modifyPIN: session.limits.question = 1
            case .connect, .transmit, .release, .destroyPACE: session.limits.command = 1
            }
        }
        if silence == .connect { shorten() }
        do {
            let connection = try await backend.connect(card)
            let keypad = try #require(connection as? any KeypadConnection)
            // Those that are answered have their usual time.
            if silence != .transmit { _ = try await keypad.transmit(CommandAPDU(0, 0xA4, 0, 0)) }
            shorten()
            switch silence {
            case .connect: Issue.record("there is a connection")
            case .transmit: _ = try await keypad.transmit(CommandAPDU(0, 0xA4, 0, 0))
            case .release: await keypad.disconnect(reset: true)
            case .establishPACE:
                let question = KeypadPACERequest(passwordID: 3)
                _ = try await keypad.establishPACE(question)
            case .destroyPACE: try await keypad.destroyPACE()
            case .modifyPIN: _ = try await keypad.modifyPIN()
            }
            #expect(silence == .release)
        } catch {
            // What the card has done is not known, as after any loss of a card.
            #expect(error as? CardError == .removed)
        }
        session.limits = DriverSession.Limits()
        var seen: [String] = []
        while let event = await events.next(isolation: #isolation) {
            switch event {
            case .withdrawn: seen.append("withdrawn")
            case .removed: seen.append("removed")
            case .added: seen.append("added")
            case .health(let checks) where checks.contains { !$0.ok }:
                #expect(checks.first?.advice?.contains("did not answer") == true)
                seen.append("fault")
            default: break
            }
            if seen.last == "added" { break }
        }
        #expect(seen == ["withdrawn", "removed", "fault", "added"])
        await backend.close()
        standIn.end()
    }

    @Test("checks that are not answered do not keep GET_HEALTH")
    func checks() async throws {
        let standIn = try StandIn { if case .health = $0 { true } else { false } }
        let backend = DriverBackend(standIn)
        var events = backend.events.makeAsyncIterator()
        _ = try await insertion(&events)
        backend.client.session.limits.checks = 1
        let checks = await backend.currentHealth()
        #expect(checks.first?.advice?.contains("did not answer") == true)
        await backend.close()
        standIn.end()
    }
}
