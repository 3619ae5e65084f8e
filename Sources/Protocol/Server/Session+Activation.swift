// SPDX-License-Identifier: GPL-3.0-or-later
import EService
import Wire
import Workflows

/// A browser's wish, and the client that speaks with the user about it. docs/protocol.md, Browsers and WebSockets.
extension Session {
    func setUserInterface(_ command: Command, _ request: UnsafeRawBufferPointer?) {
        let isActive = server.userInterface === self
        switch command.bool("active") {
        case .missing: answer(.userInterface(active: isActive, error: "'active' cannot be undefined"), request)
        case .invalid: answer(.userInterface(active: isActive, error: "Invalid 'active'"), request)
        case .value(let flag):
            server.setUserInterface(self, flag)
            answer(.userInterface(active: flag, error: nil), request)
        }
    }

    /// The answer comes when the user's program is done: it may take as long as a user does.
    func activate(_ command: Command, _ request: UnsafeRawBufferPointer?) -> Bool {
        guard workflow == nil else { return false }
        func refuse(_ error: ActivationError) -> Bool {
            answer(.activation(url: nil, error: error.rawValue), request)
            return true
        }
        guard let userInterface = server.userInterface else { return refuse(.noUserInterface) }
        if case .value(let module) = command.string("showUI") {
            userInterface.push(.showUI(module: module))
            answer(.activation(url: nil, error: nil), request)
            return true
        }
        guard case .value(let url) = command.string("tcTokenURL"), Self.hasHost(url) else { return refuse(.noTcToken) }
        guard userInterface.workflow == nil else { return refuse(.busy) }
        let request = request.map { Array($0) }
        activated = userInterface.authenticate(at: url) { [weak self] end in
            guard let self else { return }
            activated = nil
            let error = end.url == nil ? ActivationError(end.reason) : nil
            answer(.activation(url: end.url, error: error?.rawValue), toCopied: request)
        }
        push(.activationAccepted)
        return true
    }
}

extension AuthenticationResult {
    /// The same when the browser has left before: that ended it, unless something else did. Nobody goes anywhere then.
    var withoutBrowser: AuthenticationResult {
        guard reason == nil || reason == .userCancelled else { return self }
        return AuthenticationResult(
            result: ECardResult(.browserUnreachable),
            reason: .browserSendFailed,
            url: nil,
            detail: "the browser has left"
        )
    }
}

/// Why a browser goes nowhere: what `error` of ACTIVATION says.
private enum ActivationError: String {
    case noUserInterface = "No user interface"
    case busy = "Busy"
    case noTcToken = "No TcToken"
    case noAddress = "No address"

    /// Of an authentication that ended without an address. TR-03124-1 2.7: a token that could not be had is one thing,
    /// one that was had from, or leads to, a wrong place another.
    init(_ reason: FailureCode?) {
        switch reason {
        case .parseTcTokenInvalidURL, .parseTcTokenMissingURL, .getTcTokenInvalidServerReply,
            .getTcTokenServiceUnavailable, .getTcTokenServerError, .getTcTokenClientError, .getTcTokenEmptyData,
            .getTcTokenInvalidData, .getTcTokenNetworkError:
            self = .noTcToken
        default: self = .noAddress
        }
    }
}
