// SPDX-License-Identifier: GPL-3.0-or-later
import BadgedSDKWrapper
import Synchronization
import Text

/// A transport that records commands and delivers the messages of a script.
final class ScriptedTransport: SDKConnection {
    private struct State {
        var receive: (@Sendable (SDKEvent) -> Void)?
        var commands: [String] = []
        var answers: [String: [String]] = [:]
    }
    private let state = Mutex(State())
    private let end = AsyncStream.makeStream(of: Void.self)

    /// - Parameter answers: the messages that follow a command, by the name of the command.
    init(_ answers: [String: [String]] = [:]) { state.withLock { $0.answers = answers } }

    /// The commands so far: name, and members as JSON. Secrets are not recorded.
    var commands: [String] { state.withLock { $0.commands } }

    func start(_ receive: @escaping @Sendable (SDKEvent) -> Void) {
        state.withLock { $0.receive = receive }
        receive(.connected)
    }

    func stop() {
        end.continuation.finish()
        state.withLock { $0.receive.take() }?(.ended(error: nil))
    }

    func untilStopped() async { for await _ in end.stream {} }

    func send(_ command: SDKCommand) {
        let (receive, answers) = state.withLock { state in
            let members = String(decoding: JSON.object(command.members).bytes, as: UTF8.self)
            state.commands.append("\(command.name) \(members)")
            return (state.receive, state.answers[command.name] ?? [])
        }
        for answer in answers { receive.map { deliver(answer, $0) } }
    }

    func deliver(_ message: String) {
        if let receive = state.withLock({ $0.receive }) { deliver(message, receive) }
    }

    private func deliver(_ message: String, _ receive: (SDKEvent) -> Void) {
        guard let json = try? JSON(message.utf8) else { return }
        receive(.message(json))
    }
}
