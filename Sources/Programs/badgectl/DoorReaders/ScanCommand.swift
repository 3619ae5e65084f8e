// SPDX-License-Identifier: GPL-3.0-or-later
import BadgedClient
import DoorReaders
import Glibc
import Host
import Synchronization
import Text

/// `badgectl scan`: lists the door readers in reach.
enum ScanCommand {
    static let spec = ShellCommand(
        name: "scan",
        summary: "list the door readers in reach, the strongest first",
        options: [
            .code,
            OptionSpec(.type, ValueSpec("TYPE", .openingTypes), "readers that can be opened in this way"),
            OptionSpec(.beacons, "iBeacons, too, with UUID, major and minor"),
            OptionSpec(.watch, "show every change, until Ctrl-C"),
            OptionSpec(.plot, ValueSpec("FILE", .files), "draw the signals over time as an SVG image"),
            OptionSpec(.replay, ValueSpec("FILE", .files), "read a capture instead"),
        ],
        details: [
            """
            Listens for five seconds. The bar shows the signal strength from -100 to -40 dBm. The last column shows for
            which ways of opening the reader is near enough. Without --code: readers with the usual code 2. When the
            radio does not work at the end, or lacks something and no reader was received, badgectl says why and ends
            with 1.
            """,
            """
            TYPE is proximity, motion, seamless, applicationSpecific or enhancedTap. With --watch each reader has a line
            of the last 30 s. With --replay badged is not needed; the table shows the state at the end of the capture.
            The image of --plot has a point for each report, the smoothed level as a line, and the limits as dashed
            lines: walk to a door and back to find the limits of a site.
            """,
        ],
        examples: [
            Example("watch the readers in reach", "badgectl scan --watch")
        ],
        run: run
    )

    /// How long the command listens without `--watch`.
    static let duration = Duration.seconds(5)

    @Sendable private static func run(_ invocation: Invocation) async throws {
        let filter = try filter(invocation)
        if let path = invocation.value(of: .plot) { try FileContent.check(path) }
        if let path = invocation.value(of: .replay) {
            return try ReplayedScan.run(
                path,
                filter,
                asJSON: invocation.wantsJSON,
                plot: invocation.value(of: .plot)
            )
        }
        let isWatching = invocation.has(.watch)
        let connection = try await invocation.connect(keepsEvents: true)
        var status = try await start(connection, options(filter))
        if isWatching { warn(status) }
        if !isWatching { end(connection, after: duration) }

        var readers: [String: BadgedClient.DoorReader] = [:]
        let plot = invocation.value(of: .plot)
        let table = isWatching && Layout.canClear && !invocation.wantsJSON ? LiveTable() : nil
        let writes = isWatching && !Layout.canClear && !invocation.wantsJSON
        var history = SignalHistory()
        // Ctrl-C ends the command, and the image is written before.
        let interruption = Mutex<Int32?>(nil)
        if plot != nil {
            EndSignals.handle { number in
                interruption.withLock { $0 = number }
                connection.close()
            }
        }
        for await event in connection.events {
            switch event.message {
            case let reader as BadgedClient.DoorReader:
                readers[reader.id] = reader
                if plot != nil { history.add(reader, at: LiveTable.now) }
                if writes { for line in DoorReaderTable.lines([reader]) { Output.line(line) } }
                table?.update(reader)
            case let lost as DoorReaderLost:
                readers[lost.id] = nil
                if writes { Output.line(tr("lost \(lost.id)").printable) }
                table?.remove(lost.id)
            case let change as ScanStatus:
                status = change
                if isWatching { warn(status) }
            default: continue
            }
        }
        table?.end()
        if let plot { try write(history, to: plot) }
        if let number = interruption.withLock({ $0 }) { throw ExitStatus.interrupted(number) }
        if isWatching { throw connection.ending ?? ClientError.closed }
        if let ending = connection.ending, ending != .closed { throw ending }
        // Readers that were received before a fault are shown, too.
        if !invocation.wantsJSON, status.error == nil || !readers.isEmpty {
            for line in DoorReaderTable.lines(readers.values) { Output.line(line) }
        }
        if let failure = failure(status, hasReaders: !readers.isEmpty) { throw failure }
        warn(status)
    }

    /// Writes the image of `--plot`.
    static func write(_ history: SignalHistory, to path: String) throws {
        guard let image = SignalPlot(history).svg else {
            throw CommandFailure(
                tr("no door reader was received, so there is no image"),
                hint: tr("badgectl health shows what may be missing; --code 0 accepts any code")
            )
        }
        try FileContent.write(Array(image.utf8), to: path)
    }

    /// Starts a scan. The hint of a refusal is the advice in it, which stands behind a colon.
    static func start(_ connection: DaemonConnection, _ options: ScanOptions) async throws -> ScanStatus {
        do {
            return try await connection.startScan(options)
        } catch .refused(let error) {
            guard let colon = error.firstRange(of: ": ") else { throw ClientError.refused(error) }
            let failure = CommandFailure(.refused(String(error[..<colon.lowerBound])) as ClientError)
            throw CommandFailure(failure.text.printable, hint: String(error[colon.upperBound...]))
        }
    }

    /// The failure of a scan whose radio does not work, or that lacks something and has received no reader.
    static func failure(_ status: ScanStatus, hasReaders: Bool) -> CommandFailure? {
        guard let error = status.error.map(DaemonWords.text), !status.isListening || !hasReaders else { return nil }
        let text = status.isListening ? tr("no door reader was received: \(error)") : tr("no scan: \(error)")
        return CommandFailure(text, hint: tr("badgectl health shows what badged needs"))
    }

    static func warn(_ status: ScanStatus) {
        guard let error = status.error.map(DaemonWords.text) else { return }
        Output.note(status.isListening ? tr("badgectl: scan: \(error)") : tr("badgectl: no scan: \(error)"))
    }

    /// Closes the connection after `time`, which ends its events.
    static func end(_ connection: DaemonConnection, after time: Duration) {
        Task.detached {
            try? await Task.sleep(for: time)
            connection.close()
        }
    }

    // MARK: Options

    static func filter(_ invocation: Invocation) throws -> ScanFilter {
        var filter = ScanFilter()
        if let text = invocation.value(of: .code) {
            guard let code = Int(text), code == 0 || LockServiceCode.range.contains(code) else {
                throw CommandFailure(usage: tr("--code cannot be \(text)"), hint: tr("use a number from 0 to 16777215"))
            }
            filter.lockServiceCodes = code == 0 ? [] : [code]
        }
        if invocation.has(.beacons) { filter.profiles.insert(.ibeacon) }
        if let type = invocation.value(of: .type).flatMap(OpeningType.init(name:)) {
            filter.openingTypes = OpeningTypes(type)
        }
        return filter
    }

    static func options(_ filter: ScanFilter) -> ScanOptions {
        ScanOptions(
            mode: .performance,
            openingTypes: filter.openingTypes.types.map(\.name),
            lockServiceCodes: filter.lockServiceCodes.sorted(),
            profiles: filter.profiles == ReaderProfile.doors ? nil : filter.profiles.map(\.rawValue).sorted()
        )
    }
}
