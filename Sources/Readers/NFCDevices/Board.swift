// SPDX-License-Identifier: GPL-3.0-or-later
import Concurrency
import Dispatch
import Readers
import Synchronization

/// One open device: a reader with a thread of its own, because all calls to libnfc block.
///
/// The thread looks for a card, and runs commands while a card is in the field. A chip that looks for both types of
/// cards by itself causes no wake-ups without a card. For other chips the thread switches between the types. The thread
/// checks once a second whether the card is still there, but not while the card may hold a secure channel.
final class Board: Sendable {
    private struct State {
        var session: NFCCardSession?
        /// The thread is in `NFCDevice.poll` or `NFCDevice.wait`.
        var isPolling = false
        var isStopped = false
        /// When the search was ended that runs.
        var abortTime: ContinuousClock.Instant?
        /// The device must prove that it answers, before it looks for cards again.
        var mustProve = false
    }

    let connection: ConnectionString
    let reader: String
    /// The configuration names the device or its driver.
    let isConfigured: Bool
    let startTime = ContinuousClock.now
    private let state = Mutex(State())
    private let wake = DispatchSemaphore(value: 0)
    private let ended = DispatchSemaphore(value: 0)
    private let device: NFCDevice
    private let publish: @Sendable (ReaderEvent) -> Void
    private let nextInsertion: @Sendable () -> UInt64
    /// Gets the error that ended the thread; nil after `stop`. Reports the removal of the reader.
    private let onEnd: @Sendable (Board, NFCCode?) -> Void

    /// How long a device looks for cards of one type, or pauses after a look for both types. One look takes up to five
    /// USB transfers and one wake-up for each, so the thread wakes up less than four times a second.
    private static let searchInterval = Duration.milliseconds(1500)
    private static let presenceInterval = DispatchTimeInterval.seconds(1)
    /// The time after which a device that waits for cards has to prove that it answers.
    private static let proofInterval = Duration.seconds(3)
    /// The time in which libnfc ends a search.
    private static let abortLimit = Duration.seconds(4)
    /// No call of libnfc takes so long, unless it looks for cards.
    private static let longestCall = Duration.seconds(13)

    init(
        _ device: NFCDevice,
        isConfigured: Bool,
        reader: String,
        publish: @escaping @Sendable (ReaderEvent) -> Void,
        nextInsertion: @escaping @Sendable () -> UInt64,
        onEnd: @escaping @Sendable (Board, NFCCode?) -> Void
    ) {
        self.device = device
        self.isConfigured = isConfigured
        self.reader = reader
        connection = device.connection
        self.publish = publish
        self.nextInsertion = nextInsertion
        self.onEnd = onEnd
    }

    /// Starts the thread; false when the system has no thread left.
    func start() -> Bool { startThread("nfc-device") { [self] in run() } }

    /// Ends the thread: switches the field off and closes the device. Blocks until that is done, or until `limit` has
    /// passed.
    /// - Returns: whether the device is closed.
    @discardableResult
    func stop(within limit: DispatchTimeInterval = .milliseconds(700)) -> Bool {
        let session = state.withLock { state in
            state.isStopped = true
            return state.session
        }
        session?.queue.finish()
        wake.signal()
        let deadline = DispatchTime.now() + limit
        // An abort that comes just before libnfc begins to wait is lost, so it is repeated.
        var pause = 5
        while ended.wait(timeout: min(.now() + .milliseconds(pause), deadline)) == .timedOut {
            guard .now() < deadline else { return false }
            // The lock keeps the device open during the abort.
            state.withLock { if $0.isPolling { device.abort() } }
            pause = min(pause * 2, 100)
        }
        return true
    }

    /// Whether libnfc returns. A search has no limit of time, so one that has lasted for some seconds is ended: the device
    /// answers a command before the next one, or it fails.
    func isAlive() -> Bool {
        let (time, now) = (device.callTime, ContinuousClock.now)
        return state.withLock { state in
            state.mustProve = true
            guard state.isPolling else { return time < Self.longestCall }
            if let begun = state.abortTime { return now - begun < Self.abortLimit }
            guard time > Self.proofInterval else { return true }
            state.abortTime = now
            device.abort()
            return true
        }
    }

    /// Has the device answer a command, if that was asked for. A search alone cannot tell a silent device from a field
    /// without a card.
    private func prove() throws(NFCCode) {
        let isDue = state.withLock { state in
            defer { state.mustProve = false }
            return state.mustProve
        }
        if isDue { try device.setField(on: true) }
    }

    /// The session of this insertion; nil when the insertion has ended.
    func session(_ insertion: UInt64) -> NFCCardSession? {
        state.withLock { $0.session?.insertion.number == insertion ? $0.session : nil }
    }

    // MARK: - The thread

    private func run() {
        publish(.added(description))
        var reason: NFCCode?
        var isTypeBNext = false
        do throws(NFCCode) {
            while !state.withLock({ $0.isStopped }) {
                if let target = try search(&isTypeBNext) { try serve(target) }
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

    /// Looks for a card.
    /// - Returns: nil when no card was found, or after `stop`.
    private func search(_ isTypeBNext: inout Bool) throws(NFCCode) -> Target? {
        try prove()
        switch connection.search {
        case .byChip:
            do throws(NFCCode) {
                return try abortable(device.poll())
            } catch {
                guard error.meaning == .aborted || error.meaning == .radio else { throw error }
                return nil
            }
        case .alternating:
            let isTypeB = isTypeBNext && device.hasTypeB
            isTypeBNext = !isTypeB
            let time = device.hasTypeB ? Self.searchInterval : nil
            let start = ContinuousClock.now
            if let target = try abortable(device.wait(typeB: isTypeB, for: time)) {
                // The next card is probably of the same type.
                isTypeBNext = isTypeB
                return target
            }
            // A chip that ends its search at once must not keep the thread busy.
            if start.duration(to: .now) < Self.searchInterval / 2 { pause() }
            return nil
        case .polling:
            for isTypeB in [false, true] {
                if let target = try device.select(typeB: isTypeB) { return target }
            }
            pause()
            return nil
        }
    }

    private func pause() {
        _ = wake.wait(timeout: .now() + .milliseconds(Int(Self.searchInterval / .milliseconds(1))))
    }

    /// Runs a search that `stop` may have to abort.
    private func abortable(_ search: @autoclosure () throws(NFCCode) -> Target?) throws(NFCCode) -> Target? {
        guard
            state.withLock({ state in
                state.isPolling = !state.isStopped
                state.abortTime = nil
                return state.isPolling
            })
        else { return nil }
        defer { state.withLock { $0.isPolling = false } }
        return try search()
    }

    /// Serves a card until it leaves.
    private func serve(_ target: Target) throws(NFCCode) {
        var couldSendFrames = device.sendsFrames
        func reportChange() {
            if device.sendsFrames != couldSendFrames { publish(.changed(description)) }
            couldSendFrames = device.sendsFrames
        }
        let card = try FieldCard(target, on: device)
        reportChange()
        // A tag shows this only when it is read.
        defer { reportChange() }
        guard !card.isGone else { return }
        let insertion = Insertion(reader: reader, number: nextInsertion())
        let answerToReset = card.answerToReset
        let session = NFCCardSession(insertion, of: card)
        let isStopped = state.withLock { state in
            if !state.isStopped { state.session = session }
            return state.isStopped
        }
        guard !isStopped else { return }
        publish(.inserted(insertion, answerToReset: answerToReset))
        defer { end(session) }
        while let mayHoldChannel = try session.withCard({ card throws(NFCCode) in
            if let failure = card.failure { throw failure }
            return card.isGone ? nil : card.mayHoldChannel
        }) ?? nil {
            switch session.queue.serve(until: mayHoldChannel ? .distantFuture : .now() + Self.presenceInterval) {
            case .worked: break
            case .over: return
            case .timedOut:
                try session.withCard { card throws(NFCCode) in try card.checkPresence() }
            }
        }
    }

    /// Reports the removal and ends the session.
    private func end(_ session: NFCCardSession) {
        state.withLock { $0.session = nil }
        publish(.withdrawn(session.insertion))
        session.end()
    }
}

/// One insertion of a card in the field of a device. Commands to the card run on the device's thread.
final class NFCCardSession: Sendable {
    let insertion: Insertion
    let queue = JobQueue()
    /// nil when the session has ended.
    private let card: Mutex<FieldCard?>

    init(_ insertion: Insertion, of card: consuming sending FieldCard) {
        self.insertion = insertion
        self.card = Mutex(card)
    }

    /// Calls `body` with the card, unless the session has ended. For the device's thread.
    @discardableResult
    func withCard<Value: Sendable>(_ body: (FieldCard) throws(NFCCode) -> Value) throws(NFCCode) -> Value? {
        try card.withLock { card throws(NFCCode) in
            guard let card else { return nil }
            return try body(card)
        }
    }

    /// Runs `body` with the card on the device's thread; with nil when the session has ended.
    func perform(_ body: @escaping @Sendable (FieldCard?) -> Void) {
        if !queue.async({ [self] in card.withLock { body($0) } }) { body(nil) }
    }

    /// Ends the session, on the device's thread. Waiting calls of `perform` get nil.
    func end() {
        card.withLock { $0 = nil }
        queue.finish()
        while queue.serve() != .over {}
    }
}
