// SPDX-License-Identifier: GPL-3.0-or-later
package import Concurrency
package import Host
package import ISO7816
package import Readers
import Synchronization
import Text

/// The readers at the other end of a channel, and the requests about the cards in them.
@Loop package final class DriverSession {
    /// The card that is in a reader.
    private struct Presence {
        let insertion: Insertion
        /// The number that the other end gave the insertion.
        let number: UInt64
    }

    /// A request that waits for its answer.
    @Loop private struct Waiting<Answer: Sendable> {
        let continuation: CheckedContinuation<Answer, Never>
        /// nil: the other end is trusted.
        let limit: AnswerLimit?

        /// Ends the request. An answer that is read in the turn in which its time ends counts.
        func take(_ answer: Answer) {
            limit?.cancel()
            continuation.resume(returning: answer)
        }
    }

    /// The time limits for answers in milliseconds; tests have other ones.
    struct Limits {
        /// For a command. A card in an NFC reader has 30 s.
        var command: Int64 = 120_000
        /// For a question that a person answers at the reader. The driver ends it after 95 s.
        var question: Int64 = 300_000
        /// For checks.
        var checks: Int64 = 30_000
    }

    var limits = Limits()
    private let send: @Loop (DriverRequest) -> Void
    private let onEvent: @Loop (ReaderEvent) -> Void
    private let onSilence: (@Loop () -> Void)?
    private var readers: [String: ReaderDescription] = [:]
    /// The card in each reader that has one.
    private var cards: [String: Presence] = [:]
    private var lastInsertion: UInt64 = 0
    /// Lets one connection at a time to each insertion.
    private let gate = ReaderGate()
    /// The callers of `connect` that wait for their turn, and the insertion that each one waits for.
    private var turns: [ObjectIdentifier: (insertion: Insertion, turn: OneShot<Bool>)] = [:]
    private var lastID: UInt32 = 0
    private var answers: [UInt32: Waiting<Result<CardAnswer, CardError>>] = [:]
    private var checks: [UInt32: Waiting<[HealthCheck]>] = [:]

    private static let maximumReaders = 64

    /// - Parameters:
    ///   - send: sends a request to the other end.
    ///   - onEvent: gets what happens at the readers.
    ///   - onSilence: ends the other end, which owes an answer, and calls `end`; nil: the other end is trusted.
    package nonisolated init(
        send: @escaping @Loop (DriverRequest) -> Void,
        onEvent: @escaping @Loop (ReaderEvent) -> Void,
        onSilence: (@Loop () -> Void)? = nil
    ) {
        self.send = send
        self.onEvent = onEvent
        self.onSilence = onSilence
    }

    /// Removes all readers, because the other end is gone. Open requests fail.
    package func end() {
        for name in Array(readers.keys) { remove(name) }
        let (answers, checks) = (self.answers, self.checks)
        self.answers = [:]
        self.checks = [:]
        for answer in answers.values { answer.take(.failure(.removed)) }
        for check in checks.values { check.take([]) }
    }

    // MARK: Reports

    package func handle(_ report: DriverReport) {
        switch report {
        case .hello: break
        case .event(let event): handle(event)
        case .answer(let id, let result): answers.removeValue(forKey: id)?.take(result)
        case .health(let id, let checks): self.checks.removeValue(forKey: id)?.take(checks)
        }
    }

    private func handle(_ event: ReaderEvent) {
        switch event {
        case .added(let reader):
            guard readers.count < Self.maximumReaders, readers[reader.name] == nil else { return }
            readers[reader.name] = reader
            onEvent(event)
        case .changed(let reader):
            guard readers[reader.name] != nil else { return }
            readers[reader.name] = reader
            onEvent(event)
        case .removed(let name): remove(name)
        case .inserted(let reported, let answerToReset): insert(reported, answerToReset)
        case .withdrawn(let reported):
            if cards[reported.reader]?.number == reported.number { withdraw(reported.reader) }
        case .held(let reported):
            // A card that is new may be one that another program holds.
            if cards[reported.reader]?.number != reported.number { insert(reported, []) }
            if let card = cards[reported.reader] { onEvent(.held(card.insertion)) }
        case .health: onEvent(event)
        }
    }

    private func insert(_ reported: Insertion, _ answerToReset: [UInt8]) {
        guard readers[reported.reader] != nil else { return }
        withdraw(reported.reader)
        lastInsertion += 1
        let insertion = Insertion(reader: reported.reader, number: lastInsertion)
        cards[reported.reader] = Presence(insertion: insertion, number: reported.number)
        onEvent(.inserted(insertion, answerToReset: answerToReset))
    }

    private func remove(_ name: String) {
        withdraw(name)
        if readers.removeValue(forKey: name) != nil { onEvent(.removed(reader: name)) }
    }

    /// Ends the insertion in a reader, if any.
    private func withdraw(_ name: String) {
        guard let card = cards.removeValue(forKey: name) else { return }
        onEvent(.withdrawn(card.insertion))
        for (insertion, turn) in turns.values where insertion == card.insertion { turn.fill(false) }
    }

    // MARK: Requests

    /// Makes the checks that are not sent as events.
    package func currentHealth() async -> [HealthCheck] {
        lastID &+= 1
        let id = lastID
        return await withCheckedContinuation { continuation in
            checks[id] = Waiting(continuation: continuation, limit: limit(limits.checks))
            send(.health(id: id))
        }
    }

    /// Limits the time for an answer, unless the other end is trusted.
    private func limit(_ time: Int64) -> AnswerLimit? { onSilence.map { AnswerLimit(time, onSilence: $0) } }

    /// The number that the other end gave an insertion; nil if the insertion is over.
    private func number(of insertion: Insertion) -> UInt64? {
        guard let card = cards[insertion.reader], card.insertion == insertion else { return nil }
        return card.number
    }

    /// Connects to a card; waits while another connection to the same insertion is open.
    package func connect(_ insertion: Insertion) async throws(CardError) -> any CardConnection {
        guard let reader = readers[insertion.reader] else { throw .serviceUnavailable }
        guard number(of: insertion) != nil else { throw .removed }
        let turn = gate.enter(Self.gateKey(insertion))
        turns[ObjectIdentifier(turn)] = (insertion, turn)
        defer { turns[ObjectIdentifier(turn)] = nil }
        guard await turn.value(whenCancelled: false) else {
            throw number(of: insertion) != nil ? .cancelled : .removed
        }
        do throws(CardError) {
            _ = try await perform(.connect, insertion).get()
        } catch {
            gate.leave(Self.gateKey(insertion))
            throw error
        }
        let connection = DriverConnection(to: insertion, self)
        return reader.hasKeypad ? DriverKeypadConnection(connection) : connection
    }

    private static func gateKey(_ insertion: Insertion) -> String { String(insertion.number) }

    /// Sends a request about a card. With `isCancellable`, the question to a person ends together with the task. badged at
    /// the other end is told of each task that ends, because a card that does not answer would hold the request.
    ///
    /// If there is no answer in time, the other end is ended, and the card has left: nobody knows what it has done.
    func perform(
        _ request: CardRequest,
        _ insertion: Insertion,
        isCancellable: Bool = false
    ) async -> Result<CardAnswer, CardError> {
        guard let number = number(of: insertion) else { return .failure(.removed) }
        lastID &+= 1
        let id = lastID
        let time = request.asksPerson ? limits.question : limits.command
        let tellsCancel = isCancellable || onSilence == nil
        return await withTaskCancellationHandler {
            await withCheckedContinuation { continuation in
                // The card may have left before the task came here.
                guard self.number(of: insertion) == number else {
                    return continuation.resume(returning: .failure(.removed))
                }
                answers[id] = Waiting(continuation: continuation, limit: limit(time))
                send(.card(request, of: number, id: id))
            }
        } onCancel: {
            guard tellsCancel else { return }
            Task { @Loop in if answers[id] != nil { send(.cancel(id: id)) } }
        }
    }

    /// Has the device of a reader opened anew, and recorded. The reader is away meanwhile.
    func record(_ reader: String) async throws(CardError) -> [UInt8] {
        guard readers[reader] != nil else { throw .serviceUnavailable }
        lastID &+= 1
        let id = lastID
        let result = await withCheckedContinuation { continuation in
            answers[id] = Waiting(continuation: continuation, limit: limit(limits.command))
            send(.record(reader: reader, id: id))
        }
        guard case .frames(let text) = try result.get() else { throw DriverConnection.mismatch }
        return text
    }

    func show(progress percent: Int, _ insertion: Insertion) {
        guard let number = number(of: insertion) else { return }
        send(.progress(UInt8(clamping: percent), of: number))
    }

    /// Ends a connection. The next connection waits until the card is reset.
    func release(_ insertion: Insertion, reset: Bool) async {
        _ = await perform(.release(reset: reset), insertion)
        gate.leave(Self.gateKey(insertion))
    }
}

/// The connection of one user to a card in a reader of a driver.
final class DriverConnection: CardConnection {
    private let session: DriverSession
    private let insertion: Insertion
    private let closed = OneShot<Void>()
    private let progress = Mutex(Int?.none)

    init(to insertion: Insertion, _ session: DriverSession) {
        self.insertion = insertion
        self.session = session
    }

    deinit {
        guard closed.fill(()) else { return }
        Task { @Loop [session, insertion] in await session.release(insertion, reset: true) }
    }

    func transmit(_ command: CommandAPDU) async throws(CardError) -> ResponseAPDU {
        if let percent = progress.withLock({ $0.take() }) { await session.show(progress: percent, insertion) }
        guard case .response(let response) = try await perform(.transmit(command)) else { throw Self.mismatch }
        return response
    }

    /// The program gets the progress before the next command.
    func show(progress percent: Int) { progress.withLock { $0 = percent } }

    func disconnect(reset: Bool) async {
        guard closed.fill(()) else { return }
        await session.release(insertion, reset: reset)
    }

    fileprivate func perform(
        _ request: CardRequest,
        isCancellable: Bool = false
    ) async throws(CardError) -> CardAnswer {
        guard !closed.isFilled else { throw .cancelled }
        return try await session.perform(request, insertion, isCancellable: isCancellable).get()
    }

    fileprivate static let mismatch = CardError.other("the answer of the driver does not match the request")
}

/// A card in a reader that asks its user for PIN, CAN and PUK, and runs PACE.
final class DriverKeypadConnection: KeypadConnection {
    private let connection: DriverConnection

    init(_ connection: DriverConnection) { self.connection = connection }

    func transmit(_ command: CommandAPDU) async throws(CardError) -> ResponseAPDU {
        try await connection.transmit(command)
    }

    func show(progress percent: Int) { connection.show(progress: percent) }

    func disconnect(reset: Bool) async { await connection.disconnect(reset: reset) }

    func establishPACE(_ request: KeypadPACERequest) async throws(CardError) -> KeypadPACEResult {
        // A longer message would end the other program.
        guard PACEChannel.input(request) != nil else { throw .tooLong }
        let answer = try await connection.perform(.establishPACE(request), isCancellable: true)
        guard case .pace(let result) = answer else { throw DriverConnection.mismatch }
        return result
    }

    func destroyPACE() async throws(CardError) { _ = try await connection.perform(.destroyPACE) }

    /// A cancelled task still waits, because only the answer says whether the PIN has changed.
    func modifyPIN() async throws(CardError) -> StatusWord {
        guard case .status(let status) = try await connection.perform(.modifyPIN) else {
            throw DriverConnection.mismatch
        }
        return status
    }
}
