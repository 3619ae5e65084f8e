// SPDX-License-Identifier: GPL-3.0-or-later
import Glibc
import Host
import Store
import Text

/// The database of an `EventStore`, and what it holds when it is opened.
struct QueueFile {
    let database: Database
    private(set) var epoch = ""
    private(set) var states: [EventStream: EventStore.State] = [:]
    /// Numbers were given out that this file does not know, because an earlier file is gone.
    var isLost = false

    /// By name.
    private static let tables = [
        "CREATE TABLE events (stream INTEGER, sequence INTEGER, payload BLOB NOT NULL, PRIMARY KEY (stream, sequence)) WITHOUT ROWID",
        "CREATE TABLE facts (epoch TEXT)",
        "CREATE TABLE streams (stream INTEGER PRIMARY KEY, last INTEGER, lost INTEGER, run INTEGER, number INTEGER, time INTEGER, gaps BLOB)",
    ]

    /// `known` are the last numbers that were given out.
    /// - Throws: `storeDamaged` if the file is no database, or older than these numbers.
    init(_ path: String, _ known: NumberFile.Content?) throws(Failure) {
        // One write to the disk for each commit, instead of four with a rollback journal.
        database = try Database(path: path, journal: .log)
        try database.checkIntegrity()
        try database.run("BEGIN IMMEDIATE")
        var tables: [String] = []
        try database.run("SELECT sql FROM sqlite_schema ORDER BY name") { tables.append($0.text(0)) }
        if tables.isEmpty {
            for statement in Self.tables { try database.run(statement) }
        } else if tables != Self.tables {
            throw Failure(.storeDamaged, "\(path) has other tables")
        }
        var epochs: [String] = []
        try database.run("SELECT epoch FROM facts") { epochs.append($0.text(0)) }
        if let first = epochs.first {
            guard first.utf8.count == 16, Hex.decode(first) != nil else {
                throw Failure(.storeDamaged, "\(path) has a wrong epoch")
            }
            epoch = first
        } else {
            epoch = Hex.encode((0..<8).map { _ in UInt8.random(in: .min ... .max) })
            try database.run("INSERT INTO facts VALUES (?)", [.text(epoch)])
            isLost = known != nil
        }
        try readStreams()
        // The next number must be a new one.
        for state in states.values where !state.isPlausible {
            throw Failure(.storeDamaged, "\(path) has numbers that cannot be")
        }
        if let known, !isLost {
            let isOlder = zip(EventStream.allCases, known.last).contains { $1 > states[$0]?.last ?? 0 }
            guard known.epoch == epoch, !isOlder else {
                throw Failure(.storeDamaged, "\(path) is older than the last event, or a part of it is lost")
            }
        }
        // A file may be damaged so that only writing fails. On a full disk the program goes on with what is there.
        do throws(Failure) {
            for (stream, state) in states { try state.store(in: database, as: stream) }
            try database.commit()
        } catch {
            guard error.code == .storeUnavailable, !tables.isEmpty else { throw error }
            try? database.run("ROLLBACK")
        }
    }

    private mutating func readStreams() throws(Failure) {
        for stream in EventStream.allCases { states[stream] = EventStore.State() }
        var found: [(Int, EventStore.State)] = []
        try database.run("SELECT stream, last, lost, run, number, time, gaps FROM streams") { row in
            var state = EventStore.State()
            state.last = row.number(1)
            state.lost = row.number(2)
            state.mark = EventStore.Mark(run: row.number(3), number: row.number(4), time: Int64(row.number(5)))
            state.gaps = [Gap](of: row.bytes(6))
            found.append((row.number(0), state))
        }
        for (number, state) in found {
            if let stream = EventStream(rawValue: number) { states[stream] = state }
        }
        var events: [(Int, Int)] = []
        try database.run("SELECT stream, sequence FROM events ORDER BY stream, sequence") {
            events.append(($0.number(0), $0.number(1)))
        }
        for (number, sequence) in events {
            if let stream = EventStream(rawValue: number) { states[stream]?.waiting.append(sequence) }
        }
    }
}

extension EventStore.State {
    /// The largest number of JSON that all programs read.
    private static let largest = 1 << 53

    /// Whether no number is outside of those that were given out.
    fileprivate var isPlausible: Bool {
        (0...Self.largest).contains(last) && (0...Self.largest).contains(lost)
            && waiting.first ?? 1 >= 1 && waiting.last ?? 0 <= last
    }

    func store(in database: Database, as stream: EventStream) throws(Failure) {
        try database.run(
            "INSERT OR REPLACE INTO streams VALUES (?, ?, ?, ?, ?, ?, ?)",
            [
                .number(stream.rawValue), .number(last), .number(lost), .number(mark.run), .number(mark.number),
                .number(Int(mark.time)), .bytes(gaps.json.bytes),
            ]
        )
    }
}

/// The last numbers in a file of their own, beside the queue.
///
/// SQLite takes a damaged end of its log for the end, and an administrator may put back an older file. Then the queue
/// would assign numbers a second time. This file shows it; its numbers need not be on the disk before the queue is.
struct NumberFile {
    struct Content: Equatable {
        let epoch: String
        /// In the order of `EventStream`.
        let last: [Int]
    }

    let path: String

    init(_ path: String) { self.path = path }

    /// nil: there is no such file, or it cannot be read, which is in the log.
    func read() -> Content? {
        switch PlainFile.read(path, limit: Self.longest) {
        case .missing: return nil
        case .bytes(let bytes):
            if let content = Self.content(bytes) { return content }
            Log.error("\(path) is damaged, so nobody sees whether the queue is older: it is written anew")
        case .tooLong: Log.error("\(path) is damaged, so nobody sees whether the queue is older: it is written anew")
        case .failed(let reason): Log.error("cannot read \(path), so nobody sees whether the queue is older: \(reason)")
        }
        return nil
    }

    private static let longest = 256

    /// Reads the words of the first line: the epoch, the numbers and, since version 0.3, their sum.
    private static func content(_ bytes: [UInt8]) -> Content? {
        let line = bytes.prefix { $0 != 0x0A }
        guard line.count < bytes.count else { return nil }
        let words = line.split(separator: 0x20).map { String(decoding: $0, as: UTF8.self) }
        let count = EventStream.allCases.count
        let last = words.dropFirst().prefix(count).compactMap { Int($0) }
        guard last.count == count, words.count - 1 - count <= 1 else { return nil }
        let content = Content(epoch: words[0], last: last)
        guard words.count - 1 == count || Array(line) == Array(text(content).utf8) else { return nil }
        return content
    }

    private static func text(_ content: Content) -> String {
        let words = [content.epoch] + content.last.map { $0.padded(to: 19) }
        let text = words.joined(separator: " ")
        // FNV-1a with 32 bits, against damage and not against people.
        let sum = text.utf8.reduce(0x811C_9DC5 as UInt32) { ($0 ^ UInt32($1)) &* 0x0100_0193 }
        return "\(text) \(Int(sum).padded(to: 10))"
    }

    /// Writes in place, so that it needs no room on a full disk. `isSynchronous`: it is on the disk then, as an epoch must be
    /// before its first event, or the queue would be taken for another one.
    /// - Returns: why it could not be written; nil if it was.
    func write(_ content: Content, isSynchronous: Bool = false) -> String? {
        let text = Array((Self.text(content) + "\n").utf8)
        switch PlainFile.open(path, flags: O_WRONLY | O_CREAT) {
        case .file(let descriptor):
            defer { close(descriptor) }
            let isWritten =
                pwrite(descriptor, text, text.count, 0) == text.count && ftruncate(descriptor, off_t(text.count)) == 0
                && (!isSynchronous || fsync(descriptor) == 0)
            return isWritten ? nil : errorText()
        case .missing: return errorText()
        case .failed(let reason): return reason
        }
    }
}
