// SPDX-License-Identifier: GPL-3.0-or-later
import DoorOpening
import DoorReaders
import Server
import Text

/// OPENING: an opening has begun or has reached a further state.
struct OpeningMessage: Message {
    static let name: StaticString = "OPENING"
    let token: Int
    let reader: String
    let openingType: OpeningType
    let state: OpeningState

    func write(to object: inout JSONWriter, _ level: APILevel) {
        object.member("token", token)
        object.member("reader", reader)
        object.member("openingType", openingType.name)
        object.member("state", state.rawValue)
    }
}

/// OPENING_RESULT: an opening has ended, or was not possible.
struct OpeningResultMessage: Message {
    static let name: StaticString = "OPENING_RESULT"
    /// nil: the opening has not begun.
    var token: Int?
    var reader: String?
    let result: OpeningResult
    var duration: Milliseconds = 0

    func write(to object: inout JSONWriter, _ level: APILevel) {
        object.member("token", token)
        object.member("reader", reader)
        object.member("status", result.status.rawValue)
        object.member("durationMs", duration)
        object.member("payload", Hex.encode(result.payload))
        object.member("accessDecision", result.decision.rawValue)
        object.member("key", result.key)
        object.member("reason", result.reason)
    }
}

/// OPENINGS: whether this client receives OPENING_REPORT.
struct OpeningsMessage: Message {
    static let name: StaticString = "OPENINGS"
    let isWatching: Bool
    var error: Phrase?

    func write(to object: inout JSONWriter, _ level: APILevel) {
        if let error { object.member("error", error) }
        object.member("watching", isWatching)
    }
}

struct TimeoutsMessage: Message {
    static let name: StaticString = "TIMEOUTS"
    let timeouts: OpeningTimeouts
    var error: Phrase?

    func write(to object: inout JSONWriter, _ level: APILevel) {
        if let error { object.member("error", error) }
        object.member("fragmentMs", timeouts.fragment)
        object.member("apduMs", timeouts.apdu)
        object.member("connectMs", timeouts.connect)
    }
}

struct AutoOpenMessage: Message {
    static let name: StaticString = "AUTO_OPEN"
    let mode: AutoOpen.Mode
    let openingType: OpeningType
    var error: Phrase?

    func write(to object: inout JSONWriter, _ level: APILevel) {
        if let error { object.member("error", error) }
        object.member("mode", mode.rawValue)
        object.member("openingType", openingType.name)
    }
}
