// SPDX-License-Identifier: GPL-3.0-or-later
import BadgedClient
import Host
import Text

/// `badgectl closest`: scans until a reader is in range, and shows the closest one that can be opened in the wanted
/// way.
enum ClosestCommand {
    static let spec = ShellCommand(
        name: "closest",
        summary: "show the closest door reader for a way of opening",
        operand: ValueSpec("TYPE", .openingTypes),
        options: [.code],
        details: [
            """
            Shows the closest of the readers that can be opened in this way and are near enough. Waits up to five
            seconds for one. Without one it ends with 1 and says why.
            """,
            "TYPE is proximity, motion, seamless, applicationSpecific or enhancedTap.",
        ],
        run: run
    )

    @Sendable private static func run(_ invocation: Invocation) async throws {
        let type = invocation.operand
        let options = ScanCommand.options(try ScanCommand.filter(invocation))
        let connection = try await invocation.connect(keepsEvents: true, showsEvents: false)
        var status = try await ScanCommand.start(connection, options)
        let last = Task.detached {
            // Closing ends the loop over the events.
            defer { connection.close() }
            try? await Task.sleep(for: ScanCommand.duration)
            return try await connection.doorReaders()
        }
        for await event in connection.events {
            if let change = event.message as? ScanStatus { status = change }
            guard let reader = event.message as? DoorReader, isOpenable(reader, type) else { continue }
            if let closest = try await connection.doorReaders().first(where: { isOpenable($0, type) }) {
                return show(closest, invocation)
            }
        }
        if let ending = connection.ending, ending != .closed { throw ending }
        let readers = try await last.value
        if let closest = readers.first(where: { isOpenable($0, type) }) { return show(closest, invocation) }
        if readers.isEmpty, let failure = ScanCommand.failure(status, hasReaders: false) { throw failure }
        throw failure(readers, type)
    }

    private static func isOpenable(_ reader: DoorReader, _ type: String) -> Bool {
        reader.isActive && reader.inRange.contains(type) && !reader.isCoolingDown
    }

    private static func show(_ reader: DoorReader, _ invocation: Invocation) {
        if !invocation.wantsJSON { for line in DoorReaderTable.lines([reader]) { Output.line(line) } }
    }

    /// Why no reader can be opened now.
    private static func failure(_ readers: [DoorReader], _ type: String) -> CommandFailure {
        guard !readers.isEmpty else {
            let hint = tr("badgectl health shows what may be missing; --code 0 accepts any code")
            return CommandFailure(tr("no door reader is in reach"), hint: hint)
        }
        let suitable = readers.filter { $0.openingTypes.contains(type) }
        if suitable.isEmpty {
            return CommandFailure(
                tr("no door reader in reach can be opened that way"),
                hint: tr("badgectl scan shows them")
            )
        }
        if suitable.contains(where: { $0.inRange.contains(type) }) {
            return CommandFailure(
                tr("the closest door reader was opened just now"),
                hint: tr("wait a moment, and try again")
            )
        }
        return CommandFailure(tr("no door reader is near enough"), hint: tr("go closer to the door"))
    }
}
