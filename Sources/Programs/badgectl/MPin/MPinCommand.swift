// SPDX-License-Identifier: GPL-3.0-or-later
import BadgedClient

/// The command for M-Pin.
let mpinFeature = Feature(commands: [MPinCommand.spec])

/// `badgectl mpin`: registers users of M-Pin, logs them in, and signs documents.
enum MPinCommand {
    private static let actions = [
        Action(
            name: "register",
            arguments: "USER",
            counts: 1...1,
            options: ["--code", "--access-code", "--second-factor", "--card"],
            summary: "register with a new PIN",
            run: MPinUsers.register
        ),
        Action(
            name: "login",
            arguments: "USER",
            counts: 1...1,
            options: ["--access-number", "--access-code", "--second-factor"],
            summary: "log in; write what the service says",
            run: MPinLogins.logIn
        ),
        Action(
            name: "otp",
            arguments: "USER",
            counts: 1...1,
            options: ["--second-factor"],
            summary: "write a one-time code",
            run: MPinLogins.code
        ),
        Action(
            name: "regcode",
            arguments: "USER",
            counts: 1...1,
            options: ["--second-factor"],
            summary: "write a code with which the user registers on another device",
            run: MPinLogins.registrationCode
        ),
        Action(name: "users", summary: "list the users", run: MPinUsers.list),
        Action(name: "delete", arguments: "USER", counts: 1...1, summary: "delete a user", run: MPinUsers.delete),
        Action(
            name: "service",
            arguments: "URL",
            counts: 1...1,
            summary: "show the login service of a page",
            run: MPinSessions.service
        ),
        Action(
            name: "access-code",
            arguments: "URL",
            counts: 1...1,
            summary: "open a session at an authorization address; write its access code",
            run: MPinSessions.accessCode
        ),
        Action(
            name: "session",
            arguments: "CODE",
            counts: 1...1,
            summary: "show who asks for the login with this access code",
            run: MPinSessions.session
        ),
        Action(
            name: "abort",
            arguments: "CODE",
            counts: 1...1,
            summary: "end the session with this access code",
            run: MPinSessions.abort
        ),
        Action(
            name: "register-dvs",
            arguments: "USER",
            counts: 1...1,
            options: ["--token", "--second-factor"],
            summary: "register a user for signing, with a PIN of its own",
            run: MPinDocuments.register
        ),
        Action(
            name: "sign",
            arguments: "USER FILE",
            counts: 2...2,
            options: ["--time", "--authorization", "--second-factor"],
            summary: "sign a document; write the signature as JSON",
            run: MPinDocuments.sign
        ),
        Action(
            name: "verify",
            arguments: "FILE HASH",
            counts: 2...2,
            summary: "say whether a text has this SHA-256",
            run: MPinDocuments.verify
        ),
    ]

    static let spec = CommandSpec(
        name: "mpin",
        summary: "register with M-Pin, log in, get a one-time code, or sign documents",
        actions: actions,
        others: ValueSpec("ARGUMENT", .files),
        common: [
            OptionSpec("--backend", ValueSpec("URL"), "the address of the service; needed if it is not clear"),
            OptionSpec("--client-id", ValueSpec("ID"), "the customer of MIRACL to whom the user belongs"),
            .reader, .timeout, .pinStdin, .pinentry,
        ],
        options: [
            OptionSpec("--access-number", ValueSpec("NUMBER"), "login: log in the browser that shows this number"),
            OptionSpec("--access-code", ValueSpec("CODE"), "register, login: the session that the user joins"),
            OptionSpec("--code", ValueSpec("CODE"), "register: the activation or registration code of the service"),
            OptionSpec("--second-factor", "ask for a second factor, too"),
            OptionSpec("--card", "register: seal the token with a Keycard, which each login then needs"),
            OptionSpec("--token", ValueSpec("TOKEN", .files), "register-dvs: the token, or a file with it"),
            OptionSpec("--time", ValueSpec("TIME"), "sign: seconds since 1970; now"),
            OptionSpec(
                "--authorization",
                ValueSpec("TOKEN", .files),
                "sign: the authorization of the app, or a file with it"
            ),
        ],
        details: [
            """
            USER is a name such as an e-mail address. register asks for a new PIN of four digits; login, otp and regcode
            ask for this PIN. Only the service knows whether a PIN is right. If a service wants the identity confirmed,
            for example by e-mail, register says so. Run it again after that.
            """,
            """
            With --client-id, register makes a user of MPinMFA, the service of MIRACL. Only such a user has access codes,
            registration codes, a second factor and signatures. service, access-code, session and abort need no user.
            """,
            """
            With --pin-stdin the lines are the PIN, the second factor, and then what the Keycard asks.
            """,
        ],
        card: "Keycard"
    )
}
