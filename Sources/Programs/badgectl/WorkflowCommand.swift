// SPDX-License-Identifier: GPL-3.0-or-later
import BadgedClient

/// `badgectl change-pin`, `badgectl auth` and `badgectl agent`: a workflow of the library with a `Person` in front of it.
struct WorkflowCommand {
    private let invocation: Invocation
    private let connection: DaemonConnection
    private let person: Person

    private static let waiting = "Waiting for browsers. Ctrl-C ends it."

    @Sendable static func changePIN(_ invocation: Invocation) async throws(Failure) -> ExitStatus {
        let command = try await WorkflowCommand(invocation, .changePIN)
        return try await command.run { () throws(Failure) in try await command.changePIN() }
    }

    @Sendable static func authenticate(_ invocation: Invocation) async throws(Failure) -> ExitStatus {
        let command = try await WorkflowCommand(
            invocation,
            .authenticate(acceptsAll: invocation.options["--yes"] != nil)
        )
        return try await command.run { () throws(Failure) in try await command.authenticate() }
    }

    @Sendable static func serveBrowsers(_ invocation: Invocation) async throws(Failure) -> ExitStatus {
        let command = try await WorkflowCommand(invocation, .serveBrowsers)
        return try await command.run { () throws(Failure) in try await command.serveBrowsers() }
    }

    private init(_ invocation: Invocation, _ purpose: WorkflowPurpose) async throws(Failure) {
        self.invocation = invocation
        connection = try await invocation.connect(keepsEvents: true)
        let isScript = invocation.options["--pin-stdin"] != nil
        let source: (any SecretSource)? = isScript ? StreamSource() : TerminalSource()
        let wantsJSON = invocation.wantsJSON
        person = Person(
            connection,
            purpose,
            wanted: invocation.options["--reader"],
            source: source ?? NoSource()
        ) { text in
            // For people: on standard output, which with `--json` belongs to the messages; scripts hear nothing then.
            if !wantsJSON { Output.line(text) } else if !isScript { Output.note(text) }
        }
    }

    /// Runs `body` so that a signal cancels it, and a second one does not wait for that.
    private func run(_ body: @escaping @Sendable () async throws(Failure) -> Void) async throws(Failure) -> ExitStatus {
        let task = Task { () -> Result<Void, Failure> in
            do throws(Failure) {
                return .success(try await body())
            } catch {
                return .failure(error)
            }
        }
        Signals.handle { [person, connection] number in
            if person.interrupt(number) { task.cancel() } else { connection.close() }
        }
        try await task.value.get()
        return .done
    }

    /// An error of the library is how it ended, unless the person has ended it before.
    private func asFailure<Value>(_ body: () async throws(ClientError) -> Value) async throws(Failure) -> Value {
        do throws(ClientError) {
            return try await body()
        } catch {
            throw person.ending ?? Failure(error)
        }
    }

    // MARK: The three

    private func changePIN() async throws(Failure) {
        let result = try await asFailure { () throws(ClientError) in
            try await connection.changePIN(reader: invocation.options["--reader"], user: person)
        }
        guard result.success, result.reason == nil else {
            throw person.ending ?? ChangePINWords.failure(reason: result.reason)
        }
        person.say(ChangePINWords.changed)
    }

    private func authenticate() async throws(Failure) {
        let result = try await asFailure { () throws(ClientError) in
            try await connection.authenticate(
                tcTokenURL: invocation.operand ?? "",
                reader: invocation.options["--reader"],
                developerMode: invocation.options["--developer-mode"] != nil,
                user: person
            )
        }
        try show(result)
    }

    /// One browser after the other.
    private func serveBrowsers() async throws(Failure) {
        try await asFailure { () throws(ClientError) in try await connection.setUserInterface(true) }
        person.say(Self.waiting)
        while true {
            let result = try await asFailure { () throws(ClientError) in
                try await connection.authenticateForBrowser(user: person)
            }
            do throws(Failure) {
                try show(result)
            } catch {
                if Task.isCancelled { throw error }
                person.say(([error.text] + (error.hint.map { ["hint: \($0)"] } ?? [])).joined(separator: "\n"))
            }
            person.beginAnew()
            person.say(Self.waiting)
        }
    }

    private func show(_ result: AuthenticationResult) throws(Failure) {
        if result.isSuccess { person.say("The service has what it asked for.") }
        if let url = result.url, result.isSuccess || person.ending == nil {
            person.say("The browser goes \(result.isSuccess ? "on at" : "back to"):")
            person.say(url)
        }
        if !result.isSuccess { throw person.ending ?? ConsentWords.failure(result) }
    }
}
