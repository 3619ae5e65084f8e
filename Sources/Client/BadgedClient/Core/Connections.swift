// SPDX-License-Identifier: Apache-2.0

/// How often to try to connect, and how long to wait between two tries.
public struct RetryPolicy: Sendable, Equatable {
    /// How many tries in a row may fail; nil: any number.
    public var limit: Int?
    /// The pause after the first failure. It doubles with each further failure. A connection that has ended without a
    /// message counts here, too: badged serves no more clients.
    public var firstPause: Duration
    public var longestPause: Duration

    public init(limit: Int? = nil, firstPause: Duration = .milliseconds(100), longestPause: Duration = .seconds(10)) {
        self.limit = limit
        self.firstPause = firstPause
        self.longestPause = longestPause
    }
}

extension DaemonConnection {
    /// Gives a new connection whenever the last one has ended, so that a program survives a restart of badged.
    ///
    /// ```swift
    /// for try await badged in DaemonConnection.connections() {
    ///     for await event in badged.events { print(event.text) }
    /// }
    /// ```
    ///
    /// Each connection starts with API level 3 and without a workflow.
    /// - Parameters:
    ///   - path: a Unix socket; the default is where badged listens on this system.
    ///   - retry: when to give up.
    ///   - keepsEvents: as for `connect`.
    ///   - timeout: as for `connect`.
    ///   - onMessage: as for `connect`.
    /// - Returns: a sequence that ends when the calling task is cancelled. The sequence throws when too many tries have
    ///   failed, and at once for an error that another try cannot fix.
    public static func connections(
        to path: String = SocketPath.standard,
        retry: RetryPolicy = RetryPolicy(),
        keepsEvents: Bool = true,
        timeout: Duration = .seconds(10),
        onMessage: (@Sendable (Event) -> Void)? = nil
    ) -> Connections {
        Connections(retry: retry) { () throws(ClientError) in
            try await connect(to: path, keepsEvents: keepsEvents, timeout: timeout, onMessage: onMessage)
        }
    }

    /// The sequence of `connections`.
    public struct Connections: AsyncSequence, Sendable {
        public typealias Element = DaemonConnection
        public typealias Failure = ClientError
        fileprivate let retry: RetryPolicy
        fileprivate let connect: @Sendable () async throws(ClientError) -> DaemonConnection

        public func makeAsyncIterator() -> AsyncIterator { AsyncIterator(retry: retry, connect: connect) }

        public struct AsyncIterator: AsyncIteratorProtocol {
            fileprivate let retry: RetryPolicy
            fileprivate let connect: @Sendable () async throws(ClientError) -> DaemonConnection
            /// The pause before the next try; nil: none.
            fileprivate(set) var pause: Duration?
            /// The messages of the last connection, and when it began.
            fileprivate var last: (inbox: Inbox, begin: ContinuousClock.Instant)?

            /// A connection that lasts longer was served.
            private static let settled = Duration.seconds(10)

            public mutating func next() async throws(ClientError) -> DaemonConnection? {
                try await next(isolation: nil)
            }

            public mutating func next(
                isolation actor: isolated (any Actor)?
            ) async throws(ClientError) -> DaemonConnection? {
                // A program that only listens, and may hear of no reader, has received nothing.
                if let last, last.inbox.hasReceived || .now - last.begin > Self.settled { pause = nil }
                last = nil
                var failures = 0
                while true {
                    do {
                        if let pause { try await Task.sleep(for: pause) }
                    } catch {
                        return nil
                    }
                    pause = pause.map { Swift.min($0 * 2, retry.longestPause) } ?? retry.firstPause
                    do throws(ClientError) {
                        let new = try await connect()
                        last = (new.link.inbox, .now)
                        return new
                    } catch {
                        failures += 1
                        switch error {
                        case .cancelled: return nil
                        case .invalidPath, .permissionDenied: throw error
                        default: if let limit = retry.limit, failures >= limit { throw error }
                        }
                    }
                }
            }
        }
    }
}
