// SPDX-License-Identifier: GPL-3.0-or-later
import EIDServer
import HTTP
import Testing

/// A session without rules of its own, as for servers of the web.
@Suite(.timeLimit(.minutes(5))) struct SystemAuthoritiesTests {
    @Test("a server whose authority the system does not know gets no request")
    func unknownAuthority() async throws {
        let server = try #require(ServiceFixture.server)
        let address = try #require(WebAddress(try server.tcTokenURL([:])))
        let limits = HTTPLimits(connect: .seconds(240), transfer: .seconds(240))
        let session = HTTPSession(Network(), .system, limits)
        do throws(HTTPFault) {
            let response = try await session.run(HTTPRequest(address: address))
            Issue.record("the server answered \(response.status)")
        } catch {
            guard case .tls = error else {
                Issue.record("\(error)")
                return
            }
        }
    }
}
