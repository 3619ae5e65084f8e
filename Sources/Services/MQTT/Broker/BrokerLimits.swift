// SPDX-License-Identifier: GPL-3.0-or-later
import Host
package import Text

/// What a broker says in CONNACK of itself and of what it accepts. Without a value the setting of this host counts.
/// MQTT 5.0, 3.2.2.3.
package struct BrokerLimits: Sendable, Equatable {
    /// Seconds between two packets of the client; 0: the broker does not look.
    package var keepAlive: Int?
    /// 0, 1 or 2.
    package var maximumQoS = 2
    package var isRetainAvailable = true
    /// Bytes; nil: no limit.
    package var maximumPacketSize: Int?
    /// How many messages may be without PUBACK.
    package var receiveMaximum = 65_535
    package var topicAliasMaximum = 0
    package var assignedClientID: String?
    /// Seconds for which the broker keeps the session; nil: not at all, as was asked for.
    package var sessionExpiry: Int?

    package init() {}

    init(_ properties: BrokerProperties) throws(Malformed) {
        keepAlive = properties.numbers[.serverKeepAlive]
        maximumQoS = properties.numbers[.maximumQoS] ?? 2
        isRetainAvailable = properties.numbers[.retainAvailable] != 0
        maximumPacketSize = properties.numbers[.maximumPacketSize]
        receiveMaximum = properties.numbers[.receiveMaximum] ?? 65_535
        topicAliasMaximum = properties.numbers[.topicAliasMaximum] ?? 0
        assignedClientID = properties.texts[.assignedClientIdentifier].map {
            String(decoding: $0.utf8.prefix(256), as: UTF8.self)
        }
        sessionExpiry = properties.numbers[.sessionExpiryInterval]
        guard maximumQoS <= 2, properties.numbers[.retainAvailable] ?? 1 <= 1, maximumPacketSize != 0,
            receiveMaximum > 0
        else { throw Malformed("a limit in CONNACK has a value that is not allowed") }
    }

    /// Sentences about what differs from the wishes of this host, for the log and `--status`.
    package func notes(keepAlive wanted: Int) -> [String] {
        var notes: [String] = []
        if let keepAlive, keepAlive != wanted {
            notes.append(
                keepAlive == 0
                    ? "the broker does not check the keep-alive; badged-mqtt asks it every \(wanted) s all the same"
                    : "keep-alive \(keepAlive) s, as the broker wants it, instead of \(wanted) s"
            )
        }
        if maximumQoS == 0 {
            notes.append(
                "the broker allows QoS 0 only: it cannot refuse single messages, and an answer to a ping confirms them"
            )
        }
        if !isRetainAvailable {
            notes.append("the broker retains nothing: a new consumer learns the state with the next heartbeat")
        }
        if let maximumPacketSize, maximumPacketSize < ClientPacket.maximumSize {
            notes.append("the broker accepts at most \(maximumPacketSize) bytes a message")
        }
        if receiveMaximum < BrokerConnection.window {
            let messages = receiveMaximum == 1 ? "1 message" : "\(receiveMaximum) messages"
            notes.append("the broker allows \(messages) without an answer")
        }
        if let assignedClientID {
            notes.append("the broker calls this host \(assignedClientID.quoted(longest: 64))")
        }
        if let sessionExpiry, sessionExpiry > 0 {
            notes.append("the broker keeps the session for \(sessionExpiry) s, which nobody has asked for")
        }
        return notes
    }

    /// The member `broker` of the document `state`.
    package func json(keepAlive wanted: Int) -> JSON {
        func number(_ value: Int?) -> JSON { value.map { .number(String($0)) } ?? .null }
        return .object([
            .init("keepAlive", number(keepAlive ?? wanted)), .init("maximumQoS", number(maximumQoS)),
            .init("retainAvailable", .bool(isRetainAvailable)), .init("maximumPacketSize", number(maximumPacketSize)),
            .init("receiveMaximum", number(receiveMaximum)), .init("topicAliasMaximum", number(topicAliasMaximum)),
            .init("assignedClientID", assignedClientID.map { .string($0) } ?? .null),
            .init("sessionExpiry", number(sessionExpiry ?? 0)),
        ])
    }
}
