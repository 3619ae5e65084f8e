// SPDX-License-Identifier: GPL-3.0-or-later
import BadgedClient
import Glibc
import Secrets
import Text

/// The commands for keys of doors and one-time codes.
let keyFeature = Feature(commands: [KeysCommand.spec, EndpointCommand.spec, CodeCommand.spec])

/// A connection for commands about keys.
struct KeyCalls {
    let connection: DaemonConnection

    init(_ invocation: Invocation) async throws(Failure) {
        connection = try await invocation.connect(keepsEvents: false)
    }

    @discardableResult
    func ask(_ command: String, _ members: [JSON.Member] = []) async throws(Failure) -> JSON {
        try Self.checked(
            try await Invocation.ask { () throws(ClientError) in try await connection.keyRequest(command, members) }
        )
    }

    static func checked<Value>(_ result: Result<Value, KeyFailure>) throws(Failure) -> Value {
        do throws(KeyFailure) {
            return try result.get()
        } catch {
            throw Failure(.failed, error.text, hint: hint(error))
        }
    }

    private static func hint(_ failure: KeyFailure) -> String? {
        if failure.mayBeRepeated { return "try again later; an invitation can be used again" }
        return switch failure.name {
        case "Endpoint": "badgectl endpoint setup"
        case "KeyNotFound": "badgectl keys list shows the keys"
        case "InternalError", "DataStorageDecryptionFailed", "DeviceNotEligible": Failure.seeLog
        default: nil
        }
    }

    func keys() async throws(Failure) -> [DoorKey] {
        try Self.checked(try await Invocation.ask { () throws(ClientError) in try await connection.doorKeys() })
    }

    /// Finds a key by its label, or by the beginning of its id.
    func key(_ name: String) async throws(Failure) -> DoorKey {
        let all = try await keys()
        let named = all.filter { $0.label == name }
        let found = named.isEmpty ? all.filter { !name.isEmpty && $0.id.hasPrefix(name) } : named
        guard let key = found.first else {
            throw Failure(.failed, "there is no key \(name)", hint: "badgectl keys list shows the keys")
        }
        guard found.count == 1 else {
            throw Failure(.failed, "\(found.count) keys are called \(name)", hint: "use the id of the key")
        }
        return key
    }
}

extension Invocation {
    /// A text, or the content of the file with this path.
    static func textOrFile(_ argument: String) -> String {
        let descriptor = open(argument, O_RDONLY | O_CLOEXEC | O_NONBLOCK)
        guard descriptor >= 0 else { return argument }
        defer { close(descriptor) }
        var bytes = [UInt8](repeating: 0, count: 65_536)
        let count = bytes.withUnsafeMutableBytes { read(descriptor, $0.baseAddress, $0.count) }
        guard count > 0 else { return argument }
        let text = String(decoding: bytes.prefix(count), as: UTF8.self)
        return text.split(whereSeparator: \.isWhitespace).joined(separator: " ")
    }
}

/// `badgectl keys`: the keys of the own user.
enum KeysCommand {
    private static let actions = [
        Action(name: "list", summary: "list the keys", run: list),
        Action(
            name: "new",
            options: ["--label", "--number", "--otp", "--digits"],
            summary: "make a key pair, or take the secret of one-time codes from standard input",
            run: make
        ),
        Action(
            name: "export",
            arguments: "KEY",
            counts: 1...1,
            options: ["--format"],
            summary: "write the public part, which the site needs",
            run: export
        ),
        changing("activate", by: "ACTIVATE_KEY", "use a key again"),
        changing("deactivate", by: "DEACTIVATE_KEY", "do not use a key until it is activated"),
        changing("delete", by: "DELETE_KEY", "delete a key"),
        Action(
            name: "site",
            arguments: "[KEY]",
            counts: 0...1,
            options: ["--qr"],
            summary: "import a reader",
            run: importSite
        ),
    ]

    static let spec = CommandSpec(
        name: "keys",
        summary: "list, make, export, activate or delete keys for doors and codes",
        actions: actions,
        usual: "list",
        others: ValueSpec("KEY"),
        options: [
            OptionSpec("--label", ValueSpec("TEXT"), "new: the name of the key"),
            OptionSpec("--number", ValueSpec("NUMBER"), "new: the number of a card that the key replaces"),
            OptionSpec("--otp", ValueSpec("TYPE", .words(["hotp", "totp"])), "new: a secret for one-time codes"),
            OptionSpec("--digits", ValueSpec("NUMBER", .words(["6", "7", "8"])), "new --otp: digits of a code; 6"),
            OptionSpec(
                "--format",
                ValueSpec("FORM", .words(["pem", "hex", "der", "numbers", "qr"])),
                "export: the form; pem"
            ),
            OptionSpec("--qr", ValueSpec("TEXT", .files), "site: the text of the QR code, or a file with it"),
        ],
        details: [
            """
            Without ACTION the keys are listed. KEY is the label of a key or the beginning of its id. new makes a key
            pair; with --otp it reads the secret of the service in base 32 from standard input. export writes the
            public part: give it to the site.
            """,
            """
            site imports a reader. The QR code is not signed: compare the fingerprint with the one that the operator of
            the site names.
            """,
        ]
    )

    private static func changing(_ name: String, by command: String, _ summary: String) -> Action {
        Action(name: name, arguments: "KEY", counts: 1...1, summary: summary) { invocation async throws(Failure) in
            let calls = try await KeyCalls(invocation)
            try await calls.ask(command, [.init("key", .string(try await calls.key(invocation.argument).id))])
            return .done
        }
    }

    @Sendable private static func list(_ invocation: Invocation) async throws(Failure) -> ExitStatus {
        let calls = try await KeyCalls(invocation)
        let keys = try await calls.keys()
        guard !invocation.wantsJSON else { return .done }
        if keys.isEmpty { Output.note("there are no keys; to make one: badgectl keys new --label TEXT") }
        for key in keys {
            var state = key.isActive ? "active" : "inactive"
            if key.isRevoked { state = "revoked" }
            if key.pendingUntil != nil { state = "not saved" }
            let place = key.protection == "software" ? "" : key.protection
            let parts = [key.id, key.keyProtocol, state, place, key.numbers[64] ?? "", key.label, key.issuer]
            Output.line(parts.filter { !$0.isEmpty }.joined(separator: "  ").printable)
        }
        return .done
    }

    @Sendable private static func make(_ invocation: Invocation) async throws(Failure) -> ExitStatus {
        let calls = try await KeyCalls(invocation)
        if invocation.has("--digits"), !invocation.has("--otp") {
            throw Failure(.usage, "only codes have digits", hint: "badgectl keys new --otp totp --digits 8 <FILE")
        }
        var members: [JSON.Member] = []
        if let label = invocation.value(of: "--label") { members.append(.init("label", .string(label))) }
        if let number = invocation.value(of: "--number") { members.append(.init("cardNumber", .string(number))) }
        if let digits = invocation.value(of: "--digits") { members.append(.init("digits", .number(digits))) }
        // The first key of a user makes the endpoint.
        try await calls.ask("SETUP_ENDPOINT")
        let key: JSON
        if let type = invocation.value(of: "--otp") {
            let secret = try await readSecret()
            let all = members + [.init("type", .string(type))]
            key = try KeyCalls.checked(
                try await Invocation.ask { () throws(ClientError) in
                    guard let secret = secret.take() else { throw ClientError.cancelled }
                    return try await calls.connection.addCodes(all, secret: secret)
                }
            )
        } else {
            key = try await calls.ask("NEW_KEY", members)
        }
        if !invocation.wantsJSON { Output.line((key["id"]?.string ?? "").printable) }
        return .done
    }

    private static func readSecret() async throws(Failure) -> SecretBox {
        guard isatty(STDIN_FILENO) == 0 else {
            throw Failure(
                .usage,
                "the secret would be shown on the terminal",
                hint: "write it to standard input: badgectl keys new --otp totp <FILE"
            )
        }
        if let input = LineSource(STDIN_FILENO), case .text(let secret) = await input.next() { return secret }
        throw Failure(.usage, "there is no secret on standard input", hint: "a line of base 32 of at most 256 bytes")
    }

    @Sendable private static func export(_ invocation: Invocation) async throws(Failure) -> ExitStatus {
        let calls = try await KeyCalls(invocation)
        let key = try await calls.key(invocation.argument)
        let export = try await calls.ask("EXPORT_KEY", [.init("key", .string(key.id))])
        guard !invocation.wantsJSON else { return .done }
        switch invocation.value(of: "--format") ?? "pem" {
        case "hex": Output.line((export["publicKey"]?.string ?? "").printable)
        case "der": Output.line((export["der"]?.string ?? "").printable)
        case "qr": Output.line((export["qr"]?.string ?? "").printable)
        case "numbers":
            for number in export["numbers"]?.array ?? [] {
                let texts = [number["bits"]?.int.map { "\($0)" }, number["hex"]?.string, number["decimal"]?.string]
                Output.line(texts.compactMap(\.self).joined(separator: "  ").printable)
            }
        default:
            for line in (export["pem"]?.string ?? "").split(separator: "\n") { Output.line(String(line).printable) }
        }
        return .done
    }

    @Sendable private static func importSite(_ invocation: Invocation) async throws(Failure) -> ExitStatus {
        let calls = try await KeyCalls(invocation)
        guard let code = invocation.value(of: "--qr") else {
            throw Failure(.usage, "keys site needs --qr", hint: "give the text of the QR code of the reader")
        }
        var members = [JSON.Member("qr", .string(Invocation.textOrFile(code)))]
        if !invocation.others.isEmpty {
            members.append(.init("key", .string(try await calls.key(invocation.argument).id)))
        }
        let site = try await calls.ask("IMPORT_SITE", members)
        if !invocation.wantsJSON { Output.line("fingerprint \(site["fingerprint"]?.string ?? "")".printable) }
        return .done
    }
}

/// `badgectl endpoint`: the vault of the own user, and its issuer.
enum EndpointCommand {
    private static let actions = [
        Action(name: "show", summary: "show the store and its issuer", run: show),
        Action(
            name: "setup",
            arguments: "[INVITATION]",
            counts: 0...1,
            summary: "make the store; an invitation of the issuer gives a key",
            run: setUp
        ),
        Action(name: "update", summary: "ask the issuer for changes", run: update),
        Action(name: "remove", options: ["--yes"], summary: "delete all your keys and data", run: remove),
    ]

    static let spec = CommandSpec(
        name: "endpoint",
        summary: "show, set up, update or remove the store of your keys",
        actions: actions,
        usual: "show",
        others: ValueSpec("INVITATION", .files),
        options: [OptionSpec("--yes", "remove: delete all keys without a question")],
        details: [
            """
            Without ACTION the store is shown. INVITATION is a code of the issuer (XXXX-XXXX-XXXX-XXXX), its address, or a
            file of the issuer.
            """
        ]
    )

    @Sendable private static func setUp(_ invocation: Invocation) async throws(Failure) -> ExitStatus {
        let text = invocation.others.isEmpty ? nil : Invocation.textOrFile(invocation.argument)
        let members = text.map { [JSON.Member("invitation", .string($0))] } ?? []
        let answer = try await KeyCalls(invocation).ask("SETUP_ENDPOINT", members)
        guard !invocation.wantsJSON else { return .done }
        Output.line((answer["key"]?["id"]?.string ?? answer["id"]?.string ?? "").printable)
        return .done
    }

    @Sendable private static func update(_ invocation: Invocation) async throws(Failure) -> ExitStatus {
        let answer = try await KeyCalls(invocation).ask("UPDATE_ENDPOINT")
        guard !invocation.wantsJSON else { return .done }
        let counts = ["issued", "updated", "revoked"].map { "\(answer[$0]?.int ?? 0) \($0)" }
        Output.line(counts.joined(separator: ", "))
        return .done
    }

    @Sendable private static func remove(_ invocation: Invocation) async throws(Failure) -> ExitStatus {
        guard invocation.has("--yes") else {
            throw Failure(
                .usage,
                "this deletes all your keys and their data",
                hint: "if you want that: badgectl endpoint remove --yes"
            )
        }
        try await KeyCalls(invocation).ask("REMOVE_ENDPOINT", [.init("confirm", .bool(true))])
        return .done
    }

    @Sendable private static func show(_ invocation: Invocation) async throws(Failure) -> ExitStatus {
        let answer = try await KeyCalls(invocation).ask("GET_ENDPOINT")
        guard !invocation.wantsJSON else { return .done }
        guard answer["setUp"]?.bool == true else {
            Output.line("not set up")
            return .done
        }
        let sync = answer["lastSync"]?.string ?? "never"
        Output.line("endpoint \(answer["id"]?.string ?? "")".printable)
        Output.line("keys: \(answer["keys"]?.int ?? 0), bytes of data: \(answer["bytesUsed"]?.int ?? 0)")
        Output.line("compared with the issuer: \(sync)".printable)
        Output.line("sealed with a key from: \(answer["storage"]?.string ?? "")".printable)
        return .done
    }
}

/// `badgectl otp`: a one-time code.
enum CodeCommand {
    static let spec = CommandSpec(
        name: "otp",
        summary: "write a one-time code of a key",
        operand: ValueSpec("KEY"),
        details: [
            "KEY is the label of a key or the beginning of its id. A code of HOTP is used up when it is written."
        ],
        run: { invocation async throws(Failure) in
            let calls = try await KeyCalls(invocation)
            let key = try await calls.key(invocation.operand)
            let answer = try await calls.ask("GET_OTP", [.init("key", .string(key.id))])
            if !invocation.wantsJSON { Output.line((answer["otp"]?.string ?? "").printable) }
            return .done
        }
    )
}

/// `badgectl wallet prepare` and `save`: passes, whose keys are in the store of badged.
enum PassCommand {
    @Sendable static func prepare(_ invocation: Invocation) async throws(Failure) -> ExitStatus {
        let calls = try await KeyCalls(invocation)
        try await calls.ask("SETUP_ENDPOINT")
        let label = invocation.value(of: "--label").map { [JSON.Member("label", .string($0))] } ?? []
        let answer = try await calls.ask("WALLET_PREPARE", label)
        if !invocation.wantsJSON { Output.line((answer["blob"]?.string ?? "").printable) }
        return .done
    }

    @Sendable static func save(_ invocation: Invocation) async throws(Failure) -> ExitStatus {
        let calls = try await KeyCalls(invocation)
        let reference = Invocation.textOrFile(invocation.argument)
        var members = [JSON.Member("reference", .string(reference))]
        if let label = invocation.value(of: "--label") {
            members.append(.init("display", .object([.init("displayName", .string(label))])))
        }
        let answer = try await calls.ask("WALLET_SAVE", members)
        if !invocation.wantsJSON { Output.line((answer["key"]?["id"]?.string ?? "").printable) }
        return .done
    }
}
