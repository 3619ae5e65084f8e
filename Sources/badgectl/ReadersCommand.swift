// SPDX-License-Identifier: GPL-3.0-or-later
import BadgedClient

/// `badgectl readers`: READER_LIST, and with `--watch` every READER after it.
enum ReadersCommand {
    @Sendable static func run(_ invocation: Invocation) async throws(Failure) -> ExitStatus {
        let isWatching = invocation.options["--watch"] != nil
        let connection = try await invocation.connect(keepsEvents: isWatching)
        guard isWatching else {
            let answers = try await invocation.ask(["GET_READER_LIST"], connection)
            guard case .readerList(let readers) = answers.first?.message else {
                throw Failure(.unexpectedAnswer(answers.first?.name ?? ""))
            }
            if invocation.wantsJSON { return .done }
            let rows = readers.map { ($0.name, $0.words) }
            Output.line(rows.isEmpty ? "no reader" : Help.columns(rows, indentation: ""))
            return .done
        }
        // Asked as an event, so that the list keeps its place among the changes.
        let list: RequestID
        do throws(ClientError) {
            list = try await connection.send("GET_READER_LIST")
        } catch {
            throw Failure(error)
        }
        var shown: [String: Reader] = [:]
        var hasList = false
        for await event in connection.events {
            if event.answers(list), let refusal = ClientError(event.message) { throw Failure(refusal) }
            switch event.message {
            case .readerList(let readers) where event.answers(list):
                hasList = true
                if invocation.wantsJSON { Output.line(event.text) }
                if readers.isEmpty, !invocation.wantsJSON { Output.line("no reader") }
                for reader in readers { show(reader, &shown, invocation) }
            case .reader(let reader) where hasList:
                if invocation.wantsJSON { Output.line(event.text) }
                show(reader, &shown, invocation)
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
