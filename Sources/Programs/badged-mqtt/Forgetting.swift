// SPDX-License-Identifier: GPL-3.0-or-later
import Concurrency
import Glibc
import Host
import MQTT

/// `badged-mqtt --forget`: publishes empty retained messages, which removes those of this host from the broker.
enum Forgetting {
    /// How long the broker may take, in milliseconds.
    private static let time: Int64 = 10_000

    private static var now: Int64 { Loop.clock / 1000 }

    static func run(_ configuration: MQTTConfiguration) throws(StartError) {
        let connection = try BrokerConnection(configuration, will: nil)
        switch Dialling.dial(configuration.host ?? "", port: configuration.port) {
        case .socket(let descriptor): connection.begin(descriptor)
        case .failed(let reason): throw StartError(reason, hint: "check [broker] url")
        }
        var topics = Document.allCases.map { configuration.topic($0.rawValue) }
        if configuration.isHomeAssistantEnabled { topics.append(configuration.discoveryTopic) }
        var open: [Int32: String] = [:]
        var refused: [String] = []
        var isBegun = false
        let deadline = now + time
        while now < deadline {
            let (events, ending) = connection.step(at: now)
            for event in events {
                switch event {
                case .open: connection.logIn(at: now)
                case .accepted:
                    isBegun = true
                    for topic in topics {
                        let sent = connection.publish(topic, [], retain: true, at: now)
                        if case .sent(let id) = sent { open[id] = topic } else { refused.append(topic) }
                    }
                case .refused(let reason):
                    let text = reason.text(for: configuration)
                    throw StartError("the broker refuses the connection: \(text)", hint: "see docs/fleet.md")
                case .acknowledged(let id, let reason):
                    guard let topic = open.removeValue(forKey: id), reason.code >= 0x80 else { continue }
                    refused.append("\(topic): \(reason.text(for: configuration))")
                }
            }
            if isBegun, open.isEmpty {
                connection.disconnect()
                return try report(topics.count, refused)
            }
            if let ending { throw StartError(ending.text, hint: "try again") }
            var polled = pollfd(fd: connection.descriptor, events: Int16(POLLIN), revents: 0)
            if connection.wantsWrite { polled.events |= Int16(POLLOUT) }
            _ = poll(&polled, 1, Int32(max(0, deadline - now)))
        }
        throw StartError("the broker does not answer", hint: "try again later")
    }

    private static func report(_ count: Int, _ refused: [String]) throws(StartError) {
        print("\(count - refused.count) messages are removed")
        guard refused.isEmpty else {
            throw StartError(
                "the broker keeps: \(refused.joined(separator: "; "))",
                hint: "let this host write there (docs/fleet.md has the ACL), and run this again"
            )
        }
    }
}
