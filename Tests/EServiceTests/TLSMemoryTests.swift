// SPDX-License-Identifier: GPL-3.0-or-later
import Crypto
import EIDServer
import Testing
import Text
import Wire

@testable import EService

/// What is left of a connection for the next one to the same server.
struct TLSMemoryTests {
    private func session(_ memory: TLSMemory?) throws -> HTTPSession {
        try HTTPSession.load()
        let tls = TLSGuard(.standard, isDeveloperMode: false, log: { _ in })
        return try HTTPSession(tls, EServiceConfiguration.Limits(), HTTPCanceller(), memory, Stopwatch())
    }

    private func get(_ session: HTTPSession, _ url: String) throws -> HTTPResponse {
        let address = try #require(WebAddress(url))
        return try session.run(HTTPRequest(address: address), by: .now + .seconds(20))
    }

    /// Fetches a token, and with it a TLS session for this memory.
    private func begin(_ memory: TLSMemory?) throws -> (run: String, url: String) {
        let server = try #require(ServiceStage.server)
        let response = try get(try session(memory), try server.tcTokenURL())
        let run = try #require(response.header("x-session"))
        return (run, try server.origin() + "/refresh/" + run)
    }

    @Test("a session with the memory of another one resumes its TLS session", arguments: [true, false])
    func resumption(remembers: Bool) throws {
        let memory = try #require(TLSMemory())
        let (run, url) = try begin(memory)
        let session = try session(remembers ? memory : nil)
        #expect(try get(session, url).status == 200)
        #expect(session.tls.certificates.count == 1, "the certificate is known after a resumption, too")
        #expect(ServiceStage.server?.report(run)?["refresh"]?["tls"]?["resumed"] == .bool(remembers))
    }

    @Test("a resumed session is judged like a new one, and nothing is sent on it")
    func judgement() throws {
        let memory = try #require(TLSMemory())
        let (run, url) = try begin(memory)
        let session = try session(memory)
        session.tls.listed = TLSGuard.Listed(digest: .sha256, hashes: [])
        #expect {
            try get(session, url)
        } throws: { error in
            if case HTTPFault.tls(.notListed, _) = error { true } else { false }
        }
        #expect(ServiceStage.server?.report(run)?["refresh"] == .null)
    }
}
