// SPDX-License-Identifier: GPL-3.0-or-later
import CountryAuthorities
import EID
import EIDServer
import Synchronization
import Testing

@testable import EService

/// Faults of `badged-eidserver` that do not need a real card.
struct FaultTests {
    /// The faults before chip authentication, without those that end only with time.
    static let faults = Fault.allCases.filter { fault in
        let isEarly = ["tctoken", "tls", "start", "eac1"].contains(fault.stage) && fault != .eac1ChatMore
        let isInEAC2: [Fault] = [.eac2NoKey, .eac2TwoKeys, .eac2Unknown, .eac2Skip, .eac2Close, .eac2ServerError]
        return (isEarly || isInEAC2.contains(fault)) && fault.authenticationResult != "ok" && !fault.isSlow
    }

    /// ResultMinor in the address for the browser; nil when there is no address.
    private static func minorForBrowser(_ fault: Fault, _ minor: String) -> String? {
        switch fault {
        case .tcTokenHTTPRefresh, .tcTokenNoRefresh, .tcTokenCommErrorOnly: "communicationError"
        case .tcTokenBinding, .tcTokenPathProtocol, .tcTokenNoServerAddress, .tcTokenHTTPServerAddress,
            .tcTokenNoSession, .tcTokenPSKOdd, .tcTokenEmptyParameters:
            minor
        case _ where fault.stage == "tctoken": nil
        case .startServerError, .eac2ServerError: "serverError"
        default: minor == "trustedChannelEstablishmentFailed" ? minor : "clientError"
        }
    }

    @Test("a fault ends with the expected result, and the browser gets it", arguments: faults)
    func fault(_ fault: Fault) async throws {
        let session = try ServiceFixture.session(["fault": fault.rawValue])
        let failure = try #require(await MadeUpCard.authenticate(session), "the fault was not found")
        let minor = failure.result.minor?.uri.split(separator: "#").last.map(String.init) ?? "-"
        #expect("\(minor) \(failure.reason.rawValue)" == fault.authenticationResult, "\(failure.detail)")
        let url = await session.refreshAddress(after: failure.result).url
        let expected = Self.minorForBrowser(fault, minor).map { "ResultMajor=error&ResultMinor=\($0)" }
        #expect(url?.split(separator: "?").last.map(String.init) == expected)
    }

    @Test(
        "unusual behaviour that is allowed does not end the dialogue",
        arguments: [
            ["fault": "tctoken-redirect-relative"], ["fault": "start-relates"],
            ["fault": "tctoken-empty-parameters", "mode": "attached"],
        ]
    )
    func noFault(parameters: [String: String]) async throws {
        let session = try ServiceFixture.session(parameters)
        let failure = await MadeUpCard.authenticate(session)
        // The server refuses the made-up answer to chip authentication.
        #expect(failure?.reason == .startPAOSResponseError, "\(failure?.detail ?? "")")
        let outcome = await session.refreshAddress(after: .ok)
        #expect(outcome.failure == nil)
        #expect(try ServiceFixture.report(outcome).contains(#""notes":[]"#))
    }

    @Test(
        "a refresh address that does not lead to the service is refused",
        arguments: [
            ("refresh-other-origin", nil), ("refresh-one-hop", nil), ("refresh-relative", nil),
            ("refresh-empty", .checkRefreshAddressEmpty), ("refresh-404", .checkRefreshAddressClientError),
            ("refresh-200", .checkRefreshAddressInvalidHTTPResponse),
            ("refresh-http", .checkRefreshAddressNoHTTPSScheme),
            ("refresh-loop", .checkRefreshAddressInvalidHTTPResponse),
            ("refresh-unlisted", .checkRefreshAddressHashMissingInCertificate),
            ("refresh-refused", .checkRefreshAddressUnknownNetworkError),
        ] as [(String, FailureCode?)]
    )
    func refresh(fault: String, reason: FailureCode?) async throws {
        let session = try ServiceFixture.session(["fault": fault])
        _ = try await session.request()
        let outcome = await session.refreshAddress(after: .ok)
        #expect(outcome.failure?.reason == reason)
        #expect((outcome.failure?.status ?? .refreshAddress) == .refreshAddress)
        let parameters = reason == nil ? "ResultMajor=ok" : "ResultMajor=error&ResultMinor=communicationError"
        #expect(outcome.url?.hasSuffix("?" + parameters) == true)
    }

    @Test(
        "the connection to the service has to meet the rules",
        arguments: [
            (.webEC, nil), (.webUnlisted, .certificateCheckFailedHashMissingInDescription),
            (.webExpired, .getTcTokenNetworkError), (.webWrongHost, .getTcTokenNetworkError),
            (.webWeak, .getTcTokenInvalidCertificateKeyLength), (.webTLS11, .getTcTokenNetworkError),
            (.webTLS13, nil), (.webCiphers, .getTcTokenNetworkError), (.plain, .getTcTokenNetworkError),
        ] as [(ListenerName, FailureCode?)]
    )
    func service(listener: ListenerName, reason: FailureCode?) async throws {
        let session = try ServiceFixture.session(on: listener)
        do throws(EServiceFailure) {
            _ = try await session.request()
            #expect(reason == nil)
        } catch {
            #expect(error.reason == reason, "\(error.detail)")
            #expect(error.result.minor == .trustedChannelEstablishmentFailed)
        }
    }

    @Test("an attached eID-Server has to resume the TLS session of the TcToken")
    func resumption() async throws {
        let parameters = ["mode": "attached", "keepalive": "0"]
        let session = try ServiceFixture.session(parameters, on: .webNoResume)
        await #expect(throws: EServiceFailure(.genericSendReceiveSessionResumptionFailed, .sessionNotResumed)) {
            try await session.request()
        }
        #expect(await session.refreshAddress(after: ECardResult(.sessionNotResumed)).failure == nil)
        let developer = try ServiceFixture.session(parameters, on: .webNoResume, isDeveloperMode: true)
        _ = try await developer.request()
    }

    @Test(
        "developer mode only logs some faults of a test service",
        arguments: [
            "tls-unlisted", "tls-expired", "tls-wronghost", "tls-weak", "eac1-at-expired", "eac1-description-hash",
            "eac1-other-subject-url", "eac1-no-comm-certs",
        ]
    )
    func developerMode(fault: String) async throws {
        let lines = Mutex<[String]>([])
        let session = try ServiceFixture.session(["fault": fault], isDeveloperMode: true) { configuration in
            configuration.log = { line in lines.withLock { $0.append(line) } }
        }
        _ = try await session.request()
        #expect(lines.withLock { $0.contains { $0.hasPrefix("developer mode: ") } })
    }

    @Test("developer mode refuses a productive service")
    func productive() async throws {
        let session = try ServiceFixture.session(isDeveloperMode: true) { configuration in
            configuration.trustAnchors = TrustAnchors(productive: configuration.trustAnchors.test)
        }
        await #expect(throws: EServiceFailure(.preVerificationNoTestEnvironment, .productiveInDeveloperMode)) {
            try await session.request()
        }
    }
}
