// SPDX-License-Identifier: GPL-3.0-or-later
import Concurrency
import Dispatch
import Readers
import Synchronization

/// Watches pcscd, its readers and cards for one consumer of events.
///
/// Two threads, both asleep while nothing happens:
/// - `pcsc-watch`, one per connection to pcscd, blocks in SCardGetStatusChange without limit over all readers and the
///   plug-and-play pseudo reader (`WatchThread`).
/// - `pcsc-socket`, one for the whole time, sleeps on inotify. It finds pcscd when it starts, starts again, or is
///   replaced; the first thread cannot, because a blocked SCardGetStatusChange sees only the pcscd it is connected to.
///
/// Whatever they find goes through `State` under one lock, events included, so the order of the events is the order of
/// the table.
final class Watch: Sendable {
    struct State {
        var table = ReaderTable()
        /// The connection in use. What a thread of an earlier one still says does not count.
        var generation: UInt64 = 0
        var context: PCSCContext?
        var health = PCSCHealth()
        /// nil: nothing was told yet.
        var toldHealth: PCSCHealth?
        var isStopped = false
        /// Who waits until pcscd has been asked anew; `WatchThread` signals them.
        var refreshes: [Refresh] = []
        /// Who waits for any change of the table.
        var lookouts: [DispatchSemaphore] = []
        /// What to do when an insertion ends.
        var farewells: [UInt64: (insertion: Insertion, body: @Sendable () -> Void)] = [:]
        var farewellNumber: UInt64 = 0
    }

    struct Refresh: Sendable {
        /// nil: all. One alone is quicker: libpcsclite takes 0.4 s for each reader with a mute card.
        let reader: ReaderName?
        let done: DispatchSemaphore
    }

    let state = Mutex(State())
    private let events: AsyncStream<ReaderEvent>.Continuation
    private let socket: PCSCSocket
    private let socketWatch: SocketWatch?

    /// Starts watching; ends `events` when `stop` is called.
    init(socket: PCSCSocket = .standard, events: AsyncStream<ReaderEvent>.Continuation) {
        (self.socket, self.events) = (socket, events)
        socketWatch = SocketWatch(socket)
        guard let socketWatch, startThread("pcsc-socket", { [self] in follow(socketWatch) }) else {
            publish { state in
                state.health.fault = .other(.noMemory)
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
        // Reaching the thread in SCardGetStatusChange takes an exchange with pcscd.
        if isConnected { _ = startThread("pcsc-cancel") { [self] in _ = refresh() } }
    }

    /// Looks for pcscd again although nothing has happened to its socket: for what the file system does not tell, such
    /// as a new polkit rule.
    func retry() { socketWatch?.signal() }

    // MARK: - The table

    /// Changes the table and tells the events of it, and the health when it has changed.
    func publish(_ body: (inout State) -> [ReaderEvent]) {
        let over = state.withLock { state in
            for event in body(&state) where !state.isStopped { events.yield(event) }
            if state.health != state.toldHealth, !state.isStopped {
                state.toldHealth = state.health
                events.yield(.health(state.health.checks(path: socket.path)))
            }
            for lookout in state.lookouts { lookout.signal() }
            let over = state.farewells.filter { state.table.entry(of: $0.value.insertion) == nil }
            for number in over.keys { state.farewells[number] = nil }
            return over.values
        }
        for farewell in over { farewell.body() }
    }

    /// Runs `body` once when the insertion ends, at once when it is over already.
    /// - Returns: what `forget` needs.
    func atEnd(of insertion: Insertion, _ body: @escaping @Sendable () -> Void) -> UInt64 {
        let (number, isOver) = state.withLock { state in
            state.farewellNumber += 1
            guard state.table.entry(of: insertion) != nil else { return (state.farewellNumber, true) }
            state.farewells[state.farewellNumber] = (insertion, body)
            return (state.farewellNumber, false)
        }
        if isOver { body() }
        return number
    }

    func forget(_ farewell: UInt64) { state.withLock { $0.farewells[farewell] = nil } }

    /// Has pcscd answered that cards are not for us? Told when that changes.
    func note(refusesCards: Bool) {
        publish { state in
            state.health.refusesCards = refusesCards
            return []
        }
    }

    /// Another program holds this reader exclusively: watch for the end of that.
    func note(held reader: ReaderName) {
        state.withLock { $0.table.noteHeld(reader) }
        _ = refresh(reader)
    }

    /// The reader of this insertion while its card is in it, and whether pcscd is there at all.
    func entry(of insertion: Insertion) -> (entry: ReaderTable.Entry?, isConnected: Bool) {
        state.withLock { ($0.table.entry(of: insertion), $0.context != nil) }
    }

    /// Has pcscd asked for the state of one reader or all, and waits until it has come. Blocks; for threads of our own.
    ///
    /// Nobody but `WatchThread` asks pcscd for states: libpcsclite (up to 1.9) keeps the last answer in one place for
    /// all threads, without a lock, so a second thread that asks could make the first one overlook an event.
    /// - Returns: false when pcscd is not there, or left meanwhile.
    func refresh(_ reader: ReaderName? = nil) -> Bool {
        let done = DispatchSemaphore(value: 0)
        let started = state.withLock { state -> (PCSCContext, UInt64)? in
            guard let context = state.context else { return nil }
            state.refreshes.append(Refresh(reader: reader, done: done))
            return (context, state.generation)
        }
        guard let (context, generation) = started else { return false }
        // A cancel that comes just before the wait begins is lost, hence again; mostly the first one does it.
        var pause = 10
        while true {
            context.cancel()
            if done.wait(timeout: .now() + .milliseconds(pause)) == .success { break }
            guard state.withLock({ $0.generation == generation && $0.context != nil }) else { return false }
            pause = min(pause * 2, 500)
        }
        return state.withLock { $0.generation == generation && $0.context != nil }
    }

    /// How an insertion stands after its card stopped answering.
    enum Standing { case present, cardLeft, pcscdLeft }

    /// Waits for the end of an insertion whose card does not answer. Blocks; for threads of our own.
    ///
    /// A driver without interrupts is asked by pcscd every 0.4 s whether the card is there. Only after that long can a
    /// card that was taken away be told from one that keeps silent.
    func standing(of insertion: Insertion, within limit: DispatchTimeInterval = .milliseconds(600)) -> Standing {
        let deadline = DispatchTime.now() + limit
        let lookout = DispatchSemaphore(value: 0)
        state.withLock { $0.lookouts.append(lookout) }
        defer { state.withLock { $0.lookouts.removeAll { $0 === lookout } } }
        while true {
            let (entry, isConnected) = entry(of: insertion)
            if !isConnected { return .pcscdLeft }
            if entry == nil { return .cardLeft }
            if lookout.wait(timeout: deadline) == .timedOut { return .present }
        }
    }

    // MARK: - Finding pcscd

    /// The life of the thread `pcsc-socket`.
    private func follow(_ socketWatch: SocketWatch) {
        var patience = Patience()
        while true {
            socketWatch.arm()
            guard !state.withLock({ $0.isStopped }) else { return }
            let before = socket.identity
            switch connect() {
            case .success(let generation):
                let since = DispatchTime.now()
                stay(generation, at: before ?? socket.identity, socketWatch)
                // One that died at once may be dying in a loop: it does not earn new patience.
                if DispatchTime.now() > since + .seconds(2) { patience = Patience() }
            case .failure(let seen):
                let (fault, pause, isSure) = patience.next(seen.fault)
                if isSure {
                    publish { state in
                        state.health = PCSCHealth(fault: fault)
                        return []
                    }
                }
                let begun = DispatchTime.now()
                socketWatch.wait(milliseconds: pause)
                // Woken before the time was over: something has happened, so there is something to hope for again.
                if pause.map({ DispatchTime.now() < begun + .milliseconds($0) }) ?? true { patience = Patience() }
            }
        }
    }

    /// How often to try again, and when to believe what is seen.
    ///
    /// pcscd removes an old socket file when it starts, creates its own a moment before it listens, and changes its mode
    /// a moment after; one that is being killed still takes connections for a moment. So the wake-up by inotify can come
    /// too early, and the first look may mislead. A few tries with growing pauses cover that: three (35 ms) before
    /// anything is told, and, as long as there is a socket, five more, 1.3 s in all. After them, nothing: a pcscd that
    /// starts later, also one that finds the stale socket of a killed one, makes a new file, and that wakes us.
    struct Patience {
        private var tries = 0
        private var wasDenied = false

        /// What the fault is, milliseconds until the next try, nil for none, and whether the fault is to be told.
        ///
        /// A pcscd that says no hangs up without a word. When it does so before our first word has left, that looks like
        /// one that is just being stopped; but one try of several gets far enough to tell.
        mutating func next(_ seen: PCSCFault) -> (fault: PCSCFault, pause: Int?, isSure: Bool) {
            defer { tries += 1 }
            if seen == .denied { wasDenied = true }
            let fault = seen == .hungUp && wasDenied ? .denied : seen
            let limit = fault == .noSocket ? 3 : 8
            guard tries < limit else { return (fault, nil, true) }
            return (fault, 5 << tries, fault == .refused && tries >= 3)
        }
    }

    private struct Fault: Error { let fault: PCSCFault }

    private func connect() -> Result<UInt64, Fault> {
        let context: PCSCContext
        do throws(PCSCCode) {
            context = try PCSCContext()
        } catch {
            return .failure(Fault(fault: PCSCFault(error, errno: socket.tryConnect())))
        }
        let generation = state.withLock { state in
            state.generation += 1
            state.context = context
            return state.generation
        }
        let watchThread = WatchThread(watch: self, context: context, generation: generation)
        guard startThread("pcsc-watch", { watchThread.run() }) else {
            lose(generation)
            return .failure(Fault(fault: .other(.noMemory)))
        }
        publish { state in
            state.health = PCSCHealth()
            return []
        }
        return .success(generation)
    }

    /// Sleeps until this connection is over, or is to be given up because the socket file is another one now.
    private func stay(_ generation: UInt64, at identity: PCSCSocket.Identity?, _ socketWatch: SocketWatch) {
        while state.withLock({ $0.generation == generation && $0.context != nil && !$0.isStopped }) {
            if socket.identity != identity {
                // The pcscd behind our connection is not the one that other programs will meet, and SCardCancel would
                // ask the new one. The thread in SCardGetStatusChange stays behind and ends when the old pcscd does.
                return lose(generation)
            }
            socketWatch.wait(milliseconds: nil)
            socketWatch.arm()
        }
    }

    /// The connection is over: its readers are gone.
    private func lose(_ generation: UInt64) {
        publish { state in
            guard state.generation == generation, state.context != nil else { return [] }
            state.context = nil
            for refresh in state.refreshes { refresh.done.signal() }
            state.refreshes = []
            return state.table.removeAll()
        }
    }

    /// Called by `WatchThread` as its last act.
    func ended(_ generation: UInt64) {
        lose(generation)
        socketWatch?.signal()
    }
}
