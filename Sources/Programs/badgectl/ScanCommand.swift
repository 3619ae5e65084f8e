// SPDX-License-Identifier: GPL-3.0-or-later
import BadgedClient
import DoorReaders
import Glibc

/// `badgectl scan`: which door readers are heard.
enum ScanCommand {
    /// How long it listens without `--watch`.
    static let patience = Duration.seconds(5)

    @Sendable static func run(_ invocation: Invocation) async throws(Failure) -> ExitStatus {
        let filter = try filter(invocation)
        if let path = invocation.options["--replay"] { return try ReplayedScan.run(path, filter) }
        let isWatching = invocation.options["--watch"] != nil
        let connection = try await invocation.connect(keepsEvents: true)
        try await start(connection, options(filter))
        if !isWatching { end(connection, after: patience) }

        var readers: [String: BadgedClient.DoorReader] = [:]
        let isTerminal = isatty(STDOUT_FILENO) == 1
        for await event in connection.events {
            switch event.message {
            case .doorReader(let reader):
                readers[reader.id] = reader
                if isWatching, !isTerminal, !invocation.wantsJSON { Output.line(DoorReaderTable.lines([reader])[0]) }
            case .doorReaderLost(let id):
                readers[id] = nil
                if isWatching, !isTerminal, !invocation.wantsJSON { Output.line("lost \(id)") }
            case .scan(let status): warn(status)
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

    /// Begins the scan; one that is wanted, but fails for now, is only said.
    static func start(_ connection: DaemonConnection, _ options: ScanOptions) async throws(Failure) {
        warn(try await Invocation.ask { () throws(ClientError) in try await connection.startScan(options) })
    }

    static func warn(_ status: ScanStatus) {
        if let error = status.error { Output.note("badgectl: no scan: \(error)") }
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

    static func options(_ filter: ScanFilter) -> ScanOptions {
        ScanOptions(
            mode: .performance,
            openingTypes: filter.openingTypes.types.map(\.name),
            lockServiceCodes: filter.lockServiceCodes.sorted()
        )
    }
}
