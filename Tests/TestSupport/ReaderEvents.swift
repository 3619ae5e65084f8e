// SPDX-License-Identifier: GPL-3.0-or-later
package import Host
package import Readers

/// The events of a backend as text, in order. The time limit of the suite ends a wait.
package final class Events {
    private var iterator: AsyncStream<ReaderEvent>.Iterator
    /// The last insertion in each reader.
    package private(set) var insertions: [String: Insertion] = [:]
    /// The answer to reset of the last card in each reader.
    package private(set) var answersToReset: [String: [UInt8]] = [:]
    /// The last health checks.
    package private(set) var checks: [HealthCheck] = []

    /// The backend, which sends events only while it is referenced.
    private let backend: any ReaderBackend

    package init(_ backend: some ReaderBackend) {
        self.backend = backend
        iterator = backend.events.makeAsyncIterator()
    }

    /// The error when the events end, also by the time limit of the test.
    package struct End: Error {}

    /// Returns the next event: "added NAME", "changed NAME", "removed NAME", "inserted NAME", "withdrawn NAME", "held NAME",
    /// "health ok" or "health" and the failed checks. A reader with a keypad has " keypad" after its name.
    package func next(isolation: isolated (any Actor)? = #isolation) async throws -> String {
        let event = await iterator.next(isolation: isolation)
        switch event {
        case .added(let reader): return "added \(reader.name)" + (reader.hasKeypad ? " keypad" : "")
        case .changed(let reader): return "changed \(reader.name)" + (reader.hasKeypad ? " keypad" : "")
        case .removed(let reader): return "removed \(reader)"
        case .inserted(let insertion, let answerToReset):
            insertions[insertion.reader] = insertion
            answersToReset[insertion.reader] = answerToReset
            return "inserted \(insertion.reader)"
        case .withdrawn(let insertion):
            return "withdrawn \(insertion.reader)" + (insertions[insertion.reader] == insertion ? "" : " (another)")
        case .held(let insertion): return "held \(insertion.reader)"
        case .health(let checks):
            self.checks = checks
            let failed = checks.filter { !$0.ok }.map(\.name).sorted()
            return failed.isEmpty ? "health ok" : "health " + failed.joined(separator: " ")
        case nil: throw End()
        }
    }

    package func next(_ count: Int, isolation: isolated (any Actor)? = #isolation) async throws -> [String] {
        var list: [String] = []
        for _ in 0..<count { list.append(try await next()) }
        return list
    }

    /// Reads events until this one has come.
    package func wait(for event: String, isolation: isolated (any Actor)? = #isolation) async throws {
        while try await next() != event {}
    }

    /// Waits for a card and returns its insertion.
    package func insertion(
        in reader: String,
        isolation: isolated (any Actor)? = #isolation
    ) async throws -> Insertion {
        try await wait(for: "inserted \(reader)")
        guard let insertion = insertions[reader] else { throw End() }
        return insertion
    }
}

/// Polls a condition of the kernel or of another program, for which there is no event, until it holds.
///
/// The pause decides only how often the condition is read. The time limit of the test ends the wait.
package func until(_ condition: () async -> Bool) async throws {
    while await !condition() { try await Task.sleep(for: .milliseconds(5)) }
}
