// SPDX-License-Identifier: GPL-3.0-or-later
import BadgedClient

/// `badgectl closest`: scans until a reader is in range, and asks which is the closest.
enum ClosestCommand {
    @Sendable static func run(_ invocation: Invocation) async throws(Failure) -> ExitStatus {
        let type = invocation.operand ?? ""
        let connection = try await invocation.connect(keepsEvents: true, showsEvents: false)
        try await ScanCommand.start(connection, ScanCommand.options(try ScanCommand.filter(invocation)))
        let last = Task.detached { () -> Result<ClosestDoorReader, Failure> in
            // Ends the events, and with them the wait.
            defer { connection.close() }
            try? await Task.sleep(for: ScanCommand.patience)
            do throws(Failure) {
                return .success(try await ask(connection, type))
            } catch {
                return .failure(error)
            }
        }
        for await event in connection.events {
            guard case .doorReader(let reader) = event.message, reader.inRange.contains(type) else { continue }
            if case .reader(let reader) = try await ask(connection, type) { return show(reader, invocation) }
        }
        if let ending = connection.ending, ending != .closed { throw Failure(ending) }
        switch try await last.value.get() {
        case .reader(let reader): return show(reader, invocation)
        case .nobody(let reason):
            let (text, hint) = words(reason)
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

    private static func words(_ reason: String) -> (String, String?) {
        switch reason {
        case "notSupported": ("the nearest door reader cannot be opened that way", "badgectl scan shows the others")
        case "outOfRange": ("no door reader is near enough", "go nearer")
        case "coolingDown": ("the nearest door reader has just been opened", nil)
        default: ("no door reader is heard", "badgectl health shows what may be missing; --code 0 takes any code")
        }
    }
}
