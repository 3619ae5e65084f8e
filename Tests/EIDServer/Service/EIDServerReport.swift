// SPDX-License-Identifier: GPL-3.0-or-later
import Glibc
import Server
import Text

/// The report of a run for people and tests.
struct Report: Sendable {
    private(set) var outcome = "pending"
    /// Requirements of the specifications that the client did not meet.
    private(set) var notes: [String] = []
    private(set) var events: [JSON] = []
    private(set) var messages: [JSON] = []
    var handshakes: [JSON] = []
    var client: [JSON.Member] = []
    var card: [JSON.Member] = []
    var data: [JSON.Member] = []
    var refresh: JSON = .null
    /// The time that the server has worked for this run without TLS, in microseconds.
    var busy = 0
    private let started = Report.microseconds

    static var microseconds: Int {
        var now = timespec()
        clock_gettime(CLOCK_MONOTONIC, &now)
        return now.tv_sec * 1_000_000 + now.tv_nsec / 1000
    }

    mutating func event(_ what: String, _ details: [JSON.Member] = []) {
        let time = JSON.Member("ms", .number(String((Self.microseconds - started) / 1000)))
        events.append(.object([time, .init("what", .string(what))] + details))
    }

    mutating func note(_ text: String) {
        if !notes.contains(text) { notes.append(text) }
    }

    /// Sets the outcome; only the first call counts.
    mutating func finish(_ outcome: String) {
        guard self.outcome == "pending" else { return }
        self.outcome = outcome
        event("finished", [.init("outcome", .string(outcome))])
    }

    mutating func message(_ sender: String, _ bytes: [UInt8]) {
        // A message of 64 MiB would make the report unreadable.
        let text = bytes.count > 1 << 20 ? "\(bytes.count) bytes" : String(decoding: bytes, as: UTF8.self)
        messages.append(.object([.init("from", .string(sender)), .init("xml", .string(text))]))
    }

    func json(session: String, _ options: ServiceOptions, state: String) -> JSON {
        .object([
            .init("session", .string(session)), .init("mode", .string(options.mode.rawValue)),
            .init("fault", options.fault.map { .string($0.rawValue) } ?? .null), .init("outcome", .string(outcome)),
            .init("state", .string(state)), .init("data", .object(data)), .init("client", .object(client)),
            .init("card", .object(card)), .init("refresh", refresh), .init("tls", .array(handshakes)),
            .init("notes", .array(notes.map(JSON.string))), .init("events", .array(events)),
            .init("busyMicroseconds", .number(String(busy))),
        ])
    }
}

extension Handshake {
    var json: JSON {
        .object([
            .init("version", .string(version)), .init("cipher", .string(cipher)), .init("resumed", .bool(isResumed)),
            .init("serverName", serverName.map(JSON.string) ?? .null),
            .init("pskIdentity", pskIdentity.map(JSON.string) ?? .null),
        ])
    }
}

extension PAOSMessage.Result {
    var json: JSON {
        .object([
            .init("major", .string(major)), .init("minor", minor.map(JSON.string) ?? .null),
            .init("message", message.map(JSON.string) ?? .null),
        ])
    }
}
