// SPDX-License-Identifier: Apache-2.0
public import Secrets
import Synchronization
public import Text
import Threads
import Wire

/// One connection to badged: commands go out, direct answers come back to who asked, everything else is an event.
///
/// ```swift
/// let badged = try await DaemonConnection.connect()
/// for reader in try await badged.readers() { print(reader.name) }
/// ```
///
/// Every connection has its own API level and at most one workflow, which ends with the connection. Calls may come from
/// any task; commands are carried out in the order in which they were sent.
public final class DaemonConnection: Sendable {
    private let link: Link
    private let lastRequest = Mutex(0)
    /// Makes this library's marks differ from those in lines that the application writes itself.
    private let mark = String(UInt32.random(in: .min ... .max), radix: 36)

    private init(_ link: Link) { self.link = link }

    deinit { link.close() }

    /// Connects to the socket at `path`.
    ///
    /// - Parameters:
    ///   - path: a Unix socket; the default is where badged listens on this system.
    ///   - keepsEvents: false for who only asks and never reads `events`. Else, when 1 MiB of them waits unread,
    ///     nothing more is taken from the socket, and requests fail with `ClientError.unreadEvents`.
    ///   - patience: how long badged may be silent after a command without direct answer to it; then it is asked whether it
    ///     lives, and after the same time again the connection ends with `ClientError.noAnswer`.
    ///   - onMessage: sees every message as it comes, answers as well, before anybody else; for logs. It is called on the
    ///     connection's thread. Messages hold no PIN, but names of services and what they ask for.
    /// - Returns: the connection, ready for commands.
    /// - Throws: why badged cannot be reached, or `cancelled`.
    public static func connect(
        to path: String = SocketPath.standard,
        keepsEvents: Bool = true,
        patience: Duration = .seconds(10),
        onMessage: (@Sendable (Event) -> Void)? = nil
    ) async throws(ClientError) -> DaemonConnection {
        let inbox = Inbox(limit: keepsEvents ? LineBuffer.maximumLine : 0, onMessage)
        return DaemonConnection(try await Link.open(path, inbox: inbox, patience: patience))
    }

    /// Ends the connection and with it the running workflow; `events` end. A second call does nothing.
    public func close() { link.close() }

    /// Why the connection has ended; nil while it lives.
    public var ending: ClientError? { link.inbox.ending }

    /// Everything that is no answer to `request` or one of the typed questions, in the order in which it came. Each
    /// event is given out once, so let one task read them. They end with the connection.
    public var events: Events { Events(inbox: link.inbox) }

    /// The sequence of `events`.
    public struct Events: AsyncSequence, Sendable {
        public typealias Element = Event
        public typealias Failure = Never
        fileprivate let inbox: Inbox

        public func makeAsyncIterator() -> AsyncIterator { AsyncIterator(inbox: inbox) }

        public struct AsyncIterator: AsyncIteratorProtocol {
            fileprivate let inbox: Inbox

            public mutating func next() async -> Event? { await inbox.nextEvent() }

            public mutating func next(isolation actor: isolated (any Actor)?) async -> Event? {
                await inbox.nextEvent()
            }
        }
    }

    // MARK: Any command

    /// Sends a command and waits for its direct answer, of whatever kind. Commands that have no answer when they
    /// succeed (`RUN_CHANGE_PIN`, `SET_PIN`, `CANCEL`, ...) are for `send`.
    ///
    /// When the calling task is cancelled meanwhile, the answer becomes an event.
    public func request(_ command: String, _ members: [JSON.Member] = []) async throws(ClientError) -> Event {
        let id = nextRequest()
        let answer = link.inbox.expectAnswer(to: id)
        do throws(ClientError) {
            try await link.send(CommandText.line(command, id, members), id)
            return try await answer.value(whenCancelled: .failure(.cancelled)).get()
        } catch {
            link.inbox.forgetAnswer(to: id)
            throw error
        }
    }

    /// Sends a command; its direct answer, when there is one, is an event that `answers` the result.
    @discardableResult
    public func send(_ command: String, _ members: [JSON.Member] = []) async throws(ClientError) -> RequestID {
        let id = nextRequest()
        try await link.send(CommandText.line(command, id, members), id)
        return id
    }

    /// Answers an ENTER message; nil for a reader with keypad, where the person types it on the reader.
    ///
    /// The secret goes into one buffer that is wiped when the system has taken it. It is for this question alone: when
    /// another one is open meanwhile, badged answers BAD_STATE.
    @discardableResult
    public func answer(
        _ question: SecretQuestion,
        _ secret: consuming Secret?
    ) async throws(ClientError) -> RequestID {
        let members = question.number.map { [JSON.Member("question", .number(String($0)))] } ?? []
        guard let secret = consume secret else { return try await send(question.kind.command, members) }
        return try await send(question.kind.command, members, value: secret)
    }

    /// Any command with a secret `value`.
    @discardableResult
    public func send(
        _ command: String,
        _ members: [JSON.Member] = [],
        value: consuming Secret
    ) async throws(ClientError) -> RequestID {
        let id = nextRequest()
        try await link.send(CommandText.line(command, id, members, value: value), id)
        return id
    }

    /// Sends bytes as they are: lines of the application's own making, each with its `\n`.
    public func send(raw bytes: consuming Secret) async throws(ClientError) {
        try await link.send(bytes)
    }

    /// Returns when at most half of the events that may wait unread do: for who sends much without awaiting answers.
    public func untilEventsAreRead() async { await link.inbox.untilRead() }

    private func nextRequest() -> RequestID {
        let number = lastRequest.withLock { last in
            last += 1
            return last
        }
        return RequestID(text: "\(mark)-\(number)")
    }
}
