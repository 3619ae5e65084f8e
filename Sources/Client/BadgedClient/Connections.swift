// SPDX-License-Identifier: Apache-2.0

/// How often to try to connect, and how long to wait in between.
public struct RetryPolicy: Sendable, Equatable {
    /// Tries in a row that may fail before it is given up; nil: no end.
    public var limit: Int?
    /// Wait after the first failure; it doubles with each further one.
    public var firstPause: Duration
    /// It grows no longer than this.
    public var longestPause: Duration

    public init(limit: Int? = nil, firstPause: Duration = .milliseconds(100), longestPause: Duration = .seconds(10)) {
        (self.limit, self.firstPause, self.longestPause) = (limit, firstPause, longestPause)
    }
}

extension DaemonConnection {
    /// One connection after the other: the next one when the last has ended and is asked for, however long badged takes
    /// to come back.
    ///
    /// ```swift
    /// for try await badged in DaemonConnection.connections() {
    ///     for await event in badged.events { print(event.text) }
    /// }
    /// ```
    ///
    /// A connection begins anew: with API level 3 and without a workflow.
    /// - Parameters:
    ///   - path: a Unix socket; the default is where badged listens on this system.
    ///   - retry: when to give up.
    /// - Returns: a sequence that ends when the calling task is cancelled, and throws when it gives up: at once where
    ///   trying again cannot help.
    public static func connections(
        to path: String = SocketPath.standard,
        retry: RetryPolicy = RetryPolicy()
    ) -> Connections {
        Connections(path: path, retry: retry)
    }

    /// The sequence of `connections`.
    public struct Connections: AsyncSequence, Sendable {
        public typealias Element = DaemonConnection
        public typealias Failure = ClientError
        fileprivate let path: String
        fileprivate let retry: RetryPolicy

        public func makeAsyncIterator() -> AsyncIterator { AsyncIterator(path: path, retry: retry) }

        public struct AsyncIterator: AsyncIteratorProtocol {
            fileprivate let path: String
            fileprivate let retry: RetryPolicy

            public mutating func next() async throws(ClientError) -> DaemonConnection? {
                try await next(isolation: nil)
            }

            public mutating func next(
                isolation actor: isolated (any Actor)?
            ) async throws(ClientError) -> DaemonConnection? {
                var (failures, pause) = (0, retry.firstPause)
                while true {
                    do throws(ClientError) {
                        return try await DaemonConnection.connect(to: path)
                    } catch {
                        failures += 1
                        switch error {
                        case .cancelled: return nil
                        case .invalidPath, .permissionDenied: throw error
                        default: if let limit = retry.limit, failures >= limit { throw error }
                        }
                    }
                    do {
                        try await Task.sleep(for: pause)
                    } catch {
                        return nil
                    }
                    pause = Swift.min(pause * 2, retry.longestPause)
                }
            }
        }
    }
}
