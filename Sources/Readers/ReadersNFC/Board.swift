// SPDX-License-Identifier: GPL-3.0-or-later
import Concurrency
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
        var visit: Visit?
        /// Connections that have not been closed.
        var holders = 0
        /// What to do when an insertion ends.
        var farewells: [UInt64: @Sendable () -> Void] = [:]
        var farewellNumber: UInt64 = 0
        /// In `NFCDevice.poll` or `NFCDevice.wait`.
        var isPolling = false
        var isStopped = false
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
        let visit = state.withLock { state in
            state.isStopped = true
            return state.visit
        }
        visit?.queue.finish()
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

    /// nil when just this insertion is over.
    func visit(of insertion: Insertion) -> Visit? {
        state.withLock { $0.visit?.insertion == insertion ? $0.visit : nil }
    }

    func hold() { state.withLock { $0.holders += 1 } }
    func release() { state.withLock { $0.holders -= 1 } }

    /// Runs `body` once when the insertion ends, at once when it is over already.
    /// - Returns: what `forget` needs.
    func atEnd(of insertion: Insertion, _ body: @escaping @Sendable () -> Void) -> UInt64 {
        let (number, isOver) = state.withLock { state in
            state.farewellNumber += 1
            guard state.visit?.insertion == insertion else { return (state.farewellNumber, true) }
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
        let answerToReset = card.answerToReset
        let visit = Visit(insertion, of: card)
        let isStopped = state.withLock { state in
            if !state.isStopped { state.visit = visit }
            return state.isStopped
        }
        guard !isStopped else { return }
        publish(.inserted(insertion, answerToReset: answerToReset))
        defer { end(visit) }
        while let mayHoldChannel = try visit.withCard({ card throws(NFCCode) in
            if let failure = card.failure { throw failure }
            return card.isGone ? nil : card.mayHoldChannel
        }) ?? nil {
            switch visit.queue.serve(until: mayHoldChannel ? .distantFuture : .now() + Self.presenceInterval) {
            case .worked: break
            case .over: return
            case .timedOut:
                let isHeld = state.withLock { $0.holders > 0 }
                _ = try visit.withCard { card throws(NFCCode) in try card.checkPresence(isHeld: isHeld) }
            }
        }
    }

    /// Those who still want something of the card hear that it has left.
    private func end(_ visit: Visit) {
        let farewells = state.withLock { state in
            defer { (state.visit, state.farewells) = (nil, [:]) }
            return state.farewells.values
        }
        publish(.withdrawn(visit.insertion))
        visit.end()
        for farewell in farewells { farewell() }
    }
}
