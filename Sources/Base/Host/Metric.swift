// SPDX-License-Identifier: GPL-3.0-or-later

/// One family of GET_METRICS: what badged has counted since its start, or measures now. docs/protocol.md, METRICS.
///
/// Values of labels are fixed words. No label has the name of a reader, an address, a user or a key.
package struct Metric: Sendable, Equatable {
    package enum Kind: String, Sendable { case counter, gauge, histogram }

    package struct Sample: Sendable, Equatable {
        package let labels: [Label]
        package let value: Value

        package init(_ value: Value, _ labels: [Label] = []) { (self.value, self.labels) = (value, labels) }
    }

    package struct Label: Sendable, Equatable {
        package let name: String
        package let value: String

        package init(_ name: String, _ value: String) { (self.name, self.value) = (name, value) }
    }

    package enum Value: Sendable, Equatable {
        case whole(Int)
        case real(Double)
        case histogram(Histogram)
    }

    /// With its unit at the end, and `_total` for a counter.
    package let name: String
    package let kind: Kind
    package let help: String
    package let samples: [Sample]

    package init(_ name: String, _ kind: Kind, _ help: String, _ samples: [Sample]) {
        self.name = name
        self.kind = kind
        self.help = help
        self.samples = samples
    }

    package static func gauge(_ name: String, _ help: String, _ value: Int) -> Metric {
        Metric(name, .gauge, help, [Sample(.whole(value))])
    }

    package static func counter(_ name: String, _ help: String, _ value: Int) -> Metric {
        Metric(name, .counter, help, [Sample(.whole(value))])
    }

    package static func gauge(_ name: String, _ help: String, by label: String, _ values: [String: Int]) -> Metric {
        let samples = values.sorted { $0.key < $1.key }.map { Sample(.whole($1), [Label(label, $0)]) }
        return Metric(name, .gauge, help, samples)
    }
}

/// A counter with labels.
package struct LabelledCounter: Sendable {
    private let name: String
    private let help: String
    private let labels: [String]
    private var counts: [[String]: Int] = [:]

    package init(_ name: String, _ help: String, by labels: String...) {
        self.name = name
        self.help = help
        self.labels = labels
    }

    /// `values` has one word for each label.
    package mutating func add(_ values: String...) { counts[values, default: 0] += 1 }

    package var metric: Metric {
        let samples = counts.sorted { $0.key.lexicographicallyPrecedes($1.key) }.map { values, count in
            Metric.Sample(.whole(count), zip(labels, values).map(Metric.Label.init))
        }
        return Metric(name, .counter, help, samples)
    }
}

/// Counts values by size.
package struct Histogram: Sendable, Equatable {
    /// The upper limits, ascending.
    package let limits: [Double]
    /// The values up to each limit, and larger ones at the end.
    private var counts: [Int]
    package private(set) var sum = 0.0

    package init(_ limits: Double...) { (self.limits, counts) = (limits, Array(repeating: 0, count: limits.count + 1)) }

    package mutating func add(_ value: Double) {
        counts[limits.firstIndex { value <= $0 } ?? limits.count] += 1
        sum += value
    }

    package var count: Int { counts.reduce(0, +) }

    /// The number of values up to each limit.
    package var cumulative: [Int] {
        var sum = 0
        return limits.indices.map {
            sum += counts[$0]
            return sum
        }
    }
}
