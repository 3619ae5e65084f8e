// SPDX-License-Identifier: GPL-3.0-or-later
import HTTP
import Text

/// The PAOS dialogue with the eID-Server: our messages and its answers. TR-03112-7, 2.6.
final class PAOSClient {
    let session: HTTPSession
    private let address: WebAddress
    private let configuration: EServiceConfiguration

    /// The answer that the server waits for; nil if there is none, or if this is not known.
    private var pending: PAOSMessage.Pending?
    /// The MessageID of the server's last message.
    private var relatesTo: String?

    init(_ session: HTTPSession, _ address: WebAddress, _ configuration: EServiceConfiguration) {
        self.session = session
        self.address = address
        self.configuration = configuration
    }

    /// The failure for a message that is not allowed at this point. The server still waits for an answer to it.
    var unexpected: EServiceFailure { EServiceFailure(.genericSendReceivePAOSUnexpected, .unexpectedMessage) }

    /// Opens the dialogue and returns what the service asks for.
    func start(_ sessionIdentifier: String) async throws(EServiceFailure) -> EAC1Input {
        let start = PAOSEnvelope.Body.startPAOS(sessionIdentifier: sessionIdentifier, configuration.userAgent)
        var content = try await exchange(start, pendingIfCancelled: nil)
        if content == .initializeFramework {
            content = try await exchange(
                .initializeFrameworkResponse(.ok),
                pendingIfCancelled: .didAuthenticateResponse(.eac1)
            )
        }
        guard case .eac1(let input) = content else { throw unexpected }
        return input
    }

    /// Sends a message and receives the next one. A StartPAOSResponse with an error is thrown. After a cancellation the
    /// server is assumed to wait for `pendingIfCancelled`.
    func exchange(
        _ body: PAOSEnvelope.Body,
        pendingIfCancelled: PAOSMessage.Pending?
    ) async throws(EServiceFailure) -> PAOSMessage.Content {
        let response: HTTPResponse
        do throws(HTTPFault) {
            pending = nil
            response = try await send(body, configuration.limits.transfer)
        } catch {
            if error == .cancelled { pending = pendingIfCancelled }
            throw Self.failure(error)
        }
        guard response.status == 200 else { throw Self.failure(status: response.status) }
        let message = try read(response)
        if case .startPAOSResponse(let result) = message.content, result.isError {
            throw EServiceFailure(.startPAOSResponseError, .serverError, serverResult: result)
        }
        return message.content
    }

    /// Sends the error as the answer that the server waits for, and returns the result in its StartPAOSResponse.
    func fail(_ error: ECardResult) async -> ECardResult? {
        guard let pending else { return nil }
        self.pending = nil
        guard let response = try? await send(.error(error, to: pending), configuration.limits.errorReport),
            response.status == 200, let message = try? PAOSMessage(response.document ?? Self.noDocument),
            case .startPAOSResponse(let result) = message.content
        else { return nil }
        return result
    }

    private func read(_ response: HTTPResponse) throws(EServiceFailure) -> PAOSMessage {
        do throws(Malformed) {
            let message = try PAOSMessage(response.document ?? Self.noDocument)
            relatesTo = message.messageID ?? relatesTo
            pending = message.pending
            if case .invalid(_, let words) = message.content { throw Malformed(words) }
            return message
        } catch {
            throw EServiceFailure(.genericSendReceivePAOSUnknown, .unknownMessage, detail: error.text)
        }
    }

    /// An answer of white space.
    private static let noDocument = Result<XMLElement, Malformed>.failure(Malformed("no element found"))

    private func send(_ body: PAOSEnvelope.Body, _ limit: Duration) async throws(HTTPFault) -> HTTPResponse {
        var request = HTTPRequest(method: .post, address: address)
        request.headers = [
            "User-Agent: \(configuration.userAgent.header)",
            "Accept: text/html; application/vnd.paos+xml",
            "Content-Type: application/vnd.paos+xml; charset=UTF-8",
            "PAOS: ver=\"urn:liberty:paos:2006-08\"",
            "Connection: keep-alive",
        ]
        request.body = PAOSEnvelope.document(body, messageID: "urn:uuid:" + UUIDText.random(), relatesTo: relatesTo)
        request.maximumLength = PAOSMessage.maximumLength
        request.readsDocument = true
        return try await session.run(request, by: .now + limit)
    }

    static func failure(status: Int) -> EServiceFailure {
        let reason = FailureCode.httpStatus(
            status,
            unavailable: .genericSendReceiveServiceUnavailable,
            serverError: .genericSendReceiveServerError,
            clientError: .genericSendReceiveClientError,
            other: .genericSendReceiveNetworkError
        )
        return EServiceFailure(reason, status < 400 ? .noAnswer : .serverError, detail: "HTTP \(status)")
    }

    static func failure(_ fault: HTTPFault) -> EServiceFailure {
        switch fault {
        case .cancelled: .cancelled
        case .timeout, .unreachable, .broken, .privateServer, .unavailable, .lost, .proxy:
            EServiceFailure(.genericSendReceiveNetworkError, fault)
        case .tooLarge: EServiceFailure(.genericSendReceivePAOSUnknown, fault, .unknownMessage)
        case .tls(.ephemeralKeyTooShort, _): EServiceFailure(.genericSendReceiveInvalidEphemeralKeyLength, fault)
        case .tls(.notListed, _), .tls(.certificateKeyTooShort, _):
            EServiceFailure(.genericSendReceiveCertificateError, fault)
        case .tls(.notResumed, _): EServiceFailure(.genericSendReceiveSessionResumptionFailed, fault)
        case .tls(.certificate, _), .tls(nil, _): EServiceFailure(.genericSendReceiveTLSError, fault)
        }
    }
}
