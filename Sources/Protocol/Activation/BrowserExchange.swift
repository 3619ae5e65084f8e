// SPDX-License-Identifier: GPL-3.0-or-later
package import Concurrency
import Server
import Text

/// A request of a browser that the daemon executes: sends one ACTIVATE and waits for one answer.
@Loop package final class BrowserExchange: BrowserLink.Owner {
    private let link: BrowserLink
    /// Called with each progress; after the end there is none.
    private let report: (ActivationProgress) -> Void
    private var isOver = false

    init(_ link: BrowserLink, _ report: @escaping @Loop (ActivationProgress) -> Void) {
        self.link = link
        self.report = report
        link.owner = self
    }

    /// Sends ACTIVATE with this member. docs/protocol/browsers.md.
    func begin(_ member: JSON.Member) {
        link.send(line: JSON.object([.init("cmd", .string("ACTIVATE")), member]).bytes)
    }

    /// Ends the exchange, when the browser has disconnected.
    func close() {
        isOver = true
        link.close()
    }

    // MARK: BrowserLink.Owner

    func linkHasBytes(_ link: BrowserLink) {
        while !isOver, let progress = link.withLine({ Self.progress(of: $0) }) {
            if let progress { handle(progress) }
        }
    }

    func linkIsDrained(_ link: BrowserLink) {}

    func linkEnded(_ link: BrowserLink) {
        if !isOver { handle(.ended(.failed)) }
    }

    private func handle(_ progress: ActivationProgress) {
        if case .ended = progress { close() }
        report(progress)
    }

    /// Parses ACTIVATE from a line of the daemon; nil if the line is another message.
    nonisolated package static func progress(of line: UnsafeRawBufferPointer) -> ActivationProgress? {
        guard let message = try? JSON(line) else { return nil }
        guard message["msg"]?.string == "ACTIVATION" else { return message["error"] == nil ? nil : .ended(.failed) }
        if message["accepted"] == .bool(true) { return .accepted }
        if let url = message["url"]?.string { return .ended(.redirect(url)) }
        switch message["error"]?.string {
        case nil: return .ended(.shown)
        case "No TcToken": return .ended(.noToken)
        case "Unreachable": return .ended(.unreachable)
        case "Insecure": return .ended(.insecure)
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
