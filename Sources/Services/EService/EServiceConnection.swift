// SPDX-License-Identifier: GPL-3.0-or-later

/// One online authentication as the workflow sees it: the service and its eID-Server behind one dialogue.
/// TR-03124-1, 2.4; TR-03112-7, 3.6.4.
///
/// The methods are called in the order in which they stand here, each at most once but for `sendTransmit`. A cancelled
/// task ends the first five at once with `User_Cancelled`; `fail` and `refreshAddress` go on, within their time-outs,
/// since the server has to be told. `close` ends everything.
package protocol EServiceConnection: Sendable {
    /// Fetches the TcToken, opens PAOS and receives EAC1. When it returns, every check that needs no card is done: chain
    /// and dates of the certificates, description, same origin, certificates of the connections.
    func request() async throws(EServiceFailure) -> AuthenticationRequest

    /// Says what the card gave; the server answers with its ephemeral key, and with its signature, unless it wants the
    /// challenge once more (`EAC2.signature` is nil): then `sendChallenge` is next, else `sendEAC2`.
    func sendEAC1(_ output: EAC1Output) async throws(EServiceFailure) -> EAC2

    /// The additional round. TR-03112-7, 3.6.4.2, EACAdditionalInputType.
    /// - Parameter challenge: the card's 8 bytes, again.
    /// - Returns: the terminal's signature, r and s at full length.
    /// - Throws: `EServiceFailure`.
    func sendChallenge(_ challenge: [UInt8]) async throws(EServiceFailure) -> [UInt8]

    /// Says how chip authentication went.
    func sendEAC2(_ output: EAC2Output) async throws(EServiceFailure) -> ServerStep

    /// Gives the answers of the card, in order.
    /// - Parameters:
    ///   - output: response APDUs, as many as commands were sent to the card.
    ///   - error: why the rest was not sent: `FailureStatus.unexpectedTransmitStatus` when a status was not acceptable.
    ///     The server is told, and goes on or ends it.
    /// - Returns: what the server wants next.
    /// - Throws: `EServiceFailure`.
    func sendTransmit(_ output: [[UInt8]], error: ECardResult?) async throws(EServiceFailure) -> ServerStep

    /// After any failure, its own or the card's: sends the answer that the server waits for, if it waits for one, with
    /// this error in it, and takes its StartPAOSResponse.
    /// - Returns: what the server said in it; nil when nothing was pending, or no answer came.
    @discardableResult
    func fail(_ error: ECardResult) async -> ECardResult?

    /// Finds out where the user's browser has to go, also after errors. TR-03124-1, 2.7. A cancellation that comes
    /// meanwhile ends the search; one that came before does not.
    /// - Parameter result: how the authentication ended; it becomes ResultMajor and ResultMinor in the address.
    /// - Returns: the address, and what was wrong with it.
    func refreshAddress(after result: ECardResult) async -> RefreshOutcome

    /// Where the time went so far.
    var times: ServiceTimes { get async }

    /// Drops what is still open, at once. Safe at any time and from any thread; what is waited for ends with
    /// `User_Cancelled`.
    func close()
}

/// Where the browser goes.
package struct RefreshOutcome: Sendable, Equatable {
    /// With ResultMajor and ResultMinor: the refresh address, else the CommunicationErrorAddress, else nil.
    package let url: String?
    /// Why there is no refresh address although there was a TcToken with one.
    package let failure: EServiceFailure?

    package init(url: String?, failure: EServiceFailure? = nil) {
        (self.url, self.failure) = (url, failure)
    }
}
