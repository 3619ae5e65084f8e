// SPDX-License-Identifier: GPL-3.0-or-later
import Concurrency
package import Host
package import ISO7816
package import Readers
import Synchronization
import Text

/// The backend for readers of pcscd, through libpcsclite.
package final class PCSCBackend: ReaderBackend {
    package let name = "pcsc"
    private let watch = Mutex<Watch?>(nil)
    private let gate = ReaderGate()

    private let absenceTime: Int

    /// - Parameter absenceTime: the milliseconds in which pcscd notices the removal of a card. pcscd polls drivers without
    ///   interrupts every 0.4 s.
    package init(absenceTime: Int = 600) { self.absenceTime = absenceTime }

    deinit { watch.withLock { $0 }?.stop() }

    /// Starts watching pcscd; a second stream ends the first. The order of a reader's events is `added`, `inserted`,
    /// `withdrawn`, `removed`. `changed` follows when its features become known, or when another program ends its
    /// exclusive use or its transaction, which `held` has reported.
    package var events: AsyncStream<ReaderEvent> {
        let (stream, continuation) = AsyncStream.makeStream(of: ReaderEvent.self)
        let new = Watch(events: continuation, absenceTime: absenceTime)
        // In another task, to avoid a deadlock: the runtime holds its lock of the cancelled task during this call. A
        // thread that publishes an event holds the lock of the watch and waits for that of the runtime.
        continuation.onTermination = { [weak new] _ in
            if let new { Task.detached { new.stop() } }
        }
        let old = watch.withLock { watch in
            defer { watch = new }
            return watch
        }
        old?.stop()
        return stream
    }

    /// Connects to the card. Waits while another program holds a transaction, which is reported as `.held`, and while
    /// another connection to the same reader is open. Throws at once when the task is cancelled or the card leaves.
    package func connect(_ insertion: Insertion) async throws(CardError) -> any CardConnection {
        guard let watch = watch.withLock({ $0 }) else { throw .serviceUnavailable }
        let reader = insertion.reader
        let turn = gate.enter(reader)
        let first = watch.addRemovalHandler(for: insertion) { turn.fill(false) }
        defer { watch.removeRemovalHandler(first) }
        guard await turn.value(whenCancelled: false) else { throw Self.waitError(insertion, watch) }
        guard let thread = JobQueue(thread: "pcsc-card", onEnd: { [gate] in gate.leave(reader) }) else {
            gate.leave(reader)
            throw .noResources
        }

        let wait = TransactionWait {
            watch.isInUse(insertion)
        } report: {
            watch.report(isHeld: $0, insertion)
        }
        Task { @Loop in wait.measure() }
        let outcome = OneShot<Result<PCSCConnection, CardError>?>()
        let second = watch.addRemovalHandler(for: insertion) { outcome.fill(nil) }
        defer { watch.removeRemovalHandler(second) }
        thread.async {
            let result: Result<PCSCConnection, CardError>
            do throws(CardError) {
                let link = try CardLink(insertion, watch: watch, wait: wait)
                let connection = PCSCConnection(thread: thread, link: link) { watch.report(isHeld: $0, insertion) }
                result = .success(connection)
            } catch {
                result = .failure(error)
            }
            // When the caller has given up, the connection is freed here, which closes it.
            if !outcome.fill(result) { thread.finish() }
            if case .failure = result { thread.finish() }
        }
        guard let result = await outcome.value(whenCancelled: nil) else {
            wait.giveUp()
            throw Self.waitError(insertion, watch)
        }
        let connection = try result.get()
        guard connection.features.executePACE != nil else { return connection }
        return PCSCKeypadConnection(connection)
    }

    /// The error for a wait for a connection that has ended without one.
    private static func waitError(_ insertion: Insertion, _ watch: Watch) -> CardError {
        let (entry, isConnected) = watch.entry(of: insertion)
        return entry != nil ? .cancelled : isConnected ? .removed : .serviceUnavailable
    }

    package func currentHealth() async -> [HealthCheck] {
        guard let watch = watch.withLock({ $0 }) else { return [] }
        let (entries, isConnected) = watch.state.withLock { ($0.table.entries, $0.context != nil) }
        guard isConnected else {
            // The user may have changed something that gives no event.
            watch.retry()
            return []
        }
        return await watch.currentHealth()
            + [USBReaders.check(USBReaders.missing(USBReaders.connected(), in: entries.map(\.features)))]
    }
}

/// The wait for a card that another program may hold in a transaction. Another thread can end the wait.
final class TransactionWait: Sendable {
    private struct State {
        var card: PCSCCard?
        var isGivenUp = false
        var isReported = false
        var isOver = false
        /// Kept until the wait is over, also when nobody needs the card any more.
        var alarm: Loop.Alarm?
    }

    private let state = Mutex(State())
    private let isInUse: @Sendable () -> Bool
    private let report: @Sendable (_ isHeld: Bool) -> Void

    /// Milliseconds after which a wait is reported. Clients are notified within a second.
    private static let reportDelay: Int64 = 250

    /// - Parameters:
    ///   - isInUse: returns whether another program uses the reader. It may block.
    ///   - report: is called when a wait for another program takes long, and when this wait is over.
    init(
        isInUse: @escaping @Sendable () -> Bool = { false },
        report: @escaping @Sendable (_ isHeld: Bool) -> Void = { _ in }
    ) {
        self.isInUse = isInUse
        self.report = report
    }

    /// Begins to measure the wait.
    @Loop func measure() {
        let alarm = Loop.Alarm { [self] in
            if isWaiting { return reportFault() }
            // A card that has to be powered up is slow as well. Asking for other programs blocks.
            _ = startThread("pcsc-held") { [self] in if isInUse() { reportFault() } }
        }
        let isOver = state.withLock { state in
            if !state.isOver { state.alarm = alarm }
            return state.isOver
        }
        if !isOver { alarm.set(after: Self.reportDelay) }
    }

    /// Reports that another program holds the card.
    private func reportFault() {
        state.withLock { state in
            guard !state.isOver else { return }
            state.isReported = true
            report(true)
        }
    }

    /// Ends the measurement. The card is held, or cannot be held.
    func end() {
        state.withLock { state in
            state.isOver = true
            state.alarm = nil
            if state.isReported { report(false) }
        }
    }

    /// Blocks until no other program holds a transaction, or until `giveUp`. The C function is SCardBeginTransaction.
    func begin(_ card: PCSCCard) -> PCSCCode {
        let isGivenUp = state.withLock { state in
            state.card = card
            return state.isGivenUp
        }
        defer { state.withLock { $0.card = nil } }
        return isGivenUp ? .cancelled : card.beginTransaction()
    }

    var isWaiting: Bool { state.withLock { $0.card != nil } }

    /// Ends the wait under way, and later ones. Does not block.
    func giveUp() {
        let card = state.withLock { state in
            state.isGivenUp = true
            return state.card
        }
        guard let card else { return }
        // Without a thread for this, the wait ends with the transaction of the other program.
        _ = startThread("pcsc-cancel") { card.abandon() }
    }
}
