// SPDX-License-Identifier: GPL-3.0-or-later
import Concurrency
import EIDServer
import EService
import Synchronization
import TestSupport
import Testing

/// What AUTH says about the data that a service has, after a cancellation at each exchange.
@Suite("RUN_AUTH: what was sent", .timeLimit(.minutes(5)))
struct SentDataTests {
    /// A connection to a service that waits for CANCEL before or after one of its exchanges.
    private final class InterruptedService: EServiceConnection {
        private let base: any EServiceConnection
        private let exchange: String
        private let isAfter: Bool
        private let reached: AsyncStream<Void>.Continuation
        private let never = AsyncStream<Void>.makeStream()
        private let transmits = Mutex(0)

        init(_ base: any EServiceConnection, _ cut: Cut, _ reached: AsyncStream<Void>.Continuation) {
            (self.base, exchange, isAfter, self.reached) = (base, cut.exchange, cut.isAfter, reached)
        }

        private func run<T: Sendable>(
            _ name: String,
            _ body: () async throws(EServiceFailure) -> T
        ) async throws(EServiceFailure) -> T {
            if name == exchange, !isAfter { await cancelled() }
            let result = try await body()
            if name == exchange, isAfter { await cancelled() }
            return result
        }

        private func cancelled() async {
            reached.yield()
            for await _ in never.stream {}
        }

        func request() async throws(EServiceFailure) -> AuthenticationRequest {
            try await run("request") { () throws(EServiceFailure) in try await base.request() }
        }
        func sendEAC1(_ output: EAC1Output) async throws(EServiceFailure) -> EAC2 {
            try await run("EAC1") { () throws(EServiceFailure) in try await base.sendEAC1(output) }
        }
        func sendChallenge(_ challenge: [UInt8]) async throws(EServiceFailure) -> [UInt8] {
            try await run("challenge") { () throws(EServiceFailure) in try await base.sendChallenge(challenge) }
        }
        func sendEAC2(_ output: EAC2Output) async throws(EServiceFailure) -> ServerStep {
            try await run("EAC2") { () throws(EServiceFailure) in try await base.sendEAC2(output) }
        }
        func sendTransmit(_ output: [[UInt8]], error: ECardResult?) async throws(EServiceFailure) -> ServerStep {
            let number = transmits.withLock { count in
                count += 1
                return count
            }
            return try await run("transmit \(number)") { () throws(EServiceFailure) in
                try await base.sendTransmit(output, error: error)
            }
        }
        func fail(_ error: ECardResult) async -> ECardResult? { await base.fail(error) }
        func refreshAddress(after result: ECardResult) async -> RefreshOutcome {
            if exchange == "refresh" { await cancelled() }
            return await base.refreshAddress(after: result)
        }
        func interruption() async -> EServiceFailure? { await base.interruption() }
        func close() { base.close() }
    }

    /// An exchange at which the client cancels, and what AUTH then says.
    struct Cut: Sendable {
        let mode: String
        let exchange: String
        let isAfter: Bool
        let sent: String
    }

    /// Each exchange in both modes; without `FullTables.areWanted` each exchange, and each mode somewhere.
    static let cuts = FullTables.rows(of: allCuts, covering: { [$0.mode, "\($0.exchange) \($0.isAfter)"] })

    private static let allCuts = ["psk", "attached"].flatMap { mode in
        [
            ("request", false, "none"), ("request", true, "none"), ("EAC1", false, "none"), ("EAC1", true, "none"),
            ("challenge", false, "none"), ("challenge", true, "none"), ("EAC2", false, "none"), ("EAC2", true, "none"),
            ("transmit 1", false, "possible"), ("transmit 1", true, "read"), ("transmit 2", false, "read"),
            ("transmit 2", true, "read"), ("refresh", false, "read"),
        ].map { Cut(mode: mode, exchange: $0.0, isAfter: $0.1, sent: $0.2) }
    }

    @Test("a cancellation at each exchange says what the service may have, as the eID-Server saw it", arguments: cuts)
    @Loop func cancelled(cut: Cut) async throws {
        let eidServer = try EIDServer()
        defer { eidServer.stop() }
        let reached = AsyncStream<Void>.makeStream()
        let server = try await TestServer.online(eidServer, wrap: { InterruptedService($0, cut, reached.continuation) })
        let parameters = [
            "mode": cut.mode, "additional": "1", "required": "FamilyName,Address", "optional": "GivenNames",
        ]
        let run = try await AuthenticationRun(server, try eidServer.tcTokenURL(parameters), cancelAt: reached.stream)
        #expect(run.outcome == "ok" || run.outcome == "cancellationByUser User_Cancelled", "\(run.outcome)")
        #expect(run.sent == cut.sent)
        #expect(run.rights == (cut.sent == "none" ? [] : ["Address", "FamilyName", "GivenNames"]))
        let hasAnswers = "\(eidServer.messages().map { "\($0)" } ?? "")".contains("<OutputAPDU>")
        #expect(hasAnswers == (cut.sent == "read"))
        #expect(!server.isLent())
    }

    @Test("only what the user granted is named, and a service that reads nothing has nothing")
    @Loop func granted() async throws {
        let eidServer = try EIDServer()
        defer { eidServer.stop() }
        let server = try await TestServer.online(eidServer)
        let some = ["required": "FamilyName", "optional": "Address", "can": "1"]
        let granting = try await AuthenticationRun(server, try eidServer.tcTokenURL(some), grant: ["CanAllowed"])
        #expect(granting.outcome == "ok" && granting.sent == "read" && granting.rights == ["FamilyName"])
        let skipping = try await AuthenticationRun(server, try eidServer.tcTokenURL(["fault": "transmit-skip"]))
        let failing = try await AuthenticationRun(
            server,
            try eidServer.tcTokenURL(["batch": "1", "fault": "final-error"])
        )
        #expect(failing.outcome.hasSuffix(" Start_Paos_Response_Error") && failing.sent == "read")
        #expect(skipping.outcome == "ok" && skipping.sent == "none" && skipping.rights.isEmpty)
    }
}
