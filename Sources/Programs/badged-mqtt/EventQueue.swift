// SPDX-License-Identifier: GPL-3.0-or-later
import Crypto
import Glibc
import Host
import Store
import Text

/// What is counted by itself, and queued until the broker has it.
enum EventStream: Int, CaseIterable, Sendable {
    case credential, opening

    var word: String {
        switch self {
        case .credential: "credential"
        case .opening: "opening"
        }
    }
}

/// Why events are missing before an event. docs/fleet.md, Gaps.
struct Gap: Sendable, Equatable {
    enum Reason: String, Sendable {
        case queueFull, diskFull, daemonAway, notWatching, storeLost, tooLarge
    }

    var reason: Reason
    /// The numbers of events that had one.
    var from: Int?
    var to: Int?
    /// How many are missing, where that is known.
    var missed: Int?
    /// Milliseconds since 1970.
    var since: Int64?
    var until: Int64?

    var json: JSON {
        func number(_ value: Int?) -> JSON? { value.map { .number(String($0)) } }
        let all: [(String, JSON?)] = [
            ("reason", .string(reason.rawValue)), ("from", number(from)), ("to", number(to)),
            ("missed", number(missed)), ("since", number(since.map { Int($0) })),
            ("until", number(until.map { Int($0) })),
        ]
        return .object(all.compactMap { key, value in value.map { JSON.Member(key, $0) } })
    }
}

/// The events that the broker has not acknowledged, in a file. A number and its event are committed together, so that
/// nothing is published that is not on the disk. One thread uses it.
final class EventQueue {
    struct Entry {
        let stream: EventStream
        let sequence: Int
        let payload: [UInt8]
    }

    /// Where badged was when the last event was stored.
    struct Mark: Equatable {
        /// The start of badged, and the number of its last event.
        var run = 0
        var number = 0
        /// Milliseconds since 1970.
        var time: Int64 = 0
    }

    private struct State {
        var last = 0
        var lost = 0
        var gaps: [Gap] = []
        var mark = Mark()
        /// The numbers of the events in the file, ascending.
        var waiting: [Int] = []
        var head = 0
        var count: Int { waiting.count - head }
    }

    static let longestEvent = 4096

    private let database: Database
    private let limit: Int
    private var states: [EventStream: State] = [:]
    /// Acknowledged events that are still in the file.
    private var done: [(EventStream, Int)] = []
    /// 16 hexadecimal digits; new with each file.
    private(set) var epoch = ""
    /// Whether the last commit has succeeded.
    private(set) var isDurable = true
    /// Whether an earlier file was damaged.
    private(set) var wasLost = false

    /// Opens the file in a folder, or makes one. A damaged file is moved aside.
    init(folder: String, limit: Int) throws(Failure) {
        self.limit = limit
        let path = folder + "/queue.db"
        let wasThere = access(path, F_OK) == 0
        var opened: Database?
        var fault: Failure?
        do throws(Failure) {
            opened = try Self.opened(path)
        } catch {
            fault = error
        }
        if opened == nil, wasThere, let fault, fault.code != .storeInUse {
            Log.error("the queue \(path) cannot be used and is moved aside: \(fault.message)")
            for suffix in ["", "-journal"] { rename(path + suffix, path + suffix + ".damaged") }
            opened = try Self.opened(path)
            wasLost = true
        }
        guard let opened else { throw fault ?? .storeFailed("the queue cannot be opened") }
        database = opened
        try load()
    }

    private static func opened(_ path: String) throws(Failure) -> Database {
        let database = try Database(path: path)
        var answer = ""
        try database.run("PRAGMA quick_check") { answer = $0.text(0) }
        guard answer == "ok" else { throw .storeFailed("\(path) is damaged: \(answer)") }
        try database.run(
            "CREATE TABLE IF NOT EXISTS events (stream INTEGER, sequence INTEGER, payload BLOB NOT NULL, PRIMARY KEY (stream, sequence)) WITHOUT ROWID"
        )
        try database.run("CREATE TABLE IF NOT EXISTS facts (name TEXT PRIMARY KEY, value) WITHOUT ROWID")
        return database
    }

    private func load() throws(Failure) {
        var facts: [String: String] = [:]
        try database.run("SELECT name, CAST(value AS TEXT) FROM facts") { facts[$0.text(0)] = $0.text(1) }
        if let known = facts["epoch"] {
            epoch = known
        } else {
            var bytes = [UInt8](repeating: 0, count: 8)
            for index in bytes.indices { bytes[index] = UInt8.random(in: .min ... .max) }
            epoch = Hex.encode(bytes)
            try database.run("INSERT INTO facts VALUES ('epoch', ?)", [.text(epoch)])
        }
        for stream in EventStream.allCases {
            var state = State()
            func number(_ name: String) -> Int { facts["\(stream.word) \(name)"].flatMap { Int($0) } ?? 0 }
            (state.last, state.lost) = (number("last"), number("lost"))
            state.mark = Mark(run: number("run"), number: number("number"), time: Int64(number("time")))
            var waiting: [Int] = []
            try database.run(
                "SELECT sequence FROM events WHERE stream = ? ORDER BY sequence",
                [.number(stream.rawValue)]
            ) { waiting.append($0.number(0)) }
            state.waiting = waiting
            if wasLost { state.gaps = [Gap(reason: .storeLost, until: Self.now)] }
            states[stream] = state
        }
    }

    static var now: Int64 {
        var clock = timespec()
        clock_gettime(CLOCK_REALTIME, &clock)
        return Int64(clock.tv_sec) * 1000 + Int64(clock.tv_nsec) / 1_000_000
    }

    // MARK: State

    func last(_ stream: EventStream) -> Int { states[stream]?.last ?? 0 }
    func lost(_ stream: EventStream) -> Int { states[stream]?.lost ?? 0 }
    func mark(_ stream: EventStream) -> Mark { states[stream]?.mark ?? Mark() }
    func waiting(_ stream: EventStream) -> Int { states[stream]?.count ?? 0 }
    var waiting: Int { EventStream.allCases.reduce(0) { $0 + waiting($1) } }

    /// Tells the next event of a stream what is missing before it. Gaps with the same reason are joined.
    func add(_ gap: Gap, to stream: EventStream) {
        var gaps = states[stream]?.gaps ?? []
        if let index = gaps.firstIndex(where: { $0.reason == gap.reason }) {
            gaps[index].to = gap.to ?? gaps[index].to
            gaps[index].until = gap.until
            if gaps[index].missed != nil || gap.missed != nil {
                gaps[index].missed = (gaps[index].missed ?? 0) + (gap.missed ?? 0)
            }
        } else {
            gaps.append(gap)
        }
        states[stream]?.gaps = gaps
    }

    // MARK: Changes

    /// Stores events in one transaction. `content` makes the members of an event from its number and its gaps.
    /// - Returns: whether they are on the disk. Otherwise they are lost, and the next event says so.
    @discardableResult
    func append(_ events: [(stream: EventStream, mark: Mark, content: (Int, [Gap]) -> [UInt8])]) -> Bool {
        let before = states
        do throws(Failure) {
            try database.run("BEGIN IMMEDIATE")
            for event in events {
                guard var state = states[event.stream] else { continue }
                let number = state.last + 1
                if state.count >= limit {
                    // The oldest event goes, because the last hour of a door is worth more.
                    let oldest = state.waiting[state.head]
                    try remove(event.stream, oldest)
                    state.head += 1
                    state.lost += 1
                    states[event.stream] = state
                    add(
                        Gap(reason: .queueFull, from: oldest, to: oldest, missed: 1, since: nil, until: nil),
                        to: event.stream
                    )
                    state = states[event.stream] ?? state
                }
                let payload = event.content(number, state.gaps)
                try database.run(
                    "INSERT INTO events VALUES (?, ?, ?)",
                    [.number(event.stream.rawValue), .number(number), .bytes(payload)]
                )
                (state.last, state.gaps, state.mark) = (number, [], event.mark)
                state.waiting.append(number)
                if state.head > 4096 {
                    state.waiting.removeFirst(state.head)
                    state.head = 0
                }
                states[event.stream] = state
            }
            for stream in Set(events.map(\.stream)) { try store(stream) }
            try removeDone()
            try database.run("COMMIT")
            done = []
            isDurable = true
            return true
        } catch {
            Log.error("the queue cannot store \(events.count) events: \(error.message)")
            try? database.run("ROLLBACK")
            states = before
            isDurable = false
            for event in events {
                states[event.stream]?.lost += 1
                let time = event.mark.time
                add(Gap(reason: .diskFull, missed: 1, since: time, until: time), to: event.stream)
                // The number of badged is known, so it is not missed a second time.
                states[event.stream]?.mark = event.mark
            }
            return false
        }
    }

    /// Notes that the broker has an event. The file forgets it with the next commit.
    func acknowledged(_ stream: EventStream, _ sequence: Int) {
        guard var state = states[stream], let index = state.waiting[state.head...].firstIndex(of: sequence) else {
            return
        }
        if index == state.head { state.head += 1 } else { state.waiting.remove(at: index) }
        states[stream] = state
        done.append((stream, sequence))
        if done.count >= 100 { flush() }
    }

    /// An event that the broker can never take is dropped, and the next event says so.
    func refused(_ stream: EventStream, _ sequence: Int) {
        acknowledged(stream, sequence)
        states[stream]?.lost += 1
        add(Gap(reason: .tooLarge, from: sequence, to: sequence, missed: 1), to: stream)
    }

    var hasDone: Bool { !done.isEmpty }

    /// Removes the acknowledged events from the file.
    func flush() {
        guard !done.isEmpty else { return }
        do throws(Failure) {
            try database.run("BEGIN IMMEDIATE")
            try removeDone()
            try database.run("COMMIT")
            done = []
            isDurable = true
        } catch {
            try? database.run("ROLLBACK")
            isDurable = false
            Log.warning("the queue cannot forget events that were sent: \(error.message)")
            // They are sent a second time after a restart, with the same numbers.
            if done.count > 100_000 { done = [] }
        }
    }

    /// Notes that badged was watched up to now.
    func note(_ time: Int64, run: Int) {
        for stream in EventStream.allCases {
            states[stream]?.mark.time = time
            if states[stream]?.mark.run == 0 { states[stream]?.mark.run = run }
            _ = try? store(stream)
        }
    }

    private func removeDone() throws(Failure) {
        for (stream, sequence) in done { try remove(stream, sequence) }
    }

    private func remove(_ stream: EventStream, _ sequence: Int) throws(Failure) {
        try database.run(
            "DELETE FROM events WHERE stream = ? AND sequence = ?",
            [.number(stream.rawValue), .number(sequence)]
        )
    }

    private func store(_ stream: EventStream) throws(Failure) {
        guard let state = states[stream] else { return }
        let facts = [
            ("last", state.last), ("lost", state.lost), ("run", state.mark.run), ("number", state.mark.number),
            ("time", Int(state.mark.time)),
        ]
        for (name, value) in facts {
            try database.run(
                "INSERT OR REPLACE INTO facts VALUES (?, ?)",
                [.text("\(stream.word) \(name)"), .number(value)]
            )
        }
    }

    // MARK: Reading

    /// The oldest events after a number, at most `count`.
    func events(_ stream: EventStream, after sequence: Int, count: Int) -> [Entry] {
        guard let state = states[stream], count > 0 else { return [] }
        // The numbers ascend.
        var (low, high) = (state.head, state.waiting.count)
        while low < high {
            let middle = (low + high) / 2
            if state.waiting[middle] <= sequence { low = middle + 1 } else { high = middle }
        }
        var entries: [Entry] = []
        for number in state.waiting[low...].prefix(count) {
            _ = try? database.run(
                "SELECT payload FROM events WHERE stream = ? AND sequence = ?",
                [.number(stream.rawValue), .number(number)]
            ) { entries.append(Entry(stream: stream, sequence: number, payload: $0.bytes(0))) }
        }
        return entries
    }
}
