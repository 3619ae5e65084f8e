// SPDX-License-Identifier: GPL-3.0-or-later
import Concurrency
import Dispatch
import Host
import Readers
import Synchronization
import Text

/// Watches pcscd, its readers and cards for one consumer of events.
///
/// There are two threads, which sleep while nothing happens:
/// - `pcsc-watch`, one per connection to pcscd, blocks in SCardGetStatusChange for all readers and the plug-and-play
///   pseudo reader (`WatchThread`).
/// - `pcsc-socket` waits in inotify for a pcscd that starts, restarts or is replaced. The first thread cannot find it,
///   because SCardGetStatusChange only sees the pcscd that it is connected to.
///
/// All changes go through `State` under one lock, so events have the order of the changes of the table.
final class Watch: Sendable {
    struct State {
        var table = PCSCReaderTable()
        /// The number of the current connection. Reports from threads of earlier connections are ignored.
        var generation: UInt64 = 0
        var context: PCSCContext?
        var health = PCSCHealth()
        /// nil before the first report.
        var reportedHealth: PCSCHealth?
        var isStopped = false
        /// The calls of `refresh` that wait; `WatchThread` signals them.
        var refreshes: [Refresh] = []
        /// Signalled at each change of the table.
        var changeSignals: [DispatchSemaphore] = []
        /// Those who wait for the answer of pcscd to a question of GET_HEALTH.
        var probes: [OneShot<PCSCFault?>] = []
        /// Called once when their insertion ends.
        var removalHandlers: [UInt64: (insertion: Insertion, body: @Sendable () -> Void)] = [:]
        var lastHandler: UInt64 = 0
    }

    struct Refresh: Sendable {
        /// nil for all readers. libpcsclite takes 0.4 s for each reader with a mute card, so one reader is faster.
        let reader: ReaderName?
        let done: DispatchSemaphore
    }

    let state = Mutex(State())
    private let events: AsyncStream<ReaderEvent>.Continuation
    private let socket: PCSCSocket
    private let socketWatch: SocketWatch?
    /// The milliseconds after which a card that does not answer counts as mute, not as removed.
    private let absenceTime: Int

    /// Starts the threads. `stop` ends `events`.
    init(
        socket: PCSCSocket = .standard,
        events: AsyncStream<ReaderEvent>.Continuation,
        absenceTime: Int
    ) {
        self.socket = socket
        self.events = events
        self.absenceTime = absenceTime
        socketWatch = SocketWatch(socket)
        guard let socketWatch, startThread("pcsc-socket", { [self] in follow(socketWatch) }) else {
            publish { state in
                state.health.fault = .noResources
                return []
            }
            events.finish()
            return
        }
    }

    /// Ends both threads and the events. Does not block.
    func stop() {
        let (wasStopped, isConnected) = state.withLock { state in
            defer { state.isStopped = true }
            return (state.isStopped, state.context != nil)
        }
        guard !wasStopped else { return }
        socketWatch?.signal()
        events.finish()
        // On a thread, because ending SCardGetStatusChange takes an exchange with pcscd.
        if isConnected { _ = startThread("pcsc-cancel") { [self] in _ = refresh() } }
    }

    /// Looks for pcscd again, for changes that inotify does not report, such as a new polkit rule.
    func retry() { socketWatch?.signal() }

    // MARK: - The table

    /// Changes the table, and sends the events and a changed health.
    func publish(_ body: (inout State) -> [ReaderEvent]) {
        let due = state.withLock { state in
            for event in body(&state) where !state.isStopped { events.yield(event) }
            if state.health != state.reportedHealth, !state.isStopped {
                state.reportedHealth = state.health
                events.yield(.health(state.health.checks(path: socket.path)))
            }
            for signal in state.changeSignals { signal.signal() }
            let due = state.removalHandlers.filter { state.table.entry(of: $0.value.insertion) == nil }
            for number in due.keys { state.removalHandlers[number] = nil }
            return due.values
        }
        for handler in due { handler.body() }
    }

    /// Runs `body` once when the insertion ends, or at once when it has ended.
    /// - Returns: the argument for `removeRemovalHandler`.
    func addRemovalHandler(for insertion: Insertion, _ body: @escaping @Sendable () -> Void) -> UInt64 {
        let (number, hasEnded) = state.withLock { state in
            state.lastHandler += 1
            guard state.table.entry(of: insertion) != nil else { return (state.lastHandler, true) }
            state.removalHandlers[state.lastHandler] = (insertion, body)
            return (state.lastHandler, false)
        }
        if hasEnded { body() }
        return number
    }

    func removeRemovalHandler(_ number: UInt64) { state.withLock { $0.removalHandlers[number] = nil } }

    /// Notes whether pcscd refuses cards to us, for the health checks.
    func note(refusesCards: Bool) {
        publish { state in
            state.health.refusesCards = refusesCards
            return []
        }
    }

    /// Notes that another program holds this reader exclusively, and watches for the end of that.
    func note(held reader: ReaderName) {
        publish { $0.table.noteHeld(reader) }
        _ = refresh(reader)
    }

    /// Reports that a connection waits for another program, or that this wait is over.
    func report(isHeld: Bool, _ insertion: Insertion) {
        publish { state in
            guard let entry = state.table.entry(of: insertion) else { return [] }
            return [isHeld ? .held(insertion) : .changed(entry.description)]
        }
    }

    /// Whether another program is connected to the card. Blocks, so it is only for threads of this target.
    func isInUse(_ insertion: Insertion) -> Bool {
        // pcscd does not report the begin of shared use.
        guard let name = entry(of: insertion).entry?.name, refresh(name) else { return false }
        return entry(of: insertion).entry?.state?.flags.contains(.inUse) == true
    }

    /// The reader of this insertion, nil when the card has left, and whether pcscd is connected.
    func entry(of insertion: Insertion) -> (entry: PCSCReaderTable.Entry?, isConnected: Bool) {
        state.withLock { ($0.table.entry(of: insertion), $0.context != nil) }
    }

    /// Updates the state of one reader or all. Blocks, so it is only for threads of this target.
    ///
    /// Only `WatchThread` asks pcscd for states: libpcsclite (up to 1.9) keeps the last answer in one place without a
    /// lock. A query by a second thread could hide an event from the first.
    /// - Returns: false when pcscd is not connected, or has disconnected meanwhile.
    func refresh(_ reader: ReaderName? = nil) -> Bool {
        let done = DispatchSemaphore(value: 0)
        let started = state.withLock { state -> (PCSCContext, UInt64)? in
            guard let context = state.context else { return nil }
            state.refreshes.append(Refresh(reader: reader, done: done))
            return (context, state.generation)
        }
        guard let (context, generation) = started else { return false }
        // A cancel just before the wait begins has no effect, so it is repeated.
        var pause = 10
        while true {
            context.cancel()
            if done.wait(timeout: .now() + .milliseconds(pause)) == .success { break }
            guard state.withLock({ $0.generation == generation && $0.context != nil }) else { return false }
            pause = min(pause * 2, 500)
        }
        return state.withLock { $0.generation == generation && $0.context != nil }
    }

    enum Presence { case present, cardLeft, pcscdLeft }

    /// Finds out whether a card that does not answer has left. Blocks, so it is only for threads of this target.
    ///
    /// A removed card can be distinguished from a mute one only after pcscd has had time to notice the removal.
    func presence(of insertion: Insertion) -> Presence {
        let deadline = DispatchTime.now() + .milliseconds(absenceTime)
        let change = DispatchSemaphore(value: 0)
        state.withLock { $0.changeSignals.append(change) }
        defer { state.withLock { $0.changeSignals.removeAll { $0 === change } } }
        while true {
            let (entry, isConnected) = entry(of: insertion)
            if !isConnected { return .pcscdLeft }
            if entry == nil { return .cardLeft }
            if change.wait(timeout: deadline) == .timedOut { return .present }
        }
    }

    // MARK: - Finding pcscd

    /// The body of the thread `pcsc-socket`.
    private func follow(_ socketWatch: SocketWatch) {
        var backoff = Backoff()
        while true {
            socketWatch.arm()
            guard !state.withLock({ $0.isStopped }) else { return }
            let before = socket.identity
            switch connect() {
            case .open(let generation):
                let since = DispatchTime.now()
                waitForEnd(of: generation, at: before ?? socket.identity, socketWatch)
                // The back-off stays when pcscd ends at once.
                if DispatchTime.now() > since + .seconds(2) { backoff = Backoff() }
            case .failed(let seen):
                let (fault, pause, isSure) = backoff.next(seen)
                if isSure {
                    publish { state in
                        state.health = PCSCHealth(fault: fault)
                        return []
                    }
                }
                let begun = DispatchTime.now()
                socketWatch.wait(milliseconds: pause)
                // A wake-up before the end of the pause means a change of the socket.
                if pause.map({ DispatchTime.now() < begun + .milliseconds($0) }) ?? true { backoff = Backoff() }
            }
        }
    }

    /// The schedule of attempts to connect to pcscd, and when to report a fault.
    ///
    /// pcscd removes an old socket file when it starts, creates its own just before it listens, and changes the mode
    /// just after. A pcscd that is being killed still accepts connections for a moment. So the first try after an
    /// inotify event may fail, or may reach the old pcscd. Three tries (35 ms in all) come before a report, five more
    /// (1.3 s in all) while there is a socket. After them there are no tries: a pcscd that starts later makes a new
    /// file, which is an event.
    struct Backoff {
        private var tries = 0
        private var wasDenied = false

        /// Returns the fault, the milliseconds until the next try (nil for none), and whether to report the fault.
        ///
        /// A pcscd that refuses by polkit hangs up. When it does so before our first message, it looks like a pcscd
        /// that is being stopped. One of several tries shows the difference.
        mutating func next(_ seen: PCSCFault) -> (fault: PCSCFault, pause: Int?, isSure: Bool) {
            defer { tries += 1 }
            if seen == .denied { wasDenied = true }
            let fault = seen == .hungUp && wasDenied ? .denied : seen
            let limit = fault == .noSocket ? 3 : 8
            guard tries < limit else { return (fault, fault.mayPass ? Self.longPause : nil, true) }
            return (fault, 5 << tries, fault == .refused && tries >= 3)
        }

        /// The milliseconds between two tries while a fault lasts that passes without an event.
        private static let longPause = 10_000
    }

    private enum Connection {
        case open(generation: UInt64)
        case failed(PCSCFault)
    }

    /// Milliseconds for an answer of pcscd.
    private static let timeout: Int64 = 3000

    /// Makes a context; the health says so while pcscd does not answer.
    private func makeContext() throws(PCSCFault) -> PCSCContext {
        let before = state.withLock { $0.generation }
        let limit = Task { @Loop [weak self] in
            await Loop.sleep(milliseconds: Self.timeout)
            guard let self, !Task.isCancelled else { return }
            publish { state in
                if state.generation == before, state.context == nil { state.health = PCSCHealth(fault: .silent) }
                return []
            }
        }
        defer { limit.cancel() }
        do throws(PCSCCode) {
            return try PCSCContext()
        } catch {
            throw fault(error)
        }
    }

    private func fault(_ code: PCSCCode) -> PCSCFault {
        PCSCFault(code, errno: socket.tryConnect()).with(connections: socket.connections)
    }

    /// Asks pcscd for one more context, and returns the checks if it refuses that or does not answer.
    func currentHealth() async -> [HealthCheck] {
        let answer = OneShot<PCSCFault?>()
        let isFirst = state.withLock { state in
            state.probes.append(answer)
            return state.probes.count == 1
        }
        // One thread for all who ask: it stays as long as pcscd hangs.
        let isAsked =
            !isFirst
            || startThread("pcsc-health") { [self] in
                var found: PCSCFault?
                do throws(PCSCCode) { _ = try PCSCContext() } catch { found = fault(error) }
                let probes = state.withLock { state in
                    defer { state.probes = [] }
                    return state.probes
                }
                for probe in probes { probe.fill(found) }
            }
        if !isAsked { state.withLock { $0.probes = [] } }
        let limit = Task { @Loop in
            await Loop.sleep(milliseconds: Self.timeout)
            answer.fill(.silent)
        }
        defer { limit.cancel() }
        guard isAsked, let fault = await answer.value(whenCancelled: nil) else { return [] }
        return PCSCHealth(fault: fault).checks(path: socket.path)
    }

    private func connect() -> Connection {
        let context: PCSCContext
        do throws(PCSCFault) {
            context = try makeContext()
        } catch {
            return .failed(error)
        }
        let generation = state.withLock { state in
            state.generation += 1
            state.context = context
            return state.generation
        }
        let watchThread = WatchThread(watch: self, context: context, generation: generation)
        guard startThread("pcsc-watch", { watchThread.run() }) else {
            disconnected(generation)
            return .failed(.noResources)
        }
        publish { state in
            state.health = PCSCHealth()
            return []
        }
        return .open(generation: generation)
    }

    /// Blocks until this connection ends, or until the socket file is another one.
    private func waitForEnd(
        of generation: UInt64,
        at identity: PCSCSocket.Identity?,
        _ socketWatch: SocketWatch
    ) {
        while state.withLock({ $0.generation == generation && $0.context != nil && !$0.isStopped }) {
            if socket.identity != identity {
                // Other programs use the new pcscd from now on. SCardCancel would connect to it, too, and could not end
                // the call to the old one. So the thread in SCardGetStatusChange stays until the old pcscd ends.
                return disconnected(generation)
            }
            socketWatch.wait(milliseconds: nil)
            socketWatch.arm()
        }
    }

    /// Removes the readers of a connection that has ended.
    private func disconnected(_ generation: UInt64) {
        publish { state in
            guard state.generation == generation, state.context != nil else { return [] }
            state.context = nil
            for refresh in state.refreshes { refresh.done.signal() }
            state.refreshes = []
            return state.table.removeAll()
        }
    }

    /// Called by `WatchThread` at its end.
    func ended(_ generation: UInt64) {
        disconnected(generation)
        socketWatch?.signal()
    }
}
