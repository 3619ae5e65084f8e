// SPDX-License-Identifier: GPL-3.0-or-later
import Concurrency
import CountryAuthorities
import EIDServer
import EService
import Server
import TestSupport
import Testing
import Text
import VirtualEID

@Suite("RUN_AUTH over the network", .serialized, .timeLimit(.minutes(5)))
@Loop struct NetworkTests {
    private let eidServer: EIDServer

    init() throws { eidServer = try EIDServer() }

    nonisolated static let services: [[String: String]] = [
        [:], ["mode": "attached"], ["keepalive": "0"], ["keepalive": "0", "mode": "attached"], ["can": "1"],
        ["init": "1"], ["additional": "1"], ["chain": "link"], ["chain": "late"], ["cvca": "1", "reverse": "1"],
        ["batch": "1", "le": "100"], ["optional": "", "requiredchat": "0"], ["accept": "9000"],
        ["transaction": "a deal"], ["eidtypes": "CardCertified"],
    ]

    @Test("every option of a service works, and the eID-Server notes nothing unusual", arguments: services)
    func service(parameters: [String: String]) async throws {
        let server = try await TestServer.online(eidServer)
        let run = try await AuthenticationRun(server, try eidServer.tcTokenURL(parameters))
        #expect(run.outcome == "ok" && run.unexpected.isEmpty, "\(run.outcome) \(run.unexpected)")
        #expect(run.url?.contains("ResultMajor=ok") == true)
        let report = try #require(eidServer.report())
        #expect(report["outcome"] == .string("ok"))
        #expect(report["notes"] == .array([]), "\(report)")
        #expect(!server.isLent())
    }

    @Test("ten clients authenticate at the same time with ten cards")
    func ten() async throws {
        let server = try await TestServer.online(eidServer, readers: 10)
        let url = try eidServer.tcTokenURL()
        let runs = (1...10).map { number in
            Task { @Loop in
                try await AuthenticationRun(server, url, reader: number == 1 ? "Simulator" : "Simulator \(number)")
            }
        }
        for run in runs { #expect(try await run.value.outcome == "ok") }
    }

    @Test("a service without a trust anchor gets no data, and no card is asked for")
    func noAnchor() async throws {
        let server = try await TestServer.online(eidServer) { $0.trustAnchors = TrustAnchors() }
        let run = try await AuthenticationRun(server, try eidServer.tcTokenURL())
        #expect(run.outcome == "invalidCertificatePath Pre_Verification_Invalid_Certificate_Chain")
        #expect(run.unexpected.isEmpty)
        #expect(await server.readers?.cardState(in: "Simulator") == nil)
    }

    @Test(
        "with a root that is over, a service that sends the link to the next one goes on working",
        arguments: [("link", "ok"), ("", "invalidCertificatePath Pre_Verification_Certificate_Expired")]
    )
    func rootIsOver(chain: String, outcome: String) async throws {
        let root = try CertificateRecipe.root.changed {
            ($0.effective, $0.expiration) = ([1, 6, 0, 1, 0, 1], [1, 9, 1, 2, 3, 1])
        }.certificate()
        let server = try await TestServer.online(eidServer) { $0.trustAnchors = TrustAnchors(productive: [root]) }
        let run = try await AuthenticationRun(server, try eidServer.tcTokenURL(chain.isEmpty ? [:] : ["chain": chain]))
        #expect(run.outcome == outcome)
    }

    @Test("developer mode accepts test services and refuses productive ones")
    func developerMode() async throws {
        let url = try eidServer.tcTokenURL()
        let test = try await TestServer.online(eidServer)
        #expect(try await AuthenticationRun(test, url, developerMode: true).outcome == "ok")
        let productive = try await TestServer.online(eidServer) { configuration in
            configuration.trustAnchors = TrustAnchors(productive: configuration.trustAnchors.test)
        }
        let run = try await AuthenticationRun(productive, url, developerMode: true)
        #expect(run.outcome == "invalidCertificatePath Pre_Verification_No_Test_Environment")
        #expect(try await AuthenticationRun(productive, url).outcome == "ok")
    }
}
