// SPDX-License-Identifier: GPL-3.0-or-later
import BadgedClient

/// `badgectl readers`: lists the readers, and with `--watch` every change.
enum ReadersCommand {
    static let spec = CommandSpec(
        name: "readers",
        summary: "list the card readers and their cards",
        options: [OptionSpec("--watch", "show every change, until Ctrl-C")],
        run: run
    )

    @Sendable private static func run(_ invocation: Invocation) async throws(Failure) -> ExitStatus {
        if invocation.has("--watch") { return try await watch(invocation) }
        let connection = try await invocation.connect(keepsEvents: false)
        let readers = try await Invocation.ask { () throws(ClientError) in try await connection.readers() }
        if invocation.wantsJSON { return .done }
        let rows = readers.map { ($0.name, $0.summary) }
        Output.line(rows.isEmpty ? "no reader" : Help.columns(rows, indentation: ""))
        return .done
    }

    private static func watch(_ invocation: Invocation) async throws(Failure) -> ExitStatus {
        let connection = try await invocation.connect(keepsEvents: true)
        // As an event, the list keeps its place among the changes.
        let request = try await Invocation.ask { () throws(ClientError) in try await connection.askForReaders() }
        var shown: [String: Reader] = [:]
        var hasList = false
        for await event in connection.events {
            if event.answers(request), let refusal = event.message.refusal { throw Failure(refusal) }
            switch event.message {
            case let list as ReaderList where event.answers(request):
                hasList = true
                if list.readers.isEmpty, !invocation.wantsJSON { Output.line("no reader") }
                for reader in list.readers { show(reader, &shown, invocation) }
            case let reader as Reader where hasList: show(reader, &shown, invocation)
            default: continue
            }
        }
        throw Failure(connection.ending ?? .closed)
    }

    private static func show(_ reader: Reader, _ shown: inout [String: Reader], _ invocation: Invocation) {
        guard shown[reader.name] != reader else { return }
        shown[reader.name] = reader
        if !invocation.wantsJSON { Output.line("\(reader.name): \(reader.summary)") }
    }
}
