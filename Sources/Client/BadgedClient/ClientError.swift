// SPDX-License-Identifier: Apache-2.0
import Text

/// Why badged could not be reached or did not do what it was asked; `text` says what happened, `advice` what to do next.
public enum ClientError: Error, Sendable, Equatable {
    // Reaching it
    /// Empty, or longer than the 107 bytes that a Unix socket's path may have.
    case invalidPath(String)
    /// No socket at this path, or nobody who listens on it.
    case notRunning(path: String)
    /// The permissions of the socket refuse this user.
    case permissionDenied(path: String)
    /// Any other failure of the connection; `cause` is the system's word for it.
    case unreachable(path: String, cause: String)
    /// badged takes nobody more: INTERNAL_ERROR and the end, before any answer. The `error` text of the message.
    case notServed(String)

    // The connection
    /// badged, or this side with `close()`, has ended the connection.
    case closed
    /// badged takes no notice of commands any more; the connection was given up.
    case noAnswer
    /// What came is not JSON lines; whoever listens there is no badged.
    case malformed(String)
    /// More than 1 MiB of events wait that nobody reads, so no answer can come.
    case unreadEvents
    /// The calling task was cancelled; the command may have been carried out.
    case cancelled

    // The answer
    /// badged's configuration does not let this user do that: ACCESS_DENIED.
    case accessDenied(command: String)
    /// Not now: BAD_STATE.
    case badState(command: String)
    /// An older badged, or not at this API level: UNKNOWN_COMMAND.
    case unknownCommand(String)
    /// The `error` text of the answer: wrong parameter, INVALID or INTERNAL_ERROR.
    case refused(String)
    /// An answer of another kind, by its name.
    case unexpectedAnswer(String)

    /// badged ended the connection; who reads its events is told by their end.
    package var isEnd: Bool {
        switch self {
        case .closed, .notServed: true
        default: false
        }
    }

    /// What happened: one sentence in lower case, without full stop.
    public var text: String {
        switch self {
        case .invalidPath(let path):
            path.isEmpty ? "the path of the socket is empty" : "\(path) is too long for the path of a socket"
        case .notRunning(let path): "badged is not running: nobody listens on \(path)"
        case .permissionDenied(let path): "permission to use \(path) denied"
        case .unreachable(let path, let cause): "cannot connect to \(path): \(cause)"
        case .notServed(let error): "badged does not serve this connection: \(error)"
        case .closed: "badged has closed the connection"
        case .noAnswer: "badged does not answer"
        case .malformed(let cause): "what listens there does not speak badged's protocol: \(cause)"
        case .unreadEvents: "events wait that nobody reads"
        case .cancelled: "cancelled"
        case .accessDenied(let command): "badged does not allow \(command) to this user"
        case .badState(let command): "\(command) is not possible now"
        case .unknownCommand(let command): "badged does not know \(command)"
        case .refused(let error): "badged refused: \(error)"
        case .unexpectedAnswer(let name): "badged gave an unexpected answer: \(name)"
        }
    }

    /// What to do next: one sentence in lower case, without full stop.
    public var advice: String {
        switch self {
        case .invalidPath: "use a path of 1 to 107 bytes"
        case .notRunning: "start it: systemctl start badged; or name another socket with --socket"
        case .permissionDenied: "become a member of the group badged (adduser USER badged) and log in again"
        case .unreachable: "see whether badged is well: systemctl status badged"
        case .notServed: "try again later; the log says how many are connected: journalctl -u badged"
        case .closed: "see why in its log: journalctl -u badged; then connect again"
        case .noAnswer: "see whether badged is well: systemctl status badged; then connect again"
        case .malformed: "check the path of the socket"
        case .unreadEvents: "read `events` all the time, or connect without them"
        case .cancelled: "ask again"
        case .accessDenied: "let the administrator add this user or group to [access] in /etc/badged/badged.conf"
        case .badState: "wait until the running workflow has ended, or cancel it"
        case .unknownCommand: "update badged, or set API level 3"
        case .refused: "correct the command"
        case .unexpectedAnswer: "update badged and this program to the same version"
        }
    }
}
