// SPDX-License-Identifier: GPL-3.0-or-later
import Concurrency
import ISO7816
import Readers
import Synchronization
import Text

/// A connection to a card in a transaction of pcscd. A thread of its own runs all calls and ends with the connection.
final class PCSCConnection: CardConnection {
    private let thread: JobQueue
    private let link: CardLink
    private let report: @Sendable (_ isHeld: Bool) -> Void
    /// Whether nobody uses the connection any more.
    private let isOver = Atomic(false)
    /// When the thread has sent the command that waits for its answer in `run`, in microseconds of `Loop.clock`; 0: none
    /// waits.
    private let sentAt = Atomic<Int64>(0)

    /// How long a card may take to answer after CANCEL, in milliseconds. Neither pcscd nor each of its drivers has a time
    /// limit.
    private static let waitAfterCancel: Int64 = 5000

    /// `report` is called when the connection is given up while the card has not answered, and when it has.
    init(thread: JobQueue, link: CardLink, report: @escaping @Sendable (_ isHeld: Bool) -> Void) {
        self.thread = thread
        self.link = link
        self.report = report
    }

    deinit { thread.finish { [link] in link.close() } }

    /// Sends a command. A cancelled task waits for the answer of a card for some seconds more. A card that is mute then is
    /// in use until it answers or leaves, and is reset.
    func transmit(_ command: CommandAPDU) async throws(CardError) -> ResponseAPDU {
        if thread.isCurrent { return try answer(to: command).get() }
        if let answer = await thread.run(afterCancel: Self.waitAfterCancel, { [link] in link.transmit(command) }) {
            return try answer.get()
        }
        giveUp()
        throw CardLink.closed
    }

    /// Sends a command in `run`, unless the connection was given up.
    private func answer(to command: CommandAPDU) -> Result<ResponseAPDU, CardError> {
        guard !isOver.load(ordering: .relaxed) else { return .failure(CardLink.closed) }
        sentAt.store(Loop.clock, ordering: .relaxed)
        let answer = link.transmit(command)
        sentAt.store(0, ordering: .relaxed)
        return isOver.load(ordering: .relaxed) ? .failure(CardLink.closed) : answer
    }

    private func giveUp() {
        guard !isOver.exchange(true, ordering: .relaxed) else { return }
        report(true)
        thread.finish { [link, report] in
            link.close(reset: true)
            report(false)
        }
    }

    /// Runs a part of a dialogue on the thread of the connection. If the task is cancelled, each command has as long for its
    /// answer as in `transmit`.
    func run<Value: Sendable, Fault: Error>(
        orIfGivenUp fault: Fault,
        _ dialogue: @escaping @Sendable () async throws(Fault) -> Value
    ) async throws(Fault) -> Value {
        // The dialogue that was given up still has its actors.
        guard !isOver.load(ordering: .relaxed) else { throw fault }
        let end = OneShot<Result<Value, Fault>>()
        let task = Task(executorPreference: thread.taskExecutor) {
            end.fill(await Result { () async throws(Fault) in try await dialogue() })
        }
        return try await withTaskCancellationHandler {
            await end.value
        } onCancel: {
            task.cancel()
            let cancelled = Loop.clock
            Task { @Loop [weak self] in
                while !end.isFilled, let left = self?.timeLeft(since: cancelled) {
                    guard left <= 0 else {
                        await Loop.sleep(milliseconds: left)
                        continue
                    }
                    // First, so that the dialogue sends nothing more.
                    self?.giveUp()
                    end.fill(.failure(fault))
                }
            }
        }.get()
    }

    /// The milliseconds that the command on its way still has for its answer after CANCEL. A later one has all of them.
    private func timeLeft(since cancelled: Int64) -> Int64 {
        let sent = sentAt.load(ordering: .relaxed)
        return Self.waitAfterCancel - (sent == 0 ? 0 : (Loop.clock - max(sent, cancelled)) / 1000)
    }

    func disconnect(reset: Bool) async {
        isOver.store(true, ordering: .relaxed)
        // After a cancelled `control` or `transmit` the queue is closed, and its thread disconnects the card.
        _ = await thread.run { [link] in link.close(reset: reset) }
        thread.finish()
    }

    var features: ReaderFeatures { link.features }

    /// Runs a function of the reader itself.
    ///
    /// With `isCancellable` a cancelled task returns at once. The reader cannot be stopped: when it has finished, the
    /// card is reset and disconnected. Until then the reader is in use.
    func control(_ function: UInt32, _ input: [UInt8], isCancellable: Bool) async throws(CardError) -> [UInt8] {
        guard isCancellable else {
            let answer = await thread.run { [link] in link.control(function, input) }
            return try (answer ?? .failure(CardLink.closed)).get()
        }
        let answer = OneShot<Result<[UInt8], CardError>?>()
        let isQueued = thread.async { [link] in answer.fill(link.control(function, input)) }
        guard isQueued else { throw CardLink.closed }
        guard let result = await answer.value(whenCancelled: nil) else {
            isOver.store(true, ordering: .relaxed)
            thread.finish { [link] in link.close(reset: true) }
            throw .cancelled
        }
        return try result.get()
    }

    /// The error for an answer that is too short.
    func missingAnswerError() async -> CardError {
        await thread.run { [link] in link.missingAnswerError() } ?? CardLink.closed
    }
}

/// A connection to a card in a reader with a keypad, which runs PACE itself. PC/SC part 10, amendment 1.
final class PCSCKeypadConnection: KeypadConnection {
    private let connection: PCSCConnection

    init(_ connection: PCSCConnection) { self.connection = connection }

    func transmit(_ command: CommandAPDU) async throws(CardError) -> ResponseAPDU {
        try await connection.transmit(command)
    }

    func disconnect(reset: Bool) async { await connection.disconnect(reset: reset) }

    /// Has the reader ask for the password and run PACE. A cancelled task returns at once and makes the connection
    /// unusable. The reader cannot be stopped: it is in use until its user answers or its time limit ends.
    func establishPACE(_ request: KeypadPACERequest) async throws(CardError) -> KeypadPACEResult {
        guard let input = PACEChannel.establish(request) else { throw .tooLong }
        let output = try await ask(connection.features.executePACE, input, isCancellable: true)
        guard let result = PACEChannel.established(output) else {
            throw .other("the reader's answer to EstablishPACEChannel is malformed (\(output.count) bytes)")
        }
        return result
    }

    func destroyPACE() async throws(CardError) {
        let output = try await ask(connection.features.executePACE, PACEChannel.destroy, isCancellable: false)
        guard let code = PACEChannel.destroyed(output) else {
            throw .other("the reader's answer to DestroyPACEChannel is malformed (\(output.count) bytes)")
        }
        guard code == 0 else { throw .other("DestroyPACEChannel failed with \(PCSCCode(code).hex)") }
    }

    /// Has the reader ask for a new PIN. A cancelled task still waits, at most 90 s per key, because only the answer
    /// tells whether the PIN has changed.
    func modifyPIN() async throws(CardError) -> StatusWord {
        let output = try await ask(
            connection.features.modifyPINDirect,
            PINModification().bytes,
            isCancellable: false
        )
        guard let answer = ResponseAPDU(bytes: output) else { throw await connection.missingAnswerError() }
        return answer.status
    }

    private func ask(_ function: UInt32?, _ input: [UInt8], isCancellable: Bool) async throws(CardError) -> [UInt8] {
        guard let function else { throw .other("the reader has a keypad but not this function") }
        return try await connection.control(function, input, isCancellable: isCancellable)
    }
}
