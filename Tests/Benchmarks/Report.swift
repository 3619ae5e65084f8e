// SPDX-License-Identifier: GPL-3.0-or-later
import Glibc
import Text
import Wire

/// The figures of one run, their limits and their baseline.
struct Report {
    struct Figure {
        var row: Row
        var value: Double
        var note: String
        /// In place of the row's own.
        var limit: Double?
    }

    private(set) var figures: [Figure] = []
    private let only: Set<String>

    init(only: Set<String>) { self.only = only }

    /// The limit is that of the row, unless another one is given, such as a figure of the same run.
    mutating func add(_ row: Row, _ value: Double, _ note: String, limit: Double? = nil) {
        guard only.isEmpty || only.contains(row.rawValue) else { return }
        figures.append(Figure(row: row, value: value, note: note, limit: limit ?? row.limit))
    }

    func wants(_ rows: Row...) -> Bool {
        only.isEmpty || rows.contains { only.contains($0.rawValue) }
    }

    /// Prints the table.
    /// - Returns: what is too bad, one line each.
    func print(against baseline: Baseline?) -> [String] {
        let isSameMachine = baseline?.machine == Baseline.thisMachine()
        var failures: [String] = []
        var table = [["what", "peer", "ours at most", "ours now", "to baseline", "note"]]
        for figure in figures.sorted(by: { order($0.row) < order($1.row) }) {
            let row = figure.row
            var line = [row.title, row.peer.isEmpty ? "" : "\(row.peer) \(row.unit)"]
            line.append(figure.limit.map { "\(row.isBetterWhenLarge ? "≥ " : "")\(limit($0, row)) \(row.unit)" } ?? "")
            line.append("\(text(figure.value, row.digits)) \(row.unit)")
            var ratio = ""
            if let limit = figure.limit, !meets(row, figure.value, limit) {
                line[3] += " !"
                failures.append("\(row.title): \(text(figure.value, row.digits)) \(row.unit) misses \(line[2])")
            }
            if let old = baseline?.values[row], old > 0, max(old, figure.value) > row.negligible {
                let factor = row.isBetterWhenLarge ? old / figure.value : figure.value / old
                ratio = "× \(text(factor, 2))"
                if factor > row.noise, isSameMachine {
                    ratio += " !"
                    let factor = text(factor, 2)
                    failures.append("\(row.title): \(factor) times worse than the baseline (noise: \(row.noise))")
                }
            }
            table.append(line + [ratio, figure.note])
        }
        write(table)
        if let baseline, !isSameMachine {
            Swift.print("The baseline is of another machine (\(baseline.machine)): ratios shown, not judged.")
        }
        return failures
    }

    /// Whole where it can be.
    private func limit(_ value: Double, _ row: Row) -> String {
        text(value, value == value.rounded() ? 0 : row.digits)
    }

    /// What the last digit shown says.
    private func meets(_ row: Row, _ value: Double, _ limit: Double) -> Bool {
        var scale = 1.0
        for _ in 0..<row.digits { scale *= 10 }
        let shown = (value * scale).rounded() / scale
        return row.isBetterWhenLarge ? shown >= limit : shown <= limit
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

/// Figures of an earlier run, Tests/Benchmarks/baseline.json.
struct Baseline {
    var machine: String
    var values: [Row: Double]

    init(machine: String, values: [Row: Double]) {
        (self.machine, self.values) = (machine, values)
    }

    /// nil when there is no such file.
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

    /// Keeps rows that this run did not measure. Small values get more digits: by three, 0.0053 would be 6 % above itself.
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

    /// Processor and number of cores.
    static func thisMachine() -> String {
        let lines = (try? ProcessFigures.lines("/proc/cpuinfo")) ?? []
        let model = lines.first { $0.hasPrefix("model name") }?.split(separator: ":").last ?? " unknown processor"
        return "\(model.drop { $0 == " " }), \(sysconf(Int32(_SC_NPROCESSORS_ONLN))) cores"
    }
}
