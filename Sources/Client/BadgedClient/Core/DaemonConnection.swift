// SPDX-License-Identifier: Apache-2.0
import Synchronization
public import Text

/// A connection to badged. Direct answers go to the task that sent the command, all other messages are events.
///
/// ```swift
/// let badged = try await DaemonConnection.connect()
/// for reader in try await badged.readers() { print(reader.name) }
/// ```
///
/// Every connection has its own API level and at most one workflow, which ends with the connection. Any task may call
/// the methods; badged carries out commands in the order in which they were sent.
public final class DaemonConnection: Sendable {
    let link: Link
    private let lastRequest = Mutex(0)
    /// Begins each `request`, so that those of this library differ from those in raw lines of the application.
    private let prefix = String(UInt32.random(in: .min ... .max), radix: 36)

    private init(_ link: Link) { self.link = link }

    deinit { link.close() }

    /// Connects to badged.
    ///
    /// - Parameters:
    ///   - path: a Unix socket; the default is where badged listens on this system.
    ///   - keepsEvents: false for a program that never reads `events`. With true, when more than 1 MiB of unread events
    ///     wait, nothing more is read from the socket, and requests fail with `ClientError.unreadEvents`.
    ///   - timeout: how long badged has for the answer to a command. Then this library sends a ping; after the same time
    ///     without an answer the connection ends with `ClientError.noAnswer`, whatever else badged has sent.
    ///   - onMessage: called for every message, answers too, before any other reader; for logs. Runs on a thread of the
    ///     connection. Messages hold no PIN, but names of services and the data that these ask for. Those with
    ///     `tellsSecret` hold the words or keys of a wallet.
    /// - Returns: the connection, ready for commands.
    /// - Throws: why badged cannot be reached, or `cancelled`.
    public static func connect(
        to path: String = SocketPath.standard,
        keepsEvents: Bool = true,
        timeout: Duration = .seconds(10),
        onMessage: (@Sendable (Event) -> Void)? = nil
    ) async throws(ClientError) -> DaemonConnection {
        let inbox = Inbox(limit: keepsEvents ? LineBuffer.maximumLine : 0, onMessage)
        return DaemonConnection(try await Link.open(path, inbox: inbox, timeout: timeout))
    }

    /// Closes the connection, which ends its workflow and its `events`. A second call does nothing.
    public func close() { link.close() }

    /// Why the connection has ended; nil while it is open.
    public var ending: ClientError? { link.inbox.ending }

    /// Every message that is not the answer to `request` or to a typed command, in the order of arrival. Each event is
    /// given out once, so only one task should read them. They end with the connection.
    ///
    /// A workflow such as `changePIN` may run while a task reads the events: both get all of them. While no task reads
    /// them, the events of the workflow go to its user alone.
    public var events: Events { Events(inbox: link.inbox) }

    /// The sequence of `events`.
    public struct Events: AsyncSequence, Sendable {
        public typealias Element = Event
        public typealias Failure = Never
        fileprivate let inbox: Inbox

        public func makeAsyncIterator() -> AsyncIterator { AsyncIterator(reading: Inbox.Reading(inbox)) }

        public struct AsyncIterator: AsyncIteratorProtocol {
            fileprivate let reading: Inbox.Reading

            public mutating func next() async -> Event? { await reading.next() }

            public mutating func next(isolation actor: isolated (any Actor)?) async -> Event? {
                await reading.next()
            }
        }
    }

    // MARK: Any command

    /// Sends a command and waits for its direct answer, whatever message it is. Commands that have no direct answer
    /// when they succeed, such as `RUN_CHANGE_PIN`, `SET_PIN` and `CANCEL`, are for `send`.
    ///
    /// When the calling task is cancelled, the answer becomes an event.
    public func request(_ command: String, _ members: [JSON.Member] = []) async throws(ClientError) -> Event {
        let id = nextRequest()
        return try await exchange(CommandText.line(command, id, members), id)
    }

    /// Sends a line and waits for its direct answer.
    private func exchange(_ line: consuming Secret, _ id: RequestID) async throws(ClientError) -> Event {
        let answer = link.inbox.expectAnswer(to: id)
        do throws(ClientError) {
            try await link.send(line, id)
            return try await answer.value(whenCancelled: .failure(.cancelled)).get()
        } catch {
            link.inbox.forgetAnswer(to: id)
            throw error
        }
    }

    /// Sends a command. Its direct answer, if there is one, becomes an event that `answers` the result.
    @discardableResult
    public func send(_ command: String, _ members: [JSON.Member] = []) async throws(ClientError) -> RequestID {
        let id = nextRequest()
        try await link.send(CommandText.line(command, id, members), id)
        return id
    }

    /// Sends a command with a secret `value`. The line is in one buffer, which is wiped when the system has taken it.
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

    /// Sends a command with a secret `value`, and waits for its direct answer.
    public func request(
        _ command: String,
        _ members: [JSON.Member] = [],
        value: consuming Secret
    ) async throws(ClientError) -> Event {
        let id = nextRequest()
        let line = CommandText.line(command, id, members, value: value)
        // Otherwise the value would be wiped after the answer.
        _ = consume value
        return try await exchange(line, id)
    }

    /// Sends bytes unchanged: lines that the application has made itself, each with its `\n`.
    public func send(raw bytes: consuming Secret) async throws(ClientError) {
        try await link.send(bytes)
    }

    /// Returns when the unread events take at most half of the space for them. A program that sends many commands
    /// without waiting for their answers calls this now and then.
    public func untilEventsAreRead() async { await link.inbox.untilRead() }

    private func nextRequest() -> RequestID {
        let number = lastRequest.withLock { last in
            last += 1
            return last
        }
        return RequestID(text: "\(prefix)-\(number)")
    }
}
