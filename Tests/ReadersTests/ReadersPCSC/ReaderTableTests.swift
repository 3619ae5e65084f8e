// SPDX-License-Identifier: GPL-3.0-or-later
import Readers
import Testing

@testable import ReadersPCSC

/// The parts of an event that the tests compare.
private enum Short: Equatable, CustomStringConvertible {
    case added(String, keypad: Bool), changed(String, keypad: Bool), removed(String)
    case inserted(String, UInt64, [UInt8]), withdrawn(String, UInt64), held(String, UInt64), health

    init(_ event: ReaderEvent) {
        switch event {
        case .added(let reader): self = .added(reader.name, keypad: reader.hasKeypad)
        case .changed(let reader): self = .changed(reader.name, keypad: reader.hasKeypad)
        case .removed(let reader): self = .removed(reader)
        case .inserted(let insertion, let atr): self = .inserted(insertion.reader, insertion.number, atr)
        case .withdrawn(let insertion): self = .withdrawn(insertion.reader, insertion.number)
        case .held(let insertion): self = .held(insertion.reader, insertion.number)
        case .health: self = .health
        }
    }

    var description: String {
        switch self {
        case .added(let name, let keypad): "added \(name) keypad \(keypad)"
        case .changed(let name, let keypad): "changed \(name) keypad \(keypad)"
        case .removed(let name): "removed \(name)"
        case .inserted(let name, let number, let atr): "inserted \(name) \(number) \(atr)"
        case .withdrawn(let name, let number): "withdrawn \(name) \(number)"
        case .held(let name, let number): "held \(name) \(number)"
        case .health: "health"
        }
    }
}

@Suite("reader table", .timeLimit(.minutes(5)))
struct ReaderTableTests {
    private let reader = ReaderName("Reader 00 00")
    private let atr: [UInt8] = [0x3B, 0x80, 0x80, 0x01, 0x01]

    private func table(_ states: (StateFlags, UInt16)...) -> PCSCReaderTable {
        var table = PCSCReaderTable()
        _ = table.add(reader, features: ReaderFeatures())
        for (flags, counter) in states { _ = update(&table, flags, counter) }
        return table
    }

    private func update(_ table: inout PCSCReaderTable, _ flags: StateFlags, _ counter: UInt16) -> [Short] {
        let state = PCSCReaderState(name: reader, flags: flags.union(.changed), counter: counter, answerToReset: atr)
        return table.update(state).events.map(Short.init)
    }

    @Test("a reader is added before its card is inserted, and removed after its card is withdrawn")
    func order() {
        var table = PCSCReaderTable()
        #expect(
            table.add(reader, features: ReaderFeatures()).map(Short.init) == [.added("Reader 00 00", keypad: false)]
        )
        #expect(update(&table, [.present], 0) == [.inserted("Reader 00 00", 1, atr)])
        #expect(
            table.removeAll().map(Short.init) == [.withdrawn("Reader 00 00", 1), .removed("Reader 00 00")]
        )
        #expect(table.entries.isEmpty)
    }

    struct Step: Sendable, CustomTestStringConvertible {
        let testDescription: String
        let before: (StateFlags, UInt16)
        let now: (StateFlags, UInt16)
        let events: [String]
        init(_ name: String, _ before: (StateFlags, UInt16), _ now: (StateFlags, UInt16), _ events: [String]) {
            (testDescription, self.before, self.now, self.events) = (name, before, now, events)
        }
    }

    static let steps: [Step] = [
        Step("card put in", ([.empty], 0), ([.present], 1), ["inserted 1"]),
        Step("card taken out", ([.present], 1), ([.empty], 2), ["withdrawn 1"]),
        Step("quick swap: only the counter changes", ([.present], 1), ([.present], 3), ["withdrawn 1", "inserted 2"]),
        Step(
            "quick swap of the card pcscd started with",
            ([.present], 0),
            ([.present], 2),
            ["withdrawn 1", "inserted 2"]
        ),
        Step(
            "quick swap while the counter wraps",
            ([.present], 0xFFFF),
            ([.present], 0),
            ["withdrawn 1", "inserted 2"]
        ),
        Step("card inserted and removed between two polls", ([.empty], 0), ([.empty], 2), []),
        Step("another program connects", ([.present], 1), ([.present, .inUse], 1), []),
        Step("another program holds the card", ([.present], 1), ([.present, .exclusive], 1), []),
        Step("a held card is put in", ([.empty], 0), ([.present, .exclusive], 1), ["inserted 1"]),
        Step("a mute card is put in", ([.empty], 0), ([.present, .mute], 1), ["inserted 1"]),
        Step("a mute card begins to answer", ([.present, .mute], 1), ([.present], 1), ["withdrawn 1", "inserted 2"]),
        Step("a card becomes mute", ([.present], 1), ([.present, .mute], 1), []),
        Step("the driver loses the reader", ([.present], 1), ([.unavailable], 0), ["withdrawn 1"]),
        Step("the reader is unplugged", ([.present], 1), ([.unknown, .unavailable], 0), ["withdrawn 1"]),
        Step("the driver finds the reader again", ([.unavailable], 0), ([.present], 2), ["inserted 1"]),
        Step("nothing changes", ([.present], 1), ([.present], 1), []),
    ]

    /// pcscd sets the flags before the counter, so a status request in between returns the old counter.
    @Test("a counter update after the flags is not another insertion")
    func lateCounter() {
        var table = table(([.empty], 4))
        #expect(update(&table, [.present], 4) == [.inserted("Reader 00 00", 1, atr)])
        #expect(update(&table, [.present, .inUse], 4) == [])
        #expect(update(&table, [.present], 5) == [])
        #expect(update(&table, [.empty], 5) == [.withdrawn("Reader 00 00", 1)])
        #expect(update(&table, [.present], 6) == [.inserted("Reader 00 00", 2, atr)])
        #expect(update(&table, [.present], 7) == [])
        let swapped: [Short] = [.withdrawn("Reader 00 00", 2), .inserted("Reader 00 00", 3, atr)]
        #expect(update(&table, [.present], 9) == swapped)
    }

    @Test("a swap is reported even when the counter of the first card was late")
    func swapAfterLateCounter() {
        var table = table(([.empty], 4), ([.present], 4))
        let swapped: [Short] = [.withdrawn("Reader 00 00", 1), .inserted("Reader 00 00", 2, atr)]
        #expect(update(&table, [.present], 7) == swapped)
    }

    @Test("a swap is reported once, also when it is seen before the counter of the second card")
    func swapBeforeLateCounter() {
        var table = table(([.present], 4))
        let swapped: [Short] = [.withdrawn("Reader 00 00", 1), .inserted("Reader 00 00", 2, atr)]
        #expect(update(&table, [.present], 5) == swapped)
        #expect(update(&table, [.present], 6) == [])
        #expect(update(&table, [.empty], 7) == [.withdrawn("Reader 00 00", 2)])
    }

    @Test("state changes of pcscd become events", arguments: steps)
    func step(step: Step) {
        var table = table(step.before)
        let events = update(&table, step.now.0, step.now.1).map { event in
            switch event {
            case .inserted(_, let number, _): "inserted \(number)"
            case .withdrawn(_, let number): "withdrawn \(number)"
            default: event.description
            }
        }
        #expect(events == step.events)
    }

    @Test("an insertion is found by its number while its card is in the reader")
    func lookup() throws {
        var table = table(([.present], 1))
        let first = Insertion(reader: "Reader 00 00", number: 1)
        #expect(table.entry(of: first)?.name == reader)
        _ = update(&table, [.present], 3)
        #expect(table.entry(of: first) == nil)
        #expect(table.entry(of: Insertion(reader: "Reader 00 00", number: 2)) != nil)
        #expect(table.entry(of: Insertion(reader: "Other", number: 2)) == nil)
    }

    @Test("insertion numbers are never reused, even after a restart of pcscd")
    func numbers() {
        var table = table(([.present], 5))
        _ = table.removeAll()
        _ = table.add(reader, features: ReaderFeatures())
        #expect(update(&table, [.present], 0) == [.inserted("Reader 00 00", 2, atr)])
    }

    @Test("the end of exclusive use is requested and reported")
    func exclusive() {
        var table = table(([.present], 1))
        #expect(table.noteHeld(reader).map(Short.init) == [.held("Reader 00 00", 1)])
        #expect(table.request(all: false).map(\.flags) == [[.present, .exclusive]])
        #expect(update(&table, [.present, .exclusive], 1) == [])
        #expect(table.request(all: false).map(\.flags) == [[.present, .exclusive]])
        #expect(update(&table, [.present], 1) == [.changed("Reader 00 00", keypad: false)])
        #expect(table.request(all: false).map(\.flags) == [[.present]])
    }

    @Test("features that arrive late change the reader once")
    func lateFeatures() {
        var table = PCSCReaderTable()
        #expect(table.add(reader, features: nil).map(Short.init) == [.added("Reader 00 00", keypad: false)])
        var features = ReaderFeatures()
        features.executePACE = 1
        #expect(
            table.update(reader, features: features).map(Short.init) == [.changed("Reader 00 00", keypad: true)]
        )
        #expect(table.update(reader, features: features).isEmpty)
        #expect(table.update(ReaderName("gone"), features: features).isEmpty)
    }

    @Test("the first status request asks for the full state, and later requests ask for changes")
    func request() {
        var table = PCSCReaderTable()
        _ = table.add(reader, features: ReaderFeatures())
        #expect(table.request(all: false) == [PCSCReaderState(name: reader, flags: [], counter: 0)])
        _ = update(&table, [.present], 7)
        #expect(table.request(all: false) == [PCSCReaderState(name: reader, flags: [.present], counter: 7)])
        #expect(table.request(all: true) == [PCSCReaderState(name: reader, flags: [], counter: 0)])
        // After a state without flags the next request must not ask for the full state again.
        _ = update(&table, [], 7)
        #expect(table.request(all: false) == [PCSCReaderState(name: reader, flags: [.empty], counter: 7)])
    }

    @Test("a reader is listed once, and an unlisted reader gives no events")
    func unlistedReader() {
        var table = table()
        #expect(table.add(reader, features: ReaderFeatures()).isEmpty)
        #expect(table.remove(ReaderName("unlisted")).isEmpty)
        let state = PCSCReaderState(name: ReaderName("unlisted"), flags: [.present], counter: 1)
        #expect(table.update(state).events.isEmpty)
    }
}
