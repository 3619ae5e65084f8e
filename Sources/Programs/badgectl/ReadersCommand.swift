// SPDX-License-Identifier: GPL-3.0-or-later
import BadgedClient

/// `badgectl readers`: the list, and with `--watch` every change after it.
enum ReadersCommand {
    @Sendable static func run(_ invocation: Invocation) async throws(Failure) -> ExitStatus {
        let isWatching = invocation.options["--watch"] != nil
        let connection = try await invocation.connect(keepsEvents: isWatching)
        guard isWatching else {
            let readers = try await Invocation.ask { () throws(ClientError) in try await connection.readers() }
            if invocation.wantsJSON { return .done }
            let rows = readers.map { ($0.name, $0.words) }
            Output.line(rows.isEmpty ? "no reader" : Help.columns(rows, indentation: ""))
            return .done
        }
        // Asked as an event, so that the list keeps its place among the changes.
        let list = try await Invocation.ask { () throws(ClientError) in try await connection.askForReaders() }
        var shown: [String: Reader] = [:]
        var hasList = false
        for await event in connection.events {
            if event.answers(list), let refusal = ClientError(event.message) { throw Failure(refusal) }
            switch event.message {
            case .readerList(let readers) where event.answers(list):
                hasList = true
                if readers.isEmpty, !invocation.wantsJSON { Output.line("no reader") }
                for reader in readers { show(reader, &shown, invocation) }
            case .reader(let reader) where hasList: show(reader, &shown, invocation)
            default: continue
            }
        }
        throw Failure(connection.ending ?? .closed)
    }

    private static func show(_ reader: Reader, _ shown: inout [String: Reader], _ invocation: Invocation) {
        guard shown[reader.name] != reader else { return }
        shown[reader.name] = reader
        if !invocation.wantsJSON { Output.line("\(reader.name): \(reader.words)") }
    }
}
