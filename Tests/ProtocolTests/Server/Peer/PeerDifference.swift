// SPDX-License-Identifier: GPL-3.0-or-later
import Server
import TestSupport
import Text

/// An intended difference between the answers of badged and of AusweisApp2 1.26.2.
struct PeerDifference: Sendable {
    let name: String
    let reason: String
    /// The recordings that contain the difference; each of them must contain it.
    let transcripts: Set<String>
    /// Returns the exchanges that badged is expected to have instead; nil when the exchange is not affected.
    let apply: @Sendable (Transcript.Exchange, Place) -> [Transcript.Exchange]?

    /// The position of an exchange in its recording.
    struct Place {
        let transcript: Transcript
        let index: Int

        /// The lines that the client sent before, in reverse order.
        var earlier: some Sequence<String> {
            transcript.exchanges[..<index].flatMap(\.sent).reversed()
        }

        /// Whether a card was inserted into the Simulator and identified before.
        var simulatorHasKeypad: Bool {
            transcript.exchanges[..<index].contains { $0.putsCardIn }
        }
    }

    init(
        _ name: String,
        because reason: String,
        in transcripts: Set<String>,
        apply: @escaping @Sendable (Transcript.Exchange, Place) -> [Transcript.Exchange]?
    ) {
        (self.name, self.reason, self.transcripts, self.apply) = (name, reason, transcripts, apply)
    }

    /// Creates a difference of single messages. `change` returns the replacement of a message, or nil to keep it.
    init(
        _ name: String,
        because reason: String,
        in transcripts: Set<String>,
        eachMessage change: @escaping @Sendable (JSON, Transcript.Exchange, Place) -> [JSON]?
    ) {
        self.init(name, because: reason, in: transcripts) { exchange, place in
            var result = exchange
            result.received = []
            var isChanged = false
            for message in exchange.received {
                let changed = change(message, exchange, place)
                if changed != nil { isChanged = true }
                result.received += changed ?? [message]
            }
            return isChanged ? [result] : nil
        }
    }
}

extension Transcript.Exchange {
    var isConnection: Bool { sent.isEmpty }

    func sends(_ command: String) -> Bool {
        sent.contains { $0.hasPrefix(#"{"cmd":"\#(command)""#) }
    }

    func receives(_ name: String) -> Bool {
        received.contains { $0["msg"] == .string(name) }
    }

    /// Whether the exchange sends SET_CARD and the card is identified after it.
    var putsCardIn: Bool {
        sends("SET_CARD") && received.contains { $0["msg"] == .string("READER") && $0["card"]?.members != nil }
    }

    func replaced(by received: JSON...) -> [Transcript.Exchange] {
        var copy = self
        copy.received = received
        return [copy]
    }

    func then(_ line: String, _ received: JSON...) -> Transcript.Exchange {
        Transcript.Exchange(sent: [line], received: received, remark: remark, line: self.line)
    }
}

extension JSON {
    /// Returns the object with a member set, or removed when the value is nil; keys stay sorted.
    func with(_ key: String, _ value: JSON?) -> JSON {
        guard var members else { return self }
        members.removeAll { $0.key == key }
        if let value {
            members.insert(.init(key, value), at: members.firstIndex { $0.key > key } ?? members.count)
        }
        return .object(members)
    }

    var isMessage: (String) -> Bool { { self["msg"] == .string($0) } }

    /// Returns READER of the virtual reader.
    static func simulator(card: JSON, keypad: Bool) -> JSON {
        .object([
            .init("attached", .bool(true)), .init("card", card), .init("driver", .string("virtual")),
            .init("insertable", .bool(true)),
            .init("keypad", .bool(keypad)), .init("msg", .string("READER")), .init("name", .string("Simulator")),
        ])
    }

    /// Returns READER of the recording's card reader.
    static func pcscReader(card: JSON) -> JSON {
        simulator(card: card, keypad: false).with("insertable", .bool(false)).with("name", .string(PeerReplay.reader))
    }

    static func insertCard(_ error: String, reader: String? = nil) -> JSON {
        .object([.init("error", .string(error)), .init("msg", .string("INSERT_CARD"))])
            .with("reader", reader.map(JSON.string))
    }

    static func card(tries: Int, inoperative: Bool = false) -> JSON {
        .object([
            .init("deactivated", .bool(false)), .init("inoperative", .bool(inoperative)),
            .init("kind", .string("eid")), .init("retryCounter", .number(String(tries))),
        ])
    }

    /// Returns an ENTER message with the content of a READER message as its reader.
    static func enter(_ name: String, _ reader: JSON) -> JSON {
        .object([.init("msg", .string(name)), .init("reader", reader.with("msg", nil))])
    }

    static let statusAtPACE: JSON = #"{"msg":"STATUS","progress":0,"state":null,"workflow":"CHANGE_PIN"}"#
}
