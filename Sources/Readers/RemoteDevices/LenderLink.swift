// SPDX-License-Identifier: GPL-3.0-or-later
import Concurrency
import Drivers
import ISO7816
import Readers
import ReadersRemote
import Text

/// The connection to one device that lends readers: its context, its slots, and one request at a time.
@Loop final class LenderLink {
    private let link: RemoteLink
    private let fingerprint: String
    private let version: IFDVersion
    private let ownName: String
    private let lenders: Lenders
    private var deviceName = "?"
    private var context: String?
    private var slots: [String: LenderSlot] = [:]
    private var isOver = false

    /// The request that waits for its answer. Answers have no number, so there is only one at a time.
    private var pending: Pending?
    private let turns = ReaderGate()

    private struct Pending {
        enum Outcome: Sendable {
            case answer(IFDMessage)
            /// The card has left, and the answer may still come.
            case cardGone
            /// There is no answer in time.
            case lost
        }

        let outcome = OneShot<Outcome>()
        /// Whether an answer has come, also one after the card has left.
        let end = OneShot<Bool>()
        let insertion: Insertion

        func answer(_ message: IFDMessage) {
            outcome.fill(.answer(message))
            end.fill(true)
        }
    }

    private static let maximumSlots = 8
    /// Milliseconds for an answer that the user of the device gives.
    private static let userTime: Int64 = 95_000

    init(
        _ link: RemoteLink,
        _ fingerprint: String,
        _ version: IFDVersion,
        _ ownName: String,
        _ lenders: Lenders
    ) {
        self.link = link
        self.fingerprint = fingerprint
        self.version = version
        self.ownName = ownName
        self.lenders = lenders
    }

    /// Runs the link to its end. Each function says whether the link goes on: `isFirst` when the WebSocket is open,
    /// `isWanted` when the device has given a context.
    func run(_ isFirst: @Loop () -> Bool, isWanted: @Loop () -> Bool) async -> RemoteLink.Ending? {
        var last: RemoteLink.Ending?
        let limit = Loop.Alarm { [weak self] in self?.close() }
        limit.set(after: 2 * lenders.settings.answerTime)
        for await event in link.events {
            switch event {
            case .opened:
                // The certificate of this device was checked in the handshake.
                guard isFirst() else {
                    close()
                    continue
                }
                let name = version.rawValue
                send(.establishContext(protocolName: name, deviceName: ownName))
            case .message(let bytes):
                if let isReady = handle(bytes) {
                    limit.cancel()
                    guard isReady, isWanted() else {
                        close()
                        continue
                    }
                    send(.getStatus(slot: ""))
                }
            case .ended(let ending): last = ending
            }
        }
        limit.cancel()
        end()
        return last
    }

    func close() { link.close() }

    private func end() {
        isOver = true
        for slot in slots.values { lenders.remove(slot) }
        slots = [:]
        pending?.outcome.fill(.lost)
        pending?.end.fill(false)
    }

    private func send(_ message: IFDMessage) {
        link.send(IFDEnvelope(context: context, message).encode(version))
    }

    /// Handles a message. The result says whether the device has given a context; nil for other messages.
    private func handle(_ bytes: [UInt8]) -> Bool? {
        let envelope: IFDEnvelope
        do throws(IFDParseError) {
            envelope = try IFDEnvelope(bytes)
        } catch {
            switch error {
            case .incomplete(let name, _):
                // An answer that cannot be parsed counts as a failure.
                if IFDEnvelope.isAnswer(name) { pending?.answer(.error(.failed(.unknownError))) }
            case .unknown, .notAMessage: send(.error(.failed(.unknownAPIFunction)))
            }
            return nil
        }
        if case .establishContextResponse(let name, let result) = envelope.message {
            guard context == nil else { return nil }
            guard result == .ok, let given = envelope.context, !given.isEmpty,
                given.utf8.count <= IFDMessage.maximumNameCount
            else { return false }
            context = given
            deviceName = name
            lenders.rename(fingerprint, name)
            return true
        }
        guard let context, envelope.context == context else { return nil }
        switch envelope.message {
        case .status(let status): update(status)
        case .connectResponse, .disconnectResponse, .transmitResponse, .establishPACEResponse, .modifyPINResponse,
            .destroyPACEResponse, .error:
            pending?.answer(envelope.message)
        case .establishContext, .establishContextResponse, .getStatus, .connect, .disconnect, .transmit, .establishPACE,
            .modifyPIN, .destroyPACE:
            send(.error(.failed(.unknownAPIFunction)))
        }
        return nil
    }

    // MARK: Slots

    private func update(_ status: IFDStatus) {
        guard let slot = slots[status.slot] ?? add(status) else { return }
        if !status.hasCard, let insertion = slot.insertion, pending?.insertion == insertion {
            // The device may still ask its user, so its answer may come late.
            pending?.outcome.fill(.cardGone)
        }
        guard status.isConnected else {
            lenders.remove(slot)
            slots[status.slot] = nil
            return
        }
        var description = slot.description
        description.hasKeypad = status.hasKeypad
        description.hasExtendedLength = status.hasExtendedLength
        if description != slot.description {
            slot.description = description
            lenders.change(slot)
        }
        if status.hasCard { lenders.insert(slot) } else { lenders.withdraw(slot) }
    }

    private func add(_ status: IFDStatus) -> LenderSlot? {
        guard status.isConnected, slots.count < Self.maximumSlots else { return nil }
        let slot = LenderSlot(status, device: RemoteDevice(fingerprint: fingerprint, name: deviceName), self)
        guard lenders.add(slot) else { return nil }
        slots[status.slot] = slot
        return slot
    }

    // MARK: Requests

    /// Sends a request and waits for its answer.
    ///
    /// A request whose turn does not come in time fails, as at a reader that another program uses. Without an answer in time, or when the task is cancelled, the
    /// whole link ends. Otherwise a late answer would be taken for that of the next request.
    func request(
        _ message: IFDMessage,
        about insertion: Insertion,
        asksUser: Bool = false
    ) async throws(CardError) -> IFDMessage {
        let turn = turns.enter("")
        let patience = Loop.Alarm { turn.fill(false) }
        // badged waits for longer where a person is asked, too.
        patience.set(after: lenders.settings.turnTime + (asksUser ? Self.userTime : 0))
        let hasTurn = await turn.value(whenCancelled: false)
        patience.cancel()
        guard hasTurn else {
            guard !Task.isCancelled else { throw .cancelled }
            // A card that is not released would stay in use.
            if case .disconnect = message, isCurrent(insertion) { close() }
            throw .exclusive
        }
        guard !isOver, isCurrent(insertion) else {
            turns.leave("")
            throw .removed
        }
        let request = Pending(insertion: insertion)
        pending = request
        send(message)
        let limit = Loop.Alarm { request.outcome.fill(.lost) }
        limit.set(after: asksUser ? Self.userTime : lenders.settings.answerTime)
        // Only a request that asks the user of the device is cancelled early; other answers come soon.
        let outcome =
            asksUser
            ? await request.outcome.value(whenCancelled: .lost)
            : await Task { @Loop in await request.outcome.value(whenCancelled: .lost) }.value
        limit.cancel()
        if case .cardGone = outcome {
            // The next request has to wait for the late answer.
            Task { @Loop in
                await lateAnswer(request)
                endTurn()
            }
            throw .removed
        }
        endTurn()
        guard case .answer(let answer) = outcome else {
            close()
            throw Task.isCancelled ? .cancelled : .removed
        }
        // A success that arrives after the removal of the card is not trusted.
        guard !isOver, isCurrent(insertion) else { throw .removed }
        return answer
    }

    private func endTurn() {
        pending = nil
        turns.leave("")
    }

    /// Waits for the answer to a request whose card has left. Without one the link ends.
    private func lateAnswer(_ request: Pending) async {
        let limit = Loop.Alarm { request.end.fill(false) }
        limit.set(after: lenders.settings.answerTime)
        if await !request.end.value(whenCancelled: false) { close() }
        limit.cancel()
    }

    private func isCurrent(_ insertion: Insertion) -> Bool { slots.values.contains { $0.insertion == insertion } }

    /// Does what badged asks about a card.
    func perform(
        _ request: CardRequest,
        _ slot: LenderSlot,
        _ insertion: Insertion
    ) async throws(CardError) -> CardAnswer {
        if case .connect = request {
            let answer = try await self.request(.connect(slot: slot.slot), about: insertion)
            guard case .connectResponse(let handle, let result) = answer else { throw Self.error(answer) }
            guard case .ok = result, !handle.isEmpty else { throw Self.error(result) }
            slot.handle = handle
            return .done
        }
        guard let handle = slot.handle else { throw .removed }
        switch request {
        case .connect: return .done
        case .transmit(let command): return .response(try await transmit(command, handle, slot, insertion))
        case .release:
            // The device resets the card.
            slot.handle = nil
            _ = try await self.request(.disconnect(handle: handle), about: insertion)
            return .done
        case .establishPACE(let input): return .pace(try await establishPACE(input, handle, insertion))
        case .destroyPACE:
            let answer = try await self.request(.destroyPACE(handle: handle), about: insertion)
            // AusweisApp2 1.26 does not know the command, and 2.5 answers it wrongly for a handle that is no longer valid.
            guard case .destroyPACEResponse(handle, .ok) = answer else { throw Self.error(answer) }
            return .done
        case .modifyPIN:
            let message = IFDMessage.modifyPIN(handle: handle, input: PINModification().bytes)
            let answer = try await self.request(message, about: insertion, asksUser: true)
            guard case .modifyPINResponse(handle, let output, let result) = answer else { throw Self.error(answer) }
            guard let response = ResponseAPDU(bytes: output) else { throw Self.error(result) }
            return .status(response.status)
        }
    }

    private func transmit(
        _ command: CommandAPDU,
        _ handle: String,
        _ slot: LenderSlot,
        _ insertion: Insertion
    ) async throws(CardError) -> ResponseAPDU {
        let message = IFDMessage.transmit(handle: handle, apdu: command.bytes, text: slot.text.take())
        let answer = try await request(message, about: insertion)
        guard case .transmitResponse(handle, let bytes, let result) = answer else { throw Self.error(answer) }
        guard case .ok = result else { throw Self.error(result) }
        guard let response = ResponseAPDU(bytes: bytes) else { throw .mute }
        return response
    }

    /// Has the device ask its user. A cancelled task ends the link, which also ends the question to the user.
    private func establishPACE(
        _ input: KeypadPACERequest,
        _ handle: String,
        _ insertion: Insertion
    ) async throws(CardError) -> KeypadPACEResult {
        guard let input = PACEChannel.input(input) else { throw .tooLong }
        let answer = try await request(.establishPACE(handle: handle, input: input), about: insertion, asksUser: true)
        guard case .establishPACEResponse(handle, let code, let output, let result) = answer else {
            throw Self.error(answer)
        }
        // AusweisApp reports some outcomes in the result, and others only in the code.
        switch result {
        case .failed(.cancelled): return KeypadPACEResult(outcome: .cancelled)
        case .failed(.timeout): return KeypadPACEResult(outcome: .timeout)
        case .failed(.noCard), .failed(.invalidSlotHandle): throw .removed
        case .ok, .failed: break
        }
        let header = (0..<4).map { UInt8(truncatingIfNeeded: code >> ($0 * 8)) }
        let count = [UInt8(truncatingIfNeeded: output.count), UInt8(truncatingIfNeeded: output.count >> 8)]
        guard output.count <= UInt16.max, let parsed = PACEChannel.established(header + count + output) else {
            throw .other("the answer to EstablishPACEChannel is malformed (\(output.count) bytes)")
        }
        guard result == .ok || parsed.outcome != .established else { throw Self.error(result) }
        return parsed
    }

    private static func error(_ answer: IFDMessage) -> CardError {
        if case .error(let result) = answer { return error(result) }
        return .other("the device has sent an answer that does not match the request")
    }

    private static func error(_ result: IFDResult) -> CardError {
        switch result {
        case .ok: .other("the answer is malformed")
        case .failed(.sharingViolation): .exclusive
        case .failed(.timeout), .failed(.cancelled): .other("the user has not answered")
        case .failed: .removed
        }
    }
}

/// A slot of a device, which is a reader for badged.
@Loop final class LenderSlot {
    /// The name of the reader.
    nonisolated let name: String
    /// The name for the device.
    let slot: String
    var description: ReaderDescription
    var insertion: Insertion?
    /// The handle of the device for the card, while badged is connected to it.
    var handle: String?
    /// What the device has to show.
    var text: String?
    weak var link: LenderLink?

    init(_ status: IFDStatus, device: RemoteDevice, _ link: LenderLink) {
        // The fingerprint makes the name unique even if two devices have the same name.
        let name = "\(device.name) \(DeviceName.clean(status.slot)) (\(device.fingerprint.prefix(8)))"
        self.name = name
        slot = status.slot
        self.link = link
        description = ReaderDescription(
            name: name,
            hasKeypad: status.hasKeypad,
            hasExtendedLength: status.hasExtendedLength
        )
    }
}
