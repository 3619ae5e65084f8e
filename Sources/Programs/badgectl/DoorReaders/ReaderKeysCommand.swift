// SPDX-License-Identifier: GPL-3.0-or-later
import BadgedClient
import Host
import Text

/// `badgectl irk`: the identity resolving keys of door readers.
enum ReaderKeysCommand {
    static let spec = ShellCommand(
        name: "irk",
        summary: "list, add or remove keys that identify door readers",
        actions: [
            CommandAction("list", "list the keys", run: list),
            CommandAction("add", [ValueSpec("NAME")], "type a key", run: add),
            CommandAction("remove", [ValueSpec("NAME")], "remove a key", run: remove),
        ],
        usual: "list",
        others: ValueSpec("NAME"),
        details: [
            """
            A reader whose address changes is recognised by its identity resolving key (IRK), and has NAME in its id. add
            asks for the 32 hexadecimal digits of the key, or reads them from standard input. Both orders of its bytes
            are accepted; list shows the right one when the reader was received. Needs the permission admin.
            """
        ]
    )

    @Sendable private static func list(_ invocation: Invocation) async throws {
        let connection = try await invocation.connect(keepsEvents: false)
        let keys = try answer(try await connection.request("GET_READER_KEYS"))
        guard !invocation.wantsJSON else { return }
        if keys.isEmpty { Output.note(tr("there are no keys; to add one: badgectl irk add NAME")) }
        for key in keys {
            let name = key["name"]?.string ?? ""
            Output.line("\(name)  \(order(key["order"]?.string))".printable)
        }
    }

    private static func order(_ order: String?) -> String {
        switch order {
        case "mostSignificantFirst": tr("most significant byte first")
        case "leastSignificantFirst": tr("least significant byte first")
        default: tr("the reader was not received yet")
        }
    }

    @Sendable private static func add(_ invocation: Invocation) async throws {
        let connection = try await invocation.connect(keepsEvents: false)
        let name = JSON.Member("name", .string(invocation.argument))
        guard let key = try await readKey().take() else { throw ClientError.cancelled }
        _ = try answer(try await connection.request("ADD_READER_KEY", [name], value: key))
    }

    private static func readKey() async throws -> SecretBox {
        let form = TypedSecretForm(name: tr("IRK (32 hexadecimal digits)"), content: .characters(32...32))
        return try await form.read(
            cancelled: CommandFailure(tr("cancelled: no key was added"), hint: tr("run badgectl irk add again")),
            missing: CommandFailure(
                usage: tr("there is no key on standard input"),
                hint: tr("a line of 32 hexadecimal digits")
            )
        )
    }

    @Sendable private static func remove(_ invocation: Invocation) async throws {
        let connection = try await invocation.connect(keepsEvents: false)
        let name = JSON.Member("name", .string(invocation.argument))
        _ = try answer(try await connection.request("REMOVE_READER_KEY", [name]))
    }

    private static func answer(_ event: Event) throws -> [JSON] {
        if let refusal = event.message.refusal { throw refusal }
        if let error = event.json["error"]?.string {
            throw CommandFailure(error, hint: tr("badgectl irk list shows the keys"))
        }
        return event.json["keys"]?.array ?? []
    }
}
