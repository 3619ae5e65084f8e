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

    private func session() -> HTTPSession {
        let limits = HTTPLimits(connect: .milliseconds(300), transfer: .milliseconds(300))
        return HTTPSession(
            NetworkJob(.patient(), grace: 240_000),
            preSharedKey: nil,
            isDeveloperMode: false,
            limits,
            nil,
            log: { _ in }
        )
    }

    @Test("the request for the TcToken ends at its limit", arguments: Server.allCases)
    func token(server: Server) async throws {
        let fetch = TcTokenFetch(session(), allowsHTTP: false, Self.configuration)
        let address = try server.address()
        await #expect(throws: EServiceFailure(.getTcTokenNetworkError, .timeout)) { try await fetch.run(address) }
    }

    @Test("PAOS ends at its limit", arguments: Server.allCases)
    func paos(server: Server) async throws {
        let client = PAOSClient(session(), try server.address(), Self.configuration)
        await #expect(throws: EServiceFailure(.genericSendReceiveNetworkError, .timeout)) {
            try await client.start("1")
        }
    }

    @Test("the request to the refresh address ends at its limit", arguments: Server.allCases)
    func refreshAddress(server: Server) async throws {
        let service = try #require(WebAddress("https://service.example")).origin
        let search = RefreshAddressSearch(session(), origin: service, allowsHTTP: false, Self.configuration)
        let address = try server.address()
        await #expect(throws: EServiceFailure(.checkRefreshAddressServiceTimeout, .refreshAddress)) {
            try await search.run(from: address)
        }
    }
}
