// SPDX-License-Identifier: GPL-3.0-or-later
import Glibc
import Server
import Text

/// The figures of one run, compared with their limits and the baseline.
struct Report {
    struct Figure {
        var row: Row
        var value: Double
        var note: String
        /// In place of the limit of the row.
        var limit: Double?
    }

    private(set) var figures: [Figure] = []
    private let only: Set<String>

    init(only: Set<String>) { self.only = only }

    /// Adds a figure. `limit` is for a limit that is measured in the same run.
    mutating func add(_ row: Row, _ value: Double, _ note: String, limit: Double? = nil) {
        figures.append(Figure(row: row, value: value, note: note, limit: limit ?? row.facts.limit))
    }

    /// Whether one of the rows is to be measured.
    func wants(_ rows: Row...) -> Bool {
        only.isEmpty || rows.contains { only.contains($0.rawValue) }
    }

    var values: [Row: Double] { Dictionary(figures.map { ($0.row, $0.value) }) { $1 } }

    /// The ratio of a row to its floor; nil without a floor. Times are compared in µs, a rate by its time of one event.
    private static func ratio(_ row: Row, in values: [Row: Double]) -> Double? {
        func microseconds(_ row: Row) -> Double? {
            guard let value = values[row], value > 0 else { return nil }
            return switch row.facts.unit {
            case "ms": value * 1000
            case "/s": 1_000_000 / value
            default: value
            }
        }
        guard let floor = row.facts.floor, let time = microseconds(row), let unit = microseconds(floor) else {
            return nil
        }
        return time / unit
    }

    /// Prints the table.
    /// - Returns: the failures, one line each.
    func print(against baseline: Baseline?) -> [String] {
        var failures: [String] = []
        var table = [["what", "now", "to floor", "at most", "to baseline", "note"]]
        let values = values
        for figure in figures.sorted(by: { order($0.row) < order($1.row) }) {
            let (row, facts) = (figure.row, figure.row.facts)
            guard only.isEmpty || only.contains(row.rawValue) else { continue }
            let toFloor = Self.ratio(row, in: values)
            var line = [facts.title, "\(text(figure.value, facts.digits)) \(facts.unit)", "", "", "", figure.note]
            let floor = facts.floor.map { values[$0] ?? .nan }
            guard figure.value.isFinite, floor.map({ $0.isFinite && $0 > 0 }) ?? true else {
                line[3] = "!"
                failures.append("\(facts.title): it was not measured, or its floor was not")
                table.append(line)
                continue
            }
            if let toFloor { line[2] = "× \(text(toFloor, 2))" }
            if let limit = figure.limit, facts.floor == nil || toFloor != nil {
                let (judged, digits) = toFloor.map { ($0, 2) } ?? (figure.value, facts.digits)
                line[3] = toFloor == nil ? "\(short(limit, digits)) \(facts.unit)" : "× \(short(limit, digits))"
                if rounded(judged, digits) > rounded(limit, digits) {
                    line[3] += " !"
                    failures.append("\(facts.title): \(line[1]) \(line[2]) misses \(line[3])")
                }
            }
            if let noise = facts.noise, let baseline {
                let (now, before) =
                    facts.floor == nil
                    ? (figure.value, baseline.values[row]) : (toFloor ?? .nan, Self.ratio(row, in: baseline.values))
                if let before, before > 0, now.isFinite {
                    line[4] = "× \(text(now / before, 2))"
                    if now / before > noise {
                        line[4] += " !"
                        failures.append("\(facts.title): \(line[4]) of the baseline (noise: \(noise))")
                    }
                }
            }
            table.append(line)
        }
        write(table)
        return failures
    }

    /// Without digits after the point when they are 0.
    private func short(_ value: Double, _ digits: Int) -> String {
        text(value, value == value.rounded() ? 0 : digits)
    }

    /// Rounded to the digits that are shown.
    private func rounded(_ value: Double, _ digits: Int) -> Double {
        var scale = 1.0
        for _ in 0..<digits { scale *= 10 }
        return (value * scale).rounded() / scale
    }

    private func order(_ row: Row) -> Int { Row.allCases.firstIndex(of: row) ?? 0 }

    private func write(_ table: [[String]]) {
        let columns = table.first?.count ?? 0
        let widths = (0..<columns).map { column in table.map { $0[column].count }.max() ?? 0 }
        for (index, line) in table.enumerated() {
            let cells = line.enumerated().map { column, cell in
                cell + String(repeating: " ", count: column == columns - 1 ? 0 : widths[column] - cell.count)
            }
            Swift.print("| " + cells.joined(separator: " | ") + " |")
            guard index == 0 else { continue }
            Swift.print("|" + widths.map { String(repeating: "-", count: $0 + 2) }.joined(separator: "|") + "|")
        }
    }
}

/// The figures of an earlier run, Tests/Benchmarks/baseline.json.
struct Baseline {
    var machine: String
    var values: [Row: Double]

    init(machine: String, values: [Row: Double]) {
        (self.machine, self.values) = (machine, values)
    }

    /// Reads a baseline; nil when the file does not exist.
    init?(path: String) throws(BenchError) {
        guard access(path, R_OK) == 0 else { return nil }
        let bytes = try ProcessFigures.contents(path)
        guard let json = try? JSON(bytes), let machine = json["machine"]?.string, let rows = json["rows"]?.members
        else {
            throw BenchError("\(path) is not a baseline")
        }
        var values: [Row: Double] = [:]
        for member in rows {
            guard let row = Row(rawValue: member.key) else { continue }
            guard case .number(let text) = member.value, let value = Double(text) else {
                throw BenchError("\(path): \(member.key) is not a number")
            }
            values[row] = value
        }
        self.init(machine: machine, values: values)
    }

    /// Writes the baseline. Small values get more digits: with three, 0.0053 would be 6 % above itself.
    func write(to path: String) throws(BenchError) {
        var lines = ["{", "  \"machine\": \"\(machine)\",", "  \"rows\": {"]
        let rows = Row.allCases.compactMap { row in
            values[row].map { "    \"\(row.rawValue)\": \(text($0, abs($0) < 1 ? 6 : 3))" }
        }
        lines += [rows.joined(separator: ",\n"), "  }", "}", ""]
        let content = lines.joined(separator: "\n")
        let file = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0o644)
        guard file >= 0, Glibc.write(file, content, content.utf8.count) == content.utf8.count else {
            throw BenchError(call: path)
        }
        close(file)
    }

    /// Processor and number of cores of this machine.
    static func thisMachine() -> String {
        let lines = (try? ProcessFigures.lines("/proc/cpuinfo")) ?? []
        let model = lines.first { $0.hasPrefix("model name") }?.split(separator: ":").last ?? " unknown processor"
        return "\(model.drop { $0 == " " }), \(sysconf(Int32(_SC_NPROCESSORS_ONLN))) cores"
    }
}
