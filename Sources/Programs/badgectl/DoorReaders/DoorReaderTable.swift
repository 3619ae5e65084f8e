// SPDX-License-Identifier: GPL-3.0-or-later
import BadgedClient
import Glibc
import Host
import Text

/// Formats door readers as lines, the strongest first. On a terminal a line that is too long is continued in the next
/// one.
enum DoorReaderTable {
    /// `history` shows the last 30 s before `now` instead of a bar.
    static func lines(
        _ readers: some Sequence<DoorReader>,
        history: (SignalHistory, now: Int64)? = nil
    ) -> [String] {
        let sorted = readers.sorted {
            ($0.isActive ? 0 : 1, -$0.level, $0.id) < ($1.isActive ? 0 : 1, -$1.level, $1.id)
        }
        guard !sorted.isEmpty else { return [tr("no door reader")] }
        let names = sorted.map { ($0.name ?? $0.beacon?.description).map { "\($0.printable)  " } ?? "" }
        let columns = isatty(STDOUT_FILENO) == 1 ? Layout.width(of: STDOUT_FILENO) : Int.max
        let (idWidth, nameWidth) = (width(sorted.map(\.id.printable)), width(names))
        return zip(sorted, names).map { reader, name in
            let strength = "\(Int(reader.level.rounded())) dBm"
            let near = reader.isActive ? reader.inRange.joined(separator: " ").printable : tr("lost")
            let line =
                (history.map { $0.0.line(of: reader.id, at: $0.now) } ?? bar(reader.level)) + " "
                + padded(strength, 8, isLeft: false) + "  "
                + padded(reader.id.printable, idWidth) + "  "
                + padded(name, nameWidth) + near
            let trimmed = String(line.reversed().drop { $0 == " " }.reversed())
            return Layout.wrapped(
                trimmed,
                columns: columns,
                indentation: String(repeating: " ", count: history == nil ? 13 : SignalHistory.lineLength + 1)
            )
        }
    }

    private static func width(_ texts: [String]) -> Int { texts.map(\.count).max() ?? 0 }

    private static func padded(_ text: String, _ width: Int, isLeft: Bool = true) -> String {
        let space = String(repeating: " ", count: max(0, width - text.count))
        return isLeft ? text + space : space + text
    }

    /// A bar of twelve characters for -100 to -40 dBm.
    static func bar(_ level: Double) -> String {
        let full = min(max(Int(((level + 100) / 5).rounded()), 0), 12)
        let (mark, space) = Layout.isPlain ? ("#", ".") : ("█", "·")
        return String(repeating: mark, count: full) + String(repeating: space, count: 12 - full)
    }
}
