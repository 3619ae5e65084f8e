// SPDX-License-Identifier: GPL-3.0-or-later
import Concurrency
import Host
import ISO7816
import Readers
import Text

/// Runs badged-nfc while a device of libnfc may be connected, and keeps the state of its readers.
@Loop final class NFCClient {
    /// The card that is in a reader.
    private struct Presence {
        let insertion: Insertion
        /// The number that badged-nfc gave the insertion.
        let number: UInt64
    }

    /// Connection strings from the configuration.
    var devices: [String]
    private var events: AsyncStream<ReaderEvent>.Continuation?
    /// False when the program must not be started any more.
    private var isActive = false
    /// Counts the streams, so that the end of an old one does not stop a new one.
    private var streamNumber = 0
    private var udev: (monitor: UdevMonitor, registration: Loop.Registration)?
    private var program: NFCProgram?
    /// The program was asked to end.
    private var isEnding = false
    private var readers: Set<String> = []
    /// The card in each reader that has one.
    private var cards: [String: Presence] = [:]
    private var lastInsertion: UInt64 = 0
    /// Lets one connection at a time to each insertion.
    private let gate = ReaderGate()
    /// The callers of `connect` that wait for their turn, and the insertion that each one waits for.
    private var turns: [ObjectIdentifier: (insertion: Insertion, turn: OneShot<Bool>)] = [:]
    private var lastID: UInt32 = 0
    private var answers: [UInt32: CheckedContinuation<Result<ResponseAPDU, CardError>, Never>] = [:]
    private var releases: [UInt32: CheckedContinuation<Void, Never>] = [:]
    private var reportedChecks: [HealthCheck] = []
    /// Starts the program again after an end that was not wanted.
    private var restart: Loop.Alarm?
    private var backOff = BackOff()
    private let heartbeat: Heartbeat.Times
    private let end = Waiters()

    private static let maximumReaders = 64
    /// Milliseconds.
    private static let closeTimeout: Int64 = 700

    nonisolated init(devices: [String], heartbeat: Heartbeat.Times) {
        self.devices = devices
        self.heartbeat = heartbeat
    }

    /// Whether clients watch readers. Then the program is asked whether it lives.
    var isWatched = false { didSet { program?.isNeeded = isWatched } }

    /// Asks the program whether it lives, and looks for devices again if there is a fault. Returns the faults.
    func currentHealth() async -> [HealthCheck] {
        _ = await program?.answers()
        retry()
        return reportedChecks.filter { !$0.ok }
    }

    /// The process of the program, if it runs.
    var process: Int32? { program?.process.id }

    // MARK: - Start and end

    func start(_ events: AsyncStream<ReaderEvent>.Continuation) {
        stop()
        streamNumber += 1
        let number = streamNumber
        events.onTermination = { [weak self] _ in
            Task { @Loop in
                if let self, self.streamNumber == number { self.stop() }
            }
        }
        self.events = events
        isActive = true
        reportedChecks = []
        if let monitor = UdevMonitor(),
            let registration = try? Loop.watch(monitor.descriptor, .read, { [weak self] _ in self?.handleUdevEvents() })
        {
            udev = (monitor, registration)
        } else {
            Log.warning("udev cannot be watched: NFC devices that are plugged in are found at the next reload")
        }
        look()
    }

    /// Ends the program and the events, without waiting.
    func stop() {
        stopWatching()
        program?.finish()
        isEnding = program != nil
        finishEvents()
    }

    /// Ends the program and the events. Returns when the program has closed all devices, or after 0.7 s.
    func close() async {
        stopWatching()
        if let program {
            program.finish()
            isEnding = true
            var isLate = false
            let timeout = Loop.Alarm { [end] in
                isLate = true
                end.check()
            }
            timeout.set(after: Self.closeTimeout)
            await end.wait { self.program == nil || isLate }
        }
        finishEvents()
    }

    private func stopWatching() {
        isActive = false
        udev?.registration.cancel()
        udev = nil
        restart = nil
    }

    private func finishEvents() {
        let events = self.events
        self.events = nil
        events?.finish()
    }

    // MARK: - Devices

    func rescan() {
        restart = nil
        look()
    }

    /// Looks for devices again if there is a fault.
    func retry() {
        if reportedChecks.contains(where: { !$0.ok }) { look() }
    }

    private func handleUdevEvents() {
        switch udev?.monitor.receive() {
        case .added: look()
        case .removed where DeviceSources.mayHaveDevice(configured: devices): retry()
        case .removed: look()
        case .some(.none), nil: break
        }
    }

    /// Starts or ends the program as needed, and has it look for devices.
    private func look() {
        guard isActive, !isEnding, restart == nil else { return }
        guard DeviceSources.mayHaveDevice(configured: devices) else {
            program?.finish()
            isEnding = program != nil
            return report([HealthCheck(NFCBackend.checkName, ok: true)])
        }
        if program == nil { startProgram() }
        program?.send(.scan(devices: devices))
    }

    private func startProgram() {
        do throws(Failure) {
            program = try NFCProgram(
                asking: heartbeat,
                onReport: { [weak self] in self?.handle($0) },
                onEnd: { [weak self] in self?.programEnded($0) }
            )
            program?.isNeeded = isWatched
            backOff.started()
        } catch {
            report(fault: error.message)
        }
    }

    private func programEnded(_ ending: NFCProgram.Ending) {
        program = nil
        for name in readers { remove(name) }
        for answer in answers.values { answer.resume(returning: .failure(.removed)) }
        for release in releases.values { release.resume() }
        answers = [:]
        releases = [:]
        end.check()
        if isEnding {
            // A new stream or a new device may need the program again.
            isEnding = false
            return look()
        }
        let pause = backOff.next()
        let words = ending == .silent ? "did not answer" : "ended unexpectedly"
        Log.error("badged-nfc \(words); it is started again in \(pause / 1000) s")
        report(fault: "the program badged-nfc \(words); it is started again in \(pause / 1000) s")
        let alarm = Loop.Alarm { [weak self] in self?.rescan() }
        alarm.set(after: pause)
        restart = alarm
    }

    private func report(fault advice: String) { report([HealthCheck(NFCBackend.checkName, ok: false, advice: advice)]) }

    private func report(_ checks: [HealthCheck]) {
        guard checks != reportedChecks else { return }
        reportedChecks = checks
        events?.yield(.health(checks))
    }

    // MARK: - Reports of the program

    private func handle(_ report: NFCReport) {
        switch report {
        case .event(let event): handle(event)
        case .answer(let id, let result): answers.removeValue(forKey: id)?.resume(returning: result)
        case .released(let id): releases.removeValue(forKey: id)?.resume()
        }
    }

    private func handle(_ event: ReaderEvent) {
        switch event {
        case .added(let reader):
            guard readers.count < Self.maximumReaders, readers.insert(reader.name).inserted else { return }
            events?.yield(event)
        case .changed(let reader):
            if readers.contains(reader.name) { events?.yield(event) }
        case .removed(let name):
            remove(name)
        case .inserted(let reported, let answerToReset):
            guard readers.contains(reported.reader) else { return }
            withdraw(reported.reader)
            lastInsertion += 1
            let insertion = Insertion(reader: reported.reader, number: lastInsertion)
            cards[reported.reader] = Presence(insertion: insertion, number: reported.number)
            events?.yield(.inserted(insertion, answerToReset: answerToReset))
        case .withdrawn(let reported):
            if cards[reported.reader]?.number == reported.number { withdraw(reported.reader) }
        case .held(let reported):
            guard let session = cards[reported.reader], session.number == reported.number else { return }
            events?.yield(.held(session.insertion))
        case .health(let checks):
            self.report(checks)
        }
    }

    private func remove(_ name: String) {
        withdraw(name)
        if readers.remove(name) != nil { events?.yield(.removed(reader: name)) }
    }

    /// Ends the insertion in a reader, if any.
    private func withdraw(_ name: String) {
        guard let session = cards.removeValue(forKey: name) else { return }
        events?.yield(.withdrawn(session.insertion))
        for (insertion, turn) in turns.values where insertion == session.insertion { turn.fill(false) }
    }

    // MARK: - Connections

    private func session(of insertion: Insertion) -> Presence? {
        guard let session = cards[insertion.reader], session.insertion == insertion else { return nil }
        return session
    }

    func connect(_ insertion: Insertion) async throws(CardError) -> NFCConnection {
        guard readers.contains(insertion.reader) else { throw .serviceUnavailable }
        guard session(of: insertion) != nil else { throw .removed }
        let turn = gate.enter(Self.gateKey(insertion))
        turns[ObjectIdentifier(turn)] = (insertion, turn)
        defer { turns[ObjectIdentifier(turn)] = nil }
        guard await turn.value(whenCancelled: false) else {
            throw session(of: insertion) != nil ? .cancelled : .removed
        }
        guard session(of: insertion) != nil else {
            gate.leave(Self.gateKey(insertion))
            throw .removed
        }
        return NFCConnection(to: insertion, self)
    }

    private static func gateKey(_ insertion: Insertion) -> String { String(insertion.number) }

    func transmit(_ command: CommandAPDU, to insertion: Insertion) async -> Result<ResponseAPDU, CardError> {
        guard let program, let session = session(of: insertion) else { return .failure(.removed) }
        lastID &+= 1
        let id = lastID
        return await withCheckedContinuation { continuation in
            answers[id] = continuation
            program.send(.transmit(id: id, insertion: session.number, command: command))
        }
    }

    /// Ends a connection. The next connection waits until the card is reset.
    func release(_ insertion: Insertion, reset: Bool) async {
        if let program, let session = session(of: insertion) {
            lastID &+= 1
            let id = lastID
            await withCheckedContinuation { continuation in
                releases[id] = continuation
                program.send(.release(id: id, insertion: session.number, reset: reset))
            }
        }
        gate.leave(Self.gateKey(insertion))
    }
}
