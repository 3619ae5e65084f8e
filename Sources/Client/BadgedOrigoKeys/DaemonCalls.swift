// SPDX-License-Identifier: Apache-2.0
import BadgedClient
import Foundation
import Synchronization

/// The connection of a manager to badged, and calls that wait for an answer.
final class DaemonCalls: Sendable {
    private typealias Opening = Task<DaemonConnection, any Error>

    private let path: String?
    private let executor = CallExecutor()
    private let opening = Mutex<Opening?>(nil)
    private let opened: @Sendable (DaemonConnection) async -> Void

    /// - Parameters:
    ///   - path: the socket of badged; nil: the default of this system.
    ///   - opened: prepares each new connection before it is used.
    init(_ path: String?, opened: @escaping @Sendable (DaemonConnection) async -> Void) {
        self.path = path
        self.opened = opened
    }

    deinit {
        guard let last = opening.withLock({ $0 }) else { return }
        Task { try? await last.value.close() }
    }

    /// Returns the connection, or a new one if it has ended.
    func connection() async throws -> DaemonConnection {
        if let last = opening.withLock({ $0 }) {
            if let connection = try? await last.value, connection.ending == nil { return connection }
            opening.withLock { if $0 == last { $0 = nil } }
        }
        let new = opening.withLock { current in
            if let current { return current }
            let task = Opening(executorPreference: executor) { [path, opened] in
                let connection = try await DaemonConnection.connect(to: path ?? SocketPath.standard)
                await opened(connection)
                return connection
            }
            current = task
            return task
        }
        return try await new.value
    }

    /// Runs a call whose caller does not wait.
    func start(_ body: @escaping @Sendable () async -> Void) { executor.start(body) }

    /// Runs a call and blocks the calling thread until it has ended.
    func wait<Value: Sendable>(_ body: @escaping @Sendable () async throws -> Value) throws(NSError) -> Value {
        do {
            return try executor.wait(body)
        } catch {
            throw NSError.of(error)
        }
    }
}
