// SPDX-License-Identifier: GPL-3.0-or-later
import Concurrency
import EIDServer
import TestSupport
import Testing

/// Every fault of the eID-Server's catalogue, and how RUN_AUTH ends.
@Suite("Faults of services and eID-Servers", .timeLimit(.minutes(15)))
struct FaultTests {
    private static let eidServer = Result { try EIDServer() }

    /// The full table, or the faults that need a card, and some of the other steps. ServicesTests has the others.
    static let faults: [Fault] = {
        if FullTables.areWanted { return Fault.allCases }
        let withoutCard: [Fault] = [.eac2NoKey, .eac2TwoKeys, .eac2Unknown, .eac2Skip, .eac2Close, .eac2ServerError]
        let withCard = Fault.allCases.filter { fault in
            ["eac2", "transmit", "final"].contains(fault.stage) && !withoutCard.contains(fault) && !fault.isSlow
        }
        return withCard + [
            .tcToken404, .tcTokenRedirect, .tlsExpired, .startMalformed, .eac1NoAT, .eac1ChatMore, .eac2Close,
            .refreshRelative, .refreshEmpty,
        ]
    }()

    @Test("RUN_AUTH ends once, with the expected result, and the reader is free", arguments: faults)
    @Loop func fault(_ fault: Fault) async throws {
        let eidServer = try Self.eidServer.get()
        let server = try await TestServer.online(eidServer)
        var parameters = ["fault": fault.rawValue]
        if fault == .eac2NoLink { parameters["chain"] = "late" }
        let run = try await AuthenticationRun(server, try eidServer.tcTokenURL(parameters))
        let expected = fault.authenticationResult
        #expect(run.outcome == expected, "\(server.logged.filter { $0.contains("AUTH ended") })")
        #expect((run.description != nil) == (expected != "ok"))
        // What the eID-Server has received; the address of the browser has the number of the run.
        let session = run.url?.split(separator: "?").first?.split(separator: "/").last.map(String.init)
        if let session, let messages = eidServer.messages(session) {
            let hasAnswers = "\(messages)".contains("<OutputAPDU>")
            #expect(hasAnswers ? run.sent != "none" : run.sent != "read", "\(run.sent ?? "-")")
        }
        #expect(run.sent == "none" || ["transmit", "final", "refresh"].contains(fault.stage) || expected == "ok")
        // Without a TcToken there is no address to return to.
        #expect(run.url.map { $0.contains("ResultMajor=") } ?? expected.contains("Get_TcToken"))
        #expect(run.unexpected.isEmpty)
        #expect(!server.isLent())
    }

    @Test(
        "the words of a server are a quotation, those of badged are not",
        arguments: [Fault.finalError, .startServerError, .tcToken404]
    )
    @Loop func wordsOfServers(_ fault: Fault) async throws {
        let eidServer = try Self.eidServer.get()
        let server = try await TestServer.online(eidServer)
        let run = try await AuthenticationRun(server, try eidServer.tcTokenURL(["fault": fault.rawValue]))
        let message = try #require(run.message)
        let isOfServer = message.hasPrefix("The service says: \"") && message.hasSuffix("\"")
        #expect(isOfServer == (fault != .tcToken404), "\(message)")
    }
}
