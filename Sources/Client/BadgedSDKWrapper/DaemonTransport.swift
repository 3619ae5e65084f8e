// SPDX-License-Identifier: Apache-2.0
import BadgedClient
import Synchronization
import Text

/// Carries commands and messages over the socket of badged.
public final class DaemonTransport: SDKConnection {
    private struct State {
        var commands: AsyncStream<SDKCommand>.Continuation?
        var connection: DaemonConnection?
        var isStopped = false
    }

    private let path: @Sendable () -> String
    private let timeout: Duration
    private let state = Mutex(State())

    /// - Parameters:
    ///   - path: the socket of badged; nil: the default of this system, which each start looks up.
    ///   - timeout: how long badged may be silent after a command; see `DaemonConnection`.
    public init(path: String? = nil, timeout: Duration = .seconds(10)) {
        self.path = { path ?? SocketPath.standard }
        self.timeout = timeout
    }

    public func start(_ receive: @escaping @Sendable (SDKEvent) -> Void) {
        let (commands, continuation) = AsyncStream.makeStream(of: SDKCommand.self)
        state.withLock { $0 = State(commands: continuation) }
        Task { await run(commands, receive) }
    }

    public func stop() {
        state.withLock { state in
            state.isStopped = true
            state.commands?.finish()
            state.connection?.close()
        }
    }

    public func send(_ command: SDKCommand) {
        _ = state.withLock { $0.commands?.yield(command) }
    }

    private func run(_ commands: AsyncStream<SDKCommand>, _ receive: @escaping @Sendable (SDKEvent) -> Void) async {
        do throws(ClientError) {
            let connection = try await DaemonConnection.connect(to: path(), timeout: timeout)
            let isStopped = state.withLock { state in
                state.connection = connection
                return state.isStopped
            }
            if isStopped { connection.close() } else { receive(.connected) }
            let sender = Task { await Self.send(commands, over: connection) }
            for await event in connection.events { receive(.message(event.json)) }
            sender.cancel()
            throw connection.ending ?? .closed
        } catch {
            let isStopped = state.withLock { state in
                state.commands?.finish()
                state.commands = nil
                state.connection = nil
                return state.isStopped
            }
            receive(.ended(error: isStopped ? nil : "\(error.text); \(error.advice)"))
        }
    }

    /// Sends the commands in their order. A failure means the end of the connection, which the events report.
    private static func send(_ commands: AsyncStream<SDKCommand>, over connection: DaemonConnection) async {
        for await command in commands {
            do throws(ClientError) {
                if let box = command.value {
                    guard let secret = box.take() else { continue }
                    try await connection.send(command.name, command.members, value: secret)
                } else {
                    try await connection.send(command.name, command.members)
                }
            } catch {
                return
            }
        }
    }
}
