// SPDX-License-Identifier: GPL-3.0-or-later
import EID
import EIDServer
import Synchronization
import Testing

@testable import EService

/// One eID-Server for the tests of this target, and sessions with it.
enum ServiceStage {
    static let server: EIDServer? = try? EIDServer()

    /// Trusts the server's two roots as those of test authorities; waits briefly.
    static func configuration() throws -> EServiceConfiguration {
        let authority = try #require(server).authority
        var configuration = EServiceConfiguration(userAgent: .init(name: "badged", version: (0, 1, 0)))
        configuration.trustAnchors = TrustAnchors(
            test: [try CVCertificate(authority.root), try CVCertificate(authority.nextRoot)]
        )
        configuration.limits.connect = .seconds(20)
        configuration.limits.transfer = .seconds(20)
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

    /// What the server knows of the run with this refresh address.
    static func report(_ outcome: RefreshOutcome) throws -> String {
        let run = try #require(outcome.url?.split(separator: "?").first?.split(separator: "/").last)
        return "\(try #require(server?.report(String(run))))"
    }
}
