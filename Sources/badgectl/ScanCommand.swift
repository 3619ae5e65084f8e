// SPDX-License-Identifier: GPL-3.0-or-later
import BadgedClient
import DoorReaders
import Glibc
import Wire

/// `badgectl scan`: START_SCAN, and what comes of it.
enum ScanCommand {
    /// How long it listens without `--watch`.
    static let patience = Duration.seconds(5)

    @Sendable static func run(_ invocation: Invocation) async throws(Failure) -> ExitStatus {
        let filter = try filter(invocation)
        if let path = invocation.options["--replay"] { return try ReplayedScan.run(path, filter) }
        let isWatching = invocation.options["--watch"] != nil
        let connection = try await invocation.connect(keepsEvents: true)
        try await start(connection, members(filter), invocation)
        if !isWatching { end(connection, after: patience) }

        var readers: [String: BadgedClient.DoorReader] = [:]
        let isTerminal = isatty(STDOUT_FILENO) == 1
        for await event in connection.events {
            if invocation.wantsJSON { Output.line(event.text) }
            switch event.message {
            case .doorReader(let reader):
                readers[reader.id] = reader
                if isWatching, !isTerminal, !invocation.wantsJSON { Output.line(DoorReaderTable.lines([reader])[0]) }
            case .doorReaderLost(let id):
                readers[id] = nil
                if isWatching, !isTerminal, !invocation.wantsJSON { Output.line("lost \(id)") }
            case .scan(let status):
                if let error = status.error { Output.note("badgectl: no scan: \(error)") }
            default: continue
            }
            if isWatching, isTerminal, !invocation.wantsJSON { draw(readers) }
        }
        if isWatching { throw Failure(connection.ending ?? .closed) }
        if !invocation.wantsJSON { for line in DoorReaderTable.lines(readers.values) { Output.line(line) } }
        return .done
    }

    /// The whole screen anew: clear, home.
    private static func draw(_ readers: [String: BadgedClient.DoorReader]) {
        Output.write(
            "\u{1B}[H\u{1B}[2J" + DoorReaderTable.lines(readers.values).joined(separator: "\n") + "\n",
            to: STDOUT_FILENO
        )
    }

    /// Sends START_SCAN; a scan that is wanted, but fails for now, is only said.
    static func start(
        _ connection: DaemonConnection,
        _ members: [JSON.Member],
        _ invocation: Invocation
    ) async throws(Failure) {
        let answer: Event
        do throws(ClientError) {
            answer = try await connection.request("START_SCAN", members)
            if let refusal = ClientError(answer.message) { throw refusal }
        } catch {
            throw Failure(error)
        }
        if invocation.wantsJSON { Output.line(answer.text) }
        if case .scan(let status) = answer.message, let error = status.error {
            Output.note("badgectl: no scan: \(error)")
        }
    }

    /// Closes the connection later, which ends its events.
    static func end(_ connection: DaemonConnection, after time: Duration) {
        Task.detached {
            try? await Task.sleep(for: time)
            connection.close()
        }
    }

    // MARK: Options

    static func filter(_ invocation: Invocation) throws(Failure) -> ScanFilter {
        var filter = ScanFilter()
        if let text = invocation.options["--code"] {
            guard let code = Int(text), code == 0 || LockServiceCode.range.contains(code) else {
                throw Failure(.usage, "--code cannot be \(text)", hint: "a number from 0 to 16777215")
            }
            filter.lockServiceCodes = code == 0 ? [] : [code]
        }
        if let text = invocation.options["--type"] {
            guard let type = OpeningType(name: text) else {
                let names = OpeningType.allCases.map(\.name).joined(separator: ", ")
                throw Failure(.usage, "--type cannot be \(text)", hint: "one of \(names)")
            }
            filter.openingTypes = OpeningTypes(type)
        }
        return filter
    }

    static func members(_ filter: ScanFilter) -> [JSON.Member] {
        [
            .init("lockServiceCodes", .array(filter.lockServiceCodes.sorted().map { .number(String($0)) })),
            .init("mode", .string("performance")),
            .init("openingTypes", .array(filter.openingTypes.types.map { .string($0.name) })),
        ]
    }
}
