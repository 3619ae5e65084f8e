// SPDX-License-Identifier: GPL-3.0-or-later
import CountryAuthorities
import EID
import Foundation
import Testing

@testable import EService

/// Runs against another eID-Server, up to the step that needs a card. docs/testing.md.
///
/// BADGED_EID_SERVER is the address of its TcToken, BADGED_EID_ANCHORS the folder of its authorities.
/// BADGED_EID_FAULTS lists values of the parameter `fault`, separated by commas; `-` stands for none.
@Suite(.enabled(if: ProcessInfo.processInfo.environment["BADGED_EID_SERVER"] != nil), .serialized)
struct OutsideServerTests {
    static let environment = ProcessInfo.processInfo.environment
    static let faults = (environment["BADGED_EID_FAULTS"] ?? "-").split(separator: ",").map(String.init)

    @Test("an authentication with another eID-Server", arguments: faults)
    func authentication(fault: String) async throws {
        let address = try #require(Self.environment["BADGED_EID_SERVER"])
        var configuration = EServiceConfiguration(userAgent: .init(name: "badged", version: (0, 1, 0)))
        configuration.trustAnchors = TrustAnchors(folder: try #require(Self.environment["BADGED_EID_ANCHORS"]))
        configuration.log = { print("    \($0)") }
        let parameters = fault == "-" ? "" : "?" + (fault.contains("=") ? fault : "fault=\(fault)")
        let session = EServiceSession(tcTokenURL: address + parameters, isDeveloperMode: false, configuration)
        let start = ContinuousClock.now
        let outcome = await MadeUpCard.authenticate(session)
        let refresh = await session.refreshAddress(after: outcome.map { $0.result } ?? .ok)
        let time = (ContinuousClock.now - start) / .milliseconds(1)
        print(
            """
            | \(fault) | \(outcome?.reason.rawValue ?? "ok") | \(outcome?.result.minor?.uri.split(separator: "/").last ?? "") \
            | \(outcome?.detail ?? "") | \(refresh.url.map { String($0.split(separator: "?").last ?? "") } ?? "none") \
            | \(refresh.failure?.reason.rawValue ?? "") | \(Int(time)) ms |
            """
        )
    }
}
