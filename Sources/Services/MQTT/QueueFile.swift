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
        var answer = ""
        try database.run("PRAGMA quick_check") { answer = $0.text(0) }
        guard answer == "ok" else { throw Failure(.storeDamaged, "\(path) is damaged: \(answer)") }
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
        // The next number would be there already.
        guard states.values.allSatisfy({ $0.waiting.last ?? 0 <= $0.last }) else {
            throw Failure(.storeDamaged, "\(path) has events that come after the last one")
        }
        if let known, !isLost {
            let isOlder = zip(EventStream.allCases, known.last).contains { $1 > states[$0]?.last ?? 0 }
            guard known.epoch == epoch, !isOlder else {
                throw Failure(.storeDamaged, "\(path) is older than the last event, or a part of it is lost")
            }
        }
        // A file may be damaged so that only writing fails.
        for (stream, state) in states { try state.store(in: database, as: stream) }
        try database.commit()
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
/// would assign numbers a second time. This file shows it; it need not be on the disk before the queue is.
struct NumberFile {
    struct Content: Equatable {
        let epoch: String
        /// In the order of `EventStream`.
        let last: [Int]
    }

    private let path: String

    init(_ path: String) { self.path = path }

    /// nil: there is no such file, or it cannot be read.
    func read() -> Content? {
        guard case .bytes(let bytes) = PlainFile.read(path, limit: 256) else { return nil }
        let words = String(decoding: bytes, as: UTF8.self).split(separator: "\n").first?.split(separator: " ") ?? []
        let last = words.dropFirst().compactMap { Int($0) }
        guard words.count == EventStream.allCases.count + 1, last.count == words.count - 1 else { return nil }
        return Content(epoch: String(words[0]), last: last)
    }

    /// Writes in place, so that it needs no room on a full disk.
    func write(_ epoch: String, _ last: [Int]) {
        let numbers = last.map { $0.padded(to: 19) }
        let text = Array("\(epoch) \(numbers.joined(separator: " "))\n".utf8)
        guard case .file(let descriptor) = PlainFile.open(path, flags: O_WRONLY | O_CREAT) else { return }
        _ = pwrite(descriptor, text, text.count, 0)
        close(descriptor)
    }
}
