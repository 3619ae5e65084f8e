// SPDX-License-Identifier: GPL-3.0-or-later
import Glibc
import Text
import Wire

/// A request of a browser that the daemon executes: sends one ACTIVATE and waits for one answer.
package final class BrowserExchange: DaemonLink.Owner {
    private let link: DaemonLink
    private let identity: ActivationIdentity
    /// Bytes that the browser has not received yet.
    private var pending: [UInt8] = []
    private var isAnswered = false
    /// Asks the event loop for a call of `send`.
    private var requestSend: () -> Void = {}

    init(_ link: DaemonLink, _ identity: ActivationIdentity) {
        (self.link, self.identity) = (link, identity)
        link.owner = self
    }

    /// Sends ACTIVATE with this member. docs/protocol/browsers.md.
    func begin(_ member: JSON.Member, requestSend: @escaping () -> Void) {
        self.requestSend = requestSend
        link.send(line: JSON.object([.init("cmd", .string("ACTIVATE")), member]).bytes)
    }

    /// Ends the exchange, when the browser has its answer or has disconnected.
    func close() {
        requestSend = {}
        link.close()
    }

    enum Sending {
        /// The socket of the browser accepts no more bytes now.
        case blocked
        /// All bytes so far are sent.
        case idle
        /// The browser has its answer, or has disconnected.
        case ended
    }

    /// Sends as many bytes as the socket of the browser accepts, without blocking.
    func send(to socket: Int32) -> Sending {
        while !pending.isEmpty {
            let count = Glibc.send(socket, pending, pending.count, Int32(MSG_NOSIGNAL))
            if count < 0, errno == EINTR { continue }
            if count < 0, errno == EAGAIN || errno == EWOULDBLOCK { return .blocked }
            guard count > 0 else { return .ended }
            pending.removeFirst(count)
        }
        return isAnswered ? .ended : .idle
    }

    // MARK: DaemonLink.Owner

    func linkHasBytes(_ link: DaemonLink) {
        while !isAnswered, let progress = link.withLine({ Self.progress(of: $0) }) {
            switch progress {
            case .accepted: queue(HTTPAnswer.processing)
            case .ended(let outcome): answer(outcome)
            case nil: continue
            }
        }
    }

    func linkIsDrained(_ link: DaemonLink) {}

    func linkEnded(_ link: DaemonLink) {
        if !isAnswered { answer(.failed) }
    }

    private func answer(_ outcome: ActivationOutcome) {
        isAnswered = true
        queue(HTTPAnswer.end(outcome, identity).bytes)
    }

    private func queue(_ bytes: [UInt8]) {
        pending += bytes
        requestSend()
    }

    /// Parses ACTIVATE from a line of the daemon; nil if the line is another message.
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

package enum ActivationProgress: Sendable, Equatable {
    /// The authentication has begun; its end is reported later.
    case accepted
    case ended(ActivationOutcome)
}
