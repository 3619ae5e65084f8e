// SPDX-License-Identifier: GPL-3.0-or-later
import BadgedClient

/// The exit status of the program; badgectl(1), EXIT STATUS.
struct ExitStatus: Equatable {
    var code: Int32

    static let done = ExitStatus(code: 0)
    /// badged carried out the command, but the goal was not reached.
    static let failed = ExitStatus(code: 1)
    static let usage = ExitStatus(code: 2)
    /// badged cannot be reached, or has closed the connection.
    static let unreachable = ExitStatus(code: 3)
    static let denied = ExitStatus(code: 4)

    /// 130 for Ctrl-C.
    static func interrupted(_ signal: Int32) -> ExitStatus { ExitStatus(code: 128 + signal) }

    /// Whether a signal ended the command.
    var isInterruption: Bool { code > 128 }
}

/// Why a command has failed, and what the user can do.
struct Failure: Error, Equatable {
    var status: ExitStatus
    /// What has happened, in lower case, without full stop.
    var text: String
    var hint: String?

    static let noPinentry = Failure(
        .failed,
        "pinentry cannot be used here",
        hint: "install pinentry-gnome3, pinentry-qt or pinentry-tty; or run badgectl in a terminal without --pinentry"
    )

    /// The hint when there is no better one.
    static let seeLog = "see badged's log: journalctl -u badged"

    init(_ status: ExitStatus, _ text: String, hint: String? = nil) {
        (self.status, self.text, self.hint) = (status, text, hint)
    }

    init(_ error: ClientError) {
        let status: ExitStatus
        switch error {
        case .invalidPath: status = .usage
        case .notRunning, .unreachable, .notServed, .closed, .noAnswer, .malformed: status = .unreachable
        case .permissionDenied, .accessDenied: status = .denied
        case .unreadEvents, .workflowRunning, .eventsAreRead, .cancelled, .badState, .unknownCommand, .refused,
            .unexpectedAnswer:
            status = .failed
        }
        self.init(status, error.text, hint: error.advice)
    }
}
