// SPDX-License-Identifier: GPL-3.0-or-later
import BadgedClient
import Glibc

/// `badgectl auth`: authenticates to a service.
enum AuthCommand {
    static let spec = CommandSpec(
        name: "auth",
        summary: "prove your identity with an ID card to the service at URL",
        operand: ValueSpec("URL"),
        options: [
            .reader,
            .timeout,
            OptionSpec("--yes", "give the service everything that it asks for"),
            .pinStdin,
            .pinentry,
            OptionSpec("--developer-mode", "apply the rules for test services, and accept no other"),
        ] + ServiceVisit.options,
        details: [
            """
            URL is the address of the service's TcToken: tcTokenURL in the link that starts an eID client. Shows who
            asks, for what purpose and for which data; you can deny the optional data. Then asks for the PIN, and for
            the CAN or the PUK when the card needs them. All of this is on the terminal; standard output has the address
            to open in the browser, and nothing else. --open also opens the address; --follow shows what the service
            answers there instead.
            """,
            """
            Without a terminal, --yes agrees and --pin-stdin gives the values; without --yes nothing is agreed to.
            Before you agree, nothing is sent to the card. The card of a virtual reader is inserted by itself, as with
            change-pin.
            """,
        ],
        run: run
    )

    static let notDone = "the service got no data"

    @Sendable private static func run(_ invocation: Invocation) async throws(Failure) -> ExitStatus {
        try ServiceVisit.check(invocation)
        let workflow = try await WorkflowRun(invocation, notDone: notDone)
        try await workflow.checkReader(invocation)
        return try await workflow.run { () throws(Failure) in
            try await TrustAnchorAdvice.check(workflow)
            let result = try await workflow.ask { () throws(ClientError) in
                try await workflow.connection.authenticate(
                    tcTokenURL: invocation.operand,
                    reader: invocation.value(of: "--reader"),
                    developerMode: invocation.has("--developer-mode"),
                    user: workflow.user
                )
            }
            let failure: Failure?
            do throws(Failure) {
                try show(result, to: workflow.user, hasBrowser: invocation.has("--follow"))
                failure = nil
            } catch {
                failure = error
            }
            // The service may show a page after an error, too.
            if let url = result.url, result.isSuccess || workflow.user.ending == nil {
                try ServiceVisit.run(url, invocation, workflow.user)
            }
            if let failure { throw failure }
        }
    }

    /// Says how an authentication ended, and throws its failure. `hasBrowser`: whether a browser gets the address.
    static func show(
        _ result: AuthenticationResult,
        to user: CommandLineUser,
        hasBrowser: Bool = false
    ) throws(Failure) {
        if result.isSuccess { user.announce("The service has received the data.") }
        if let url = result.url, !hasBrowser, result.isSuccess || user.ending == nil {
            if isatty(STDOUT_FILENO) == 1 {
                user.say(result.isSuccess ? "Continue in the browser at:" : "Return to the service at:")
            }
            user.tell(result: url)
        }
        if !result.isSuccess { throw user.ending ?? ConsentText.failure(result) }
    }
}
