// SPDX-License-Identifier: GPL-3.0-or-later
import Host
import Text

/// The message by which Home Assistant finds this host: one device with its components.
/// https://www.home-assistant.io/integrations/mqtt/#device-discovery-payload
enum Discovery {
    /// When the message is sent: a random time after the connection, after changes of the readers, and with heartbeats.
    struct Timer {
        private let isEnabled: Bool
        /// Milliseconds of CLOCK_MONOTONIC; nil: never.
        private(set) var due: Int64?

        init(isEnabled: Bool) { self.isEnabled = isEnabled }

        mutating func connected(at now: Int64) {
            // After a restart of the broker all hosts reconnect at the same time.
            if isEnabled { due = now + Int64.random(in: 0...10_000) }
        }

        mutating func changed(at now: Int64) {
            guard isEnabled else { return }
            due = min(due ?? .max, now + 2000)
        }

        mutating func sent(at now: Int64, heartbeat: Int) { due = now + Int64(heartbeat) * 1000 }
    }

    private static let mostReaders = 32

    /// The names of readers that become components. A name with other characters could change the template.
    static func shown(_ readers: [String]) -> [String] {
        let plain = readers.filter { name in
            name.utf8.allSatisfy { $0 >= 0x20 && $0 < 0x7F && ![0x22, 0x27, 0x5C, 0x7B, 0x7D, 0x25].contains($0) }
        }
        return Array(plain.prefix(mostReaders))
    }

    /// The members of the message for the readers with these names.
    ///
    /// Home Assistant keeps a component that is left out, and removes one that has a platform and nothing else. What there
    /// was before is not known after a restart, so every component that this host does not have is removed each time.
    static func content(_ configuration: MQTTConfiguration, _ readers: [String]) -> [JSON.Member] {
        let id = "badged_\(configuration.objectID)"
        func topic(_ document: Document) -> String { configuration.topic(document.rawValue) }
        var components: [JSON.Member] = []
        // A template that always says `online`: the end of a host must be seen as a state, not as a missing one.
        let always: (String, JSON) = (
            "availability",
            .array([
                .object([.init("topic", .string(topic(.state))), .init("value_template", .string("{{ 'online' }}"))])
            ])
        )
        func add(_ name: String, _ platform: String, _ title: String, _ topic: String, _ members: [(String, JSON)]) {
            let all: [(String, JSON)] =
                [
                    ("platform", .string(platform)), ("unique_id", .string("\(id)_\(name)")), ("name", .string(title)),
                    ("state_topic", .string(topic)),
                ] + members
            components.append(.init(name, .object(all.map { JSON.Member($0.0, $0.1) })))
        }
        func remove(_ name: String, _ platform: String) {
            components.append(.init(name, .object([.init("platform", .string(platform))])))
        }
        func choice(_ condition: String) -> JSON { .string("{{ 'ON' if \(condition) else 'OFF' }}") }

        add(
            "connectivity",
            "binary_sensor",
            "Connected",
            topic(.state),
            [
                ("device_class", .string("connectivity")), ("entity_category", .string("diagnostic")), always,
                ("value_template", choice("value_json.state == 'online'")),
            ]
        )
        add(
            "problem",
            "binary_sensor",
            "Problem",
            topic(.health),
            [
                ("device_class", .string("problem")),
                ("value_template", choice("value_json.checks | rejectattr('ok') | list | count > 0")),
                ("json_attributes_topic", .string(topic(.health))),
            ]
        )
        add(
            "queue",
            "sensor",
            "Events that wait",
            topic(.state),
            [("value_template", .string("{{ value_json.queue.waiting if value_json.queue is defined else none }}"))]
        )
        for (index, name) in readers.enumerated() {
            add(
                "reader_\(index + 1)",
                "binary_sensor",
                name,
                topic(.readers),
                [
                    ("device_class", .string("occupancy")),
                    (
                        "value_template",
                        choice(
                            "value_json.readers | selectattr('name', 'eq', '\(name)') | rejectattr('card', 'none')"
                                + " | list | count > 0"
                        )
                    ),
                ]
            )
        }
        for index in readers.count..<mostReaders { remove("reader_\(index + 1)", "binary_sensor") }
        func event(
            _ stream: EventStream,
            _ isTold: Bool,
            _ title: String,
            _ types: [String],
            _ type: String,
            _ members: [String]
        ) {
            guard isTold else { return remove(stream.word, "event") }
            let content = (["reader", "sequence"] + members).map { "'\($0)': value_json.\($0) | default(none)" }
            add(
                stream.word,
                "event",
                title,
                configuration.topic(stream.word),
                [
                    ("event_types", .array(types.map(JSON.string))),
                    (
                        "value_template",
                        .string("{{ {'event_type': \(type), \(content.joined(separator: ", "))} | tojson }}")
                    ),
                ]
            )
        }
        event(
            .credential,
            configuration.credentials != .no,
            "Credential",
            ["verified", "refused"],
            "'verified' if value_json.verified else 'refused'",
            ["id", "listed", "verified", "reason", "time"]
        )
        event(
            .opening,
            configuration.openings,
            "Opening",
            ["granted", "denied", "unknown"],
            "value_json.accessDecision",
            ["key", "status", "time"]
        )
        if configuration.credentials == .no {
            remove("tag", "tag")
        } else {
            // No entity: each tap with an identifier is a scanned tag.
            components.append(
                .init(
                    "tag",
                    .object([
                        .init("platform", .string("tag")), .init("topic", .string(configuration.topic("credential"))),
                        .init("value_template", .string("{{ value_json.id | default('') }}")),
                    ])
                )
            )
        }
        if configuration.sightings {
            add(
                "closest",
                "sensor",
                "Closest reader",
                topic(.sightings),
                [("value_template", .string("{{ (value_json.readers | first).id if value_json.readers else '' }}"))]
            )
        } else {
            remove("closest", "sensor")
        }
        return [
            .init(
                "device",
                .object([
                    .init("identifiers", .array([.string(id)])), .init("name", .string("badged \(configuration.name)")),
                    .init("sw_version", .string(Version.current)), .init("model", .string("badged")),
                ])
            ),
            .init(
                "origin",
                .object([.init("name", .string("badged-mqtt")), .init("sw_version", .string(Version.current))])
            ),
            .init(
                "availability",
                .array([
                    .object([
                        .init("topic", .string(topic(.state))),
                        .init("value_template", .string("{{ value_json.state }}")),
                        .init("payload_available", .string("online")),
                        .init("payload_not_available", .string("offline")),
                    ])
                ])
            ), .init("components", .object(components)), .init("qos", .number("1")),
        ]
    }
}
