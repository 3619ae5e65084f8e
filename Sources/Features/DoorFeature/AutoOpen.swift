// SPDX-License-Identifier: GPL-3.0-or-later
import Concurrency
import DoorOpening
import DoorReaders

/// Decides which readers are opened without a command: each reader once per visit of its range.
struct AutoOpen {
    enum Mode: String, Sendable, CaseIterable {
        /// No reader.
        case off
        /// Those that the client allows.
        case ask
        /// All that have a driver.
        case on
    }

    var mode = Mode.off
    var openingType = OpeningType.proximity
    var key: String?
    /// The numbers of the readers whose range the user has not left since they were opened or asked for.
    private var visited: Set<Int> = []

    mutating func forgetVisits() { visited = [] }

    mutating func forgetVisit(_ reader: DoorReader) { visited.remove(reader.number) }

    /// Handles a change of a reader. A connected reader does not advertise, so its loss does not end a visit.
    /// - Parameters:
    ///   - reader: the reader as it is now.
    ///   - isLost: whether the reader is not received any more.
    ///   - isConnected: whether the reader is silent because it is connected.
    ///   - hasRoom: false while an opening would be refused as busy. The reader has its turn at a later advertisement.
    ///   - now: the time of the radio.
    /// - Returns: whether to open the reader or to ask for it now.
    mutating func notice(
        _ reader: DoorReader,
        isLost: Bool,
        isConnected: Bool,
        hasRoom: Bool,
        at now: Milliseconds
    ) -> Bool {
        if isConnected { return false }
        guard mode != .off, !isLost, reader.inRange.contains(openingType), reader.isFresh(at: now) else {
            visited.remove(reader.number)
            return false
        }
        guard DoorDriver.exists(for: reader.profile), !reader.coolsDown(at: now), !reader.isUnavailable, hasRoom else {
            return false
        }
        return visited.insert(reader.number).inserted
    }
}

/// The kinds of readers that badged opens.
enum DoorDriver {
    static func exists(for profile: ReaderProfile) -> Bool { profile == .pkoc }
}

/// What one client has set up for openings, and its openings that run.
@Loop final class OpeningClient {
    var timeouts = OpeningTimeouts()
    var autoOpen = AutoOpen()
    var openings: [Int: Task<Void, Never>] = [:]
    /// The questions without an answer, by token.
    var questions: [Int: Question] = [:]
    /// The end of the last opening of each reader, by number, until the reader is in range again. `.max` while the
    /// opening runs.
    private var ends: [Int: Milliseconds] = [:]

    func began(_ reader: DoorReader) { ends[reader.number] = .max }

    func ended(_ reader: DoorReader, at now: Milliseconds) {
        // Readers that never came back are forgotten with the next opening.
        ends = ends.filter { $0.value == .max || now - $0.value <= Self.returnTime }
        ends[reader.number] = now
    }

    /// The readers of a new scan have other numbers.
    func forgetReaders() {
        autoOpen.forgetVisits()
        ends = [:]
    }

    /// Whether the reader is out of range because it is connected, or was until now: connected readers do not
    /// advertise.
    func isConnected(_ reader: DoorReader, at now: Milliseconds) -> Bool {
        guard let end = ends[reader.number] else { return false }
        let isBack = reader.lastSeen > end && reader.inRange.contains(autoOpen.openingType)
        guard isBack || now - Self.returnTime > end else { return true }
        ends[reader.number] = nil
        return false
    }

    /// How long a reader may take after an opening until it is in range again, in milliseconds. bluetoothd disconnects
    /// after two seconds, and then the reader advertises.
    private static let returnTime: Milliseconds = 6000

    struct Question {
        let reader: DoorReader
        let openingType: OpeningType
        let key: String?
        /// Ends the question.
        let alarm: Loop.Alarm
    }

    /// How long a question waits for its answer, in milliseconds.
    static let questionTime: Milliseconds = 10_000
    static let mostQuestions = 16
    static let mostOpenings = 4
}
