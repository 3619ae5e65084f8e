// SPDX-License-Identifier: GPL-3.0-or-later
import Foundation
import Store
import TestSupport
import Testing
import Text

@testable import MQTT

extension TemporaryFolder {
    fileprivate var url: URL { URL(filePath: path) }

    fileprivate func queue(limit: Int = 100) throws -> EventStore { try EventStore(folder: path, limit: limit) }
}

extension EventStore {
    /// Appends events whose payload is their number, and the reasons of their gaps.
    @discardableResult
    fileprivate func add(_ count: Int, to stream: EventStream = .credential, run: Int = 1, padding: Int = 0) -> Bool {
        let first = mark(stream).number
        return append(
            (1...count).map { index in
                let mark = Mark(run: run, number: first + index, time: Int64(1000 * (first + index)))
                return Addition(stream, mark) { number, gaps in
                    JSON.object([
                        .init("sequence", .number(String(number))), .init("time", .number(String(mark.time))),
                        .init("gap", gaps.json), .init("text", .string(String(repeating: "x", count: padding))),
                    ]).bytes
                }
            }
        )
    }

    /// The number of each event, and the reasons of its gaps.
    fileprivate func texts(_ stream: EventStream = .credential, after: Int = 0, count: Int = 1000) -> [String] {
        events(stream, after: after, count: count).map { entry in
            let sequence = (try? JSON(entry.payload))?["sequence"]?.int ?? 0
            return "\(sequence) " + [Gap](of: entry.payload).map(\.reason.rawValue).joined(separator: ",")
        }
    }

    fileprivate func gaps(_ stream: EventStream = .credential) -> [Gap] {
        events(stream, after: 0, count: .max).flatMap { [Gap](of: $0.payload) }
    }
}

@Suite("The queue of badged-mqtt", .timeLimit(.minutes(5)))
struct QueueTests {
    private let folder: TemporaryFolder

    init() throws { folder = try TemporaryFolder() }

    @Test("numbers go on after a restart, each stream by itself, and the epoch stays")
    func restart() throws {
        var epoch = ""
        do {
            let queue = try folder.queue()
            #expect(queue.add(3) && queue.add(2, to: .opening))
            epoch = queue.epoch
            queue.acknowledged(.credential, 1)
            queue.flush()
        }
        let queue = try folder.queue()
        #expect(queue.epoch == epoch && epoch.count == 16 && !queue.wasLost)
        #expect(queue.texts() == ["2 ", "3 "] && queue.texts(.opening) == ["1 ", "2 "])
        #expect((queue.last(.credential), queue.waiting, queue.mark(.credential).number) == (3, 4, 3))
        queue.add(1)
        #expect(queue.texts(after: 2) == ["3 ", "4 "])
    }

    @Test("an event that was acknowledged and not yet forgotten comes again with its number and content")
    func forgotten() throws {
        do {
            let queue = try folder.queue()
            queue.add(2)
            queue.acknowledged(.credential, 1)
            #expect(queue.texts() == ["2 "])
        }
        #expect(try folder.queue().texts() == ["1 ", "2 "])
    }

    @Test("a full queue drops the oldest, and the events that are left tell of all that went")
    func full() throws {
        let queue = try folder.queue(limit: 20)
        queue.add(1)
        queue.add(Gap(reason: .daemonAway, since: 1, until: 2), to: .credential)
        queue.add(24)
        #expect(queue.waiting == 20 && queue.lost(.credential) == 5)
        #expect(queue.texts().first == "6 " && queue.texts().last == "25 queueFull")
        #expect(queue.oldest == 6000)
        queue.add(200)
        let told = queue.gaps().filter { $0.reason == .queueFull }
        #expect(told.compactMap(\.missed).reduce(0, +) == 205 && queue.lost(.credential) == 205)
        #expect((1...205).allSatisfy { number in told.contains { ($0.from ?? 0)...($0.to ?? 0) ~= number } })
        #expect(queue.gaps().contains(Gap(reason: .daemonAway, since: 1, until: 2)))
        queue.limit = 5
        queue.add(1)
        #expect(queue.waiting == 5 && queue.gaps().compactMap(\.missed).reduce(0, +) == 221)
    }

    @Test("what the next event will tell stays over a restart")
    func pendingGaps() throws {
        do {
            let queue = try folder.queue()
            queue.add(2)
            queue.refused(try #require(queue.events(.credential, after: 0, count: 1).first))
            queue.flush()
        }
        let queue = try folder.queue()
        queue.add(1)
        #expect(queue.texts() == ["2 ", "3 tooLarge"])
    }

    @Test("an older copy of the file, a log that is cut or a file that is gone never give out a number again")
    func older() throws {
        for suffixes in [["", "-wal"], ["-wal"], [""]] {
            let (folder, copy) = (try TemporaryFolder(), try TemporaryFolder())
            var epoch = ""
            do {
                let queue = try folder.queue()
                queue.add(3)
                epoch = queue.epoch
                for name in try FileManager.default.contentsOfDirectory(atPath: folder.path)
                where name.hasPrefix("queue.db") {
                    try FileManager.default.copyItem(
                        at: folder.url.appending(path: name),
                        to: copy.url.appending(path: name)
                    )
                }
                queue.add(3)
            }
            for suffix in suffixes {
                let file = folder.url.appending(path: "queue.db" + suffix)
                try? FileManager.default.removeItem(at: file)
                if suffixes.count == 2 {
                    try? FileManager.default.copyItem(at: copy.url.appending(path: file.lastPathComponent), to: file)
                }
            }
            let queue = try folder.queue()
            queue.add(1)
            if queue.epoch == epoch {
                // Closing the queue had put everything into the file.
                #expect(queue.texts().last == "7 ")
            } else {
                #expect(queue.wasLost && queue.texts() == ["1 storeLost"])
            }
        }
    }

    @Test("a file that is damaged while it is open is noticed, and nothing is left out in silence")
    func damagedWhileOpen() throws {
        let queue = try folder.queue(limit: 100_000)
        for _ in 0..<40 { queue.add(200, padding: 1000) }
        for name in ["queue.db", "queue.db-wal"] {
            let file = folder.url.appending(path: name)
            let handle = try FileHandle(forUpdating: file)
            let size = try handle.seekToEnd()
            try handle.seek(toOffset: 0)
            try handle.write(contentsOf: Data(repeating: 0x5A, count: Int(size)))
        }
        var next = 0
        while !queue.isDamaged, next < queue.last(.credential) {
            let entries = queue.events(.credential, after: next, count: 100)
            #expect(entries.map(\.sequence) == Array(next + 1..<next + 1 + entries.count))
            next += 100
        }
        #expect(queue.isDamaged)
    }

    @Test("a fault that is not the file's leaves the file where it is")
    func unreadable() throws {
        try FileManager.default.createDirectory(
            at: folder.url.appending(path: "queue.db"),
            withIntermediateDirectories: true
        )
        #expect(throws: Failure.self) { try folder.queue() }
        #expect(try FileManager.default.contentsOfDirectory(atPath: folder.path) == ["queue.db"])
    }

    @Test("gaps are told once, by the next event, and those with one reason are joined")
    func gaps() throws {
        let queue = try folder.queue()
        queue.add(1)
        queue.add(Gap(reason: .daemonAway, since: 1, until: 2), to: .credential)
        queue.add(Gap(reason: .daemonAway, since: 3, until: 4), to: .credential)
        queue.add(Gap(reason: .notWatching, missed: 2, since: 5, until: 6), to: .credential)
        queue.add(2)
        queue.add(1, to: .opening)
        #expect(queue.texts() == ["1 ", "2 daemonAway,notWatching", "3 "] && queue.texts(.opening) == ["1 "])
        var gap: JSON?
        queue.add(Gap(reason: .daemonAway, since: 1, until: 2), to: .credential)
        queue.add(Gap(reason: .daemonAway, since: 3, until: 4), to: .credential)
        queue.append([
            .init(.credential, .init()) { _, gaps in
                gap = gaps.first?.json
                return []
            }
        ])
        #expect(gap?["since"]?.int == 1 && gap?["until"]?.int == 4 && gap?["missed"] == nil)
    }

    @Test("a damaged file is moved aside, and the next event of each stream says so", arguments: [0, 100, 4096])
    func damaged(offset: Int) throws {
        var epoch = ""
        do {
            let queue = try folder.queue()
            queue.add(50)
            epoch = queue.epoch
        }
        let file = folder.url.appending(path: "queue.db")
        var content = try Data(contentsOf: file)
        content.replaceSubrange(offset..<offset + 200, with: Data(repeating: 0x5A, count: 200))
        try content.write(to: file)
        let queue = try folder.queue()
        #expect(queue.wasLost && queue.epoch != epoch && queue.waiting == 0)
        queue.add(1)
        #expect(queue.texts() == ["1 storeLost"])
        #expect(FileManager.default.fileExists(atPath: file.path + ".damaged"))
    }

    @Test("a file is read or moved aside, whichever byte of its header or of its tables' names is another one")
    func damagedByte() throws {
        let epoch = try {
            let queue = try folder.queue()
            queue.add(3)
            return queue.epoch
        }()
        let file = folder.url.appending(path: "queue.db")
        let content = try Data(contentsOf: file)
        let names = ["CREATE TABLE events", "CREATE TABLE streams", "CREATE TABLE facts"].compactMap {
            content.firstRange(of: Data($0.utf8))
        }
        #expect(names.count == 3)
        for place in Array(0..<100) + names.flatMap({ $0.lowerBound..<$0.lowerBound + 60 }) {
            for value: UInt8 in [0x00, 0x20, 0x61, 0xFF] where content[place] != value {
                var damaged = content
                damaged[place] = value
                try damaged.write(to: file)
                let queue = try folder.queue()
                #expect(queue.add(1) && queue.last(.credential) == queue.texts().count, "byte \(place) is \(value)")
                #expect(queue.wasLost || queue.epoch == epoch, "byte \(place) is \(value)")
                for suffix in ["-wal", ".damaged", "-wal.damaged"] {
                    try? FileManager.default.removeItem(atPath: file.path + suffix)
                }
                try? FileManager.default.removeItem(at: folder.url.appending(path: "queue.numbers"))
            }
        }
    }

    @Test("a file whose events come after its last number is moved aside")
    func later() throws {
        try folder.queue().add(3)
        try Database(path: folder.path + "/queue.db", journal: .log).run("UPDATE streams SET last = 1")
        try FileManager.default.removeItem(at: folder.url.appending(path: "queue.numbers"))
        let queue = try folder.queue()
        #expect(queue.wasLost && queue.add(1) && queue.texts() == ["1 storeLost"])
    }

    @Test("a number that cannot be is found, also one that is out of order")
    func wrongNumbers() throws {
        for sql in [
            "UPDATE streams SET last = 9223372036854775807", "UPDATE streams SET lost = -1",
            "UPDATE events SET sequence = 0 WHERE sequence = 1",
        ] {
            try folder.queue().add(3)
            try Database(path: folder.path + "/queue.db", journal: .log).run(sql)
            let queue = try folder.queue()
            #expect(queue.wasLost && queue.add(1) && queue.texts() == ["1 storeLost"], "\(sql)")
        }
        // The key of a row in the middle has another byte: the rows are no longer in order.
        do {
            let queue = try folder.queue()
            queue.add(20)
        }
        let file = folder.url.appending(path: "queue.db")
        var content = try Data(contentsOf: file)
        let payload = try #require(content.firstRange(of: Data(#"{"sequence":10,"#.utf8)))
        // The record has its header, the stream, the sequence and the payload.
        let place = try #require(content[..<payload.lowerBound].lastIndex(of: 10))
        content[place] = 100
        try content.write(to: file)
        #expect(try folder.queue().wasLost)
    }

    @Test(
        "damaged numbers beside the queue do not throw it away, and are written anew",
        arguments: ["digit", "long", "folder"]
    )
    func damagedNumbers(how: String) throws {
        var epoch = ""
        do {
            let queue = try folder.queue()
            queue.add(3)
            epoch = queue.epoch
        }
        let file = folder.url.appending(path: "queue.numbers")
        var content = try Data(contentsOf: file)
        switch how {
        case "digit": content[40] ^= 1
        case "long": content += Data(repeating: 0x30, count: 300)
        default:
            try FileManager.default.removeItem(at: file)
            try FileManager.default.createDirectory(at: file, withIntermediateDirectories: false)
        }
        if how != "folder" { try content.write(to: file) }
        for count in 4...5 {
            let queue = try folder.queue()
            #expect(!queue.wasLost && queue.epoch == epoch && queue.add(1) && queue.last(.credential) == count)
        }
        // What an earlier version wrote has no sum.
        guard how == "digit" else { return }
        let words = try String(contentsOf: file, encoding: .utf8).split(separator: " ").dropLast()
        try Data("\(words.joined(separator: " "))\n".utf8).write(to: file)
        #expect(try folder.queue().last(.credential) == 5)
    }

    @Test("a queue that cannot be moved aside stays, with a reason that names what is in its way")
    func notMovedAside() throws {
        try folder.queue().add(1)
        let file = folder.url.appending(path: "queue.db")
        try Data(repeating: 0x5A, count: 8192).write(to: file)
        let place = folder.url.appending(path: "queue.db.damaged/x")
        try FileManager.default.createDirectory(at: place, withIntermediateDirectories: true)
        let error = #expect(throws: Failure.self) { try folder.queue() }
        #expect(error?.message.description.contains("queue.db.damaged") == true)
        #expect(try Data(contentsOf: file).count == 8192)
    }

    @Test("a second program does not take the queue of the first")
    func inUse() throws {
        let queue = try folder.queue()
        queue.add(1)
        #expect(throws: Failure.self) { try folder.queue() }
        #expect(queue.texts() == ["1 "])
    }

    @Test("what the broker cannot take is dropped and told")
    func tooLarge() throws {
        let queue = try folder.queue()
        queue.add(2)
        queue.refused(try #require(queue.events(.credential, after: 0, count: 1).first))
        queue.add(1)
        #expect(queue.texts() == ["2 ", "3 tooLarge"] && queue.lost(.credential) == 1)
    }
}
