// SPDX-License-Identifier: GPL-3.0-or-later
import BadgedClient

/// A command that runs workflows: a connection, the user, and the signals that cancel.
struct WorkflowRun: Sendable {
    let connection: DaemonConnection
    let user: CommandLineUser

    /// Connects. `notDone` says what an early end means, such as `the PIN was not changed`.
    init(_ invocation: Invocation, notDone: String) async throws(Failure) {
        connection = try await invocation.connect(keepsEvents: true)
        let isScript = invocation.has("--pin-stdin")
        let source: (any AnswerSource)? = isScript ? StreamSource() : TerminalSource()
        user = CommandLineUser(invocation, connection, notDone: notDone, source: source ?? NoSource()) { text in
            // With `--json` standard output has only messages, and a script needs no texts.
            if !invocation.wantsJSON { Output.line(text) } else if !isScript { Output.note(text) }
        }
    }

    /// Runs `body`. A first signal cancels it, a second one ends the program without waiting for badged.
    func run(_ body: @escaping @Sendable () async throws(Failure) -> Void) async throws(Failure) -> ExitStatus {
        let task = Task { () -> Result<Void, Failure> in
            do throws(Failure) {
                return .success(try await body())
            } catch {
                return .failure(error)
            }
        }
        Signals.handle { [user, connection] number in
            if user.interrupt(number) { task.cancel() } else { connection.close() }
        }
        try await task.value.get()
        return .done
    }

    /// Calls the library. Its errors become failures, unless the user has given the workflow up before.
    func ask<Value>(_ body: () async throws(ClientError) -> Value) async throws(Failure) -> Value {
        do throws(ClientError) {
            return try await body()
        } catch {
            throw user.ending ?? Failure(error)
        }
    }
}
