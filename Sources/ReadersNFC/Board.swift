// SPDX-License-Identifier: GPL-3.0-or-later
import Dispatch
import ISO7816
import Readers
import Synchronization

/// One device at work: a reader, with a thread of its own on which all calls to libnfc block.
///
/// The thread looks for a card, holds it while it is in the field, and does what is asked of the card meanwhile. With a
/// chip that looks for both types of cards by itself it wakes for nothing while there is no card; with other ones it
/// wakes to turn from one type to the other. A card that lies there is asked once a second whether it still does, but
/// not while it may hold a secure channel.
final class Board: Sendable {
    private struct State {
        var jobs: [@Sendable (FieldCard?) -> Void] = []
        var insertion: Insertion?
        /// Connections that have not been closed.
        var holders = 0
        /// What to do when an insertion ends.
        var farewells: [UInt64: @Sendable () -> Void] = [:]
        var farewellNumber: UInt64 = 0
        /// In `NFCDevice.poll` or `NFCDevice.wait`.
        var isPolling = false
        var isStopped = false
        /// Nothing is told any more, and nobody is served.
        var isOver = false
    }

    let connection: ConnectionString
    let reader: String
    /// The configuration names it, or its driver.
    let isNamed: Bool
    /// When it was made.
    let start = ContinuousClock.now
    let gate = ReaderGate()
    private let state = Mutex(State())
    private let wake = DispatchSemaphore(value: 0)
    private let ended = DispatchSemaphore(value: 0)
    private let device: NFCDevice
    private let publish: @Sendable (ReaderEvent) -> Void
    private let nextInsertion: @Sendable () -> UInt64
    /// Gets the reason, nil when it was stopped; tells that the reader is gone.
    private let onEnd: @Sendable (Board, NFCCode?) -> Void

    /// How long a device looks for cards of one type, or rests after a look for both. A look costs up to five transfers
    /// on USB, for each of which the thread sleeps once; so it wakes less than four times a second.
    private static let searchInterval = Duration.milliseconds(1500)
    /// How often a card is asked whether it is there.
    private static let presenceInterval = DispatchTimeInterval.seconds(1)

    init(
        _ device: NFCDevice,
        isNamed: Bool,
        reader: String,
        publish: @escaping @Sendable (ReaderEvent) -> Void,
        nextInsertion: @escaping @Sendable () -> UInt64,
        onEnd: @escaping @Sendable (Board, NFCCode?) -> Void
    ) {
        (self.device, self.isNamed, self.reader, connection) = (device, isNamed, reader, device.connection)
        (self.publish, self.nextInsertion, self.onEnd) = (publish, nextInsertion, onEnd)
    }

    /// False when the system has no thread left.
    func begin() -> Bool { startThread("nfc-device") { [self] in run() } }

    /// Has the thread end: the field goes off, the device is given back. Blocks until that is done, or `limit` is over.
    func stop(within limit: DispatchTimeInterval = .milliseconds(700)) {
        state.withLock { $0.isStopped = true }
        wake.signal()
        let deadline = DispatchTime.now() + limit
        // The abort is lost when it comes before libnfc waits, which is some milliseconds after the call of it.
        var pause = 5
        while ended.wait(timeout: min(.now() + .milliseconds(pause), deadline)) == .timedOut, .now() < deadline {
            // Under the lock, so that the device is not given back meanwhile.
            state.withLock { if $0.isPolling { device.abort() } }
            pause = min(pause * 2, 100)
        }
    }

    // MARK: - For connections

    func contains(_ insertion: Insertion) -> Bool { state.withLock { $0.insertion == insertion } }

    /// Runs `body` on the thread with the card of just this insertion.
    /// - Throws: `.removed` when it is over.
    func run<Value: Sendable>(
        _ insertion: Insertion,
        _ body: @escaping @Sendable (FieldCard) -> Result<Value, CardError>
    ) async throws(CardError) -> Value {
        let result = await withCheckedContinuation { continuation in
            let isQueued = enqueue(for: insertion) { card in
                continuation.resume(returning: card.map(body) ?? .failure(.removed))
            }
            if !isQueued { continuation.resume(returning: .failure(.removed)) }
        }
        return try result.get()
    }

    /// False when the insertion is over; then `job` does not run.
    @discardableResult
    func enqueue(for insertion: Insertion, _ job: @escaping @Sendable (FieldCard?) -> Void) -> Bool {
        let isQueued = state.withLock { state in
            guard state.insertion == insertion, !state.isOver else { return false }
            state.jobs.append(job)
            return true
        }
        if isQueued { wake.signal() }
        return isQueued
    }

    func hold() { state.withLock { $0.holders += 1 } }
    func release() { state.withLock { $0.holders -= 1 } }

    /// Runs `body` once when the insertion ends, at once when it is over already.
    /// - Returns: what `forget` needs.
    func atEnd(of insertion: Insertion, _ body: @escaping @Sendable () -> Void) -> UInt64 {
        let (number, isOver) = state.withLock { state in
            state.farewellNumber += 1
            guard state.insertion == insertion else { return (state.farewellNumber, true) }
            state.farewells[state.farewellNumber] = body
            return (state.farewellNumber, false)
        }
        if isOver { body() }
        return number
    }

    func forget(_ farewell: UInt64) { state.withLock { $0.farewells[farewell] = nil } }

    // MARK: - The thread

    private func run() {
        publish(.added(description))
        var reason: NFCCode?
        var looksForTypeB = false
        do throws(NFCCode) {
            while !state.withLock({ $0.isStopped }) {
                if let target = try search(&looksForTypeB) { try attend(target) }
            }
        } catch {
            reason = error
        }
        endInsertion()
        state.withLock { $0.isOver = true }
        device.close()
        onEnd(self, reason)
        ended.signal()
    }

    private var description: ReaderDescription {
        ReaderDescription(name: reader, hasExtendedLength: device.sendsFrames)
    }

    /// Looks for a card; nil when there was none, or the thread shall end. `looksForTypeB`: it is the turn of type B.
    private func search(_ looksForTypeB: inout Bool) throws(NFCCode) -> Target? {
        switch connection.search {
        case .byChip:
            do throws(NFCCode) {
                return try polling { () throws(NFCCode) in try device.poll() }
            } catch {
                guard error.meaning == .aborted || error.meaning == .radio else { throw error }
                return nil
            }
        case .inTurns:
            let isTypeB = looksForTypeB && device.hasTypeB
            looksForTypeB = !isTypeB
            let time = device.hasTypeB ? Self.searchInterval : nil
            let start = ContinuousClock.now
            if let target = try polling({ () throws(NFCCode) in try device.wait(typeB: isTypeB, for: time) }) {
                // The next one is likely to be of the same type.
                looksForTypeB = isTypeB
                return target
            }
            // A chip that gives up at once must not be asked without end.
            if start.duration(to: .now) < Self.searchInterval / 2 { rest() }
            return nil
        case .byAsking:
            for isTypeB in [false, true] {
                if let target = try device.select(typeB: isTypeB) { return target }
            }
            rest()
            return nil
        }
    }

    private func rest() {
        _ = wake.wait(timeout: .now() + .milliseconds(Int(Self.searchInterval / .milliseconds(1))))
    }

    /// Runs what `stop` may have to end.
    private func polling(_ body: () throws(NFCCode) -> Target?) throws(NFCCode) -> Target? {
        guard
            state.withLock({ state in
                state.isPolling = !state.isStopped
                return state.isPolling
            })
        else { return nil }
        defer { state.withLock { $0.isPolling = false } }
        return try body()
    }

    /// Holds a card while it is there.
    private func attend(_ target: Target) throws(NFCCode) {
        let couldSendFrames = device.sendsFrames
        let card = try FieldCard(target, on: device)
        if device.sendsFrames != couldSendFrames { publish(.changed(description)) }
        guard !card.isGone else { return }
        let insertion = Insertion(reader: reader, number: nextInsertion())
        state.withLock { $0.insertion = insertion }
        publish(.inserted(insertion, answerToReset: card.answerToReset))
        defer { endInsertion() }
        while !card.isGone {
            let (job, isHeld, isStopped) = state.withLock { state in
                (state.jobs.isEmpty ? nil : state.jobs.removeFirst(), state.holders > 0, state.isStopped)
            }
            if let job {
                job(card)
                if let failure = card.failure { throw failure }
            } else if isStopped {
                return
            } else if card.mayHoldChannel {
                wake.wait()
            } else if wake.wait(timeout: .now() + Self.presenceInterval) == .timedOut {
                _ = try card.checkPresence(isHeld: isHeld)
            }
        }
    }

    /// Those who still want something of the card hear that it has left.
    private func endInsertion() {
        let (insertion, jobs, farewells) = state.withLock { state in
            defer { (state.insertion, state.jobs, state.farewells) = (nil, [], [:]) }
            return (state.insertion, state.jobs, state.farewells.values)
        }
        guard let insertion else { return }
        publish(.withdrawn(insertion))
        for job in jobs { job(nil) }
        for farewell in farewells { farewell() }
    }
}
