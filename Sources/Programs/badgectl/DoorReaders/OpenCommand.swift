// SPDX-License-Identifier: GPL-3.0-or-later
import BadgedClient
import DoorReaders
import Host
import Text

/// `badgectl open`: opens a door reader with a key of the user.
enum OpenCommand {
    static let spec = ShellCommand(
        name: "open",
        summary: "open a door reader with your key",
        operand: ValueSpec("READER", isOptional: true),
        options: [
            OptionSpec(.type, ValueSpec("TYPE", .openingTypes), "the way of opening; proximity without this option"),
            OptionSpec(.key, ValueSpec("KEY", .keys), "the key to use"),
        ],
        details: [
            """
            Opens the door reader READER, by its id or its name in badgectl scan. Without READER: the closest one, as soon
            as it is near enough. Waits up to five seconds for the reader.
            """,
            """
            The reader says whether the door opens, but it cannot prove this. badgectl ends with 1 when access is denied
            or the reader could not be opened.
            """,
        ],
        examples: [
            Example("open the closest reader", "badgectl open"),
            Example("open a reader by its name, with one of several keys", "badgectl open 'Front door' --key Office"),
        ],
        run: run
    )

    @Sendable private static func run(_ invocation: Invocation) async throws {
        let wanted = invocation.operand
        let type = invocation.value(of: .type) ?? "proximity"
        let key = invocation.value(of: .key)
        let options = ScanOptions(mode: .performance, lockServiceCodes: [], updates: .milliseconds(200))
        let connection = try await invocation.connect(keepsEvents: true)
        defer { connection.close() }
        try await connection.require("scan", "open")
        var status = try await ScanCommand.start(connection, options)
        // An opening ends by itself, so only the search has a limit.
        let limit = Task.detached {
            try? await Task.sleep(for: ScanCommand.duration)
            if !Task.isCancelled { connection.close() }
        }
        defer { limit.cancel() }
        var token: Int?
        var reason: String?
        for await event in connection.events {
            switch event.message {
            case let reader as BadgedClient.DoorReader where token == nil:
                guard wanted.isEmpty ? reader.inRange.contains(type) : [reader.id, reader.name].contains(wanted) else {
                    continue
                }
                if !wanted.isEmpty, reader.id != wanted { try await checkName(wanted, connection) }
                let answer =
                    wanted.isEmpty
                    ? try await connection.triggerOpening(by: type, key: key)
                    : try await connection.openDoorReader(reader.id, by: type, key: key)
                switch answer {
                case .begun(let opening):
                    token = opening.token
                    limit.cancel()
                case .ended(let result):
                    // The reader may come closer, or cool down, in the time that is left.
                    guard ["outOfRange", "busy"].contains(result.status) else { return try finish(result, invocation) }
                    reason = result.reason.map(DaemonWords.text)
                }
            case let result as DoorOpeningResult where token != nil && result.token == token:
                return try finish(result, invocation)
            case let change as ScanStatus: status = change
            default: continue
            }
        }
        if let ending = connection.ending, ending != .closed { throw ending }
        if let failure = ScanCommand.failure(status, hasReaders: reason != nil) { throw failure }
        let none = wanted.isEmpty ? tr("no door reader is near enough") : tr("\(wanted) is not in reach")
        throw CommandFailure((reason ?? none).printable, hint: tr("badgectl scan shows the door readers in reach"))
    }

    /// Checks that only one reader in reach has the name. Names are not proven, and several readers may have the same.
    private static func checkName(_ name: String, _ connection: DaemonConnection) async throws {
        let readers = try await connection.doorReaders()
        let ids = readers.filter { $0.name == name }.map(\.id)
        guard ids.count < 2 else {
            let list = ids.joined(separator: ", ").printable
            throw CommandFailure(
                usage: tr("\(ids.count) readers are called \(name)").printable,
                hint: tr("use the id: \(list)")
            )
        }
    }

    private static func finish(_ result: DoorOpeningResult, _ invocation: Invocation) throws {
        guard result.status == "success" else {
            let hint = tr("badgectl open --help shows what is necessary")
            let reason = result.reason.map(DaemonWords.text) ?? result.status
            let text = tr("not opened: \(reason) (\(result.status))")
            throw CommandFailure(text.printable, hint: hint)
        }
        let reader = result.readerID ?? tr("the reader")
        guard result.accessDecision != "denied" else {
            throw CommandFailure(tr("\(reader) denies access").printable, hint: tr("ask the owner of the door"))
        }
        if !invocation.wantsJSON {
            let word =
                result.accessDecision == "granted" ? tr("grants access") : tr("does not say whether the door opens")
            Output.line("\(reader) \(word)".printable)
        }
    }
}
