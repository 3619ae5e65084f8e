// SPDX-License-Identifier: GPL-3.0-or-later
import EID
import EIDServer
import Synchronization
import Testing

@testable import EService

/// The faults of `badged-eidserver` that strike before a card is needed, and how each ends.
struct FaultTests {
    struct Case: Sendable, CustomTestStringConvertible {
        let fault: String
        let reason: FailureCode
        let minor: ResultMinor
        /// ResultMinor in the address for the browser; nil when there is no address.
        let told: String?
        /// Changes the limits, for a fault that only time ends.
        var isSlow = false

        init(_ fault: String, _ reason: FailureCode, _ minor: ResultMinor, _ told: String?, isSlow: Bool = false) {
            (self.fault, self.reason, self.minor, self.told, self.isSlow) = (fault, reason, minor, told, isSlow)
        }

        var testDescription: String { fault }
    }

    private static let channel = ResultMinor.trustedChannelEstablishmentFailed
    private static let channelWord = "trustedChannelEstablishmentFailed"

    static let token: [Case] = [
        Case("tctoken-404", .getTcTokenClientError, channel, nil),
        Case("tctoken-500", .getTcTokenServerError, channel, nil),
        Case("tctoken-empty", .getTcTokenEmptyData, channel, nil),
        Case("tctoken-html", .getTcTokenInvalidData, channel, nil),
        Case("tctoken-malformed", .getTcTokenInvalidData, channel, nil),
        Case("tctoken-doctype", .getTcTokenInvalidData, channel, nil),
        Case("tctoken-entities", .getTcTokenInvalidData, channel, nil),
        Case("tctoken-external-entity", .getTcTokenInvalidData, channel, nil),
        Case("tctoken-attribute", .getTcTokenInvalidData, channel, nil),
        Case("tctoken-binding", .getTcTokenInvalidData, channel, channelWord),
        Case("tctoken-path-protocol", .getTcTokenInvalidData, channel, channelWord),
        Case("tctoken-no-server-address", .getTcTokenInvalidData, channel, channelWord),
        Case("tctoken-http-server-address", .getTcTokenInvalidData, channel, channelWord),
        Case("tctoken-http-refresh", .getTcTokenInvalidData, channel, "communicationError"),
        Case("tctoken-no-session", .getTcTokenInvalidData, channel, channelWord),
        Case("tctoken-psk-odd", .getTcTokenInvalidData, channel, channelWord),
        Case("tctoken-no-refresh", .getTcTokenInvalidData, channel, "communicationError"),
        Case("tctoken-comm-error-only", .getTcTokenInvalidData, channel, "communicationError"),
        Case("tctoken-redirect-301", .getTcTokenInvalidServerReply, channel, nil),
        Case("tctoken-redirect-http", .getTcTokenInvalidRedirectURL, channel, nil),
        Case("tctoken-redirect-loop", .getTcTokenInvalidRedirectURL, channel, nil),
        Case("tctoken-drip", .getTcTokenNetworkError, channel, nil, isSlow: true),
        Case("tctoken-close", .getTcTokenNetworkError, channel, nil),
        Case("tctoken-truncate", .getTcTokenNetworkError, channel, nil),
        Case("tctoken-huge", .getTcTokenInvalidData, channel, nil),
    ]

    static let connection: [Case] = [
        Case("tls-psk-wrong", .genericSendReceiveTLSError, channel, channelWord),
        Case("tls-psk-unknown", .genericSendReceiveTLSError, channel, channelWord),
        Case("tls-unlisted", .certificateCheckFailedHashMissingInDescription, channel, channelWord),
        Case("tls-expired", .genericSendReceiveTLSError, channel, channelWord),
        Case("tls-future", .genericSendReceiveTLSError, channel, channelWord),
        Case("tls-wronghost", .genericSendReceiveTLSError, channel, channelWord),
        Case("tls-weak", .genericSendReceiveCertificateError, channel, channelWord),
        Case("tls-no-psk", .genericSendReceiveTLSError, channel, channelWord),
        Case("tls-ciphers", .genericSendReceiveTLSError, channel, channelWord),
        Case("tls-v11", .genericSendReceiveTLSError, channel, channelWord),
        Case("tls-plain", .genericSendReceiveTLSError, channel, channelWord),
        Case("tls-refused", .genericSendReceiveNetworkError, channel, channelWord),
        Case("tls-silent", .genericSendReceiveNetworkError, channel, channelWord, isSlow: true),
    ]

    static let start: [Case] = [
        Case("start-500", .genericSendReceiveServerError, channel, channelWord),
        Case("start-404", .genericSendReceiveClientError, channel, channelWord),
        Case("start-empty", .genericSendReceivePAOSUnknown, .internalError, "clientError"),
        Case("start-malformed", .genericSendReceivePAOSUnknown, .internalError, "clientError"),
        Case("start-entities", .genericSendReceivePAOSUnknown, .internalError, "clientError"),
        Case("start-huge", .genericSendReceivePAOSUnknown, .internalError, "clientError"),
        Case("start-deep", .genericSendReceivePAOSUnknown, .internalError, "clientError"),
        Case("start-drip", .genericSendReceiveNetworkError, channel, channelWord, isSlow: true),
        Case("start-unknown", .genericSendReceivePAOSUnknown, .internalError, "clientError"),
        Case("start-soap-fault", .genericSendReceivePAOSUnknown, .internalError, "clientError"),
        Case("start-wrong-order", .genericSendReceivePAOSUnexpected, .internalError, "clientError"),
        Case("start-server-error", .startPAOSResponseError, .internalError, "serverError"),
        Case("start-close", .genericSendReceiveNetworkError, channel, channelWord),
    ]

    static let eac1: [Case] = [
        Case("eac1-no-certs", .extractCVCsFromEAC1ATMissing, .invalidCertificatePath, "clientError"),
        Case("eac1-no-at", .extractCVCsFromEAC1ATMissing, .invalidCertificatePath, "clientError"),
        Case("eac1-two-at", .extractCVCsFromEAC1NoUniqueAT, .invalidCertificatePath, "clientError"),
        Case("eac1-no-dv", .extractCVCsFromEAC1DVMissing, .invalidCertificatePath, "clientError"),
        Case("eac1-is-terminal", .extractCVCsFromEAC1ATMissing, .invalidCertificatePath, "clientError"),
        Case("eac1-cert-garbage", .extractCVCsFromEAC1ATMissing, .invalidCertificatePath, "clientError"),
        Case(
            "eac1-cert-signature",
            .preVerificationInvalidCertificateSignature,
            .invalidCertificatePath,
            "clientError"
        ),
        Case("eac1-dv-signature", .preVerificationInvalidCertificateSignature, .invalidCertificatePath, "clientError"),
        Case("eac1-unknown-root", .preVerificationInvalidCertificateChain, .invalidCertificatePath, "clientError"),
        Case("eac1-rogue-root", .preVerificationInvalidCertificateSignature, .invalidCertificatePath, "clientError"),
        Case("eac1-at-expired", .preVerificationCertificateExpired, .invalidCertificatePath, "clientError"),
        Case("eac1-at-future", .preVerificationCertificateExpired, .invalidCertificatePath, "clientError"),
        Case("eac1-dv-expired", .preVerificationCertificateExpired, .invalidCertificatePath, "clientError"),
        Case("eac1-no-description", .certificateCheckFailedNoDescription, .parameterError, "clientError"),
        Case("eac1-two-descriptions", .genericSendReceivePAOSUnknown, .internalError, "clientError"),
        Case("eac1-description-hash", .certificateCheckFailedHashMismatch, .parameterError, "clientError"),
        Case("eac1-description-garbage", .certificateCheckFailedNoDescription, .parameterError, "clientError"),
        Case("eac1-no-subject-url", .certificateCheckFailedNoSubjectURLInDescription, .parameterError, "clientError"),
        Case(
            "eac1-other-subject-url",
            .certificateCheckFailedSameOriginPolicyViolation,
            .parameterError,
            "clientError"
        ),
        Case("eac1-no-comm-certs", .certificateCheckFailedHashMissingInDescription, channel, channelWord),
        Case("eac1-chat-garbage", .genericSendReceivePAOSUnknown, .internalError, "clientError"),
        Case("eac1-aux-garbage", .genericSendReceivePAOSUnknown, .internalError, "clientError"),
        Case("eac1-aux-unknown", .genericSendReceivePAOSUnknown, .internalError, "clientError"),
        Case("eac1-500", .genericSendReceiveServerError, channel, channelWord),
        Case("eac2-no-key", .genericSendReceivePAOSUnknown, .internalError, "clientError"),
        Case("eac2-two-keys", .genericSendReceivePAOSUnknown, .internalError, "clientError"),
        Case("eac2-unknown", .genericSendReceivePAOSUnknown, .internalError, "clientError"),
        Case("eac2-skip", .genericSendReceivePAOSUnexpected, .internalError, "clientError"),
        Case("eac2-close", .genericSendReceiveNetworkError, channel, channelWord),
        Case("eac2-server-error", .startPAOSResponseError, .internalError, "serverError"),
    ]

    @Test("each fault ends as the table says", arguments: token + connection + start + eac1)
    func fault(_ fault: Case) async throws {
        let session = try ServiceStage.session(["fault": fault.fault]) { configuration in
            // What comes before and behind has to be done in that time as well, on a machine that runs all other tests.
            if fault.isSlow { configuration.limits.transfer = .seconds(15) }
        }
        let failure = try #require(await MadeUpCard.authenticate(session), "the server has found no fault")
        #expect(failure.reason == fault.reason, "\(failure.detail)")
        #expect(failure.result.minor == fault.minor)
        let url = await session.refreshAddress(after: failure.result).url
        #expect(
            url?.split(separator: "?").last.map(String.init) == fault.told.map { "ResultMajor=error&ResultMinor=\($0)" }
        )
    }

    @Test(
        "these are no faults: the service is heard to the end",
        arguments: [
            [:], ["mode": "attached"], ["mode": "attached", "keepalive": "0"], ["init": "1"], ["additional": "1"],
            ["chain": "link"], ["reverse": "1", "cvca": "1"], ["fault": "tctoken-redirect"], ["fault": "start-relates"],
            ["fault": "eac2-xy-only"], ["fault": "eac2-other-at"], ["fault": "eac2-old-at"],
            ["fault": "tctoken-empty-parameters", "mode": "attached"],
        ]
    )
    func noFault(parameters: [String: String]) async throws {
        let session = try ServiceStage.session(parameters)
        let failure = await MadeUpCard.authenticate(session)
        // That of chip authentication with a card that is none.
        #expect(failure?.reason == .startPAOSResponseError, "\(failure?.detail ?? "")")
        let outcome = await session.refreshAddress(after: .ok)
        #expect(outcome.failure == nil)
        #expect(try ServiceStage.report(outcome).contains(#""notes":[]"#))
    }

    @Test(
        "the refresh address leads to the service, or it is not taken",
        arguments: [
            ("refresh-other-origin", nil), ("refresh-one-hop", nil), ("refresh-404", .checkRefreshAddressClientError),
            ("refresh-200", .checkRefreshAddressInvalidHTTPResponse),
            ("refresh-http", .checkRefreshAddressNoHTTPSScheme),
            ("refresh-loop", .checkRefreshAddressInvalidHTTPResponse),
            ("refresh-unlisted", .checkRefreshAddressHashMissingInCertificate),
            ("refresh-refused", .checkRefreshAddressUnknownNetworkError),
        ] as [(String, FailureCode?)]
    )
    func refresh(fault: String, reason: FailureCode?) async throws {
        let session = try ServiceStage.session(["fault": fault])
        _ = try await session.request()
        let outcome = await session.refreshAddress(after: .ok)
        #expect(outcome.failure?.reason == reason)
        #expect((outcome.failure?.status ?? .refreshAddress) == .refreshAddress)
        let parameters = reason == nil ? "ResultMajor=ok" : "ResultMajor=error&ResultMinor=communicationError"
        #expect(outcome.url?.hasSuffix("?" + parameters) == true)
    }

    @Test(
        "the service's own connection has to meet the rules",
        arguments: [
            (.webEC, nil), (.webUnlisted, .certificateCheckFailedHashMissingInDescription),
            (.webExpired, .getTcTokenNetworkError), (.webWrongHost, .getTcTokenNetworkError),
            (.webWeak, .getTcTokenInvalidCertificateKeyLength), (.webTLS11, .getTcTokenNetworkError),
            (.webTLS13, nil), (.webCiphers, .getTcTokenNetworkError), (.plain, .getTcTokenNetworkError),
        ] as [(ListenerName, FailureCode?)]
    )
    func service(listener: ListenerName, reason: FailureCode?) async throws {
        let session = try ServiceStage.session(on: listener)
        do throws(EServiceFailure) {
            _ = try await session.request()
            #expect(reason == nil)
        } catch {
            #expect(error.reason == reason, "\(error.detail)")
            #expect(error.result.minor == Self.channel)
        }
    }

    @Test("an attached eID-Server that does not resume the session of the TcToken is not spoken to")
    func resumption() async throws {
        let parameters = ["mode": "attached", "keepalive": "0"]
        let session = try ServiceStage.session(parameters, on: .webNoResume)
        await #expect(throws: EServiceFailure(.genericSendReceiveSessionResumptionFailed, .sessionNotResumed)) {
            try await session.request()
        }
        #expect(await session.refreshAddress(after: ECardResult(.sessionNotResumed)).failure == nil)
        let developer = try ServiceStage.session(parameters, on: .webNoResume, isDeveloperMode: true)
        _ = try await developer.request()
    }

    @Test(
        "developer mode forgives a test service what it only logs",
        arguments: [
            "tls-unlisted", "tls-expired", "tls-wronghost", "tls-weak", "eac1-at-expired", "eac1-description-hash",
            "eac1-other-subject-url", "eac1-no-comm-certs",
        ]
    )
    func developerMode(fault: String) async throws {
        let lines = Mutex<[String]>([])
        let session = try ServiceStage.session(["fault": fault], isDeveloperMode: true) { configuration in
            configuration.log = { line in lines.withLock { $0.append(line) } }
        }
        _ = try await session.request()
        #expect(lines.withLock { $0.contains { $0.hasPrefix("developer mode: ") } })
    }

    @Test("developer mode does not go on with a productive service")
    func productive() async throws {
        let session = try ServiceStage.session(isDeveloperMode: true) { configuration in
            configuration.trustAnchors = TrustAnchors(productive: configuration.trustAnchors.test)
        }
        await #expect(throws: EServiceFailure(.preVerificationNoTestEnvironment, .productiveInDeveloperMode)) {
            try await session.request()
        }
    }
}
