// SPDX-License-Identifier: GPL-3.0-or-later
import CWebSockets
import Wire

/// A browser that waits for the end of what it began: one ACTIVATE to the daemon, one answer to the browser.
package final class BrowserExchange: DaemonLink.Owner {
    private let socket: OpaquePointer
    private let link: DaemonLink
    /// Lets go of what looks whether the browser is still there.
    var stopWatching: () -> Void = {}
    private(set) var outcome: ActivationOutcome?
    /// An authentication runs: the browser is to be told before anything else is.
    private var isAccepted = false

    init(_ socket: OpaquePointer, _ link: DaemonLink) {
        (self.socket, self.link) = (socket, link)
        link.owner = self
    }

    /// Sends ACTIVATE. docs/protocol.md, Browsers and WebSockets.
    func begin(_ member: JSON.Member) {
        let command = JSON.object([.init("cmd", .string("ACTIVATE")), member])
        link.send(line: command.bytes)
    }

    func closed() {
        stopWatching()
        stopWatching = {}
        link.close()
    }

    // MARK: DaemonLink.Owner

    func linkHasLines(_ link: DaemonLink) {
        while outcome == nil, let found = link.withLine({ Self.progress(of: $0) }) {
            switch found {
            case .accepted: isAccepted = true
            case .ended(let end): outcome = end
            case nil: continue
            }
            askToWrite()
        }
    }

    /// What is not read at the moment is not written to either: the library looks at both together.
    private func askToWrite() {
        lws_rx_flow_control(socket, 1)
        lws_callback_on_writable(socket)
    }

    /// Whether 102 is due; once.
    func takeAcceptance() -> Bool {
        defer { isAccepted = false }
        return isAccepted
    }

    func linkIsDrained(_ link: DaemonLink) {}

    func linkEnded(_ link: DaemonLink) {
        guard outcome == nil else { return }
        outcome = .failed
        askToWrite()
    }

    /// What a line says about the wish; nil for another message.
    package static func progress(of line: UnsafeRawBufferPointer) -> ActivationProgress? {
        guard let message = try? JSON(line) else { return nil }
        guard message["msg"]?.string == "ACTIVATION" else { return message["error"] == nil ? nil : .ended(.failed) }
        if message["accepted"] == .bool(true) { return .accepted }
        if let url = message["url"]?.string { return .ended(.redirect(url)) }
        switch message["error"]?.string {
        case nil: return .ended(.shown)
        case "No TcToken": return .ended(.noToken)
        case "No address": return .ended(.noAddress)
        case "Busy": return .ended(.busy)
        case "No user interface": return .ended(.noUserInterface)
        default: return .ended(.failed)
        }
    }
}

/// How far it is with what a browser wants.
package enum ActivationProgress: Sendable, Equatable {
    /// An authentication runs; its end comes later.
    case accepted
    case ended(ActivationOutcome)
}
