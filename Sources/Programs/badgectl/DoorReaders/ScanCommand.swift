// SPDX-License-Identifier: GPL-3.0-or-later
import BadgedClient
import DoorReaders
import Glibc

/// `badgectl scan`: lists the door readers in reach.
enum ScanCommand {
    static let spec = CommandSpec(
        name: "scan",
        summary: "list the door readers in reach, the strongest first",
        options: [
            .code,
            OptionSpec("--type", ValueSpec("TYPE", .openingTypes), "readers that can be opened in this way"),
            OptionSpec("--watch", "show every change, until Ctrl-C"),
            OptionSpec("--replay", ValueSpec("FILE", .files), "read a capture instead"),
        ],
        details: [
            """
            Listens for five seconds. The bar shows the signal strength from -100 to -40 dBm. The last column shows for
            which ways of opening the reader is near enough. Without --code: readers with the usual code 2.
            """,
            """
            TYPE is proximity, motion, seamless, applicationSpecific or enhancedTap. With --replay badged is not needed;
            the table shows the state at the end of the capture.
            """,
        ],
        run: run
    )

    /// How long the command listens without `--watch`.
    static let duration = Duration.seconds(5)

    @Sendable private static func run(_ invocation: Invocation) async throws(Failure) -> ExitStatus {
        let filter = try filter(invocation)
        if let path = invocation.value(of: "--replay") { return try ReplayedScan.run(path, filter) }
        let isWatching = invocation.has("--watch")
        let connection = try await invocation.connect(keepsEvents: true)
        try await start(connection, options(filter))
        if !isWatching { end(connection, after: duration) }

        var readers: [String: BadgedClient.DoorReader] = [:]
        let isTerminal = isatty(STDOUT_FILENO) == 1
        for await event in connection.events {
            switch event.message {
            case let reader as BadgedClient.DoorReader:
                readers[reader.id] = reader
                if isWatching, !isTerminal, !invocation.wantsJSON { Output.line(DoorReaderTable.lines([reader])[0]) }
            case let lost as DoorReaderLost:
                readers[lost.id] = nil
                if isWatching, !isTerminal, !invocation.wantsJSON { Output.line("lost \(lost.id)") }
            case let status as ScanStatus: warn(status)
            default: continue
            }
            if isWatching, isTerminal, !invocation.wantsJSON { draw(readers) }
        }
        if isWatching { throw Failure(connection.ending ?? .closed) }
        if !invocation.wantsJSON { for line in DoorReaderTable.lines(readers.values) { Output.line(line) } }
        return .done
    }

    /// Clears the screen and draws the table.
    private static func draw(_ readers: [String: BadgedClient.DoorReader]) {
        Output.write(
            "\u{1B}[H\u{1B}[2J" + DoorReaderTable.lines(readers.values).joined(separator: "\n") + "\n",
            to: STDOUT_FILENO
        )
    }

    /// Starts the scan. When the radio does not work now, it only warns: badged goes on trying.
    static func start(_ connection: DaemonConnection, _ options: ScanOptions) async throws(Failure) {
        warn(try await Invocation.ask { () throws(ClientError) in try await connection.startScan(options) })
    }

    static func warn(_ status: ScanStatus) {
        // While the radio listens, the error is a restriction of the scan.
        if let error = status.error { Output.note("badgectl: \(status.isListening ? "scan" : "no scan"): \(error)") }
    }

    /// Closes the connection after `time`, which ends its events.
    static func end(_ connection: DaemonConnection, after time: Duration) {
        Task.detached {
            try? await Task.sleep(for: time)
            connection.close()
        }
    }

    // MARK: Options

    static func filter(_ invocation: Invocation) throws(Failure) -> ScanFilter {
        var filter = ScanFilter()
        if let text = invocation.value(of: "--code") {
            guard let code = Int(text), code == 0 || LockServiceCode.range.contains(code) else {
                throw Failure(.usage, "--code cannot be \(text)", hint: "use a number from 0 to 16777215")
            }
            filter.lockServiceCodes = code == 0 ? [] : [code]
        }
        if let type = invocation.value(of: "--type").flatMap(OpeningType.init(name:)) {
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
