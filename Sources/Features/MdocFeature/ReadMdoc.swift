// SPDX-License-Identifier: GPL-3.0-or-later
import Cards
import Concurrency
import ISO7816
import MobileDocument
import Readers
import Scanners
import Server
import Text

/// One reading of a phone: engagement, session, request, answer, checks.
@Loop final class ReadMdoc {
    /// What was read.
    struct Outcome {
        let engagement: PhoneEngagement.Kind
        let way: MdocWay
        /// The NFC reader on which the phone was; nil with a QR code and Bluetooth.
        let reader: String?
        let results: [MdocResult]
    }

    /// How a phone was found.
    private enum Found {
        /// The text of its QR code came from the client.
        case code(DeviceEngagement)
        /// It has shown its engagement to a reader, and goes on by Bluetooth.
        case engaged(PhoneEngagement, MdocBluetoothOffer, reader: String)
        /// It has answered on a reader.
        case answered(Outcome)
    }

    /// What the workflow waits for, which decides what the end of the time means.
    private enum Wait {
        /// A host that lacks this until now.
        case host(Failure)
        case engagement
        case connection
        case holder
        /// A phone that has left before its answer.
        case comeback
    }

    /// How often a phone may be taken away from an NFC reader before the reading ends.
    private static let maximumTaps = 10

    private let request: MdocRequest
    private let identity: DeviceRequest.Identity?
    private let workflow: Workflow
    private let registry: ReaderRegistry
    private let bluetooth: (any MdocBluetooth)?
    private let makeCheck: MakeCheck
    private let second: Int64
    /// When badged has found its readers, which it does one after the other.
    private let isSettled: ContinuousClock.Instant
    private let now: Now
    private let progress: MdocProgress
    private let requirements = PhoneRequirements()
    private var wait = Wait.engagement
    private var taps = 0
    /// A phone has refused to go on, which it may do once.
    private var refusal: Failure?
    /// The engagement of a QR code whose phone goes on over NFC.
    private var code: PhoneEngagement?
    /// A device is connected over Bluetooth that may be another one than the phone: nothing that it has sent proves its key.
    private var mayBeStranger = false
    /// Filled with the engagement of a QR code, or with the failure at the end of the time, while the workflow waits.
    private var interruption: OneShot<Result<Found, Failure>>?
    private lazy var alarm = Loop.Alarm { [weak self] in self?.timeIsOver() }

    /// Makes the checks of one session: the transcript, and whether the phone is a virtual one.
    typealias MakeCheck = @Sendable (DeviceRequest, MdocBinding, _ isVirtual: Bool) async -> MdocCheck

    init(
        _ request: MdocRequest,
        _ identity: DeviceRequest.Identity?,
        _ workflow: Workflow,
        _ registry: ReaderRegistry,
        _ bluetooth: (any MdocBluetooth)?,
        second: Int64,
        isSettled: ContinuousClock.Instant,
        now: @escaping Now,
        makeCheck: @escaping MakeCheck
    ) {
        self.request = request
        self.identity = identity
        self.workflow = workflow
        self.registry = registry
        self.bluetooth = bluetooth
        self.makeCheck = makeCheck
        self.second = second
        self.isSettled = isSettled
        self.now = now
        progress = MdocProgress(workflow)
    }

    /// Whether SET_ENGAGEMENT may come now.
    var waitsForEngagement: Bool {
        guard case .engagement = wait else { return false }
        return code == nil && workflow.awaitedEvent != nil && interruption?.isFilled == false
    }

    /// The text of a QR code, from SET_ENGAGEMENT.
    func accept(_ engagement: DeviceEngagement) { interruption?.fill(.success(.code(engagement))) }

    func run() async throws(Failure) -> Outcome {
        defer { alarm.cancel() }
        if let engagement = request.engagement { return try await go(on: PhoneEngagement(qr: engagement)) }
        switch try await findPhone() {
        case .code(let engagement): return try await go(on: PhoneEngagement(qr: engagement))
        case .engaged(let phone, let offer, let reader): return try await talk(to: phone, offer, reader)
        case .answered(let outcome): return outcome
        }
    }

    // MARK: Time

    private func begin(_ wait: Wait) {
        self.wait = wait
        switch wait {
        case .host: alarm.set(after: Int64((isSettled - now()) / .milliseconds(1)))
        // A phone that has left comes back in the time that it had.
        case .comeback: break
        case .engagement, .holder: alarm.set(after: Int64(request.timeout) * second)
        // The transport has its own limits.
        case .connection: alarm.cancel()
        }
    }

    private func timeIsOver() {
        let failure: Failure =
            switch wait {
            case .host(let failure): failure
            case .engagement: .noEngagement("none came within \(request.timeout) s")
            case .connection, .holder: .timedOut
            case .comeback: refusal ?? .phoneStaysAway
            }
        interruption?.fill(.failure(failure))
    }

    /// Runs `body` until it ends, the client sends the text of a QR code, or the time is over. Returns when `body` has
    /// ended: then nothing of it is left.
    private func interruptible(
        _ body: @escaping @Loop () async throws(Failure) -> Found
    ) async throws(Failure) -> Found {
        let end = OneShot<Result<Found, Failure>>()
        interruption = end
        defer { interruption = nil }
        let task = Task.immediate { @Loop in
            _ = end.fill(await Result(of: body))
        }
        let result = await end.value(whenCancelled: .failure(.cancelled))
        task.cancel()
        await task.value
        return try result.get()
    }

    // MARK: NFC

    /// Waits for a phone on a reader, or for a QR code.
    private func findPhone() async throws(Failure) -> Found {
        registry.phoneWaiters += 1
        defer { registry.phoneWaiters -= 1 }
        let dialogue = CardDialogue<PhoneRequirements>(
            registry,
            workflow,
            readerName: request.readerName,
            requirements,
            cancelLimit: 50,
            now: now
        )
        return try await interruptible { [self] () async throws(Failure) in
            while let failure = try await lack() {
                guard now() < isSettled else { throw failure }
                begin(.host(failure))
                await registry.nextChange()
            }
            begin(.engagement)
            return try await dialogue.run { [self] lease throws(Failure) in try await use(lease) }
        }
    }

    /// What this host lacks to read any phone, or the one whose QR code has come; nil: nothing.
    private func lack() async throws(Failure) -> Failure? {
        if hasReader, request.ways.contains(.nfc) { return nil }
        if let code { return await unsupported(code) }
        let ways = try await bluetoothWays()
        if ways.isEmpty { return await unsupported(request.ways.union(hasReader ? [] : [.nfc])) }
        // The client may have the text of a QR code.
        requirements.reminder =
            hasReader ? nil : "No NFC reader is connected: connect one, or scan the QR code of the phone"
        return nil
    }

    /// A reader that has failed is explained in INSERT_CARD, and one that the client has named and is not there.
    private var hasReader: Bool {
        request.readerName != nil || !registry.readers.isEmpty || !registry.failedReaders.isEmpty
    }

    /// Talks to the phone on a reader.
    /// - Throws: `.cardLost` if another tap may go on.
    private func use(_ lease: CardLease) async throws(Failure) -> Found {
        taps += 1
        requirements.reminder = nil
        do throws(Failure) {
            return try await tap(lease)
        } catch {
            guard error.code == .cardLost else { throw error }
            guard taps < Self.maximumTaps else {
                throw refusal ?? .connectionLost("it was taken away \(taps) times")
            }
            if refusal != nil { requirements.used.insert(lease.insertion) }
            if isAsked {
                requirements.reminder = "Put the phone back on the reader, and leave it there"
                begin(.comeback)
            }
            throw .cardLost
        }
    }

    /// Whether a phone has got a request, or the beginning of one. Some wallets take it with one tap, and answer with the next one.
    private var isAsked: Bool {
        switch wait {
        case .holder, .comeback: true
        case .host, .engagement, .connection: refusal != nil
        }
    }

    private func tap(_ lease: CardLease) async throws(Failure) -> Found {
        if let code { return .answered(try await talkOverNFC(to: code, lease)) }
        progress.report(.engaging)
        let ways = try await availableWays()
        let phone: PhoneEngagement
        do throws(NFCProblem) {
            phone = try await PhoneEngagement.read(on: lease.connection, offering: ways)
        } catch {
            throw show(error, lease)
        }
        if lease.isCurrent {
            lease.reader.ndef = .handover
            lease.update(PhoneProfile())
        }
        if let offer = try bluetoothOffer(of: phone, ways) {
            lease.resetsAtEnd = false
            return .engaged(phone, offer, reader: lease.reader.name)
        }
        guard ways.contains(.nfc), phone.nfcLimits != nil else { throw await unsupported(phone) }
        return .answered(try await talkOverNFC(to: phone, lease))
    }

    /// Notes what lies on the reader, so that INSERT_CARD says it and nobody selects it again.
    private func show(_ problem: NFCProblem, _ lease: CardLease) -> Failure {
        func note(_ content: NDEFContent) -> Failure {
            if lease.isCurrent { lease.reader.ndef = content }
            return .cardLost
        }
        switch problem {
        case .card(.cancelled): return .cancelled
        case .card(.removed), .card(.reset): return .cardLost
        case .card: return note(.unreadable)
        case .notWilling: return note(.none)
        case .noHandover(let message): return note(.message(message))
        case .stopped(let words): return .noEngagement(words)
        case .malformed(let words): return .malformed(words)
        case .mdoc(let problem): return Failure(engagement: problem)
        }
    }

    private func talkOverNFC(to phone: PhoneEngagement, _ lease: CardLease) async throws(Failure) -> Outcome {
        guard let limits = phone.nfcLimits else { throw .unsupported("it does not take messages over NFC") }
        progress.report(.connecting)
        let transport: NFCTransport
        do throws(MdocTransportError) {
            transport = try await NFCTransport(
                on: lease.connection,
                limits,
                hasExtendedLength: lease.reader.description.hasExtendedLength
            )
        } catch {
            throw Failure(error)
        }
        return try await exchange(
            with: phone,
            transport,
            lease.reader.name,
            isVirtual: lease.reader.description.takesCards
        )
    }

    // MARK: Bluetooth

    /// The modes of Bluetooth that this host has now, and that the command allows.
    private func bluetoothWays() async throws(Failure) -> Set<MdocWay> {
        let ways = await bluetooth?.ways() ?? []
        // A question that was cancelled has no answer.
        if Task.isCancelled { throw .cancelled }
        return ways.intersection(request.ways)
    }

    /// The ways that this host has now, with a reader, and that the command allows.
    private func availableWays() async throws(Failure) -> Set<MdocWay> {
        try await bluetoothWays().union(request.ways.intersection([.nfc]))
    }

    /// Why no way that a phone offers can be used.
    private func unsupported(_ phone: PhoneEngagement) async -> Failure {
        guard !phone.offers.isEmpty else { return .unsupported("it offers no way that badged knows") }
        let ways = phone.offers.intersection(request.ways)
        return ways.isEmpty ? .unsupported("it offers only ways that the command excludes") : await unsupported(ways)
    }

    /// Why this host has none of these ways.
    private func unsupported(_ ways: Set<MdocWay>) async -> Failure {
        var causes: [Phrase] = []
        if ways.contains(.nfc), !hasReader { causes.append("no NFC reader is connected: connect one") }
        if ways != [.nfc] {
            let fault = await bluetooth?.fault() ?? .disabled
            causes.append("\(fault.text): \(fault.advice)")
        }
        return Failure(.engagementUnsupported, .joined(causes, by: "; "))
    }

    /// What Bluetooth can use of an engagement; nil: nothing.
    private func bluetoothOffer(
        of phone: PhoneEngagement,
        _ ways: Set<MdocWay>
    ) throws(Failure) -> MdocBluetoothOffer? {
        guard let ble = phone.bluetooth else { return nil }
        let central = ways.contains(.bleCentral) ? ble.client : nil
        let peripheral = ways.contains(.blePeripheral) ? ble.server : nil
        guard central != nil || peripheral != nil else { return nil }
        let ident = try Self.session(MdocSession.ident(phone.engagement))
        return MdocBluetoothOffer(central: central, peripheral: peripheral, address: ble.address, ident: ident)
    }

    /// Goes on with an engagement from a QR code: over Bluetooth, or else over the reader on which the phone is put.
    private func go(on phone: PhoneEngagement) async throws(Failure) -> Outcome {
        let ways = try await availableWays()
        if let offer = try bluetoothOffer(of: phone, ways) { return try await talk(to: phone, offer, nil) }
        guard ways.contains(.nfc), phone.nfcLimits != nil else { throw await unsupported(phone) }
        code = phone
        requirements.hasEngagement = true
        guard case .answered(let outcome) = try await findPhone() else { throw .badState }
        return outcome
    }

    private func talk(
        to phone: PhoneEngagement,
        _ offer: MdocBluetoothOffer,
        _ reader: String?
    ) async throws(Failure) -> Outcome {
        guard let bluetooth else { throw .badState }
        let found = try await interruptible { [self] () async throws(Failure) in
            do throws(Failure) {
                return .answered(try await talk(to: phone, bluetooth, offer, reader))
            } catch {
                // Anybody may answer an advertisement first, and can make the session fail: it is advertised again, once.
                guard mayBeStranger, error.code != Failure.declined.code, !Task.isCancelled else { throw error }
                var rest = offer
                rest.isAgain = true
                do throws(Failure) {
                    return .answered(try await talk(to: phone, bluetooth, rest, reader))
                } catch let second {
                    throw mayBeStranger && second.code != Failure.declined.code ? error : second
                }
            }
        }
        guard case .answered(let outcome) = found else { throw .badState }
        return outcome
    }

    private func talk(
        to phone: PhoneEngagement,
        _ bluetooth: any MdocBluetooth,
        _ offer: MdocBluetoothOffer,
        _ reader: String?
    ) async throws(Failure) -> Outcome {
        begin(.connection)
        progress.report(.connecting)
        let transport: any MdocTransport
        do throws(MdocTransportError) {
            transport = try await bluetooth.open(offer)
        } catch {
            throw Failure(error)
        }
        mayBeStranger = transport.way == .bleCentral
        return try await exchange(with: phone, transport, reader, isVirtual: false)
    }

    // MARK: The session

    private static func session<Value: ~Copyable>(
        _ value: @autoclosure () throws(MdocProblem) -> Value
    ) throws(Failure) -> Value {
        try translating(Failure.init(session:), value())
    }

    /// Sends the request over a transport, reads the answer, and checks it. The transport is closed on every path.
    private func exchange(
        with phone: PhoneEngagement,
        _ transport: any MdocTransport,
        _ reader: String?,
        isVirtual: Bool
    ) async throws(Failure) -> Outcome {
        var last: [UInt8]?
        let response: DeviceResponse
        let binding: MdocBinding
        do throws(Failure) {
            (response, binding) = try await answer(of: phone, transport, &last)
        } catch {
            await transport.close(last)
            throw error
        }
        await transport.close(last)
        switch response.status {
        case .ok: break
        case .generalError: throw .readerRefused
        case .decodingError: throw .malformed("it reports that it could not read the request")
        case .other(let status): throw .malformed("it reports the status \(status)")
        }
        guard !response.documents.isEmpty else { throw .declined }
        progress.report(.checking)
        let (makeCheck, request) = (makeCheck, self.request.request)
        let work = Task.detached(executorPreference: Requester.share) {
            await makeCheck(request, binding, isVirtual).results(of: response)
        }
        let results = await work.cancellableValue
        return Outcome(engagement: phone.kind, way: transport.way, reader: reader, results: results)
    }

    /// Sends the request, and waits for the answer. `last` gets the message that ends the session.
    private func answer(
        of phone: PhoneEngagement,
        _ transport: any MdocTransport,
        _ last: inout [UInt8]?
    ) async throws(Failure) -> (DeviceResponse, MdocBinding) {
        var session = try Self.session(MdocSession(phone.engagement, phone.handover))
        let binding = session.binding
        let signsAll = phone.engagement.capabilities.readerAuthAll
        let request = try Self.session(request.request.encoded(for: binding, signedBy: identity, signsAll: signsAll))
        let message = try Self.session(session.establishment(request))
        let received: [UInt8]
        do throws(MdocTransportError) {
            try await transport.send(message)
            begin(.holder)
            progress.report(.waitingForHolder)
            let progress = progress
            received = try await transport.receive { progress.received($0) }
            // The holder has answered in time, however long the check of the answer takes.
            alarm.cancel()
        } catch {
            guard case .notNow = error, refusal == nil else { throw Failure(error) }
            refusal = Failure(error)
            throw .cardLost
        }
        let answer: MdocSession.Received
        do throws(MdocProblem) {
            answer = try session.read(received)
        } catch {
            if case .session(_, let status) = error { last = MdocSession.status(status) }
            if case .session(let words, _) = error, let caution = transport.caution {
                throw .sessionError("\(words); \(caution)")
            }
            throw Failure(session: error)
        }
        if answer.data != nil { mayBeStranger = false }
        switch answer.status {
        // The end of the field ends a session over NFC.
        case .none: last = transport.way == .nfc ? nil : MdocSession.status(20)
        case .termination: break
        case .error(let status): throw .sessionError("the wallet reports the status \(status)")
        }
        guard let data = answer.data?.clone() else { throw .declined }
        do throws(MdocProblem) {
            return (try DeviceResponse(data), binding)
        } catch {
            throw Failure(session: error)
        }
    }
}
