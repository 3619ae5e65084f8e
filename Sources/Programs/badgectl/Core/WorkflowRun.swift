// SPDX-License-Identifier: GPL-3.0-or-later
import BadgedClient
import Host
import Text

/// A command that runs workflows: a connection, the user, and the signals that cancel.
///
/// The dialogue goes to the terminal, or else to standard error. Standard output has the result alone.
struct WorkflowRun: Sendable {
    let connection: DaemonConnection
    let user: CommandLineUser

    private init(_ connection: DaemonConnection, _ user: CommandLineUser) {
        self.connection = connection
        self.user = user
    }

    /// Connects.
    ///
    /// - Parameters:
    ///   - invocation: the command line.
    ///   - notDone: what an early end means, such as `the PIN was not changed`.
    ///   - waits: whether the command first waits for something else, so that the dialogue begins later.
    /// - Throws: why badged or pinentry cannot be used.
    init(_ invocation: Invocation, notDone: String, waits: Bool = false) async throws {
        let isScript = invocation.has(.pinStdin)
        let automatic = try AutomaticAnswers(invocation)
        let pinentry = try invocation.pinentry()
        // A script without questions does not use the terminal.
        let terminal = automatic != nil || isScript && !invocation.asksForConsent ? nil : TerminalSource()
        var source: any AnswerSource = NoSource()
        if let pinentry {
            source = pinentry
        } else if isScript {
            if let stream = StreamSource(terminal) { source = stream }
        } else if let terminal {
            source = terminal
        }
        if !waits { source.begin() }
        let connection = try await invocation.connect(keepsEvents: true)
        let user = CommandLineUser(
            invocation,
            connection,
            notDone: notDone,
            source: source,
            automatic: automatic,
            notifier: waits || pinentry != nil ? Notifier() : nil
        ) { text in
            // A script that reads the messages needs no texts.
            if let terminal { terminal.say(text) } else if !isScript || !invocation.wantsJSON { Output.note(text) }
        }
        self.init(connection, user)
    }

    /// The same user with a new connection, as soon as badged can be reached again.
    func reconnected(_ invocation: Invocation, notDone: String) async throws -> WorkflowRun {
        let connection = try await invocation.reconnect()
        return WorkflowRun(connection, CommandLineUser(user, connection, notDone: notDone))
    }

    /// Connects, and runs `body` with the reader of the command line.
    static func run(
        _ invocation: Invocation,
        notDone: String,
        _ body: @escaping @Sendable (WorkflowRun) async throws -> Void
    ) async throws {
        let workflow = try await WorkflowRun(invocation, notDone: notDone)
        do {
            try await workflow.checkReader(invocation)
            try await workflow.run { try await body(workflow) }
        } catch {
            // Started by a link, the program has no terminal on which it could say why.
            workflow.user.notify(workflow.failure(error))
            throw error
        }
    }

    /// Checks that the reader of `--reader` is there, before the user is asked anything. With `--timeout` the workflow
    /// waits for the reader instead.
    private func checkReader(_ invocation: Invocation) async throws {
        guard let name = invocation.value(of: .reader), !invocation.has(.timeout) else { return }
        var names: [String] = []
        // A badged that has just started finds its readers one after the other.
        for pause in [0.0, 0.2, 0.5, 1, 1.5] {
            try? await Task.sleep(for: .seconds(pause))
            // A user without the permission to see readers may still use a card.
            guard let readers = try? await connection.readers() else { return }
            names = readers.filter(\.isAttached).map(\.name)
            if names.contains(name) { return }
        }
        let list = names.isEmpty ? tr("no reader is connected") : tr("readers: \(names.joined(separator: ", "))")
        throw CommandFailure(
            tr("there is no reader \(name)"),
            hint: Invocation.question(name, among: names) + list + tr("; --timeout waits for a reader")
        )
    }

    /// Runs `body`. A first signal cancels it, a second one ends the program without waiting for badged.
    func run(_ body: @escaping @Sendable () async throws -> Void) async throws {
        // `body` may set another handler of signals, so it waits for this one.
        let (isReady, ready) = AsyncStream.makeStream(of: Void.self)
        let task = Task {
            for await _ in isReady {}
            try await body()
        }
        EndSignals.handle { [user, connection] number in
            if user.interrupt(number) { task.cancel() } else { connection.close() }
        }
        user.whenGivenUp { task.cancel() }
        // The time of --timeout may have ended before.
        if user.ending != nil { task.cancel() }
        ready.finish()
        do {
            try await task.value
        } catch {
            throw failure(error)
        }
    }

    /// The failure for an error of `body`. An error of the library means little after the user has given up.
    func failure(_ error: any Error) -> CommandFailure {
        error as? CommandFailure ?? user.ending ?? CommandFailure(error)
    }

    /// The same for a workflow that may have had an effect, about which the end of the connection says nothing.
    func failureWithEffect(_ error: any Error) -> CommandFailure {
        var failure = failure(error)
        if failure.status == .unreachable { failure.text += ": \(user.notDone)" }
        return failure
    }
}

extension Invocation {
    /// The source of `--pinentry`; nil without the option.
    fileprivate func pinentry() throws -> PinentrySource? {
        guard has(.pinentry) else { return nil }
        guard !has(.pinStdin) else {
            throw CommandFailure(
                usage: tr("--pinentry and --pin-stdin exclude each other"),
                hint: tr("use one of them")
            )
        }
        guard let program = ChildProcess.installed("pinentry") else { throw CommandFailure.noPinentry }
        return PinentrySource(program)
    }

    /// Whether the command asks for a consent that the command line does not give.
    fileprivate var asksForConsent: Bool {
        guard case .run(let command) = request else { return false }
        return command.options.contains { $0.key == .yes } && !has(.yes) && command.asksForConsent(self)
    }
}
