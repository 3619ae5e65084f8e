// SPDX-License-Identifier: Apache-2.0
import Text

/// What badged has counted since its start, and measures now: METRICS.
public struct MetricsReport: ServerMessage, NamedMessage {
    static let names = ["METRICS"]

    public var families: [MetricFamily]

    init(_ json: JSON) throws(Malformed) {
        families = try json.required("metrics", as: \.array).compactMap(MetricFamily.init)
    }
}

/// One family of METRICS.
public struct MetricFamily: Sendable, Equatable {
    /// Such as `badged_clients`; a counter ends with `_total`.
    public var name: String
    /// `counter`, `gauge` or `histogram`.
    public var type: String
    public var help: String
    public var samples: [Sample]

    public init(name: String, type: String, help: String, samples: [Sample]) {
        self.name = name
        self.type = type
        self.help = help
        self.samples = samples
    }

    /// A value with its labels.
    public struct Sample: Sendable, Equatable {
        public var labels: [Label]
        public var value: Value

        public init(_ value: Value, _ labels: [Label] = []) { (self.value, self.labels) = (value, labels) }
    }

    public struct Label: Sendable, Equatable {
        public var name: String
        public var value: String

        public init(_ name: String, _ value: String) { (self.name, self.value) = (name, value) }
    }

    /// Numbers are in the notation in which badged has sent them.
    public enum Value: Sendable, Equatable {
        case number(String)
        /// The number of values up to each limit, the sum of all values, and their number.
        case histogram(buckets: [Bucket], sum: String, count: String)
    }

    public struct Bucket: Sendable, Equatable {
        public var limit: String
        public var count: String
    }
}

extension MetricFamily {
    init?(_ json: JSON) {
        guard let name = json["name"]?.string, let type = json["type"]?.string else { return nil }
        self.name = name
        self.type = type
        help = json["help"]?.string ?? ""
        samples = (json["samples"]?.array ?? []).compactMap(Sample.init)
    }
}

extension MetricFamily.Sample {
    init?(_ json: JSON) {
        let labels = (json["labels"]?.members ?? []).compactMap { member in
            member.value.string.map { MetricFamily.Label(member.key, $0) }
        }
        if let value = json["value"]?.numberText {
            self.init(.number(value), labels)
        } else if let sum = json["sum"]?.numberText, let count = json["count"]?.numberText {
            let buckets = (json["buckets"]?.array ?? []).compactMap { bucket in
                bucket["le"]?.numberText.flatMap { limit in
                    bucket["count"]?.numberText.map { MetricFamily.Bucket(limit: limit, count: $0) }
                }
            }
            self.init(.histogram(buckets: buckets, sum: sum, count: count), labels)
        } else {
            return nil
        }
    }
}

extension JSON {
    fileprivate var numberText: String? { if case .number(let text) = self { text } else { nil } }
}

extension DaemonConnection {
    /// GET_METRICS.
    public func metrics() async throws(ClientError) -> [MetricFamily] {
        let report: MetricsReport = try await ask("GET_METRICS")
        return report.families
    }
}
