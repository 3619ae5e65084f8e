// SPDX-License-Identifier: GPL-3.0-or-later
import Readers

/// The readers and insertions as they were last told to the registry. It turns what pcscd says into events and does
/// nothing else: no call, no clock, no thread.
struct ReaderTable: Sendable {
    struct Entry: Sendable, Equatable {
        let name: ReaderName
        var features: ReaderFeatures
        /// The features could not be read yet: another program holds the reader exclusively.
        var featuresAreMissing: Bool
        /// Last flags and counter of pcscd; nil before the first.
        var state: State?
        /// pcscd changes the flags a moment before it counts: the counter will move once more for what is known already.
        var isCounterBehind = false
        var insertion: Insertion?
        /// Somebody was seen to hold the reader exclusively, and has not been seen to let go.
        var isHeld = false

        var description: ReaderDescription { features.description(of: name) }

        /// Does the counter say that nothing came or left but what the flags tell?
        fileprivate mutating func count(_ counter: UInt16, since before: State?, _ flags: StateFlags) -> Bool {
            guard let before else { return false }
            let expected = isCounterBehind ? before.counter &+ 1 : before.counter
            let hasFlipped = before.flags.contains(.present) != flags.contains(.present)
            isCounterBehind = hasFlipped ? counter == expected : isCounterBehind && counter == before.counter
            return counter == before.counter || counter == expected
        }
    }

    struct State: Sendable, Equatable {
        var flags: StateFlags
        var counter: UInt16
    }

    private(set) var entries: [Entry] = []
    private var insertions: UInt64 = 0

    init() {}

    /// The entry whose card is still that of `insertion`.
    func entry(of insertion: Insertion) -> Entry? { entries.first { $0.insertion == insertion } }

    /// A new reader. `features` are nil while another program holds it exclusively: it is told as a basic one.
    mutating func add(_ name: ReaderName, features: ReaderFeatures?, isHeld: Bool = false) -> [ReaderEvent] {
        guard !entries.contains(where: { $0.name == name }) else { return [] }
        var entry = Entry(name: name, features: features ?? ReaderFeatures(), featuresAreMissing: features == nil)
        entry.isHeld = isHeld
        entries.append(entry)
        return [.added(entry.description)]
    }

    /// Its card leaves first, then the reader.
    mutating func remove(_ name: ReaderName) -> [ReaderEvent] {
        guard let index = entries.firstIndex(where: { $0.name == name }) else { return [] }
        let entry = entries.remove(at: index)
        return (entry.insertion.map { [.withdrawn($0)] } ?? []) + [.removed(reader: name.text)]
    }

    mutating func removeAll() -> [ReaderEvent] { entries.flatMap { remove($0.name) } }

    /// Features that came late.
    mutating func update(_ name: ReaderName, features: ReaderFeatures) -> [ReaderEvent] {
        guard let index = entries.firstIndex(where: { $0.name == name }) else { return [] }
        let before = entries[index].description
        entries[index].features = features
        entries[index].featuresAreMissing = false
        return entries[index].description == before ? [] : [.changed(entries[index].description)]
    }

    /// Somebody who tried to use the reader was told that another program holds it exclusively.
    mutating func noteHeld(_ name: ReaderName) {
        guard let index = entries.firstIndex(where: { $0.name == name }) else { return }
        entries[index].isHeld = true
    }

    /// What pcscd says of one reader now.
    /// - Returns: the events, and whether an exclusive hold by another program has ended. That is told as `.changed`
    ///   with the same description, so that a card that could not be looked at is looked at again.
    mutating func update(_ state: ReaderState) -> (events: [ReaderEvent], becameFree: Bool) {
        guard let index = entries.firstIndex(where: { $0.name == state.name }) else { return ([], false) }
        let before = entries[index]
        let flags = state.flags.subtracting(.changed)
        entries[index].state = State(flags: flags, counter: state.counter)

        var events: [ReaderEvent] = []
        let isPresent = flags.contains(.present) && flags.isDisjoint(with: [.unknown, .unavailable])
        // A card that was there before and is there now is the same card only when pcscd's counter has not moved.
        // One that was mute and has come to life, with an answer to reset, is worth another look: an insertion too.
        let hasComeToLife = before.state?.flags.contains(.mute) == true && !flags.contains(.mute)
        let isOther = !entries[index].count(state.counter, since: before.state, flags) || hasComeToLife
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

    /// What to ask pcscd for: the next difference from what is known, or with `anew` everything at once.
    func request(anew: Bool) -> [ReaderState] {
        entries.map { entry in
            guard !anew, let state = entry.state else { return ReaderState(name: entry.name, flags: [], counter: 0) }
            // No flag at all would ask for everything at once, again and again: a reader that pcscd knows nothing of
            // yet counts as empty.
            var flags = state.flags.isEmpty ? .empty : state.flags
            // pcscd tells the end of an exclusive hold only to those who say that they know of it.
            if entry.isHeld { flags.insert(.exclusive) }
            return ReaderState(name: entry.name, flags: flags, counter: state.counter)
        }
    }
}
