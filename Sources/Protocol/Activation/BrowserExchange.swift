// SPDX-License-Identifier: GPL-3.0-or-later
import Glibc
import Text
import Wire

/// A browser that waits for the end of what it began: one ACTIVATE to the daemon, one answer to the browser.
package final class BrowserExchange: DaemonLink.Owner {
    private let link: DaemonLink
    private let identity: ActivationIdentity
    /// What the browser has still to get.
    private var pending: [UInt8] = []
    private var isAnswered = false
    private var askToWrite: () -> Void = {}
    private var release: () -> Void = {}

    init(_ link: DaemonLink, _ identity: ActivationIdentity) {
        (self.link, self.identity) = (link, identity)
        link.owner = self
    }

    /// How to come to `send`, and how to let go of what calls it.
    func hold(askToWrite: @escaping () -> Void, letGo release: @escaping () -> Void) {
        (self.askToWrite, self.release) = (askToWrite, release)
    }

    /// What calls `send` is gone.
    func letGo() { (askToWrite, release) = ({}, {}) }

    /// Sends ACTIVATE. docs/protocol.md, Browsers and WebSockets.
    func begin(_ member: JSON.Member) {
        let command = JSON.object([.init("cmd", .string("ACTIVATE")), member])
        link.send(line: command.bytes)
    }

    func closed() {
        release()
        letGo()
        link.close()
    }

    /// Where a `send` has come to.
    enum Sending {
        case wantsMore
        /// There is nothing to send at the moment.
        case waits
        /// The browser has its answer, or is gone.
        case isOver
    }

    /// Sends what there is, as far as the browser takes it; the library has made the socket one that does not wait.
    func send(to socket: Int32) -> Sending {
        while !pending.isEmpty {
            let count = Glibc.send(socket, pending, pending.count, Int32(MSG_NOSIGNAL))
            if count < 0, errno == EINTR { continue }
            if count < 0, errno == EAGAIN || errno == EWOULDBLOCK { return .wantsMore }
            guard count > 0 else { return .isOver }
            pending.removeFirst(count)
        }
        return isAnswered ? .isOver : .waits
    }

    // MARK: DaemonLink.Owner

    func linkHasLines(_ link: DaemonLink) {
        while !isAnswered, let found = link.withLine({ Self.progress(of: $0) }) {
            switch found {
            case .accepted: say(HTTPAnswer.processing)
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
        say(HTTPAnswer.end(outcome, identity).bytes)
    }

    private func say(_ bytes: [UInt8]) {
        pending += bytes
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
