// SPDX-License-Identifier: GPL-3.0-or-later
import Concurrency
import Crypto
import Glibc
import Host
import Store
package import Text

/// The events that the broker has not acknowledged, in a file. A number and its event are committed together, so that
/// nothing is published that is not on the disk. One thread uses it.
package final class EventStore {
    package struct Entry {
        package let stream: EventStream
        package let sequence: Int
        package let payload: [UInt8]
    }

    /// An event that gets the next number of its stream.
    package struct Addition {
        let stream: EventStream
        let mark: Mark
        /// Makes the payload from the number and the gaps before it.
        let content: (Int, [Gap]) -> [UInt8]

        package init(_ stream: EventStream, _ mark: Mark, content: @escaping (Int, [Gap]) -> [UInt8]) {
            self.stream = stream
            self.mark = mark
            self.content = content
        }
    }

    /// Where badged was when the last event was stored.
    package struct Mark: Equatable {
        /// The start of badged, and the number of its last event.
        package var run = 0
        package var number = 0
        /// Milliseconds since 1970.
        package var time: Int64 = 0
    }

    struct State {
        var last = 0
        var lost = 0
        var gaps: [Gap] = []
        var mark = Mark()
        /// The numbers of the events in the file, ascending.
        var waiting: [Int] = []
        var head = 0
        /// Events up to this number may have reached the broker: they are dropped only when the broker has them.
        var sent = 0
        var count: Int { waiting.count - head }

        /// The place of the oldest event that was not sent; nil: all were.
        var firstUnsent: Int? {
            let places = head..<waiting.count
            return places.prefix(BrokerConnection.window + 1).first { waiting[$0] > sent }
        }

        /// Takes out a number near the head.
        mutating func remove(at place: Int) {
            for one in stride(from: place, to: head, by: -1) { waiting[one] = waiting[one - 1] }
            head += 1
        }
    }

    private let database: Database
    private let numbers: NumberFile
    /// Why the last numbers could not be written; nil: they were.
    private var numbersFault: String?
    /// How many events of each stream may wait. A smaller number counts from the next event on.
    package var limit: Int
    private var states: [EventStream: State]
    /// Acknowledged events that are still in the file.
    private var done: [(EventStream, Int)] = []
    /// 16 hexadecimal digits; new with each file.
    package let epoch: String
    /// Whether the last commit has succeeded.
    package private(set) var isDurable = true
    /// Why events were lost last, since the start; nil: none were.
    private(set) var lastLoss: String?
    /// Lost events that are not in the log.
    private var unloggedLosses = 0
    /// When the log has told a loss, in microseconds of `Loop.clock`.
    private var loggedLoss: Int64 = .min / 2
    private static let logPause: Int64 = 60_000_000
    /// Whether the last reading has failed.
    private var cannotRead = false
    /// Whether an earlier file was damaged, removed or replaced by an older one.
    package let wasLost: Bool
    /// The file was damaged while it was open: the program must end, and begin anew.
    package private(set) var isDamaged = false

    /// Opens the file in a folder, or makes one. A damaged file is moved aside.
    package init(folder: String, limit: Int) throws(Failure) {
        self.limit = limit
        let path = folder + "/queue.db"
        numbers = NumberFile(folder + "/queue.numbers")
        let known = numbers.read()
        var found: QueueFile
        do throws(Failure) {
            found = try QueueFile(path, known)
        } catch {
            guard error.code == .storeDamaged else { throw error }
            Log.error("the queue is moved aside: \(error.message)")
            for file in ["", "-wal", "-journal"].map({ path + $0 })
            where rename(file, file + ".damaged") != 0 && errno != ENOENT {
                let reason = errorText()
                throw Failure(
                    .storeUnavailable,
                    "cannot move \(file) aside: \(reason)",
                    advice: "remove \(file).damaged"
                )
            }
            found = try QueueFile(path, nil)
            found.isLost = true
        }
        database = found.database
        epoch = found.epoch
        states = found.states
        wasLost = found.isLost
        // A program that was killed may have sent the oldest events.
        for stream in EventStream.allCases {
            let oldest = found.states[stream]?.waiting.prefix(BrokerConnection.window)
            states[stream]?.sent = oldest?.last ?? 0
        }
        if wasLost {
            Log.error("the queue begins anew with the epoch \(epoch); events that waited in the one before are lost")
            for stream in EventStream.allCases { add(Gap(reason: .storeLost, until: Self.now), to: stream) }
        }
        do throws(Failure) {
            try commit { () throws(Failure) in for stream in EventStream.allCases { try store(stream) } }
        } catch {
            // On a full disk the program tells what happens, although it cannot keep it.
            guard error.code == .storeUnavailable else { throw error }
        }
        writeNumbers(isSynchronous: true)
    }

    package static var now: Int64 { Loop.wallClock }

    // MARK: State

    package func last(_ stream: EventStream) -> Int { states[stream]?.last ?? 0 }
    package func lost(_ stream: EventStream) -> Int { states[stream]?.lost ?? 0 }
    package func mark(_ stream: EventStream) -> Mark { states[stream]?.mark ?? Mark() }
    package func waiting(_ stream: EventStream) -> Int { states[stream]?.count ?? 0 }
    package var waiting: Int { EventStream.allCases.reduce(0) { $0 + waiting($1) } }

    /// When the oldest event that waits has happened, in milliseconds since 1970.
    package var oldest: Int? {
        EventStream.allCases.compactMap { stream in
            events(stream, after: 0, count: 1).first.flatMap { try? JSON($0.payload)["time"]?.int }
        }.min()
    }

    /// Tells the next event of a stream what is missing before it. Gaps with the same reason are joined.
    package func add(_ gap: Gap, to stream: EventStream) { states[stream]?.gaps.join(gap) }

    // MARK: Changes

    /// Stores events in one transaction.
    /// - Returns: whether they are on the disk. Otherwise they are lost, and the next event says so.
    @discardableResult
    package func append(_ events: [Addition]) -> Bool {
        let before = states
        do throws(Failure) {
            try commit { () throws(Failure) in
                for event in events { try add(event) }
                for stream in Set(events.map(\.stream)) { try store(stream) }
            }
            writeNumbers()
            return true
        } catch {
            states = before
            for event in events {
                lost(event.stream, "the disk does not store events")
                let time = event.mark.time
                add(Gap(reason: .diskFull, missed: 1, since: time, until: time), to: event.stream)
                // The number of badged is known, so it is not missed a second time.
                states[event.stream]?.mark = event.mark
            }
            return false
        }
    }

    private func add(_ event: Addition) throws(Failure) {
        guard var state = states[event.stream] else { return }
        var dropped = 0
        while state.count >= limit, let place = state.firstUnsent {
            // The oldest event goes, because the last hour of a door is worth more. The next event also tells its gaps.
            let oldest = state.waiting[place]
            if let payload = try payload(event.stream, oldest) {
                for gap in [Gap](of: payload) { state.gaps.join(gap) }
            }
            state.gaps.join(Gap(reason: .queueFull, from: oldest, to: oldest, missed: 1))
            try remove(event.stream, oldest)
            state.remove(at: place)
            dropped += 1
        }
        let number = state.last + 1
        let payload = event.content(number, state.gaps)
        try database.run(
            "INSERT INTO events VALUES (?, ?, ?)",
            [.number(event.stream.rawValue), .number(number), .bytes(payload)]
        )
        state.last = number
        state.gaps = []
        state.mark = event.mark
        state.waiting.append(number)
        if state.head > 4096 {
            state.waiting.removeFirst(state.head)
            state.head = 0
        }
        states[event.stream] = state
        if dropped > 0 { lost(event.stream, "the queue is full", dropped) }
    }

    /// Counts lost events, with a number or without one, and says so in the log: the first at once, then their sum once
    /// a minute.
    func lost(_ stream: EventStream, _ reason: String, _ count: Int = 1) {
        states[stream]?.lost += count
        lastLoss = "\(stream.word): \(reason)"
        unloggedLosses += count
        logLosses()
    }

    /// When `logLosses` has something to say, in milliseconds of `Loop.clock`.
    var logDue: Int64 { unloggedLosses > 0 ? (loggedLoss + Self.logPause) / 1000 : .max }

    /// Writes a line about losses that have none, if it is time, or if there will be no other time.
    func logLosses(isEnd: Bool = false) {
        guard unloggedLosses > 0, isEnd || Loop.clock >= loggedLoss + Self.logPause else { return }
        Log.error("\(unloggedLosses == 1 ? "1 event is" : "\(unloggedLosses) events are") lost; \(lastLoss ?? "")")
        unloggedLosses = 0
        loggedLoss = Loop.clock
    }

    /// Notes that events up to this number are on their way to the broker.
    package func sent(_ stream: EventStream, upTo sequence: Int) {
        let last = states[stream]?.sent ?? 0
        states[stream]?.sent = max(last, sequence)
    }

    /// Notes that the broker has an event. The file forgets it with the next commit.
    package func acknowledged(_ stream: EventStream, _ sequence: Int) {
        guard let state = states[stream], let index = state.waiting[state.head...].firstIndex(of: sequence) else {
            return
        }
        if index == state.head { states[stream]?.head += 1 } else { states[stream]?.waiting.remove(at: index) }
        done.append((stream, sequence))
        if done.count >= 100 { flush() }
    }

    /// An event that the broker can never take is dropped. The next event says so, and tells its gaps. The file forgets
    /// it with the next commit.
    package func refused(_ event: Entry) {
        let (stream, sequence) = (event.stream, event.sequence)
        lost(stream, "the broker accepts no message as large as event \(sequence)")
        for gap in [Gap](of: event.payload) { add(gap, to: stream) }
        add(Gap(reason: .tooLarge, from: sequence, to: sequence, missed: 1), to: stream)
        // It may commit, and then the file has what the next event tells.
        acknowledged(stream, sequence)
    }

    package var hasDone: Bool { !done.isEmpty }

    /// Removes the acknowledged events from the file, and stores what the next event will report.
    package func flush() {
        let isStored: Void? = try? commit { () throws(Failure) in
            for stream in EventStream.allCases { try store(stream) }
        }
        // They are sent a second time after a restart, with the same numbers.
        if isStored == nil, done.count > 100_000 { done = [] }
    }

    /// Notes that badged was watched up to now.
    package func note(_ time: Int64, run: Int) {
        for stream in EventStream.allCases {
            states[stream]?.mark.time = time
            if states[stream]?.mark.run == 0 { states[stream]?.mark.run = run }
        }
        flush()
    }

    /// Makes a change and removes acknowledged events, in one transaction.
    private func commit(_ change: () throws(Failure) -> Void) throws(Failure) {
        do throws(Failure) {
            try database.run("BEGIN IMMEDIATE")
            try change()
            for (stream, sequence) in done { try remove(stream, sequence) }
            try database.commit()
        } catch {
            try? database.run("ROLLBACK")
            if isDurable { Log.error("the queue cannot store events: \(error.message)") }
            isDurable = false
            noteDamage(error)
            throw error
        }
        if !isDurable { Log.notice("the queue stores events again") }
        done = []
        isDurable = true
    }

    private func noteDamage(_ error: Failure) {
        guard error.code == .storeDamaged else { return }
        if !isDamaged { Log.error("the queue was damaged while it was open: \(error.message)") }
        isDamaged = true
    }

    private func remove(_ stream: EventStream, _ sequence: Int) throws(Failure) {
        try database.run(
            "DELETE FROM events WHERE stream = ? AND sequence = ?",
            [.number(stream.rawValue), .number(sequence)]
        )
    }

    private func store(_ stream: EventStream) throws(Failure) {
        try states[stream]?.store(in: database, as: stream)
    }

    private func writeNumbers(isSynchronous: Bool = false) {
        let content = NumberFile.Content(epoch: epoch, last: EventStream.allCases.map(last))
        let fault = numbers.write(content, isSynchronous: isSynchronous)
        if let fault, numbersFault == nil {
            Log.error("cannot write \(numbers.path): \(fault); after a restart the queue may be taken for an older one")
        }
        numbersFault = fault
    }

    // MARK: Reading

    /// The oldest events after a number, at most `count`.
    package func events(_ stream: EventStream, after sequence: Int, count: Int) -> [Entry] {
        guard let state = states[stream], count > 0 else { return [] }
        // The numbers ascend.
        var (low, high) = (state.head, state.waiting.count)
        while low < high {
            let middle = (low + high) / 2
            if state.waiting[middle] <= sequence { low = middle + 1 } else { high = middle }
        }
        var entries: [Entry] = []
        do throws(Failure) {
            for number in state.waiting[low...].prefix(count) {
                guard let payload = try payload(stream, number) else {
                    throw Failure(.storeDamaged, "event \(number) of \(stream.word) is gone")
                }
                entries.append(Entry(stream: stream, sequence: number, payload: payload))
            }
            cannotRead = false
        } catch {
            if !cannotRead { Log.error("the queue cannot be read: \(error.message)") }
            cannotRead = true
            noteDamage(error)
        }
        return entries
    }

    private func payload(_ stream: EventStream, _ sequence: Int) throws(Failure) -> [UInt8]? {
        var payload: [UInt8]?
        try database.run(
            "SELECT payload FROM events WHERE stream = ? AND sequence = ?",
            [.number(stream.rawValue), .number(sequence)]
        ) { payload = $0.bytes(0) }
        return payload
    }
}
