// SPDX-License-Identifier: GPL-3.0-or-later
import BadgedClient
import Host
import Taps
import Text

/// `badgectl readers`: lists the readers, and with `--watch` every change.
enum ReadersCommand {
    static let spec = ShellCommand(
        name: "readers",
        summary: "list the card readers and their cards",
        options: [
            OptionSpec(.watch, "show every change, until Ctrl-C"),
            OptionSpec(.identify, "ask each card who it is: answer to reset, name, number, applications"),
            OptionSpec(.names, "show the names alone, one per line; with --watch each reader that comes"),
        ],
        details: [
            "With --watch, when badged ends, badgectl waits until it runs again.",
            """
            --identify selects applications that do nothing by themselves, on cards that no command of badgectl uses. It
            selects no application of payments, and none that wakes the wallet of a phone. The names are those of
            \(list), if pcsc-tools is installed. The number needs the permission credentials.
            """,
        ],
        examples: [
            Example("show each card that comes and goes", "badgectl readers --watch")
        ],
        run: run
    )

    @Sendable private static func run(_ invocation: Invocation) async throws {
        if invocation.has(.identify), let other = [OptionName.watch, .names].first(where: invocation.has) {
            throw invocation.usage(tr("--identify and \(other) exclude each other"))
        }
        if invocation.has(.watch) { return try await watch(invocation) }
        let connection = try await invocation.connect(keepsEvents: false)
        let readers = try await connection.readers()
        if invocation.wantsJSON {
            guard invocation.has(.identify) else { return }
            for reader in readers where reader.card != nil { _ = try? await connection.identifyCard(in: reader.name) }
            return
        }
        if invocation.has(.names) {
            for reader in readers { Output.line(reader.name.printable) }
            return
        }
        if invocation.has(.identify) { return try await identify(readers, connection) }
        let rows = readers.map { ($0.name, $0.summary) }
        Output.line(rows.isEmpty ? tr("no reader") : Help.columns(rows, indentation: ""))
    }

    static func names(_ invocation: Invocation) async throws -> [String] {
        try await invocation.connect(keepsEvents: false).readers().map(\.name)
    }

    private static let list = "/usr/share/pcsc/smartcard_list.txt"

    /// Shows what each card says about itself.
    private static func identify(_ readers: [Reader], _ connection: DaemonConnection) async throws {
        let file: [UInt8] =
            if case .bytes(let bytes) = PlainFile.read(list, limit: CardList.maximumLength) { bytes } else { [] }
        var isFirst = true
        for reader in readers where reader.card != nil {
            let identity: CardIdentity
            do throws(ClientError) {
                identity = try await connection.identifyCard(in: reader.name)
            } catch {
                guard case .refused(let reason) = error else { throw error }
                // The card has left since the list was made.
                Output.note("\(reader.name): \(DaemonWords.text(reason))".printable)
                continue
            }
            let atr = Hex.decode(identity.answerToReset) ?? []
            var rows = [(tr("card"), reader.summary), (tr("answer to reset"), spaced(atr))]
            rows += CardList.names(of: atr, in: file).map { (tr("known as"), $0) }
            if let uid = identity.uid { rows.append((tr("number"), spaced(Hex.decode(uid) ?? []))) }
            rows += identity.applications.map { (tr("answers"), "\($0.name) (\($0.aid))") }
            if let fault = identity.fault { rows.append((tr("not asked"), DaemonWords.text(fault))) }
            Output.line((isFirst ? "" : "\n") + reader.name.printable + "\n" + Help.columns(rows))
            isFirst = false
        }
        if isFirst { Output.note(tr("no reader has a card")) }
    }

    private static func spaced(_ bytes: [UInt8]) -> String {
        bytes.map { Hex.encode([$0]).uppercased() }.joined(separator: " ")
    }

    private static func watch(_ invocation: Invocation) async throws {
        var connection = try await invocation.connect(keepsEvents: true)
        var shown: [String: Reader] = [:]
        while true {
            try await follow(connection, &shown, invocation)
            guard connection.hasEnded else { throw connection.ending ?? ClientError.closed }
            Output.note("badgectl: \(Invocation.waiting)")
            connection = try await invocation.reconnect()
        }
    }

    /// Shows the readers and each change until the connection ends.
    private static func follow(
        _ connection: DaemonConnection,
        _ shown: inout [String: Reader],
        _ invocation: Invocation
    ) async throws {
        let request: RequestID
        do throws(ClientError) {
            // As an event, the list keeps its place among the changes.
            request = try await connection.askForReaders()
        } catch {
            guard error == .closed else { throw error }
            return
        }
        var hasList = false
        for await event in connection.events {
            if event.answers(request), let refusal = event.message.refusal { throw refusal }
            switch event.message {
            case let list as ReaderList where event.answers(request):
                hasList = true
                if list.readers.isEmpty, shown.isEmpty, !invocation.wantsJSON { Output.line(tr("no reader")) }
                // After a restart of badged a reader may be gone.
                for name in shown.keys.sorted() where !list.readers.contains(where: { $0.name == name }) {
                    show(Reader(name: name, isAttached: false), &shown, invocation)
                }
                for reader in list.readers { show(reader, &shown, invocation) }
            case let reader as Reader where hasList: show(reader, &shown, invocation)
            default: continue
            }
        }
    }

    private static func show(_ reader: Reader, _ shown: inout [String: Reader], _ invocation: Invocation) {
        let before = shown[reader.name]
        guard before != reader else { return }
        shown[reader.name] = reader
        if invocation.has(.names) {
            if reader.isAttached, before?.isAttached != true { invocation.show(reader.name) }
            return
        }
        invocation.show("\(reader.name): \(reader.summary)")
    }
}
