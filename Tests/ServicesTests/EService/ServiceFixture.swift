// SPDX-License-Identifier: GPL-3.0-or-later
import Concurrency
import CountryAuthorities
import EID
import EIDServer
import HTTP
import TestSupport
import Testing

@testable import EService

/// The eID-Server of this target's tests, and sessions with it.
enum ServiceFixture {
    static let server: EIDServer? = try? EIDServer()

    /// Trusts both roots of the server as test authorities. No limit is reached on a busy machine.
    static func configuration() throws -> EServiceConfiguration {
        let authority = try #require(server).authority
        var configuration = EServiceConfiguration(userAgent: .init(name: "badged", version: (0, 1, 0)))
        configuration.trustAnchors = TrustAnchors(
            test: [try CVCertificate(authority.root), try CVCertificate(authority.nextRoot)]
        )
        configuration.network.heartbeat = .patient
        let limit = Duration.seconds(600)
        (configuration.limits.connect, configuration.limits.transfer) = (limit, limit)
        (configuration.limits.phase, configuration.limits.errorReport) = (limit, limit)
        return configuration
    }

    static func session(
        _ parameters: [String: String] = [:],
        on listener: ListenerName = .web,
        isDeveloperMode: Bool = false,
        _ change: (inout EServiceConfiguration) -> Void = { _ in }
    ) throws -> EServiceSession {
        var configuration = try configuration()
        change(&configuration)
        let url = try #require(server).tcTokenURL(parameters, on: listener)
        return EServiceSession(tcTokenURL: url, isDeveloperMode: isDeveloperMode, configuration)
    }

    /// The report of the server about the run with this refresh address.
    static func report(_ outcome: RefreshOutcome) throws -> String {
        let run = try #require(outcome.url?.split(separator: "?").first?.split(separator: "/").last)
        return "\(try #require(server?.report(String(run))))"
    }
}
