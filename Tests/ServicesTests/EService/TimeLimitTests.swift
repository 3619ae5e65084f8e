// SPDX-License-Identifier: GPL-3.0-or-later
import EIDServer
import HTTP
import Testing

@testable import EService

/// Servers that never end an answer. The limits of these tests cover one request only, so that no step before it can
/// exceed them on a busy machine.
@Suite(.timeLimit(.minutes(5))) struct TimeLimitTests {
    private static var configuration: EServiceConfiguration {
        var configuration = EServiceConfiguration(userAgent: .init(name: "badged", version: (0, 1, 0)))
        (configuration.limits.connect, configuration.limits.transfer) = (.milliseconds(300), .milliseconds(300))
        return configuration
    }

    /// `silent` says nothing in the TLS handshake; `drip` sends a byte of the body each second.
    enum Server: CaseIterable {
        case silent, drip

        func address() throws -> WebAddress {
            let server = try #require(ServiceFixture.server)
            let url =
                switch self {
                case .silent: try server.origin(.silent) + "/"
                case .drip: try server.tcTokenURL(["fault": Fault.tcTokenDrip.rawValue])
                }
            return try #require(WebAddress(url))
        }
    }

    private func session() throws -> GuardedSession {
        let tls = TLSGuard(.standard, isDeveloperMode: false, log: { _ in })
        let canceller = HTTPCanceller()
        let addresses = HostAddresses(HostAddresses.system, canceller)
        return try GuardedSession(tls, Self.configuration, canceller, addresses)
    }

    @Test("the request for the TcToken ends at its limit", arguments: Server.allCases)
    func token(server: Server) throws {
        let fetch = TcTokenFetch(try session(), allowsHTTP: false, Self.configuration)
        let address = try server.address()
        #expect(throws: EServiceFailure(.getTcTokenNetworkError, .timeout)) { try fetch.run(address) }
    }

    @Test("PAOS ends at its limit", arguments: Server.allCases)
    func paos(server: Server) throws {
        let client = PAOSClient(try session(), try server.address(), Self.configuration)
        #expect(throws: EServiceFailure(.genericSendReceiveNetworkError, .timeout)) { try client.start("1") }
    }

    @Test("the request to the refresh address ends at its limit", arguments: Server.allCases)
    func refreshAddress(server: Server) throws {
        let service = try #require(WebAddress("https://service.example")).origin
        let search = RefreshAddressSearch(try session(), origin: service, allowsHTTP: false, Self.configuration)
        let address = try server.address()
        #expect(throws: EServiceFailure(.checkRefreshAddressServiceTimeout, .refreshAddress)) {
            try search.run(from: address)
        }
    }
}
