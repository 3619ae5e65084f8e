// SPDX-License-Identifier: GPL-3.0-or-later
import BadgedClient
import Glibc
import Host
import Text

/// The commands for keys of doors and one-time codes.
let keyFeature = FeatureCommands(group: .doors, commands: [KeysCommand.spec, EndpointCommand.spec, CodeCommand.spec])

/// A connection for commands about keys.
struct KeyCalls {
    let connection: DaemonConnection

    init(_ invocation: Invocation) async throws {
        connection = try await invocation.connect(keepsEvents: false)
    }

    @discardableResult
    func ask(_ command: String, _ members: [JSON.Member] = []) async throws -> JSON {
        try await connection.keyRequest(command, members).get()
    }

    func keys() async throws -> [DoorKey] { try await connection.doorKeys().get() }

    /// Finds a key by its label, or by the beginning of its id.
    func key(_ name: String) async throws -> DoorKey {
        let all = try await keys()
        let named = all.filter { $0.label == name }
        let found = named.isEmpty ? all.filter { !name.isEmpty && $0.id.hasPrefix(name) } : named
        guard let key = found.first else {
            throw CommandFailure(tr("there is no key \(name)"), hint: tr("badgectl keys list shows the keys"))
        }
        guard found.count == 1 else {
            throw CommandFailure(tr("\(found.count) keys are called \(name)"), hint: tr("use the id of the key"))
        }
        return key
    }
}

/// `badgectl keys`: the keys of the own user.
enum KeysCommand {
    private static let actions = [
        CommandAction("list", "list the keys", options: [.names], run: list),
        CommandAction(
            "new",
            "make a key pair, or take the secret of one-time codes",
            options: [.label, .number, .otp, .digits],
            run: make
        ),
        CommandAction("export", [.key], "write the public part, which the site needs", options: [.format], run: export),
        changing("activate", by: "ACTIVATE_KEY", Phrase("use a key again")),
        changing("deactivate", by: "DEACTIVATE_KEY", Phrase("do not use a key until it is activated")),
        CommandAction("delete", [.key], "delete a key", options: [.yes], run: delete),
        CommandAction("site", [.key.optional], "import a reader", options: [.qr], run: importSite),
    ]

    static let spec = ShellCommand(
        name: "keys",
        summary: "list, make, export, activate or delete keys for doors and codes",
        actions: actions,
        usual: "list",
        others: ValueSpec("KEY"),
        options: [
            OptionSpec(.label, ValueSpec("TEXT"), "new: the name of the key"),
            OptionSpec(.number, ValueSpec("NUMBER"), "new: the number of a card that the key replaces"),
            OptionSpec(.otp, ValueSpec("TYPE", .words(["hotp", "totp"])), "new: a secret for one-time codes"),
            OptionSpec(.digits, ValueSpec("NUMBER", .words(["6", "7", "8"])), "new --otp: digits of a code; 6"),
            OptionSpec(
                .format,
                ValueSpec("FORM", .words(["pem", "hex", "der", "numbers", "qr"])),
                "export: the form; pem. qr draws the code on a terminal, and writes its text otherwise"
            ),
            OptionSpec(.qr, ValueSpec("TEXT", .files), "site: the text of the QR code, or a file with it"),
            OptionSpec(.names, "list: show the labels alone, one per line; the id of a key whose label others have"),
            Confirmation.option,
        ],
        details: [
            """
            Without ACTION the keys are listed. KEY is the label of a key or the beginning of its id. new makes a key
            pair; with --otp it asks for the secret of the service in base 32, or reads it from standard input. export
            writes the public part: give it to the site.
            """,
            """
            site imports a reader. The QR code is not signed: compare the fingerprint with the one that the operator of
            the site names.
            """,
        ],
        examples: [
            Example(
                "make a key, and give its public part to the site",
                "badgectl keys new --label Office && badgectl keys export Office --format qr"
            ),
            Example(
                "keep the secret of one-time codes; it is a line on standard input",
                "badgectl keys new --otp totp --label Mail < secret.txt"
            ),
        ]
    )

    private static func changing(_ name: String, by command: String, _ summary: Phrase) -> CommandAction {
        CommandAction(name, [.key], summary) { invocation in
            let calls = try await KeyCalls(invocation)
            try await calls.ask(command, [.init("key", .string(try await calls.key(invocation.argument).id))])
            return
        }
    }

    @Sendable private static func delete(_ invocation: Invocation) async throws {
        let calls = try await KeyCalls(invocation)
        let key = try await calls.key(invocation.argument)
        let name = [key.label, key.issuer, key.id].filter { !$0.isEmpty }.joined(separator: ", ")
        let loss = tr("Nobody can restore the key, and what it opens needs another one.")
        try await invocation.confirm(
            tr("This deletes the \(key.keyProtocol) key \(name). \(loss)"),
            notDone: tr("the key was not deleted")
        )
        try await calls.ask("DELETE_KEY", [.init("key", .string(key.id))])
    }

    /// The names by which the commands find the keys.
    static func names(_ invocation: Invocation) async throws -> [String] {
        names(of: try await KeyCalls(invocation).keys())
    }

    private static func names(of keys: [DoorKey]) -> [String] {
        keys.map { key in
            let isOnly = !key.label.isEmpty && keys.count { $0.label == key.label } == 1
            return isOnly ? key.label : key.id
        }
    }

    @Sendable private static func list(_ invocation: Invocation) async throws {
        let calls = try await KeyCalls(invocation)
        let keys = try await calls.keys()
        guard !invocation.wantsJSON else { return }
        if invocation.has(.names) {
            for name in names(of: keys) { Output.line(name.printable) }
            return
        }
        if keys.isEmpty { Output.note(tr("there are no keys; to make one: badgectl keys new --label TEXT")) }
        let today = CalendarDay(of: time(nil)).text
        for key in keys {
            var state = key.isActive ? tr("active") : tr("inactive")
            if key.isExpired { state = tr("expired") }
            if key.isRevoked { state = tr("revoked") }
            if key.pendingUntil != nil { state = tr("not saved") }
            let place = key.protection == "software" ? "" : key.protection
            let isLater = key.isActive && !key.isExpired && key.beginDate.map { $0.prefix(10) > today } ?? false
            if isLater, !key.isRevoked, key.pendingUntil == nil { state = tr("not valid yet") }
            let begin = isLater ? key.beginDate.map { tr("from \($0)") } ?? "" : ""
            let end = key.endDate.map { key.isExpired ? tr("since \($0)") : tr("until \($0)") } ?? ""
            let parts = [
                key.id, key.keyProtocol, state, begin, end, place, key.numbers[64] ?? "", key.label, key.issuer,
            ]
            Output.line(parts.filter { !$0.isEmpty }.joined(separator: "  ").printable)
        }
    }

    @Sendable private static func make(_ invocation: Invocation) async throws {
        let calls = try await KeyCalls(invocation)
        if invocation.has(.digits), !invocation.has(.otp) {
            throw CommandFailure(
                usage: tr("only codes have digits"),
                hint: tr("badgectl keys new --otp totp --digits 8 <FILE")
            )
        }
        var members: [JSON.Member] = []
        if let label = invocation.value(of: .label) { members.append(.init("label", .string(label))) }
        if let number = invocation.value(of: .number) { members.append(.init("cardNumber", .string(number))) }
        if let digits = invocation.value(of: .digits) { members.append(.init("digits", .number(digits))) }
        // The first key of a user makes the endpoint.
        try await calls.ask("SETUP_ENDPOINT")
        let key: JSON
        if let type = invocation.value(of: .otp) {
            let secret = try await readSecret()
            let all = members + [.init("type", .string(type))]
            guard let secret = secret.take() else { throw ClientError.cancelled }
            key = try await calls.connection.addCodes(all, secret: secret).get()
        } else {
            key = try await calls.ask("NEW_KEY", members)
        }
        invocation.show(key["id"]?.string ?? "")
    }

    private static func readSecret() async throws -> SecretBox {
        let form = TypedSecretForm(name: tr("secret in base 32"), content: .characters(1...256))
        return try await form.read(
            cancelled: CommandFailure(tr("cancelled: no key was made"), hint: tr("run badgectl keys new again")),
            missing: CommandFailure(
                usage: tr("there is no secret on standard input"),
                hint: tr("a line of base 32 of at most 256 bytes")
            )
        )
    }

    @Sendable private static func export(_ invocation: Invocation) async throws {
        let calls = try await KeyCalls(invocation)
        let key = try await calls.key(invocation.argument)
        let export = try await calls.ask("EXPORT_KEY", [.init("key", .string(key.id))])
        guard !invocation.wantsJSON else { return }
        switch invocation.value(of: .format) ?? "pem" {
        case "hex": Output.line((export["publicKey"]?.string ?? "").printable)
        case "der": Output.line((export["der"]?.string ?? "").printable)
        case "qr":
            let text = export["qr"]?.string ?? ""
            // A program wants the text, a person the picture.
            guard isatty(STDOUT_FILENO) == 1 else { return Output.line(text.printable) }
            guard let lines = QRDrawing.lines(text) else {
                throw CommandFailure(tr("the key does not fit into a QR code"), hint: tr("use --format pem"))
            }
            Output.line(lines.joined(separator: "\n"))
        case "numbers":
            for number in export["numbers"]?.array ?? [] {
                let texts = [number["bits"]?.int.map { "\($0)" }, number["hex"]?.string, number["decimal"]?.string]
                Output.line(texts.compactMap(\.self).joined(separator: "  ").printable)
            }
        default:
            for line in (export["pem"]?.string ?? "").split(separator: "\n") { Output.line(String(line).printable) }
        }
    }

    @Sendable private static func importSite(_ invocation: Invocation) async throws {
        let calls = try await KeyCalls(invocation)
        guard let code = invocation.value(of: .qr) else {
            throw CommandFailure(
                usage: tr("keys site needs --qr"),
                hint: tr("give the text of the QR code of the reader")
            )
        }
        var members = [JSON.Member("qr", .string(Invocation.textOrFile(code)))]
        if !invocation.others.isEmpty {
            members.append(.init("key", .string(try await calls.key(invocation.argument).id)))
        }
        let site = try await calls.ask("IMPORT_SITE", members)
        invocation.show(tr("fingerprint \(site["fingerprint"]?.string ?? "")"))
    }
}

/// `badgectl endpoint`: the vault of the own user, and its issuer.
enum EndpointCommand {
    private static let actions = [
        CommandAction("show", "show the store and its issuer", run: show),
        CommandAction(
            "setup",
            [ValueSpec("INVITATION", .files, isOptional: true)],
            "make the store; an invitation of the issuer gives a key",
            run: setUp
        ),
        CommandAction("update", "ask the issuer for changes", run: update),
        CommandAction("remove", "delete all your keys and data", options: [.yes], run: remove),
    ]

    static let spec = ShellCommand(
        name: "endpoint",
        summary: "show, set up, update or remove the store of your keys",
        actions: actions,
        usual: "show",
        others: ValueSpec("INVITATION"),
        options: [Confirmation.option],
        details: [
            """
            Without ACTION the store is shown. INVITATION is a code of the issuer (XXXX-XXXX-XXXX-XXXX), its address, or a
            file of the issuer.
            """
        ]
    )

    @Sendable private static func setUp(_ invocation: Invocation) async throws {
        let text = invocation.others.isEmpty ? nil : Invocation.textOrFile(invocation.argument)
        let members = text.map { [JSON.Member("invitation", .string($0))] } ?? []
        let answer = try await KeyCalls(invocation).ask("SETUP_ENDPOINT", members)
        invocation.show(answer["key"]?["id"]?.string ?? answer["id"]?.string ?? "")
    }

    @Sendable private static func update(_ invocation: Invocation) async throws {
        let answer = try await KeyCalls(invocation).ask("UPDATE_ENDPOINT")
        func count(_ name: String) -> Int { answer[name]?.int ?? 0 }
        invocation.show(tr("\(count("issued")) issued, \(count("updated")) updated, \(count("revoked")) revoked"))
    }

    @Sendable private static func remove(_ invocation: Invocation) async throws {
        let calls = try await KeyCalls(invocation)
        try await invocation.confirm(
            tr("This deletes all your keys and their data. Nobody can restore them."),
            notDone: tr("nothing was deleted")
        )
        try await calls.ask("REMOVE_ENDPOINT", [.init("confirm", .bool(true))])
    }

    @Sendable private static func show(_ invocation: Invocation) async throws {
        let answer = try await KeyCalls(invocation).ask("GET_ENDPOINT")
        guard !invocation.wantsJSON else { return }
        guard answer["setUp"]?.bool == true else {
            Output.line(tr("not set up"))
            return
        }
        let sync = answer["lastSync"]?.string ?? tr("never")
        Output.line(tr("endpoint \(answer["id"]?.string ?? "")").printable)
        Output.line(tr("keys: \(answer["keys"]?.int ?? 0), bytes of data: \(answer["bytesUsed"]?.int ?? 0)"))
        Output.line(tr("compared with the issuer: \(sync)").printable)
        Output.line(tr("sealed with a key from: \(Help.words(answer["storage"]?.string ?? ""))").printable)
    }
}

/// `badgectl otp`: a one-time code.
enum CodeCommand {
    static let spec = ShellCommand(
        name: "otp",
        summary: "write a one-time code of a key",
        operand: ValueSpec("KEY", .keys),
        details: [
            "KEY is the label of a key or the beginning of its id. A code of HOTP is used up when it is written."
        ],
        run: { invocation in
            let calls = try await KeyCalls(invocation)
            let key = try await calls.key(invocation.operand)
            let answer = try await calls.ask("GET_OTP", [.init("key", .string(key.id))])
            invocation.show(answer["otp"]?.string ?? "")
            return
        }
    )
}

/// `badgectl wallet prepare` and `save`: passes, whose keys are in the store of badged.
enum PassCommand {
    @Sendable static func prepare(_ invocation: Invocation) async throws {
        let calls = try await KeyCalls(invocation)
        try await calls.ask("SETUP_ENDPOINT")
        let label = invocation.value(of: .label).map { [JSON.Member("label", .string($0))] } ?? []
        let answer = try await calls.ask("WALLET_PREPARE", label)
        invocation.show(answer["blob"]?.string ?? "")
    }

    @Sendable static func save(_ invocation: Invocation) async throws {
        let calls = try await KeyCalls(invocation)
        let reference = Invocation.textOrFile(invocation.argument)
        var members = [JSON.Member("reference", .string(reference))]
        if let label = invocation.value(of: .label) {
            members.append(.init("display", .object([.init("displayName", .string(label))])))
        }
        let answer = try await calls.ask("WALLET_SAVE", members)
        invocation.show(answer["key"]?["id"]?.string ?? "")
    }
}
