// SPDX-License-Identifier: Apache-2.0
import Text

/// Events that wait to be read, and the tasks that wait for an event.
struct EventQueue {
    struct Entry {
        /// The place in the order of arrival.
        let number: Int
        let event: Event
        /// Whether `events` has the event, too.
        var isCopied = false
    }

    private var entries: [Entry] = []
    /// Index of the next entry. Those before it are read.
    private var first = 0
    /// Bytes of the events that wait.
    private(set) var size = 0
    private var readers: [OneShot<Event?>] = []

    /// The number of events that wait.
    var count: Int { entries.count - first }

    /// Gives the event to a task that waits, or keeps the event.
    mutating func put(_ entry: Entry) {
        while !readers.isEmpty {
            // A task that was cancelled just now does not take the event.
            if readers.removeFirst().fill(entry.event) { return }
        }
        entries.append(entry)
        size += entry.event.text.utf8.count
    }

    /// Fills `reader` with the next event, or keeps `reader` until an event arrives. `isOver`: no more events arrive.
    mutating func read(_ reader: OneShot<Event?>, isOver: Bool) {
        guard first < entries.count else {
            if isOver { reader.fill(nil) } else { readers.append(reader) }
            return
        }
        let event = entries[first].event
        size -= event.text.utf8.count
        first += 1
        if first == entries.count || first >= 256 {
            entries.removeFirst(first)
            first = 0
        }
        reader.fill(event)
    }

    mutating func forget(_ reader: OneShot<Event?>) { readers.removeAll { $0 === reader } }

    /// Resumes the waiting tasks, because no more events arrive.
    mutating func end() {
        for reader in readers { reader.fill(nil) }
        readers = []
    }

    /// Adds the entries of another queue that are not copied, in the order of arrival.
    mutating func append(_ other: EventQueue) {
        let missing = other.entries[other.first...].filter { !$0.isCopied }
        guard !missing.isEmpty else { return }
        let all = (entries[first...] + missing).sorted { $0.number < $1.number }
        entries = []
        first = 0
        size = 0
        for entry in all { put(entry) }
    }
}
