// SPDX-License-Identifier: GPL-3.0-or-later
import BadgedClient
import Text

let mpinFeature = FeatureCommands(group: .wallet, commands: [MPinCommand.spec])

/// `badgectl mpin`: registers users of M-Pin, logs them in, and signs documents.
enum MPinCommand {
    private static let actions = [
        CommandAction(
            "register",
            [.user],
            "register with a new PIN",
            options: [.code, .accessCode, .secondFactor, .card],
            run: MPinUserActions.register
        ),
        CommandAction(
            "login",
            [.user],
            "log in; write what the service says",
            options: [.accessNumber, .accessCode, .secondFactor],
            run: MPinLogins.logIn
        ),
        CommandAction("otp", [.user], "write a one-time code", options: [.secondFactor], run: MPinLogins.code),
        CommandAction(
            "regcode",
            [.user],
            "write a code with which the user registers on another device",
            options: [.secondFactor],
            run: MPinLogins.registrationCode
        ),
        CommandAction("users", "list the users", run: MPinUserActions.list),
        CommandAction(
            "logout",
            [.user],
            "end the session of the browser that login --access-number has logged in",
            run: MPinLogins.logOut
        ),
        CommandAction("delete", [.user], "delete a user", options: [.yes], run: MPinUserActions.delete),
        CommandAction("service", [ValueSpec("URL")], "show the login service of a page", run: MPinSessions.service),
        CommandAction(
            "access-code",
            [ValueSpec("URL")],
            "open a session at an authorization address; write its access code",
            run: MPinSessions.accessCode
        ),
        CommandAction(
            "session",
            [ValueSpec("CODE")],
            "show who asks for the login with this access code",
            run: MPinSessions.session
        ),
        CommandAction("abort", [ValueSpec("CODE")], "end the session with this access code", run: MPinSessions.abort),
        CommandAction(
            "register-dvs",
            [.user],
            "register a user for signing, with a PIN of its own",
            options: [.token, .secondFactor],
            run: MPinDocuments.register
        ),
        CommandAction(
            "sign",
            [.user, .file],
            "sign a document; write the signature as JSON",
            options: [.time, .authorization, .secondFactor],
            run: MPinDocuments.sign
        ),
        CommandAction(
            "verify",
            [.file, ValueSpec("HASH")],
            "say whether a text has this SHA-256",
            run: MPinDocuments.verify
        ),
    ]

    static let spec = ShellCommand(
        name: "mpin",
        summary: "register with M-Pin, log in, get a one-time code, or sign documents",
        actions: actions,
        others: ValueSpec("ARGUMENT"),
        common: [
            OptionSpec(.backend, ValueSpec("URL"), "the address of the service; needed if it is not clear"),
            OptionSpec(.clientId, ValueSpec("ID"), "the customer of MIRACL to whom the user belongs"),
            .reader, .timeout, .pinStdin, .pinentry,
        ],
        options: [
            OptionSpec(.accessNumber, ValueSpec("NUMBER"), "login: log in the browser that shows this number"),
            OptionSpec(.accessCode, ValueSpec("CODE"), "register, login: the session that the user joins"),
            OptionSpec(.code, ValueSpec("CODE"), "register: the activation or registration code of the service"),
            OptionSpec(.secondFactor, "register, register-dvs: set a second factor, which each login then needs"),
            Confirmation.option,
            OptionSpec(.card, "register: seal the token with a Keycard, which each login then needs"),
            OptionSpec(.token, ValueSpec("TOKEN", .files), "register-dvs: the token, or a file with it"),
            OptionSpec(.time, ValueSpec("TIME"), "sign: seconds since 1970; now"),
            OptionSpec(
                .authorization,
                ValueSpec("TOKEN", .files),
                "sign: the authorization of the app, or a file with it"
            ),
        ],
        details: [
            """
            USER is a name such as an e-mail address. register asks for a new PIN of four digits; login, otp and regcode
            ask for this PIN. Only the service knows whether a PIN is right. If a service wants the identity confirmed,
            for example by e-mail, register says so. Run it again after that, or with --code and the service's code.
            """,
            """
            With --client-id, register makes a user of MPinMFA, the service of MIRACL. Only such a user has access codes,
            registration codes, a second factor and signatures. service, access-code, session and abort need no user.
            """,
            """
            With --pin-stdin the lines are the PIN, the second factor, and then what the Keycard asks.
            """,
        ],
        card: "Keycard",
        virtualCard: { _ in .keptCard("keycard") }
    )
}
