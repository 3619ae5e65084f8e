// SPDX-License-Identifier: GPL-3.0-or-later
import CWebSockets
import Wire

/// A browser that waits for the end of what it began: one ACTIVATE to the daemon, one answer to the browser.
package final class BrowserExchange: DaemonLink.Owner {
    private let socket: OpaquePointer
    private let link: DaemonLink
    private(set) var outcome: ActivationOutcome?

    init(_ socket: OpaquePointer, _ link: DaemonLink) {
        (self.socket, self.link) = (socket, link)
        link.owner = self
    }

    /// Sends ACTIVATE. docs/protocol.md, Browsers and WebSockets.
    func begin(_ member: JSON.Member) {
        let command = JSON.object([.init("cmd", .string("ACTIVATE")), member])
        link.send(line: command.bytes)
    }

    func closed() { link.close() }

    // MARK: DaemonLink.Owner

    func linkHasLines(_ link: DaemonLink) {
        while outcome == nil, let found = link.withLine({ Self.outcome(of: $0) }) {
            guard let found else { continue }
            outcome = found
            lws_callback_on_writable(socket)
        }
    }

    func linkIsDrained(_ link: DaemonLink) {}

    func linkEnded(_ link: DaemonLink) {
        guard outcome == nil else { return }
        outcome = .failed
        lws_callback_on_writable(socket)
    }

    /// What the answer to ACTIVATE says; nil for another message.
    package static func outcome(of line: UnsafeRawBufferPointer) -> ActivationOutcome? {
        guard let message = try? JSON(line) else { return nil }
        guard message["msg"]?.string == "ACTIVATION" else { return message["error"] == nil ? nil : .failed }
        if let url = message["url"]?.string { return .redirect(url) }
        switch message["error"]?.string {
        case nil: return .shown
        case "No TcToken": return .noToken
        case "No address": return .noAddress
        case "Busy": return .busy
        case "No user interface": return .noUserInterface
        default: return .failed
        }
    }
}
