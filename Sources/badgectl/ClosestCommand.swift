// SPDX-License-Identifier: GPL-3.0-or-later
import BadgedClient
import Wire

/// `badgectl closest`: scans until a reader is in range, then GET_CLOSEST_DOOR_READER.
enum ClosestCommand {
    @Sendable static func run(_ invocation: Invocation) async throws(Failure) -> ExitStatus {
        let type = invocation.operand ?? ""
        let question = [JSON.Member("openingType", .string(type))]
        let connection = try await invocation.connect(keepsEvents: true)
        try await ScanCommand.start(connection, ScanCommand.members(try ScanCommand.filter(invocation)), invocation)
        let last = Task.detached {
            try? await Task.sleep(for: ScanCommand.patience)
            let answer = try? await connection.request("GET_CLOSEST_DOOR_READER", question)
            // Ends the events, and with them the wait.
            connection.close()
            return answer
        }
        for await event in connection.events {
            guard case .doorReader(let reader) = event.message, reader.inRange.contains(type) else { continue }
            guard let answer = try? await connection.request("GET_CLOSEST_DOOR_READER", question) else { break }
            if case .closestDoorReader(.some, _) = answer.message { return try show(answer, invocation) }
        }
        guard let answer = await last.value else { throw Failure(connection.ending ?? .closed) }
        return try show(answer, invocation)
    }

    private static func show(_ answer: Event, _ invocation: Invocation) throws(Failure) -> ExitStatus {
        if invocation.wantsJSON { Output.line(answer.text) }
        switch answer.message {
        case .closestDoorReader(let reader?, _):
            if !invocation.wantsJSON { for line in DoorReaderTable.lines([reader]) { Output.line(line) } }
            return .done
        case .closestDoorReader(nil, let reason):
            let (text, hint) = words(reason)
            throw Failure(.failed, text, hint: hint)
        default:
            if let refusal = ClientError(answer.message) { throw Failure(refusal) }
            throw Failure(.unexpectedAnswer(answer.name))
        }
    }

    private static func words(_ reason: String?) -> (String, String?) {
        switch reason {
        case "notSupported": ("the nearest door reader cannot be opened that way", "badgectl scan shows the others")
        case "outOfRange": ("no door reader is near enough", "go nearer")
        case "coolingDown": ("the nearest door reader has just been opened", nil)
        default: ("no door reader is heard", "badgectl health shows what may be missing; --code 0 takes any code")
        }
    }
}
