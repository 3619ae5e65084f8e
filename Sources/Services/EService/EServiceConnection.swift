// SPDX-License-Identifier: GPL-3.0-or-later

/// One online authentication as the workflow sees it: a dialogue with the service and its eID-Server.
/// TR-03124-1, 2.4; TR-03112-7, 3.6.4.
///
/// The methods are called in the order of this list, each at most once except `sendTransmit`. A cancelled task ends the
/// first five at once with `User_Cancelled`. `fail` and `refreshAddress` continue within their timeouts, because the
/// server must be informed. `close` ends everything.
package protocol EServiceConnection: Sendable {
    /// Fetches the TcToken, opens PAOS and receives EAC1. When it returns, every check that needs no card has passed: chain
    /// and dates of the certificates, description, same origin, TLS certificates.
    func request() async throws(EServiceFailure) -> AuthenticationRequest

    /// Sends the answer to EAC1. The server answers with its ephemeral key and its signature. When `EAC2.signature` is
    /// nil, `sendChallenge` follows, otherwise `sendEAC2`.
    func sendEAC1(_ output: EAC1Output) async throws(EServiceFailure) -> EAC2

    /// Sends the challenge again and receives the signature. TR-03112-7, 3.6.4.2, EACAdditionalInputType.
    /// - Parameter challenge: the card's 8 bytes.
    /// - Returns: the terminal's signature, r and s at full length.
    /// - Throws: `EServiceFailure`.
    func sendChallenge(_ challenge: [UInt8]) async throws(EServiceFailure) -> [UInt8]

    /// Sends the result of chip authentication.
    func sendEAC2(_ output: EAC2Output) async throws(EServiceFailure) -> ServerStep

    /// Sends the answers of the card in order.
    /// - Parameters:
    ///   - output: response APDUs, one for each command that was sent to the card.
    ///   - error: why the other commands were not sent to the card: `FailureStatus.unexpectedTransmitStatus` when a
    ///     status was not acceptable. The server then continues or ends the dialogue.
    /// - Returns: the next step that the server requests.
    /// - Throws: `EServiceFailure`.
    func sendTransmit(_ output: [[UInt8]], error: ECardResult?) async throws(EServiceFailure) -> ServerStep

    /// Reports a failure in the answer that the server waits for, and receives its StartPAOSResponse.
    /// - Returns: the result in StartPAOSResponse; nil when the server waited for nothing, or did not answer.
    @discardableResult
    func fail(_ error: ECardResult) async -> ECardResult?

    /// Finds the address to which the user's browser returns, also after an error. TR-03124-1, 2.7. A cancellation during
    /// the search ends it; an earlier one does not.
    /// - Parameter result: how the authentication ended; it becomes ResultMajor and ResultMinor in the address.
    /// - Returns: the address, and what was wrong with it.
    func refreshAddress(after result: ECardResult) async -> RefreshOutcome

    /// Returns as soon as no later step can succeed, because the connections have ended on this host; nil if the task is
    /// cancelled before. May be called once, while no method runs.
    func interruption() async -> EServiceFailure?

    /// Closes all connections at once. May be called at any time and from any thread; a running method ends with
    /// `User_Cancelled`.
    func close()
}

/// The address to which the browser returns.
package struct RefreshOutcome: Sendable, Equatable {
    /// The refresh address, or the CommunicationErrorAddress, or nil; with ResultMajor and ResultMinor.
    package let url: String?
    /// Why the refresh address of the TcToken cannot be used.
    package let failure: EServiceFailure?

    package init(url: String?, failure: EServiceFailure? = nil) {
        self.url = url
        self.failure = failure
    }
}
