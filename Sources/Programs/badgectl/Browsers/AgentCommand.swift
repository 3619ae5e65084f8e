// SPDX-License-Identifier: GPL-3.0-or-later
import BadgedClient
import Host
import Text

let browserFeature = FeatureCommands(group: .idCard, commands: [AgentCommand.spec])

/// `badgectl agent`: runs the authentications that browsers start.
enum AgentCommand {
    static let spec = ShellCommand(
        name: "agent",
        summary: "ask you here when a browser starts an authentication",
        options: [.reader, .pinentry] + AutomaticAnswers.options,
        details: [
            """
            Waits for authentications that web pages start ([activation] in badged.conf(5)). For each one it shows who
            asks and for which data, and asks for your consent and the PIN in this terminal, as auth does. Then the
            browser continues. Runs one after the other, until Ctrl-C. When badged ends, the agent waits until it runs
            again.
            """,
            """
            On a desktop, notifications say when a browser asks and when the card is needed, where notify-send is
            installed. With --pinentry no terminal is needed: pinentry asks in windows.
            """,
            "If several agents of one user run, badged asks the one that was started last, and tells the others.",
            AutomaticAnswers.details,
        ],
        examples: [
            Example("answer browsers in this terminal", "badgectl agent"),
            Example("answer browsers in windows, from the login on", "systemctl --user enable --now badged-agent"),
        ],
        run: run
    )

    @Sendable private static func run(_ invocation: Invocation) async throws {
        var workflow = try await WorkflowRun(invocation, notDone: notDone, waits: true)
        while true {
            do {
                let current = workflow
                return try await current.run { try await serve(current) }
            } catch {
                // From now on a signal ends the program. `ending` tells of one that came when nothing was left to cancel.
                EndSignals.handle(nil)
                if let ending = workflow.user.ending { throw ending }
                guard workflow.connection.hasEnded else { throw error }
                await Console.finish()
                if !workflow.user.isIdle {
                    workflow.user.say(tr("The authentication has ended: \(workflow.user.notDone)."))
                }
                workflow.user.say(Invocation.waiting)
                workflow = try await workflow.reconnected(invocation, notDone: notDone)
            }
        }
    }

    private static let notDone = tr("browsers cannot ask you any more")

    /// Checks that badged serves browsers. A user without the permission `readers` is not told.
    private static func checkPort(_ connection: DaemonConnection, _ user: CommandLineUser) async throws {
        let checks: [BadgedClient.HealthCheck]
        do throws(ClientError) {
            checks = try await connection.health()
        } catch {
            if case .accessDenied = error { return }
            throw error
        }
        guard let port = checks.first(where: { $0.name == "browserPort" }) else {
            throw CommandFailure(
                .denied,
                tr("badged serves no browsers: they are off in its configuration"),
                hint: tr("as root: apt install badged-activation; write enabled = yes below [activation] in ")
                    + tr("/etc/badged/badged.conf; systemctl restart badged")
            )
        }
        guard !port.isOK else { return }
        // badged goes on trying by itself, unless a package is missing.
        let cause = port.cause ?? tr("badged does not say why")
        let hint = port.advice ?? CommandFailure.seeLog
        guard port.missingPackage != nil else {
            return user.announce(
                tr("Browsers are not served now: \(PlainWords.text(cause)). Hint: \(PlainWords.text(hint)).").printable
            )
        }
        throw CommandFailure(
            .denied,
            tr("badged serves no browsers: \(DaemonWords.text(cause))"),
            hint: tr("\(DaemonWords.text(hint)); systemctl restart badged")
        )
    }

    private static func serve(_ workflow: WorkflowRun) async throws {
        let (connection, user) = (workflow.connection, workflow.user)
        try await connection.setUserInterface(true)
        try await checkPort(connection, user)
        while true {
            user.reset(notDone: notDone, isIdle: true)
            user.say(tr("Waiting for browsers. Press Ctrl-C to end."))
            let result = try await connection.authenticateForBrowser(user: user)
            do {
                try AuthCommand.show(result, to: user, hasBrowser: true)
            } catch {
                if Task.isCancelled { throw error }
                let failure = workflow.failure(error)
                let hint = failure.hint.map { "\n" + tr("hint: \(PlainWords.text($0))") } ?? ""
                user.announce((PlainWords.text(failure.text) + hint).printableLines)
            }
            await Console.finish()
            if let automatic = user.automatic, automatic.isOver, let ending = user.ending { throw ending }
            if Task.isCancelled, let ending = user.ending { throw ending }
        }
    }
}

extension CommandLineUser {
    /// Reacts to the messages of browsers.
    func other(_ event: Event) async {
        switch event.message {
        case let message as AuthenticationMessage where message.outcome == nil && isIdle:
            reset(notDone: SentText.nothing, isIdle: false)
            source.begin()
            announce(tr("A browser asks you to prove your identity."))
        case let message as UserInterface:
            say(
                message.isActive
                    ? tr("This program serves your browsers again.")
                    : tr("Another program of yours serves your browsers now; this one continues when that one ends.")
            )
        case let reader as Reader: await readerChanged(reader)
        case is ShowUI: say(tr("A browser has asked this program to show itself."))
        default: return
        }
    }
}
