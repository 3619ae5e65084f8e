// SPDX-License-Identifier: Apache-2.0

/// Why badged cannot be reached or did not carry out a command. `text` says what has happened, `advice` what to do
/// next.
public enum ClientError: Error, Sendable, Equatable {
    // Connecting
    /// The path is empty, or longer than the 107 bytes that a socket path may have.
    case invalidPath(String)
    /// There is no socket at this path, or no program listens on it.
    case notRunning(path: String)
    /// The permissions of the socket refuse this user.
    case permissionDenied(path: String)
    /// Connecting has failed in another way; `cause` is the error text of the system.
    case unreachable(path: String, cause: String)
    /// badged serves no more clients. The text is the `error` of the INTERNAL_ERROR with which it closed the
    /// connection.
    case notServed(String)

    // The connection
    /// badged has closed the connection, or this side has called `close()`.
    case closed
    /// badged answered neither a command nor a ping in time. The connection was closed.
    case noAnswer
    /// The other side does not speak the protocol of badged.
    case malformed(MalformedLine)
    /// More than 1 MiB of unread events wait, so no answer can be received.
    case unreadEvents
    /// A workflow of this connection runs already, so another one cannot start.
    case workflowRunning
    /// Another task reads `events`, so it may have taken the start of an authentication for a browser.
    case eventsAreRead
    /// The calling task was cancelled. badged may have carried out the command.
    case cancelled

    // Refused commands
    /// The configuration of badged does not allow this command to this user: ACCESS_DENIED.
    /// `missing` are the permissions that it needs, and `granted` those that the user has.
    case accessDenied(command: String, missing: [String] = [], granted: [String] = [])
    /// The command is not possible at this moment: BAD_STATE.
    case badState(command: String)
    /// badged does not know the command, or not at this API level: UNKNOWN_COMMAND.
    case unknownCommand(String)
    /// badged refused the command; the text is the `error` of the answer.
    case refused(String)
    /// The answer was another message than expected; the text is its name.
    case unexpectedAnswer(String)

    /// Whether the connection has ended. Then the events end, too.
    package var isEnd: Bool {
        switch self {
        case .closed, .notServed: true
        default: false
        }
    }

    /// What has happened: one sentence in lower case, without full stop.
    public var text: String {
        switch self {
        case .invalidPath(let path):
            path.isEmpty ? "the path of the socket is empty" : "\(path) is too long for a socket path"
        case .notRunning(let path): "badged is not running: no program listens on \(path)"
        case .permissionDenied(let path): "permission to use \(path) denied"
        case .unreachable(let path, let cause): "cannot connect to \(path): \(cause)"
        case .notServed(let error): "badged does not serve this connection: \(error)"
        case .closed: "badged has closed the connection"
        case .noAnswer: "badged does not answer"
        case .malformed(let cause): "the program at this socket does not speak badged's protocol: \(cause.text)"
        case .unreadEvents: "too many events are unread"
        case .workflowRunning: "a workflow of this connection runs already"
        case .eventsAreRead: "another task reads the events of this connection"
        case .cancelled: "cancelled"
        case .accessDenied(let command, let missing, _):
            "badged does not allow \(command) to this user"
                + (missing.isEmpty ? "" : ": the permission \(missing.joined(separator: " and ")) is missing")
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
        case .unreachable: "check badged: systemctl status badged"
        case .notServed: "badged's log says why, to root and to group adm: journalctl -u badged"
        case .closed: "connect again; root and group adm can see why: journalctl -u badged"
        case .noAnswer: "check badged: systemctl status badged; then connect again"
        case .malformed: "check the path of the socket"
        case .unreadEvents: "read `events` continuously, or connect with keepsEvents: false"
        case .workflowRunning: "wait until it has ended, cancel it, or open a second connection"
        case .eventsAreRead: "end the loop over `events`, or serve browsers on a connection of its own"
        case .cancelled: "try again"
        case .accessDenied: "ask the administrator to add this user or group to [access] in /etc/badged/badged.conf"
        case .badState: "wait until the running workflow has ended, or cancel the workflow"
        case .unknownCommand: "update badged, or set API level 3"
        case .refused: "correct what the text names, then try again"
        case .unexpectedAnswer: "update badged and this program to the same version"
        }
    }
}

extension ClientError: CustomStringConvertible, CustomDebugStringConvertible {
    /// `text` and `advice`. Swift prints it, too, when a program does not catch the error.
    public var description: String { "\(text); \(advice)" }

    public var debugDescription: String { description }
}

/// Why a line is no message of badged.
public enum MalformedLine: Sendable, Equatable {
    /// The text says where the line is no JSON.
    case noJSON(String)
    case noObject
    /// It is longer than a line may be.
    case tooLong
    case unusable(member: String, of: String)

    /// One sentence in lower case, without full stop.
    public var text: String { words.description }

    package var words: Phrase {
        switch self {
        case .noJSON(let fault): Phrase("a line is no JSON: \(fault)")
        case .noObject: Phrase("a line is not an object")
        case .tooLong: Phrase("a line is longer than \(LineBuffer.maximumLine) bytes")
        case .unusable(let member, let name): Phrase("\(name) without a usable \(member)")
        }
    }
}
