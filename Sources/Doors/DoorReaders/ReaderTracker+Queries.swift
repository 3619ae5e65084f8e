// SPDX-License-Identifier: GPL-3.0-or-later

extension ReaderTracker {
    /// All remembered readers, least recently seen first.
    package var readers: [DoorReader] { table.readers }

    /// The readers that match a filter: active ones first, then by level, strongest first.
    package func readers(_ filter: ScanFilter, activeOnly: Bool, at now: Milliseconds) -> [DoorReader] {
        readers.filter { filter.matches($0) && (!activeOnly || $0.isActive(at: now)) }.sorted {
            ($0.isActive(at: now) ? 0 : 1, -$0.signal.level, $0.number)
                < ($1.isActive(at: now) ? 0 : 1, -$1.signal.level, $1.number)
        }
    }

    package enum Closest {
        case reader(DoorReader)
        case none(Absence)
    }

    /// Why there is no closest reader.
    package enum Absence: String, Sendable {
        /// No reader is active.
        case none
        /// The closest reader does not support the opening type.
        case notSupported
        case outOfRange
        /// The closest reader was opened a moment ago.
        case coolingDown
    }

    /// The closest active reader, if it supports the opening type and is in range for it. Readers that are farther away
    /// are no substitute, because the person stands in front of the closest one.
    package func closest(
        for type: OpeningType,
        _ filter: ScanFilter,
        at now: Milliseconds
    ) -> Closest {
        let closest = readers(filter, activeOnly: true, at: now).first { !$0.openingTypes.isEmpty }
        guard let reader = closest else { return .none(.none) }
        if reader.coolsDown(at: now) { return .none(.coolingDown) }
        guard reader.openingTypes.contains(type) else { return .none(.notSupported) }
        return reader.inRange.contains(type) && reader.isFresh(at: now)
            ? .reader(reader) : .none(.outOfRange)
    }
}
