// SPDX-License-Identifier: GPL-3.0-or-later
import Host
package import Text

/// The errors of a command: ACCESS_DENIED, BAD_STATE, INTERNAL_ERROR, INVALID, UNKNOWN_COMMAND.
package enum Refusal {
    struct AccessDenied: RefusalMessage {
        static let name: StaticString = "ACCESS_DENIED"
        let error: String
        /// The permissions that the command needs and the client has not, and those that it has.
        let missing: [String]
        let granted: [String]

        func write(to object: inout JSONWriter, _ level: APILevel) {
            object.member("error", error)
            object.member("missing", missing)
            object.member("granted", granted)
        }
    }
    struct BadState: RefusalMessage {
        static let name: StaticString = "BAD_STATE"
        let error: String
    }
    package struct InternalError: RefusalMessage {
        package static let name: StaticString = "INTERNAL_ERROR"
        package let error: String
    }
    struct Invalid: RefusalMessage {
        static let name: StaticString = "INVALID"
        let error: String
    }
    struct UnknownCommand: RefusalMessage {
        static let name: StaticString = "UNKNOWN_COMMAND"
        let error: String
    }
}

/// A message with only an `error`.
package protocol RefusalMessage: Message {
    var error: String { get }
}

extension RefusalMessage {
    package func write(to object: inout JSONWriter, _ level: APILevel) { object.member("error", error) }
}

struct APILevelMessage: Message {
    static let name: StaticString = "API_LEVEL"
    let current: APILevel
    /// Whether the message lists the supported levels, as the answer to GET_API_LEVEL does.
    var listsAvailable = false
    var error: Phrase?

    func write(to object: inout JSONWriter, _ level: APILevel) {
        if let error { object.member("error", error) }
        if listsAvailable { object.member("available", APILevel.allCases.map(\.rawValue)) }
        object.member("current", current.rawValue)
    }
}

struct InfoMessage: Message {
    static let name: StaticString = "INFO"
    let info: ServerInfo
    /// What the client may do, in the words of `[access]`.
    let permissions: [String]

    func write(to object: inout JSONWriter, _ level: APILevel) {
        object.object("VersionInfo") { version in
            for field in info.versionFields { version.member(field.key, field.value) }
        }
        object.member("AusweisApp", "UNKNOWN")
        object.object("badged") { badged in
            badged.member("protocol", ServerInfo.protocolVersion)
            badged.member("drivers", info.drivers)
            badged.member("scanners", info.scanners)
            badged.member("permissions", permissions)
        }
    }
}

struct StatusMessage: Message {
    static let name: StaticString = "STATUS"
    let workflow: String?
    let progress: Int?
    let state: String?
    var details: [JSON.Member] = []

    func write(to object: inout JSONWriter, _ level: APILevel) {
        object.member("workflow", workflow)
        object.member("progress", progress)
        object.member("state", state)
        for member in details {
            object.key(member.key)
            object.value(member.value)
        }
    }
}

struct HealthMessage: Message {
    static let name: StaticString = "HEALTH"
    let checks: [HealthCheck]

    func write(to object: inout JSONWriter, _ level: APILevel) {
        object.array("checks", checks) { array, check in
            array.object { object in
                object.member("name", check.name)
                object.member("ok", check.ok)
                if check.isUnknown { object.member("unknown", true) }
                if check.isOptional { object.member("optional", true) }
                if let cause = check.cause { object.member("cause", cause) }
                if let advice = check.advice { object.member("advice", advice) }
                if let errorAgo = check.errorAgo { object.member("errorAgo", errorAgo) }
                for fact in check.facts {
                    object.key(fact.name)
                    switch fact.value {
                    case .text(let text): object.string(text)
                    case .number(let number): object.int(number)
                    }
                }
            }
        }
    }
}

/// METRICS: what badged has counted since its start, and measures now.
struct MetricsMessage: Message {
    static let name: StaticString = "METRICS"
    let metrics: [Metric]

    func write(to object: inout JSONWriter, _ level: APILevel) {
        object.array("metrics", metrics) { array, metric in
            array.object { object in
                object.member("name", metric.name)
                object.member("type", metric.kind.rawValue)
                object.member("help", metric.help)
                object.array("samples", metric.samples) { array, sample in
                    array.object { Self.write(sample, to: &$0) }
                }
            }
        }
    }

    private static func write(_ sample: Metric.Sample, to object: inout JSONWriter) {
        if !sample.labels.isEmpty {
            object.object("labels") { object in
                for label in sample.labels {
                    object.key(label.name)
                    object.string(label.value)
                }
            }
        }
        switch sample.value {
        case .whole(let number): object.member("value", number)
        case .real(let number): object.member("value", JSON.number(String(number)))
        case .histogram(let histogram):
            object.array("buckets", Array(zip(histogram.limits, histogram.cumulative))) { array, bucket in
                array.object {
                    $0.member("le", JSON.number(String(bucket.0)))
                    $0.member("count", bucket.1)
                }
            }
            object.member("sum", JSON.number(String(histogram.sum)))
            object.member("count", histogram.count)
        }
    }
}
