// SPDX-License-Identifier: GPL-3.0-or-later
import Readers

/// The readers and insertions as last reported to the registry. It converts states of pcscd to events, without calls,
/// clocks or threads.
struct PCSCReaderTable: Sendable {
    struct Entry: Sendable, Equatable {
        let name: ReaderName
        var features: ReaderFeatures
        /// The features could not be read yet, because another program holds the reader exclusively.
        var featuresAreMissing: Bool
        /// The last flags and counter of pcscd; nil before the first report.
        var state: State?
        /// pcscd changes the flags just before the counter, so the counter will move once more for the known change.
        var isCounterBehind = false
        var insertion: Insertion?
        /// Another program holds the reader exclusively.
        var isHeld = false

        var description: ReaderDescription { features.description(of: name) }

        /// Whether the counter agrees with the flags: no card came or left in between.
        fileprivate mutating func count(_ counter: UInt16, since before: State?, _ flags: StateFlags) -> Bool {
            guard let before else { return false }
            let known = isCounterBehind ? before.counter &+ 1 : before.counter
            let hasFlipped = before.flags.contains(.present) != flags.contains(.present)
            // The counter moves by one with each card that comes or leaves. When this does not fit the flags, it is
            // behind.
            isCounterBehind = (counter &- known).isMultiple(of: 2) == hasFlipped
            return (isCounterBehind ? counter &+ 1 : counter) == known
        }
    }

    struct State: Sendable, Equatable {
        var flags: StateFlags
        var counter: UInt16
    }

    private(set) var entries: [Entry] = []
    private var insertions: UInt64 = 0

    init() {}

    /// The entry of an insertion; nil when the card has left.
    func entry(of insertion: Insertion) -> Entry? { entries.first { $0.insertion == insertion } }

    /// Adds a reader. `features` are nil while another program holds it exclusively; it is then reported as a basic
    /// reader.
    mutating func add(_ name: ReaderName, features: ReaderFeatures?, isHeld: Bool = false) -> [ReaderEvent] {
        guard !entries.contains(where: { $0.name == name }) else { return [] }
        var entry = Entry(name: name, features: features ?? ReaderFeatures(), featuresAreMissing: features == nil)
        entry.isHeld = isHeld
        entries.append(entry)
        return [.added(entry.description)]
    }

    /// Removes a reader, and its card before it.
    mutating func remove(_ name: ReaderName) -> [ReaderEvent] {
        guard let index = entries.firstIndex(where: { $0.name == name }) else { return [] }
        let entry = entries.remove(at: index)
        return (entry.insertion.map { [.withdrawn($0)] } ?? []) + [.removed(reader: name.text)]
    }

    mutating func removeAll() -> [ReaderEvent] { entries.flatMap { remove($0.name) } }

    /// Sets the features of a reader that were not known at first.
    mutating func update(_ name: ReaderName, features: ReaderFeatures) -> [ReaderEvent] {
        guard let index = entries.firstIndex(where: { $0.name == name }) else { return [] }
        let before = entries[index].description
        entries[index].features = features
        entries[index].featuresAreMissing = false
        return entries[index].description == before ? [] : [.changed(entries[index].description)]
    }

    /// Notes that another program holds the reader exclusively.
    mutating func noteHeld(_ name: ReaderName) -> [ReaderEvent] {
        guard let index = entries.firstIndex(where: { $0.name == name }) else { return [] }
        entries[index].isHeld = true
        return entries[index].insertion.map { [.held($0)] } ?? []
    }

    /// Takes a state of one reader.
    /// - Returns: the events, and whether another program has ended its exclusive use. This is reported as `.changed`
    ///   with the same description, so that the registry tries again to recognise the card.
    mutating func update(_ state: PCSCReaderState) -> (events: [ReaderEvent], becameFree: Bool) {
        guard let index = entries.firstIndex(where: { $0.name == state.name }) else { return ([], false) }
        let before = entries[index]
        let flags = state.flags.subtracting(.changed)
        entries[index].state = State(flags: flags, counter: state.counter)

        var events: [ReaderEvent] = []
        let isPresent = flags.contains(.present) && flags.isDisjoint(with: [.unknown, .unavailable])
        // A card is still the same only when the counter of pcscd agrees. A card that is not mute any more is a new
        // insertion, so that the registry tries to recognise it.
        let isNotMuteAnyMore = before.state?.flags.contains(.mute) == true && !flags.contains(.mute)
        let isOther = !entries[index].count(state.counter, since: before.state, flags) || isNotMuteAnyMore
        if let insertion = before.insertion, !isPresent || isOther {
            events.append(.withdrawn(insertion))
            entries[index].insertion = nil
        }
        if isPresent, entries[index].insertion == nil {
            insertions += 1
            let insertion = Insertion(reader: state.name.text, number: insertions)
            entries[index].insertion = insertion
            events.append(.inserted(insertion, answerToReset: state.answerToReset))
        }

        entries[index].isHeld = flags.contains(.exclusive)
        let becameFree = before.isHeld && !entries[index].isHeld
        if becameFree { events.append(.changed(entries[index].description)) }
        return (events, becameFree)
    }

    /// The states to pass to pcscd: it answers when one differs, or with `all` at once.
    func request(all: Bool) -> [PCSCReaderState] {
        entries.map { entry in
            guard !all, let state = entry.state else { return PCSCReaderState(name: entry.name, flags: [], counter: 0) }
            // pcscd would answer a state without flags at once, each time.
            var flags = state.flags.isEmpty ? .empty : state.flags
            // pcscd reports the end of exclusive use only to callers that pass this flag.
            if entry.isHeld { flags.insert(.exclusive) }
            return PCSCReaderState(name: entry.name, flags: flags, counter: state.counter)
        }
    }
}
