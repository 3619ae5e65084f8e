// SPDX-License-Identifier: GPL-3.0-or-later
import Concurrency
import Crypto
import Drivers
import ISO7816
import Readers
import ReadersRemote
import Text

/// One connection of another device to the shared readers: its context and the cards that it holds.
@Loop final class Guest {
    /// The pairing mode in which the connection began; nil: the device has to be paired.
    let pairing: Borrowers.OpenPairing?
    /// The other device, after its certificate and, in a pairing, its code were accepted.
    private(set) var device: RemoteDevice?
    private let link: RemoteLink
    private let borrowers: Borrowers
    private var version = IFDVersion.two
    private var context: String?
    /// The shared readers, which badged has.
    private lazy var readers = DriverSession { [weak self] in
        self?.borrowers.report($0)
    } onEvent: { [weak self] in
        self?.handle($0)
    }
    private var slots: [String: Slot] = [:]
    /// The readers that a message of badged has changed.
    private var changed: Set<String> = []
    /// The cards that the device holds, by slot handle.
    private var cards: [String: (connection: any CardConnection, insertion: Insertion)] = [:]
    private var told: [String: IFDStatus] = [:]
    private var worker: Task<Void, Never>?
    private var running: Task<Void, Never>?
    private(set) var isClosed = false
    private var limit: Loop.Alarm?
    /// The question at a keypad, and the card that it is about.
    private var question: (handle: String, task: Task<KeypadAnswer, Never>)?

    /// A shared reader, with the card in it.
    private struct Slot {
        var description: ReaderDescription
        var insertion: Insertion?
        /// Whether somebody else has the card.
        var isHeld = false
    }

    init(_ link: RemoteLink, pairing: Borrowers.OpenPairing?, _ borrowers: Borrowers) {
        self.link = link
        self.pairing = pairing
        self.borrowers = borrowers
    }

    private typealias KeypadAnswer = Result<KeypadPACEResult, CardError>

    /// Runs the connection, and calls `ended` at its end.
    func start(_ ended: @escaping @Loop (RemoteLink.Ending?) -> Void) {
        running = Task { @Loop in ended(await run()) }
    }

    /// Closes the connection, and returns at its end.
    func end() async {
        close()
        await running?.value
    }

    /// Runs the connection to its end. At the end all cards are released.
    private func run() async -> RemoteLink.Ending? {
        let (messages, queue) = AsyncStream.makeStream(of: [UInt8].self, bufferingPolicy: .bufferingOldest(64))
        worker = Task { @Loop in
            for await message in messages { await handle(message) }
        }
        var ending: RemoteLink.Ending?
        for await event in link.events {
            switch event {
            case .opened(let fingerprint):
                device = borrowers.opened(self, fingerprint)
                guard device != nil else {
                    // The code is that of AusweisApp. It is no refusal, because the WebSocket is open.
                    link.close(1008)
                    continue
                }
                let alarm = Loop.Alarm { [weak self] in self?.link.close() }
                alarm.set(after: borrowers.settings.times.setUp)
                limit = alarm
            case .message(let bytes):
                if case .dropped = queue.yield(bytes) { link.close(1008) }
            case .ended(let last): ending = last
            }
        }
        isClosed = true
        limit?.cancel()
        queue.finish()
        // A question at a reader with a keypad ends here.
        worker?.cancel()
        await worker?.value
        for handle in Array(cards.keys) { await release(handle) }
        return ending
    }

    func close() {
        isClosed = true
        link.close()
    }

    private func send(_ message: IFDMessage) {
        link.send(IFDEnvelope(context: context ?? "", message).encode(version))
    }

    // MARK: Messages

    private func handle(_ bytes: [UInt8]) async {
        guard device != nil, !Task.isCancelled else { return }
        let envelope: IFDEnvelope
        do throws(IFDParseError) {
            envelope = try IFDEnvelope(bytes)
        } catch {
            switch error {
            case .notAMessage, .unknown: send(.error(.failed(.unknownAPIFunction)))
            case .incomplete(_, let given):
                if given == context, context != nil { send(.error(.failed(.unknownError))) }
            }
            return
        }
        if case .establishContext(let name, let deviceName) = envelope.message {
            return await establishContext(IFDVersion(rawValue: name), deviceName)
        }
        // A message of another context is dropped without an answer.
        guard pairing == nil, let context, envelope.context == context else { return }
        await perform(envelope.message)
    }

    private func establishContext(_ wanted: IFDVersion?, _ deviceName: String) async {
        let name = borrowers.settings.name
        guard context == nil, let wanted, let random = try? Random.bytes(16) else {
            return send(.establishContextResponse(deviceName: name, .failed(.unknownError)))
        }
        limit?.cancel()
        device?.name = deviceName
        guard let device, pairing != nil ? await borrowers.complete(device, pairing) : await borrowers.begin(self)
        else {
            send(.establishContextResponse(deviceName: name, .failed(.unknownError)))
            return link.close(1008)
        }
        version = wanted
        if pairing == nil {
            borrowers.report(DriverRequest.look(sources: []))
            // The answer comes after the readers were told.
            _ = await readers.currentHealth()
        }
        context = "{\(UUIDText.encode(random))}"
        send(.establishContextResponse(deviceName: name, .ok))
        // After a pairing the other device closes the connection now.
        if pairing != nil { limit?.set(after: borrowers.settings.times.setUp) }
        for slot in slots.keys.sorted() { tell(slot) }
    }

    // MARK: Readers

    /// Handles a message of badged about the shared readers.
    func handle(_ report: DriverReport) {
        readers.handle(report)
        for name in changed.sorted() { tell(name) }
        changed = []
    }

    private func handle(_ event: ReaderEvent) {
        switch event {
        case .added(let reader):
            slots[reader.name] = Slot(description: reader)
            changed.insert(reader.name)
        case .changed(let reader):
            slots[reader.name]?.description = reader
            slots[reader.name]?.isHeld = false
            changed.insert(reader.name)
        case .removed(let name):
            slots[name] = nil
            changed.insert(name)
        case .inserted(let insertion, _):
            slots[insertion.reader]?.insertion = insertion
            changed.insert(insertion.reader)
        case .withdrawn(let insertion):
            changed.insert(insertion.reader)
            slots[insertion.reader]?.insertion = nil
            slots[insertion.reader]?.isHeld = false
            // The handle is invalid at once. badged has released the card.
            for (handle, card) in cards where card.insertion == insertion {
                cards[handle] = nil
                if question?.handle == handle { question?.task.cancel() }
            }
        case .held(let insertion):
            slots[insertion.reader]?.isHeld = true
            changed.insert(insertion.reader)
        case .health: break
        }
    }

    private func status(_ name: String) -> IFDStatus? {
        guard let slot = slots[name] else { return nil }
        return IFDStatus(
            slot: name,
            hasKeypad: slot.description.hasKeypad,
            maximumAPDU: slot.description.hasExtendedLength ? 500 : 261,
            hasCard: slot.insertion != nil && !slot.isHeld
        )
    }

    /// Reports a changed reader to the device.
    private func tell(_ name: String) {
        guard context != nil, pairing == nil else { return }
        var now = status(name)
        if now == nil, var gone = told[name] {
            gone.isConnected = false
            gone.hasCard = false
            now = gone
        }
        guard let now, told[name] != now else { return }
        told[name] = now.isConnected ? now : nil
        send(.status(now))
    }

    private func perform(_ message: IFDMessage) async {
        switch message {
        case .getStatus(let slot): sendStatus(slot)
        case .connect(let slot): await connect(slot)
        case .disconnect(let handle):
            guard cards[handle] != nil else {
                return send(.disconnectResponse(handle: handle, .failed(.invalidSlotHandle)))
            }
            await release(handle)
            send(.disconnectResponse(handle: handle, .ok))
        case .transmit(let handle, let apdu, _): await transmit(handle, apdu)
        case .establishPACE(let handle, let input): await establishPACE(handle, input)
        case .modifyPIN(let handle, _): await modifyPIN(handle)
        case .destroyPACE(let handle):
            guard let card = cards[handle] else {
                return send(.destroyPACEResponse(handle: handle, .failed(.invalidSlotHandle)))
            }
            do throws(CardError) {
                guard let keypad = card.connection as? any KeypadConnection else { throw .other("no keypad") }
                try await keypad.destroyPACE()
                send(.destroyPACEResponse(handle: handle, .ok))
            } catch {
                send(.destroyPACEResponse(handle: handle, .failed(.unknownError)))
            }
        case .error: break
        case .establishContext, .establishContextResponse, .status, .connectResponse, .disconnectResponse,
            .transmitResponse, .establishPACEResponse, .modifyPINResponse, .destroyPACEResponse:
            send(.error(.failed(.unknownAPIFunction)))
        }
    }

    private func sendStatus(_ slot: String) {
        let statuses = slots.keys.sorted().filter { slot.isEmpty || $0 == slot }.compactMap(status)
        // AusweisApp answers an unknown name in this way.
        if statuses.isEmpty, !slot.isEmpty { return send(.connectResponse(handle: slot, .failed(.unknownSlot))) }
        for status in statuses {
            told[status.slot] = status
            send(.status(status))
        }
    }

    // MARK: Cards

    private func connect(_ name: String) async {
        guard let slot = slots[name] else {
            return send(.connectResponse(handle: name, .failed(.unknownSlot)))
        }
        guard !cards.values.contains(where: { $0.insertion.reader == name }) else {
            return send(.connectResponse(handle: name, .failed(.sharingViolation)))
        }
        do throws(CardError) {
            guard let insertion = slot.insertion else { throw .removed }
            let connection = try await readers.connect(insertion)
            guard let random = try? Random.bytes(16), !Task.isCancelled else {
                await connection.disconnect(reset: true)
                throw .cancelled
            }
            guard slots[name]?.insertion == insertion else { throw .removed }
            let handle = "{\(UUIDText.encode(random))}"
            cards[handle] = (connection, insertion)
            send(.connectResponse(handle: handle, .ok))
        } catch {
            let reason: IFDResult.Minor = error == .exclusive ? .sharingViolation : .unknownError
            send(.connectResponse(handle: name, .failed(reason)))
        }
    }

    private func release(_ handle: String) async {
        await cards.removeValue(forKey: handle)?.connection.disconnect(reset: true)
    }

    private func transmit(_ handle: String, _ apdu: [UInt8]) async {
        guard let card = cards[handle] else {
            return send(.transmitResponse(handle: handle, apdu: [], .failed(.invalidSlotHandle)))
        }
        guard let command = CommandAPDU(bytes: apdu) else {
            return send(.transmitResponse(handle: handle, apdu: [], .failed(.unknownError)))
        }
        do throws(CardError) {
            let answer = try await card.connection.transmit(command)
            send(.transmitResponse(handle: handle, apdu: answer.bytes, .ok))
        } catch {
            send(.transmitResponse(handle: handle, apdu: [], .failed(.unknownError)))
        }
    }

    /// Runs PACE on the keypad of the shared reader. Without a keypad this host cannot ask for a password.
    private func establishPACE(_ handle: String, _ input: [UInt8]) async {
        guard let card = cards[handle] else {
            return reply(handle, KeypadPACEResult(outcome: .noCard), .failed(.invalidSlotHandle))
        }
        // CAN, PIN and PUK only.
        guard let keypad = card.connection as? any KeypadConnection, let request = PACEChannel.request(input),
            (2...4).contains(request.passwordID)
        else { return reply(handle, KeypadPACEResult(outcome: .failed(0xD000_0002)), .failed(.unknownError)) }
        // A card that leaves ends the question.
        let task = Task { @Loop () -> KeypadAnswer in
            await Result { () async throws(CardError) in try await keypad.establishPACE(request) }
        }
        question = (handle, task)
        let answer = await task.cancellableValue
        question = nil
        do throws(CardError) {
            guard cards[handle] != nil else { throw .removed }
            let result = try answer.get()
            switch result.outcome {
            case .established, .wrongPassword: reply(handle, result, .ok)
            case .cancelled: reply(handle, result, .failed(.cancelled))
            case .timeout: reply(handle, result, .failed(.timeout))
            case .noCard: reply(handle, result, .failed(.noCard))
            case .failed: reply(handle, result, .failed(.unknownError))
            }
        } catch {
            let isGone = error == .removed
            let outcome: KeypadPACEResult.Outcome = isGone ? .noCard : .failed(0xF010_0001)
            reply(handle, KeypadPACEResult(outcome: outcome), .failed(isGone ? .noCard : .unknownError))
        }
    }

    private func reply(_ handle: String, _ result: KeypadPACEResult, _ minor: IFDResult) {
        let (code, output) = (PACEChannel.code(result.outcome), PACEChannel.output(result))
        send(.establishPACEResponse(handle: handle, code: code, output: output, minor))
    }

    private func modifyPIN(_ handle: String) async {
        guard let card = cards[handle], let keypad = card.connection as? any KeypadConnection
        else { return send(.modifyPINResponse(handle: handle, output: [], .failed(.invalidSlotHandle))) }
        do throws(CardError) {
            let status = try await keypad.modifyPIN()
            let result: IFDResult =
                switch status.value {
                case 0x9000: .ok
                case 0x6400: .failed(.timeout)
                case 0x6401: .failed(.cancelled)
                case 0x6402: .failed(.repeatedDataMismatch)
                case 0x6403: .failed(.unknownPINFormat)
                default: .failed(.unknownError)
                }
            send(.modifyPINResponse(handle: handle, output: [status.sw1, status.sw2], result))
        } catch {
            let reason: IFDResult.Minor = error == .removed || cards[handle] == nil ? .noCard : .unknownError
            send(.modifyPINResponse(handle: handle, output: [], .failed(reason)))
        }
    }
}
