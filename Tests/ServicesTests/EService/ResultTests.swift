// SPDX-License-Identifier: GPL-3.0-or-later
import Testing
import Text

@testable import EService

struct ResultTests {
    @Test(
        "each status has the minor result of the SDK's table",
        arguments: [
            (.wrongLength, "/al/common#unknownError"), (.unexpectedTransmitStatus, "/al/common#unknownError"),
            (.terminalRefused, "/al/common#noPermission"), (.unexpectedMessage, "/al/common#internalError"),
            (.sameOriginViolation, "/al/common#parameterError"), (.refreshAddress, "/al/common#communicationError"),
            (.timeout, "/dp#trustedChannelEstablishmentFailed"),
            (.certificateExpired, "/il/signature#invalidCertificatePath"), (.cardRemoved, "/sal#cancellationByUser"),
        ] as [(FailureStatus, String)]
    )
    func minor(status: FailureStatus, suffix: String) {
        #expect(status.minor.uri == "http://www.bsi.bund.de/ecard/api/1.1/resultminor" + suffix)
        #expect(ECardResult(status).isError)
    }

    @Test(
        "every minor result has words, even an unknown one",
        arguments: [
            ("http://www.bsi.bund.de/ecard/api/1.1/resultminor/al/common#incorrectParameter", "parameter"),
            ("http://www.bsi.bund.de/ecard/api/1.1/resultminor/dp#nodeNotReachable", "reached"),
            ("http://www.bsi.bund.de/ecard/api/1.1/resultminor/il/signature#certificateRevoked", "revoked"),
            ("http://www.bsi.bund.de/ecard/api/1.1/resultminor/sal#insufficientRights", "rights"),
            ("http://www.bsi.bund.de/ecard/api/1.1/resultminor/sal/mEAC#AgeVerificationFailedWarning", "age"),
            ("http://www.bsi.bund.de/ecard/api/1.1/resultminor/ifdl/terminal#noCard", "no card"),
            ("http://www.bsi.bund.de/ecard/api/1.1/resultminor/sal#new", "unknown kind"),
            ("/sal#cancellationByUser", "unknown kind"), ("urn:x", "unknown kind"), ("", "unknown kind"),
        ]
    )
    func words(uri: String, word: String) {
        let description = ResultMinor(uri: uri).description
        #expect(description.contains(word) && description.hasSuffix("."))
    }

    @Test("the result of a server is kept unchanged")
    func serverResult() {
        let result = ECardResult(.error, ResultMinor(uri: "urn:x"), message: "No.", origin: .server)
        #expect(EServiceFailure(.startPAOSResponseError, .serverError, serverResult: result).result == result)
        #expect(EServiceFailure(.startPAOSResponseError, .serverError).result == ECardResult(.serverError))
    }

    @Test(
        "the address for the browser has one of five results",
        arguments: [
            (.ok, "ResultMajor=ok"), (ECardResult(.warning), "ResultMajor=ok"),
            (ECardResult(.cancelledByUser), "ResultMajor=error&ResultMinor=cancellationByUser"),
            (ECardResult(.cardRemoved), "ResultMajor=error&ResultMinor=cancellationByUser"),
            (ECardResult(.tls), "ResultMajor=error&ResultMinor=trustedChannelEstablishmentFailed"),
            (ECardResult(.refreshAddress), "ResultMajor=error&ResultMinor=communicationError"),
            (ECardResult(.terminalRefused), "ResultMajor=error&ResultMinor=clientError"),
            (ECardResult(.error, nil, origin: .server), "ResultMajor=error&ResultMinor=serverError"),
            (ECardResult(.error, .internalError, origin: .server), "ResultMajor=error&ResultMinor=serverError"),
            (
                ECardResult(.error, ResultMinor(uri: "a#&x=y"), origin: .server),
                "ResultMajor=error&ResultMinor=serverError"
            ),
        ] as [(ECardResult, String)]
    )
    func parameters(result: ECardResult, expected: String) {
        let items = RefreshOutcome.parameters(of: result).map { "\($0.name)=\($0.value)" }
        #expect(items.joined(separator: "&") == expected)
    }

    @Test(
        "each class of HTTP status has its own reason",
        arguments: [
            (
                503, .getTcTokenServiceUnavailable, .genericSendReceiveServiceUnavailable,
                .checkRefreshAddressServiceUnavailable
            ),
            (500, .getTcTokenServerError, .genericSendReceiveServerError, .checkRefreshAddressServerError),
            (404, .getTcTokenClientError, .genericSendReceiveClientError, .checkRefreshAddressClientError),
            (
                301, .getTcTokenInvalidServerReply, .genericSendReceiveNetworkError,
                .checkRefreshAddressInvalidHTTPResponse
            ),
            (
                204, .getTcTokenInvalidServerReply, .genericSendReceiveNetworkError,
                .checkRefreshAddressInvalidHTTPResponse
            ),
        ] as [(Int, FailureCode, FailureCode, FailureCode)]
    )
    func httpStatus(status: Int, token: FailureCode, paos: FailureCode, refresh: FailureCode) {
        #expect(TcTokenFetch.failure(status: status).reason == token)
        #expect(PAOSClient.failure(status: status).reason == paos)
        #expect(RefreshAddressSearch.failure(status: status).reason == refresh)
    }
}
