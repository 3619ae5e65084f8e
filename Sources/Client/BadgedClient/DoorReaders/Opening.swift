// SPDX-License-Identifier: Apache-2.0
import Text

/// An opening has begun or has reached a further state: OPENING.
public struct DoorOpening: ServerMessage, NamedMessage, Equatable {
    static let names = ["OPENING"]

    /// Identifies the opening in further messages.
    public var token: Int
    public var readerID: String
    public var openingType: String
    /// `connecting`, `connected` or `authenticating`.
    public var state: String

    init(_ json: JSON) throws(Malformed) {
        token = try json.required("token", as: \.int)
        readerID = try json.required("reader", as: \.string)
        openingType = try json.required("openingType", as: \.string)
        state = try json.required("state", as: \.string)
    }
}

/// How an opening has ended, or why it was not possible: OPENING_RESULT.
public struct DoorOpeningResult: ServerMessage, NamedMessage, Equatable {
    static let names = ["OPENING_RESULT"]

    /// nil: the opening has not begun.
    public var token: Int?
    public var readerID: String?
    /// `success` or one of the other names in docs/protocol/door-readers.md.
    public var status: String
    public var duration: Duration
    /// What the reader has answered.
    public var payload: [UInt8]
    /// `granted`, `denied` or `unknown`. Nothing authenticates it.
    public var accessDecision: String
    /// The key that was used.
    public var key: String?
    /// The reason of a failure, for people.
    public var reason: String?

    init(_ json: JSON) throws(Malformed) {
        token = json["token"]?.int
        readerID = json["reader"]?.string
        status = try json.required("status", as: \.string)
        duration = .milliseconds(json["durationMs"]?.int ?? 0)
        payload = json["payload"]?.string.flatMap { Hex.decode($0) } ?? []
        accessDecision = json["accessDecision"]?.string ?? "unknown"
        key = json["key"]?.string
        reason = json["reason"]?.string
    }
}

/// An opening of any client of this host has ended: OPENING_REPORT.
public struct DoorOpeningReport: ServerMessage, NamedMessage, Equatable {
    static let names = ["OPENING_REPORT"]

    /// The number of the opening since badged started: 1, 2, ...
    public var number: Int
    /// When it ended, in milliseconds since 1970, by the clock of the host.
    public var time: Int64
    public var readerID: String
    public var openingType: String
    /// `success` or one of the other names in docs/protocol/door-readers.md.
    public var status: String
    /// `granted`, `denied` or `unknown`. Nothing authenticates it.
    public var accessDecision: String
    public var duration: Duration
    /// The key that was used.
    public var key: String?
    /// The user id of the client that has opened the reader.
    public var user: Int

    init(_ json: JSON) throws(Malformed) {
        number = try json.required("number", as: \.int)
        time = Int64(try json.required("time", as: \.int))
        readerID = try json.required("reader", as: \.string)
        openingType = try json.required("openingType", as: \.string)
        status = try json.required("status", as: \.string)
        accessDecision = json["accessDecision"]?.string ?? "unknown"
        duration = .milliseconds(json["durationMs"]?.int ?? 0)
        key = json["key"]?.string
        user = try json.required("user", as: \.int)
    }
}

/// Whether badged reports the openings of all clients to this one: OPENINGS.
public struct OpeningsStatus: ServerMessage, NamedMessage, Equatable {
    static let names = ["OPENINGS"]

    public var isWatching: Bool

    init(_ json: JSON) throws(Malformed) { isWatching = try json.required("watching", as: \.bool) }
}

/// The direct answer to a command that opens a reader.
public enum DoorOpeningAnswer: Sendable, Equatable {
    /// The result follows as the event `DoorOpeningResult` with the same token.
    case begun(DoorOpening)
    case ended(DoorOpeningResult)
}

/// badged asks whether it may open this reader: ASK_OPEN. `answerOpening` answers.
public struct DoorOpeningQuestion: ServerMessage, NamedMessage, Equatable {
    static let names = ["ASK_OPEN"]

    public var token: Int
    public var readerID: String
    public var openingType: String
    /// How long badged waits for the answer.
    public var expires: Duration

    init(_ json: JSON) throws(Malformed) {
        token = try json.required("token", as: \.int)
        readerID = try json.required("reader", as: \.string)
        openingType = try json.required("openingType", as: \.string)
        expires = .milliseconds(try json.required("expiresMs", as: \.int))
    }
}

/// The time limits of openings: TIMEOUTS.
public struct DoorOpeningTimeouts: ServerMessage, NamedMessage, Equatable {
    static let names = ["TIMEOUTS"]

    /// Between two pieces of a message.
    public var fragment: Duration
    /// For a message with all its pieces, a write, or a signature.
    public var apdu: Duration
    public var connect: Duration

    init(_ json: JSON) throws(Malformed) {
        fragment = .milliseconds(try json.required("fragmentMs", as: \.int))
        apdu = .milliseconds(try json.required("apduMs", as: \.int))
        connect = .milliseconds(try json.required("connectMs", as: \.int))
    }
}

/// Whether readers are opened without a command: AUTO_OPEN.
public struct AutomaticOpening: ServerMessage, NamedMessage, Equatable {
    static let names = ["AUTO_OPEN"]

    public enum Mode: String, Sendable, CaseIterable {
        case off, ask, on
    }

    public var mode: Mode
    public var openingType: String

    init(_ json: JSON) throws(Malformed) {
        mode = try json.required("mode") { $0.string.flatMap(Mode.init(rawValue:)) }
        openingType = try json.required("openingType", as: \.string)
    }
}

/// The commands that open door readers. docs/protocol/door-readers.md, Opening.
extension DaemonConnection {
    /// OPEN_READER: opens the reader with this identifier. This connection must scan.
    ///
    /// - Parameters:
    ///   - reader: the identifier of a reader that was received.
    ///   - openingType: such as `proximity`.
    ///   - key: the key to use; nil: the first one for the site of the reader.
    /// - Returns: the opening that has begun, or why it has not.
    /// - Throws: a refusal of a wrong parameter.
    public func openDoorReader(
        _ reader: String,
        by openingType: String,
        key: String? = nil
    ) async throws(ClientError) -> DoorOpeningAnswer {
        try await opening("OPEN_READER", [("reader", .string(reader))] + Self.members(openingType, key))
    }

    /// TRIGGER: opens the closest reader if it is in range. For the gesture of a user.
    public func triggerOpening(by openingType: String, key: String? = nil) async throws(ClientError)
        -> DoorOpeningAnswer
    {
        try await opening("TRIGGER", Self.members(openingType, key))
    }

    /// ALLOW_OPEN: answers a question. The result is nil if the reader is not opened.
    @discardableResult
    public func answerOpening(
        _ question: DoorOpeningQuestion,
        allow: Bool
    ) async throws(ClientError) -> DoorOpeningAnswer? {
        let members: [(String, JSON?)] = [("token", .number(String(question.token))), ("allow", .bool(allow))]
        guard !allow else { return try await opening("ALLOW_OPEN", members) }
        let _: AutomaticOpening = try await ask("ALLOW_OPEN", Self.present(members))
        return nil
    }

    /// SET_TIMEOUTS: sets the time limits of this connection; nil: unchanged. Each is 50 ms to 60 s.
    @discardableResult
    public func setOpeningTimeouts(
        fragment: Duration? = nil,
        apdu: Duration? = nil,
        connect: Duration? = nil
    ) async throws(ClientError) -> DoorOpeningTimeouts {
        func number(_ duration: Duration?) -> JSON? { duration.map { .number(String(Int($0 / .milliseconds(1)))) } }
        return try await ask(
            "SET_TIMEOUTS",
            Self.present([
                ("fragmentMs", number(fragment)), ("apduMs", number(apdu)), ("connectMs", number(connect)),
            ])
        )
    }

    /// SET_AUTO_OPEN: whether badged opens readers that come into range, for this connection. It is off at first.
    @discardableResult
    public func setAutomaticOpening(
        _ mode: AutomaticOpening.Mode,
        by openingType: String = "proximity",
        key: String? = nil
    ) async throws(ClientError) -> AutomaticOpening {
        let members = [("mode", JSON.string(mode.rawValue))] + Self.members(openingType, key)
        return try await ask("SET_AUTO_OPEN", Self.present(members))
    }

    /// START_OPENINGS. Each opening of any client that ends arrives as the event `DoorOpeningReport`, until
    /// `stopOpenings` or the end of the connection. Needs the permission `openings`.
    @discardableResult
    public func startOpenings() async throws(ClientError) -> OpeningsStatus { try await ask("START_OPENINGS") }

    /// STOP_OPENINGS.
    @discardableResult
    public func stopOpenings() async throws(ClientError) -> OpeningsStatus { try await ask("STOP_OPENINGS") }

    private static func members(_ openingType: String, _ key: String?) -> [(String, JSON?)] {
        [("openingType", .string(openingType)), ("key", key.map(JSON.string))]
    }

    private static func present(_ members: [(String, JSON?)]) -> [JSON.Member] {
        members.compactMap { key, value in value.map { JSON.Member(key, $0) } }
    }

    private func opening(
        _ command: String,
        _ members: [(String, JSON?)]
    ) async throws(ClientError) -> DoorOpeningAnswer {
        let event = try await request(command, Self.present(members))
        if let refusal = event.message.refusal { throw refusal }
        switch event.message {
        case let opening as DoorOpening: return .begun(opening)
        case let result as DoorOpeningResult: return .ended(result)
        default: throw .unexpectedAnswer(event.name)
        }
    }
}
