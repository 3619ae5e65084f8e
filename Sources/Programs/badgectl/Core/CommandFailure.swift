// SPDX-License-Identifier: GPL-3.0-or-later
import BadgedClient
import Glibc
import Host
import Text

/// The exit status of the program; badgectl(1), EXIT STATUS.
///
/// A command that throws it alone ends the program without a message.
struct ExitStatus: Error, Equatable {
    var code: Int32

    static let done = ExitStatus(code: 0)
    /// badged carried out the command, but the goal was not reached.
    static let failed = ExitStatus(code: 1)
    static let usage = ExitStatus(code: 2)
    /// badged cannot be reached, or has closed the connection.
    static let unreachable = ExitStatus(code: 3)
    static let denied = ExitStatus(code: 4)
    /// health: an optional part is missing, and nothing is broken.
    static let incomplete = ExitStatus(code: 5)
    /// document, mdoc: a check has failed.
    static let suspect = ExitStatus(code: 6)
    /// document, mdoc: nothing has failed, and not everything is proven.
    static let unproven = ExitStatus(code: 7)
    /// mdoc: the holder is not over the age, which is proven.
    static let answeredNo = ExitStatus(code: 8)
    /// mdoc: the phone has given nothing.
    static let declined = ExitStatus(code: 9)

    /// 130 for Ctrl-C.
    static func interrupted(_ signal: Int32) -> ExitStatus { ExitStatus(code: 128 + signal) }

    /// Whether a signal ended the command.
    var isInterruption: Bool { code > 128 }
}

/// Why a command has failed, and what the user can do.
struct CommandFailure: Error, Equatable {
    var status: ExitStatus
    /// What has happened, in lower case, without full stop.
    var text: String
    var hint: String?

    static let noPinentry = CommandFailure(
        tr("pinentry cannot be used here"),
        hint: tr(
            "install pinentry-gnome3, pinentry-qt or pinentry-tty; or run badgectl in a terminal without --pinentry"
        )
    )

    static let tooLongForWindows = CommandFailure(
        tr("what is to be agreed to is too long for windows"),
        hint: tr("run badgectl in a terminal without --pinentry")
    )

    /// The hint when there is no better one.
    static let seeLog = tr("badged's log says why, to root and to groups adm and systemd-journal: journalctl -u badged")

    init(_ text: String, hint: String? = nil) { self.init(.failed, text, hint: hint) }

    init(usage text: String, hint: String? = nil) { self.init(.usage, text, hint: hint) }

    init(_ status: ExitStatus, _ text: String, hint: String? = nil) {
        self.status = status
        self.text = text
        self.hint = hint
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
        self.init(status, Self.text(error), hint: Self.accessLine(error) ?? Self.hint(error))
    }

    /// What has happened, without words of the protocol.
    private static func text(_ error: ClientError) -> String {
        switch error {
        case .accessDenied(_, let missing, _):
            let list = missing.joined(separator: tr(" and "))
            return missing.isEmpty
                ? tr("badged does not allow this to this user")
                : missing.count == 1
                    ? tr("this user lacks the permission \(list)") : tr("this user lacks the permissions \(list)")
        case .badState, .workflowRunning: return tr("badged cannot do this now")
        case .unknownCommand: return tr("the badged that runs does not know this command")
        case .unexpectedAnswer: return tr("badged gave an answer that badgectl does not know")
        case .invalidPath(let path):
            return path.isEmpty ? tr("the path of the socket is empty") : tr("\(path) is too long for a socket path")
        case .notRunning(let path): return tr("badged is not running: no program listens on \(path)")
        case .permissionDenied(let path): return tr("permission to use \(path) denied")
        case .unreachable(let path, let cause): return tr("cannot connect to \(path): \(DaemonWords.text(cause))")
        case .notServed(let error): return tr("badged does not serve this connection: \(DaemonWords.text(error))")
        case .closed: return tr("badged has closed the connection")
        case .noAnswer: return tr("badged does not answer")
        case .malformed(let cause):
            return tr("the program at this socket does not speak badged's protocol: \(cause.words)")
        case .cancelled: return tr("cancelled")
        case .refused(let error): return tr("badged refused: \(DaemonWords.text(error))")
        case .unreadEvents, .eventsAreRead: return error.text
        }
    }

    private static func hint(_ error: ClientError) -> String {
        switch error {
        case .badState, .workflowRunning: tr("wait until the other command has ended, then try again")
        case .unknownCommand, .unexpectedAnswer:
            tr("install badged and badgectl of the same version, and restart badged")
        case .invalidPath: tr("use a path of 1 to 107 bytes")
        case .notRunning: tr("start it: systemctl start badged; or name another socket with --socket")
        case .permissionDenied: tr("become a member of the group badged (adduser USER badged) and log in again")
        case .unreachable: tr("check badged: systemctl status badged")
        case .notServed: seeLog
        case .closed: tr("connect again; root and group adm can see why: journalctl -u badged")
        case .noAnswer: tr("check badged: systemctl status badged; then connect again")
        case .malformed: tr("check the path of the socket")
        case .cancelled: tr("try again")
        case .accessDenied:
            tr("ask the administrator to add this user or group to [access] in /etc/badged/badged.conf")
        case .refused: tr("correct what the text names, then try again")
        case .unreadEvents, .eventsAreRead: error.advice
        }
    }

    /// Any error that a command throws.
    init(_ error: any Error) {
        switch error {
        case let failure as CommandFailure: self = failure
        case let error as ClientError: self.init(error)
        case let failure as KeyFailure: self.init(.failed, Self.text(failure), hint: Self.hint(failure))
        case let error as StartError:
            let (message, hint) = (error.phrases.map { tr($0.message) }, error.phrases.map { tr($0.hint) })
            self.init(.failed, message ?? error.message, hint: hint ?? error.hint)
        default: self.init(.failed, "\(error)")
        }
    }

    private static func text(_ failure: KeyFailure) -> String {
        failure.name == "Endpoint" ? tr("this user has no keys in badged yet") : failure.text
    }

    private static func hint(_ failure: KeyFailure) -> String? {
        if failure.mayBeRepeated { return tr("try again later; an invitation can be used again") }
        return switch failure.name {
        case "Endpoint": tr("make one with badgectl keys new, or get one with badgectl endpoint setup INVITATION")
        case "NotSupported" where failure.reason == "closedService": tr("see [keys] in badged.conf(5)")
        case "KeyNotFound": tr("badgectl keys list shows the keys")
        case "InternalError", "DataStorageDecryptionFailed", "DeviceNotEligible": seeLog
        default: nil
        }
    }

    /// The line of badged.conf that allows the command to the own user; nil for other errors.
    private static func accessLine(_ error: ClientError) -> String? {
        // ACTIVATE is for the port for browsers alone, and has no word.
        guard case .accessDenied(_, let missing, let granted) = error, !missing.isEmpty else { return nil }
        let user = getpwuid(geteuid()).map { String(cString: $0.pointee.pw_name) } ?? "\(geteuid())"
        let line = "user:\(user) = \((granted + missing).joined(separator: ", "))"
        return tr("in /etc/badged/badged.conf, below [access], write \"\(line)\", in place of a line that begins with")
            + tr(" user:\(user); then systemctl reload badged")
    }
}
