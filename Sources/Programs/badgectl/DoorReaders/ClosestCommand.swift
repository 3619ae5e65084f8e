// SPDX-License-Identifier: GPL-3.0-or-later
import BadgedClient

/// `badgectl closest`: scans until a reader is in range, and shows the closest one.
enum ClosestCommand {
    static let spec = CommandSpec(
        name: "closest",
        summary: "show the closest door reader for a way of opening",
        operand: ValueSpec("TYPE", .openingTypes),
        options: [.code],
        details: [
            "Waits up to five seconds for a reader in range. Without one it ends with 1 and says why."
        ],
        run: run
    )

    @Sendable private static func run(_ invocation: Invocation) async throws(Failure) -> ExitStatus {
        let type = invocation.operand
        let options = ScanCommand.options(try ScanCommand.filter(invocation))
        let connection = try await invocation.connect(keepsEvents: true, showsEvents: false)
        try await ScanCommand.start(connection, options)
        let last = Task.detached { () -> Result<ClosestDoorReader, Failure> in
            // Closing ends the loop over the events.
            defer { connection.close() }
            try? await Task.sleep(for: ScanCommand.duration)
            do throws(Failure) {
                return .success(try await ask(connection, type))
            } catch {
                return .failure(error)
            }
        }
        for await event in connection.events {
            guard let reader = event.message as? DoorReader, reader.inRange.contains(type) else { continue }
            if case .reader(let reader) = try await ask(connection, type) { return show(reader, invocation) }
        }
        if let ending = connection.ending, ending != .closed { throw Failure(ending) }
        switch try await last.value.get() {
        case .reader(let reader): return show(reader, invocation)
        case .nobody(let reason):
            let (text, hint) = explanation(reason)
            throw Failure(.failed, text, hint: hint)
        }
    }

    private static func ask(_ connection: DaemonConnection, _ type: String) async throws(Failure) -> ClosestDoorReader {
        try await Invocation.ask { () throws(ClientError) in try await connection.closestDoorReader(for: type) }
    }

    private static func show(_ reader: DoorReader, _ invocation: Invocation) -> ExitStatus {
        if !invocation.wantsJSON { for line in DoorReaderTable.lines([reader]) { Output.line(line) } }
        return .done
    }

    private static func explanation(_ reason: String) -> (String, String?) {
        switch reason {
        case "notSupported": ("the closest door reader cannot be opened that way", "badgectl scan shows the others")
        case "outOfRange": ("no door reader is near enough", "go closer to the door")
        case "coolingDown": ("the closest door reader was opened just now", nil)
        default: ("no door reader is in reach", "badgectl health shows what may be missing; --code 0 accepts any code")
        }
    }
}
