// SPDX-License-Identifier: GPL-3.0-or-later
import BadgedClient
import EIDServer
import Server
import Synchronization
import TestSupport
import Testing
import Text

/// BadgedClient against the program badged and an eID-Server.
@Suite("Online authentication with the client library", .timeLimit(.minutes(5)))
struct ClientLibraryTests {
    @Test("BadgedClient shows the request, sends the PIN, and returns the address for the browser")
    func authentication() async throws {
        let eidServer = try EIDServer()
        defer { eidServer.stop() }
        let daemon = try await RunningDaemon.trusting(eidServer)
        let connection = try await DaemonConnection.connect(to: daemon.path)
        let seen = Mutex<ConsentRequest?>(nil)
        let user = EIDClosures { question in
            SecretBox(Secret((question.kind == .pin ? "123456" : "").utf8))
        } consent: { request in
            seen.withLock { $0 = request }
            return ["GivenNames"]
        } insertCard: { _, _ in
            _ = try? await connection.setCard(in: "Simulator")
        }
        let url = try eidServer.tcTokenURL(["required": "FamilyName", "optional": "GivenNames,Address"])
        let result = try await connection.authenticate(tcTokenURL: url, user: user)
        #expect(result.isSuccess, "\(result)")
        #expect(result.url?.contains("ResultMajor=ok") == true)
        let request = try #require(seen.withLock { $0 })
        #expect(request.rights.required == ["FamilyName"])
        #expect(Set(request.rights.optional) == ["GivenNames", "Address"])
        #expect(request.service.subjectURL.hasPrefix("https://localhost"))
        let report = try #require(eidServer.report())
        #expect(report["outcome"] == .string("ok"))
        // The address was not granted, so it must not be read.
        let data = report["data"]?.members?.map(\.key) ?? []
        #expect(data == ["DocumentValidity", "GivenNames", "FamilyName"])
    }

    @Test("without consent the service gets no data")
    func declined() async throws {
        let eidServer = try EIDServer()
        defer { eidServer.stop() }
        let daemon = try await RunningDaemon.trusting(eidServer)
        let connection = try await DaemonConnection.connect(to: daemon.path)
        let user = EIDClosures { _ in nil }
        let result = try await connection.authenticate(tcTokenURL: try eidServer.tcTokenURL(), user: user)
        #expect(!result.isSuccess)
        #expect(result.reason == "User_Cancelled")
        #expect(eidServer.report()?["outcome"] != .string("ok"))
    }
}
