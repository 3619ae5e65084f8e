// SPDX-License-Identifier: GPL-3.0-or-later
import Foundation
import TestSupport
import Testing
import Text

@testable import badged_mqtt

/// A folder for a queue.
private final class Folder {
    let url = FileManager.default.temporaryDirectory.appending(path: UUID().uuidString)
    var path: String { url.path }

    init() throws { try FileManager.default.createDirectory(at: url, withIntermediateDirectories: true) }

    deinit { try? FileManager.default.removeItem(at: url) }

    func queue(limit: Int = 100) throws -> EventQueue { try EventQueue(folder: path, limit: limit) }
}

extension EventQueue {
    /// Appends events whose payload is their number, and the reasons of their gaps.
    @discardableResult
    fileprivate func add(_ count: Int, to stream: EventStream = .credential, run: Int = 1) -> Bool {
        let first = mark(stream).number
        return append(
            (1...count).map { index in
                let mark = Mark(run: run, number: first + index, time: Int64(1000 * (first + index)))
                return (
                    stream, mark,
                    { number, gaps in
                        Array("\(number) \(gaps.map(\.reason.rawValue).joined(separator: ","))".utf8)
                    }
                )
            }
        )
    }

    fileprivate func texts(_ stream: EventStream = .credential, after: Int = 0, count: Int = 1000) -> [String] {
        events(stream, after: after, count: count).map { String(decoding: $0.payload, as: UTF8.self) }
    }
}

@Suite("The queue of badged-mqtt", .timeLimit(.minutes(5)))
struct QueueTests {
    @Test("numbers go on after a restart, each stream by itself, and the epoch stays")
    func restart() throws {
        let folder = try Folder()
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
        let folder = try Folder()
        do {
            let queue = try folder.queue()
            queue.add(2)
            queue.acknowledged(.credential, 1)
            #expect(queue.texts() == ["2 "])
        }
        #expect(try folder.queue().texts() == ["1 ", "2 "])
    }

    @Test("a full queue drops the oldest, and each event after it names the one that went")
    func full() throws {
        let queue = try Folder().queue(limit: 20)
        queue.add(25)
        #expect(queue.waiting == 20 && queue.lost(.credential) == 5)
        #expect(queue.texts().first == "6 " && queue.texts().last == "25 queueFull")
    }

    @Test("gaps are told once, by the next event, and those with one reason are joined")
    func gaps() throws {
        let queue = try Folder().queue()
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
            (
                .credential, .init(),
                { _, gaps in
                    gap = gaps.first?.json; return []
                }
            )
        ])
        #expect(gap?["since"]?.int == 1 && gap?["until"]?.int == 4 && gap?["missed"] == nil)
    }

    @Test("a month of taps with the broker away takes a bounded file and a bounded table")
    func month() throws {
        let folder = try Folder()
        let queue = try folder.queue(limit: 1000)
        for _ in 0..<300 { queue.add(100) }
        #expect(queue.waiting == 1000 && queue.last(.credential) == 30_000 && queue.lost(.credential) == 29_000)
        let size = try FileManager.default.attributesOfItem(atPath: folder.path + "/queue.db")[.size] as? Int
        #expect((size ?? .max) < 1 << 20)
        #expect(queue.texts(after: 29_998) == ["29999 queueFull", "30000 queueFull"])
    }

    @Test("a damaged file is moved aside, and the next event of each stream says so", arguments: [0, 100, 4096])
    func damaged(offset: Int) throws {
        let folder = try Folder()
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

    @Test("a second program does not take the queue of the first")
    func inUse() throws {
        let folder = try Folder()
        let queue = try folder.queue()
        queue.add(1)
        #expect(throws: Failure.self) { try folder.queue() }
        #expect(queue.texts() == ["1 "])
    }

    @Test("what the broker cannot take is dropped and told")
    func tooLarge() throws {
        let queue = try Folder().queue()
        queue.add(2)
        queue.refused(.credential, 1)
        queue.add(1)
        #expect(queue.texts() == ["2 ", "3 tooLarge"] && queue.lost(.credential) == 1)
    }
}
