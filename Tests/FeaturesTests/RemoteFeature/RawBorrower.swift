// SPDX-License-Identifier: GPL-3.0-or-later
import Concurrency
import ReadersRemote
import RemoteDevices

/// A device with the key of the laptop, whose messages the test chooses.
@Loop final class RawBorrower {
    let link: RemoteLink
    /// The context and the card after `hold`.
    private(set) var (context, handle) = ("", "")
    private var events: AsyncStream<RemoteLink.Event>.Iterator

    /// Connects to the desk, past the cable.
    init(_ stage: RemoteStage, _ cable: Cable) async throws {
        link = RemoteLink.connect(
            to: RemoteAddress(host: .loopback, port: cable.desk),
            try await stage.laptopStore.identity(),
            .paired(trusted: [try await stage.deskStore.identity().fingerprint]),
            times: RemoteStage.patient
        )
        events = link.events.makeAsyncIterator()
        guard case .opened? = await nextEvent() else {
            throw RemoteStage.StageError(text: "the desk has refused the connection")
        }
    }

    private func nextEvent() async -> RemoteLink.Event? {
        var iterator = events
        defer { events = iterator }
        return await iterator.next(isolation: #isolation)
    }

    func send(_ message: IFDMessage, _ context: String?) {
        link.send(IFDEnvelope(context: context, message).encode(.two))
    }

    /// The next message that is no status, which comes at any time; nil at the end.
    func nextText() async -> [UInt8]? {
        while let event = await nextEvent() {
            guard case .message(let bytes) = event else { continue }
            if case .status = try? IFDEnvelope(bytes).message { continue }
            return bytes
        }
        return nil
    }

    func next() async -> IFDMessage? {
        guard let text = await nextText() else { return nil }
        return try? IFDEnvelope(text).message
    }

    func ask(_ message: IFDMessage, _ context: String?) async -> IFDMessage? {
        send(message, context)
        return await next()
    }

    /// Connects to the card in a reader.
    func hold(_ slot: String) async throws {
        guard let context = await establishContext(),
            case .connectResponse(let handle, .ok)? = await ask(.connect(slot: slot), context)
        else { throw RemoteStage.StageError(text: "the card is not lent") }
        (self.context, self.handle) = (context, handle)
    }

    /// Returns the new context; nil if it is refused.
    func establishContext() async -> String? {
        send(.establishContext(protocolName: "IFDInterface_WebSocket_v2", deviceName: "raw"), nil)
        guard let text = await nextText(), let answer = try? IFDEnvelope(text),
            case .establishContextResponse(_, .ok) = answer.message
        else { return nil }
        return answer.context
    }
}
