// SPDX-License-Identifier: GPL-3.0-or-later
import BadgedClient
import Text

/// Writes metrics for Prometheus.
enum MetricsText {
    enum Form: Sendable, Equatable {
        /// The text format 0.0.4.
        case prometheus
        /// OpenMetrics 1.0.
        case open

        var contentType: String {
            switch self {
            case .prometheus: "text/plain; version=0.0.4; charset=utf-8"
            case .open: "application/openmetrics-text; version=1.0.0; charset=utf-8"
            }
        }
    }

    /// What is written when badged does not answer.
    static let down = [up(0)]

    /// Whether badged answers.
    static func up(_ value: Int) -> MetricFamily {
        MetricFamily(
            name: "badged_up",
            type: "gauge",
            help: "Whether badged answers.",
            samples: [.init(.number(String(value)))]
        )
    }

    /// The checks of GET_HEALTH. Those of single devices are added up under their first word, as no label names a
    /// device.
    static func health(_ checks: [HealthCheck]) -> MetricFamily {
        var values: [String: Bool] = [:]
        for check in checks {
            let word = check.name.split(separator: " ").first.map(String.init) ?? check.name
            values[word] = (values[word] ?? true) && check.isOK
        }
        return MetricFamily(
            name: "badged_health_check_ok",
            type: "gauge",
            help: "Whether a check of badgectl health is good.",
            samples: values.sorted { $0.key < $1.key }.map {
                .init(.number($0.value ? "1" : "0"), [.init("check", $0.key)])
            }
        )
    }

    /// The whole text. Families without samples are left out.
    static func text(_ families: [MetricFamily], _ form: Form) -> String {
        var text = ""
        for family in families where !family.samples.isEmpty {
            // OpenMetrics names a counter without the suffix of its samples.
            let isCounter = family.type == "counter" && family.name.hasSuffix("_total")
            let name = escaped(form == .open && isCounter ? String(family.name.dropLast(6)) : family.name)
            text += "# HELP \(name) \(escaped(family.help, quotes: form == .open))\n"
            text += "# TYPE \(name) \(escaped(family.type))\n"
            for sample in family.samples { text += lines(escaped(family.name), sample) }
        }
        return form == .open ? text + "# EOF\n" : text
    }

    private static func lines(_ name: String, _ sample: MetricFamily.Sample) -> String {
        switch sample.value {
        case .number(let value): return "\(name)\(labels(sample.labels)) \(value)\n"
        case .histogram(let buckets, let sum, let count):
            var text = ""
            for bucket in buckets {
                text += "\(name)_bucket\(labels(sample.labels + [.init("le", bucket.limit)])) \(bucket.count)\n"
            }
            text += "\(name)_bucket\(labels(sample.labels + [.init("le", "+Inf")])) \(count)\n"
            return text + "\(name)_sum\(labels(sample.labels)) \(sum)\n\(name)_count\(labels(sample.labels)) \(count)\n"
        }
    }

    private static func labels(_ labels: [MetricFamily.Label]) -> String {
        guard !labels.isEmpty else { return "" }
        return "{" + labels.map { "\(escaped($0.name))=\"\(escaped($0.value, quotes: true))\"" }.joined(separator: ",")
            + "}"
    }

    /// The text with the escapes of both formats. Nothing in it controls a terminal.
    private static func escaped(_ text: String, quotes: Bool = false) -> String {
        var escaped = ""
        for scalar in text.unicodeScalars {
            switch scalar {
            case "\\": escaped += "\\\\"
            case "\n": escaped += "\\n"
            case "\"" where quotes: escaped += "\\\""
            case _ where scalar.isControl: escaped += "\u{FFFD}"
            default: escaped.unicodeScalars.append(scalar)
            }
        }
        return escaped
    }
}
