// SPDX-License-Identifier: GPL-3.0-or-later
import BadgedClient
import Glibc
import Host
import Text

/// `badgectl auth`: authenticates to a service.
enum AuthCommand {
    static let spec = ShellCommand(
        name: "auth",
        summary: "prove your identity with an ID card to the service at URL",
        operand: ValueSpec("URL", isOptional: true),
        options: [
            OptionSpec(.ownCard, "show the data of the own card, by the service that badged.conf names"),
            .reader,
            .timeout,
            OptionSpec(.yes, "give the service everything that it asks for"),
            .pinStdin,
            .pinentry,
            OptionSpec(.developerMode, "apply the rules for test services, and accept no other"),
        ] + AutomaticAnswers.options + ServiceVisit.options,
        details: [
            """
            URL is the link that starts an eID client, or the address of the service's TcToken: tcTokenURL in that link.
            Put it in single quotes. Shows who asks, for what purpose and for which data; you can deny the optional
            data. Then asks for the PIN, and for the CAN or the PUK when the card needs them. All of this is on the
            terminal; standard output has the address to open in the browser, and nothing else. --open also opens the
            address; --follow shows what the service answers there instead.
            """,
            """
            --self needs no URL: it asks the service of [eid] self_information in badged.conf(5), which reads the card,
            and shows what the service answers. The operator of this service sees the data.
            """,
            """
            Without a terminal, --yes agrees and --pin-stdin gives the values; without --yes nothing is agreed to.
            Before you agree, nothing is sent to the card. The card of a virtual reader is inserted by itself, as with
            change-pin.
            """,
            AutomaticAnswers.details,
        ],
        examples: [
            Example(
                "log in with the link of the service, and go on in the browser",
                "badgectl auth --open 'eid://127.0.0.1:24727/eID-Client?tcTokenURL=...'"
            ),
            Example("show the data of the own card", "badgectl auth --self"),
        ],
        run: run
    )

    @Sendable private static func run(_ invocation: Invocation) async throws {
        try ServiceVisit.check(invocation)
        let (url, readsSelf) = (try address(invocation), invocation.has(.ownCard))
        let shows = invocation.has(.follow) || readsSelf && !invocation.has(.open)
        try await WorkflowRun.run(invocation, notDone: SentText.nothing) { workflow in
            try await TrustAnchorAdvice.check(workflow)
            let result: AuthenticationResult
            workflow.user.begins(tr("asking the service"))
            do {
                result = try await workflow.connection.authenticate(
                    tcTokenURL: url,
                    reader: invocation.value(of: .reader),
                    developerMode: invocation.has(.developerMode),
                    user: workflow.user
                )
            } catch {
                throw workflow.failureWithEffect(error)
            }
            let shown = Result { try show(result, to: workflow.user, hasBrowser: shows) }
            // The service may show a page after an error, too.
            if let url = result.url, result.isSuccess || workflow.user.ending == nil {
                do {
                    try ServiceVisit.run(url, invocation, workflow.user, isSuccess: result.isSuccess, shows: shows)
                } catch {
                    guard case .failure = shown else { throw error }
                    workflow.user.say(workflow.failure(error).text + ".")
                }
            }
            try shown.get()
        }
    }

    /// The address of the TcToken: that of the link, or with `--self` that of the configuration.
    private static func address(_ invocation: Invocation) throws -> String {
        let link = invocation.operand
        guard invocation.has(.ownCard) else {
            guard !link.isEmpty else { throw invocation.usage(tr("auth needs URL, or --self")) }
            return try ServiceLink.tcTokenURL(in: link)
        }
        guard link.isEmpty else { throw invocation.usage(tr("auth --self takes no URL")) }
        return try selfAddress()
    }

    /// The address of the TcToken of the service that shows the data of the own card.
    static func selfAddress() throws -> String {
        guard let address = try Configuration(path: nil).selfInformation else {
            throw CommandFailure(
                tr("badged.conf names no service that shows the data of the own card"),
                hint: tr("write self_information = ADDRESS below [eid] in /etc/badged/badged.conf; see badged.conf(5)")
            )
        }
        return try ServiceLink.tcTokenURL(in: address)
    }

    /// Says how an authentication ended, and throws its failure. `hasBrowser`: whether a browser gets the address.
    static func show(
        _ result: AuthenticationResult,
        to user: CommandLineUser,
        hasBrowser: Bool = false
    ) throws {
        user.note(result.sent)
        if result.isSuccess {
            let isRead = result.sent?.state != SentData.State.none
            // An older badged does not report what was sent.
            if result.sent == nil { user.notDone = tr("the service has received the data") }
            user.announce(
                isRead ? tr("The service has received the data.") : tr("The service has read no data from the card.")
            )
        }
        if let url = result.url, !hasBrowser, result.isSuccess || user.ending == nil {
            ServiceVisit.showAddress(url, user, isSuccess: result.isSuccess)
        }
        if !result.isSuccess { throw user.ending ?? ConsentText.failure(result, user.notDone) }
    }
}
