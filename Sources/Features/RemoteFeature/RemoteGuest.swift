// SPDX-License-Identifier: GPL-3.0-or-later
import Cards
import Concurrency
import Crypto
import Host
import ISO7816
import Readers
import ReadersRemote
import RemoteIFD
import Text

/// One connection of another device to the shared readers: its context and the cards that it holds.
@Loop final class RemoteGuest {
    /// The pairing mode in which the connection began; nil: the device has to be paired.
    let pairing: OneShot<RemoteSharing.PairingEnd>?
    /// The other device, after its certificate and, in a pairing, its code were accepted.
    private(set) var device: RemoteDevice?
    private let link: RemoteLink
    private let sharing: RemoteSharing
    private var version = IFDVersion.two
    private var context: String?
    /// By slot handle.
    private var leases: [String: CardLease] = [:]
    private var told: [String: IFDStatus] = [:]
    private var watcher: Task<Void, Never>?
    private var worker: Task<Void, Never>?
    private var running: Task<Void, Never>?
    private(set) var isClosed = false
    private var limit: Loop.Alarm?
    /// Ends the use of cards by a device that says nothing.
    private lazy var idle = Loop.Alarm { [weak self] in self?.reclaimCards() }
    /// The question at a keypad, and the card that it is about.
    private var question: (handle: String, task: Task<KeypadAnswer, Never>)?

    init(_ link: RemoteLink, pairing: OneShot<RemoteSharing.PairingEnd>?, _ sharing: RemoteSharing) {
        self.link = link
        self.pairing = pairing
        self.sharing = sharing
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
                device = sharing.opened(self, fingerprint)
                guard device != nil else {
                    // The code is that of AusweisApp. It is no refusal, because the WebSocket is open.
                    link.close(1008)
                    continue
                }
                let alarm = Loop.Alarm { [weak self] in self?.link.close() }
                alarm.set(after: sharing.settings.times.setUp)
                limit = alarm
            case .message(let bytes):
                if case .dropped = queue.yield(bytes) { link.close(1008) }
            case .ended(let last): ending = last
            }
        }
        isClosed = true
        limit?.cancel()
        idle.cancel()
        queue.finish()
        watcher?.cancel()
        // A question at a reader with a keypad ends here.
        worker?.cancel()
        await worker?.value
        for handle in Array(leases.keys) { await release(handle) }
        return ending
    }

    func close() {
        isClosed = true
        link.close()
    }

    /// The readers whose cards the device holds.
    var usedReaders: [String] { leases.values.map(\.reader.name).sorted() }

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
        if case .getStatus = envelope.message { return await perform(envelope.message) }
        idle.cancel()
        await perform(envelope.message)
        if !leases.isEmpty { idle.set(after: sharing.settings.cardTime) }
    }

    private func establishContext(_ wanted: IFDVersion?, _ deviceName: String) async {
        let name = sharing.settings.name
        guard context == nil, let wanted, let random = try? Random.bytes(16) else {
            return send(.establishContextResponse(deviceName: name, .failed(.unknownError)))
        }
        limit?.cancel()
        device?.name = deviceName
        guard let device, pairing != nil ? await sharing.complete(device, pairing) : await sharing.begin(self) else {
            send(.establishContextResponse(deviceName: name, .failed(.unknownError)))
            return link.close(1008)
        }
        version = wanted
        context = "{\(UUIDText.encode(random))}"
        send(.establishContextResponse(deviceName: name, .ok))
        guard pairing == nil else {
            // The other device closes the connection now.
            limit?.set(after: sharing.settings.times.setUp)
            return
        }
        watcher = Task { @Loop [weak self, registry = sharing.registry] in
            while !Task.isCancelled {
                self?.reportChanges()
                await registry.nextChange()
            }
        }
    }

    /// Releases cards that were removed, and reports changed readers to the device.
    private func reportChanges() {
        let now = sharing.statuses(for: self)
        for (handle, lease) in leases where !lease.isCurrent {
            // The handle is invalid at once; the card is released in another task.
            leases[handle] = nil
            if question?.handle == handle { question?.task.cancel() }
            Task { @Loop [sharing] in
                await lease.release(removingVirtualCard: false)
                sharing.usesChanged()
            }
        }
        for status in now where told[status.slot] != status {
            told[status.slot] = status
            send(.status(status))
        }
        for (slot, status) in told where !now.contains(where: { $0.slot == slot }) {
            told[slot] = nil
            var gone = status
            gone.isConnected = false
            gone.hasCard = false
            send(.status(gone))
        }
    }

    private func perform(_ message: IFDMessage) async {
        switch message {
        case .getStatus(let slot): sendStatus(slot)
        case .connect(let slot): await connect(slot)
        case .disconnect(let handle):
            guard leases[handle] != nil else {
                return send(.disconnectResponse(handle: handle, .failed(.invalidSlotHandle)))
            }
            await release(handle)
            send(.disconnectResponse(handle: handle, .ok))
        case .transmit(let handle, let apdu, _): await transmit(handle, apdu)
        case .establishPACE(let handle, let input): await establishPACE(handle, input)
        case .modifyPIN(let handle, _): await modifyPIN(handle)
        case .destroyPACE(let handle):
            guard let lease = leases[handle] else {
                return send(.destroyPACEResponse(handle: handle, .failed(.invalidSlotHandle)))
            }
            do throws(CardError) {
                guard let keypad = lease.connection as? any KeypadConnection else { throw .other("no keypad") }
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
        let statuses = sharing.statuses(for: self).filter { slot.isEmpty || $0.slot == slot }
        // AusweisApp answers an unknown name in this way.
        if statuses.isEmpty, !slot.isEmpty { return send(.connectResponse(handle: slot, .failed(.unknownSlot))) }
        for status in statuses {
            told[status.slot] = status
            send(.status(status))
        }
    }

    // MARK: Cards

    private func connect(_ slot: String) async {
        guard sharing.settings.readers.contains(slot), sharing.registry[slot] != nil else {
            return send(.connectResponse(handle: slot, .failed(.unknownSlot)))
        }
        guard !leases.values.contains(where: { $0.reader.name == slot }) else {
            return send(.connectResponse(handle: slot, .failed(.sharingViolation)))
        }
        do throws(CardError) {
            let name = device?.name ?? "?"
            let lease = try await sharing.registry.lend(slot, to: ObjectIdentifier(self), called: name)
            guard let random = try? Random.bytes(16), !Task.isCancelled else {
                await lease.release(removingVirtualCard: false)
                throw .cancelled
            }
            let handle = "{\(UUIDText.encode(random))}"
            leases[handle] = lease
            sharing.write(.info, "device '\(name)' uses the card in '\(slot)'")
            sharing.usesChanged()
            send(.connectResponse(handle: handle, .ok))
        } catch {
            let reason: IFDResult.Minor = error == .exclusive ? .sharingViolation : .unknownError
            send(.connectResponse(handle: slot, .failed(reason)))
        }
    }

    /// Releases the cards of a device that has them and says nothing, as if they had left their readers.
    private func reclaimCards() {
        for (handle, lease) in leases {
            leases[handle] = nil
            let reader = lease.reader.name
            sharing.write(
                .notice,
                "device '\(device?.name ?? "?")' does not use the card in '\(reader)': it is free again"
            )
            if var status = told[reader] {
                status.hasCard = false
                told[reader] = status
                send(.status(status))
            }
            // The end of the use is a change, after which the device sees the card again.
            Task { @Loop [sharing] in
                await lease.release(removingVirtualCard: false)
                sharing.usesChanged()
            }
        }
    }

    private func release(_ handle: String) async {
        guard let lease = leases.removeValue(forKey: handle) else { return }
        await lease.release(removingVirtualCard: false)
        sharing.usesChanged()
    }

    private func transmit(_ handle: String, _ apdu: [UInt8]) async {
        guard let lease = leases[handle], lease.isCurrent else {
            return send(.transmitResponse(handle: handle, apdu: [], .failed(.invalidSlotHandle)))
        }
        guard let command = CommandAPDU(bytes: apdu) else {
            return send(.transmitResponse(handle: handle, apdu: [], .failed(.unknownError)))
        }
        do throws(CardError) {
            let answer = try await lease.connection.transmit(command)
            send(.transmitResponse(handle: handle, apdu: answer.bytes, .ok))
        } catch {
            send(.transmitResponse(handle: handle, apdu: [], .failed(.unknownError)))
        }
    }

    /// Runs PACE on the keypad of the shared reader. Without a keypad this host cannot ask for a password.
    private func establishPACE(_ handle: String, _ input: [UInt8]) async {
        guard let lease = leases[handle], lease.isCurrent else {
            return reply(handle, KeypadPACEResult(outcome: .noCard), .failed(.invalidSlotHandle))
        }
        // CAN, PIN and PUK only.
        guard let keypad = lease.connection as? any KeypadConnection, let request = PACEChannel.request(input),
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
            guard lease.isCurrent else { throw .removed }
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
        guard let lease = leases[handle], lease.isCurrent,
            let keypad = lease.connection as? any KeypadConnection
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
            let reason: IFDResult.Minor = error == .removed || !lease.isCurrent ? .noCard : .unknownError
            send(.modifyPINResponse(handle: handle, output: [], .failed(reason)))
        }
    }
}
