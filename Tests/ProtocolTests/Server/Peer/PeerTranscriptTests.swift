// SPDX-License-Identifier: GPL-3.0-or-later
import Concurrency
import Readers
import TestSupport
import Testing
import VirtualEID

@Suite("The recordings of AusweisApp2 1.26.2", .timeLimit(.minutes(5)))
struct PeerTranscriptTests {
    /// A recording with the readers and the card that its replay needs.
    struct Recording: Sendable, CustomTestStringConvertible {
        let name: String
        var readers = ["Simulator"]
        var card: (@Sendable () -> VirtualEIDDescription)?

        var testDescription: String { name }

        static func pcsc(
            _ name: String,
            _ card: @escaping @Sendable (inout VirtualEIDDescription) -> Void = { _ in }
        ) -> Recording {
            Recording(name: name, readers: ["Simulator", PeerReplay.reader], card: { .card(card) })
        }

        @Loop func replay(throughWebSocket: Bool = false) async throws -> PeerReplay {
            var replay = try await PeerReplay(
                name,
                PeerDifference.all,
                Self.unlisted,
                readers: readers,
                card: card?(),
                throughWebSocket: throughWebSocket
            )
            await replay.run()
            return replay
        }

        private static let unlisted: [PeerReplay.Unlisted] = [
            .init(
                transcript: "01-basic",
                remark: "GET_INFO sent as binary frame",
                lines: [
                    #"{"cmd":"GET_INFO"}"#,
                    #"{"cmd":"GET_API_LEVEL","x":"# + String(repeating: "[", count: 1100),
                    #"{"cmd":"GET_API_LEVEL","x":""# + String(repeating: "x", count: 1 << 20) + #""}"#,
                ]
            ),
            .init(
                transcript: "01-basic",
                remark: "many messages in one TCP write",
                lines: Array(repeating: #"{"cmd":"GET_API_LEVEL"}"#, count: 5)
            ),
            .init(
                transcript: "sim-options",
                remark: "two commands back to back",
                after: 1,
                lines: [
                    #"{"cmd":"RUN_CHANGE_PIN"}"#, #"{"cmd":"SET_CARD","name":"Simulator"}"#, #"{"cmd":"GET_STATUS"}"#,
                ]
            ),
            .init(
                transcript: "sim-options",
                remark: "RUN_CHANGE_PIN twice, in one write",
                lines: [#"{"cmd":"RUN_CHANGE_PIN","request":1}"#, #"{"cmd":"RUN_CHANGE_PIN","request":2}"#]
            ),
            .init(
                transcript: "sim-run-auth",
                remark: "developerMode, status false",
                after: 2,
                // The server is silent. A refused connection could end the authentication before CANCEL arrives.
                lines: [
                    #"{"cmd":"RUN_AUTH","tcTokenURL":"https://127.0.0.1:54747/t","developerMode":true}"#,
                    #"{"cmd":"CANCEL"}"#, #"{"cmd":"GET_STATUS"}"#,
                ]
            ),
        ]
    }

    static let recordings: [Recording] = [
        Recording(name: "01-basic", readers: []),
        .pcsc("pcsc-bad-values"),
        .pcsc("pcsc-deactivated") { $0.deactivated = true },
        .pcsc("pcsc-happy"),
        .pcsc("pcsc-puk-used-up") { ($0.retryCounter, $0.pukCounter) = (0, 0) },
        .pcsc("pcsc-transport-pin") { $0.transportPIN = .init(digits: "12345") },
        .pcsc("pcsc-wrong-pin-to-can"),
        .pcsc("pcsc-wrong-pin-to-puk"),
        // Activation/PeerHandshakeTests covers the content of their remarks.
        Recording(name: "sim-clients"),
        Recording(name: "sim-files"),
        Recording(name: "sim-full"),
        Recording(name: "sim-handshake"),
        Recording(name: "sim-no-simulator-arg"),
        Recording(name: "sim-options"),
        Recording(name: "sim-request-field"),
        Recording(name: "sim-run-auth"),
        Recording(name: "sim-run-auth-slow"),
        Recording(name: "sim-set-card-errors"),
    ]

    @Test("badged answers like the peer, except for the named differences", arguments: recordings)
    @Loop func replay(_ recording: Recording) async throws {
        #expect(try await recording.replay().compared > 0)
    }

    /// What the browser port passes on is the same for each recording, so without `FullTables.areWanted` it has some.
    private static let passedOn = FullTables.areWanted ? recordings : Array(recordings.suffix(6))

    @Test("a client at the WebSocket of the browser port receives the same answers", arguments: passedOn)
    @Loop func replayThroughWebSocket(_ recording: Recording) async throws {
        #expect(try await recording.replay(throughWebSocket: true).compared > 0)
    }

    @Test("every difference has a unique name, a reason and a recording that contains it")
    func table() {
        #expect(Set(PeerDifference.all.map(\.name)).count == PeerDifference.all.count)
        let names = Set(Self.recordings.map(\.name))
        for difference in PeerDifference.all {
            #expect(!difference.reason.isEmpty && !difference.transcripts.isEmpty)
            #expect(difference.transcripts.isSubset(of: names), "\(difference.name)")
        }
    }
}
