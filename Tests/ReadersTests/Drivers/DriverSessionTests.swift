// SPDX-License-Identifier: GPL-3.0-or-later
import ISO7816
import Readers
import Testing
import Text

@testable import Concurrency
@testable import Drivers

@Suite("The requests to whoever has readers", .timeLimit(.minutes(5))) @Loop struct DriverSessionTests {
    /// The other end, which has a card in a reader with a keypad.
    @Loop private final class Peer {
        private(set) var cancelled: [UInt32] = []
        /// Whether the time of each request ends in the turn of its answer.
        var isLate = false
        /// The request that is not answered before it is cancelled.
        let open = OneShot<UInt32>()
        private let isTrusted: Bool
        private var insertion: Insertion?
        private(set) lazy var session = DriverSession(
            send: { [unowned self] in self.handle($0) },
            onEvent: { [unowned self] event in
                if case .inserted(let insertion, _) = event { self.insertion = insertion }
            },
            onSilence: self.onSilence
        )

        init(isTrusted: Bool) { self.isTrusted = isTrusted }

        private var onSilence: (@Loop () -> Void)? {
            guard !isTrusted else { return nil }
            return { Issue.record("the other end is silent") }
        }

        func card() throws -> Insertion {
            session.handle(.event(.added(ReaderDescription(name: "Desk", hasKeypad: true))))
            session.handle(.event(.inserted(Insertion(reader: "Desk", number: 7), answerToReset: [])))
            return try #require(insertion)
        }

        private func handle(_ request: DriverRequest) {
            defer { if isLate { Loop.fireAlarms() } }
            switch request {
            case .card(.transmit, _, let id), .card(.establishPACE, _, let id): open.fill(id)
            case .card(_, _, let id): session.handle(.answer(id: id, .success(.done)))
            case .record(_, let id): session.handle(.answer(id: id, .success(.frames([]))))
            case .health(let id): session.handle(.health(id: id, []))
            case .cancel(let id):
                cancelled.append(id)
                session.handle(.answer(id: id, .failure(.cancelled)))
            case .look, .progress: break
            }
        }
    }

    @Test(
        "badged hears that nobody waits for an answer any more, and a driver hears it of questions to a person",
        arguments: [(true, false, true), (true, true, true), (false, false, false), (false, true, true)]
    )
    func cancelled(isTrusted: Bool, asksPerson: Bool, isTold: Bool) async throws {
        let peer = Peer(isTrusted: isTrusted)
        let connection = try await peer.session.connect(peer.card())
        let keypad = try #require(connection as? any KeypadConnection)
        let work = Task { @Loop () -> CardError? in
            do throws(CardError) {
                if asksPerson {
                    _ = try await keypad.establishPACE(KeypadPACERequest(passwordID: 3))
                } else {
                    _ = try await keypad.transmit(CommandAPDU(0x00, 0x84, 0x00, 0x00, le: 8))
                }
                return nil
            } catch {
                return error
            }
        }
        let id = await peer.open.value
        work.cancel()
        if !isTold {
            // After the turn in which the request would be cancelled.
            await Task { @Loop in peer.session.handle(.answer(id: id, .failure(.mute))) }.value
        }
        let expected: CardError = isTold ? .cancelled : .mute
        #expect(await work.value == expected)
        #expect(peer.cancelled == (isTold ? [id] : []))
        await keypad.disconnect(reset: true)
    }

    @Test("an answer that is read in the turn in which its time ends counts")
    func inTime() async throws {
        let peer = Peer(isTrusted: false)
        let card = try peer.card()
        peer.session.limits.command = 0
        peer.session.limits.checks = 0
        peer.isLate = true
        let connection = try await peer.session.connect(card)
        await connection.disconnect(reset: true)
        #expect(try await peer.session.record("Desk").isEmpty)
        #expect(await peer.session.currentHealth().isEmpty)
    }

    @Test("a time that ends while this process stands still begins again")
    func stoodStill() {
        var ends = 0
        let limit = AnswerLimit(240_000) { ends += 1 }
        let late = Loop.now + 240_000 + 60_000
        limit.due(at: late)
        #expect(ends == 0)
        limit.due(at: late + 240_000 + 1000)
        #expect(ends == 1)
        limit.cancel()
    }
}
