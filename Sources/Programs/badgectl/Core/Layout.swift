// SPDX-License-Identifier: GPL-3.0-or-later
import Glibc
import Text

/// The form of texts: lines of at most 80 columns, and what the terminal can show.
enum Layout {
    static let columns = isatty(STDOUT_FILENO) == 1 ? min(mostColumns, width(of: STDOUT_FILENO)) : mostColumns
    private static let mostColumns = 80

    /// Breaks the lines of a text that are longer than `columns`. `indentation` begins each further line; nil: the
    /// indentation of the line, or the second column of a row, so that a row that is broken again stays one.
    ///
    /// Foreign text must not begin a line where labels stand. So each kind of blank counts as one, and where further
    /// lines are indented, a word that is too long is broken. Elsewhere an address stays whole, so it can be copied.
    static func wrapped(_ text: String, columns: Int = columns, indentation: String? = nil) -> String {
        // Scalars, since a character may have any number of combining marks.
        text.unicodeScalars.split(separator: "\n", omittingEmptySubsequences: false).map { line in
            width(of: line) <= columns ? String(line) : broken(line, columns, indentation)
        }.joined(separator: "\n")
    }

    private static func broken(
        _ line: Substring.UnicodeScalarView,
        _ columns: Int,
        _ indentation: String?
    ) -> String {
        let half = columns / 2
        let margin = line.prefix { $0 == " " }
        let label = indentation == nil ? label(of: line) ?? margin : margin
        let start = indentation ?? String(repeating: " ", count: min(width(of: label), half))
        // A label that leaves no room is broken as a text is.
        let head = width(of: label) <= half ? label : margin.prefix(half)
        let breaksWords = indentation != nil || !start.isEmpty
        var rows: [String] = []
        var row = String(head)
        var room = columns - width(of: head)
        var isEmpty = true
        func endRow() {
            rows.append(row)
            row = start
            room = columns - start.count
            isEmpty = true
        }
        for word in line[head.endIndex...].split(whereSeparator: \.properties.isWhitespace) {
            var rest = word
            var size = width(of: word)
            if !isEmpty {
                if size < room {
                    row += " "
                    room -= 1
                } else {
                    endRow()
                }
            }
            while breaksWords, size > room {
                let part = beginning(of: rest, max(room, longestScalar))
                row.unicodeScalars.append(contentsOf: part)
                rest = rest[part.endIndex...]
                size -= width(of: part)
                endRow()
            }
            row.unicodeScalars.append(contentsOf: rest)
            room -= size
            isEmpty = false
        }
        return (rows + [row]).joined(separator: "\n")
    }

    /// The first column of a row: what stands before the first text that follows two blanks; nil: the line is no row.
    private static func label(of line: Substring.UnicodeScalarView) -> Substring.UnicodeScalarView? {
        var blanks = 0
        for index in line.indices.drop(while: { line[$0] == " " }) {
            if line[index] != " ", blanks > 1 { return line[..<index] }
            blanks = line[index] == " " ? blanks + 1 : 0
        }
        return nil
    }

    /// What of a word has room in `columns`.
    private static func beginning(
        of word: Substring.UnicodeScalarView,
        _ columns: Int
    ) -> Substring.UnicodeScalarView {
        var left = columns
        let end = word.indices.first { index in
            left -= width(of: word[index])
            return left < 0
        }
        return word[..<(end ?? word.endIndex)]
    }

    /// A row of a table: the label, and each line of the text from the column `left` on.
    static func row(_ label: String, _ text: String, at left: Int) -> String {
        let lines = wrapped(text, columns: max(20, columns - left), indentation: "").unicodeScalars
            .split(separator: "\n", omittingEmptySubsequences: false).map { String($0) }
        let space = String(repeating: " ", count: max(0, left - width(of: label.unicodeScalars)))
        return label + space + lines.joined(separator: "\n" + String(repeating: " ", count: left))
    }

    /// The columns that a text takes on a terminal.
    static func width(of scalars: some Sequence<Unicode.Scalar>) -> Int { scalars.reduce(0) { $0 + width(of: $1) } }

    /// The columns of a scalar. In doubt it has two: a line that is counted too short would go over the edge.
    private static func width(of scalar: Unicode.Scalar) -> Int {
        if scalar == "\t" { return longestScalar }
        guard scalar.value >= 0x300 else { return 1 }
        if [.nonspacingMark, .enclosingMark].contains(scalar.properties.generalCategory) { return 0 }
        // The first scalars of Hangul and of emoji, and the blocks with which signals are drawn.
        let isNarrow = scalar.value < 0x1100 || narrow.contains { $0.contains(scalar.value) }
        return isNarrow ? 1 : 2
    }

    private static let narrow: [Range<UInt32>] = [0x1160..<0x231A, 0x2500..<0x25FD]
    private static let longestScalar = 8

    /// The text as it is written to `descriptor`: wrapped for a terminal, unchanged for a file or another program.
    static func wrapped(_ text: String, for descriptor: Int32) -> String {
        guard isatty(descriptor) == 1 else { return text }
        return wrapped(text, columns: width(of: descriptor))
    }

    /// The columns of a terminal.
    static func width(of descriptor: Int32) -> Int {
        var size = winsize()
        guard ioctl(descriptor, UInt(TIOCGWINSZ), &size) == 0, size.ws_col > 0 else { return mostColumns }
        return max(20, Int(size.ws_col))
    }

    /// The lines of a terminal.
    static func height(of descriptor: Int32) -> Int {
        var size = winsize()
        return ioctl(descriptor, UInt(TIOCGWINSZ), &size) == 0 && size.ws_row > 0 ? Int(size.ws_row) : 24
    }

    /// Whether the terminal or the language of the user has nothing but ASCII: `TERM=dumb`, `LC_ALL=C`.
    static let isPlain: Bool = {
        func value(_ name: String) -> String? {
            guard let text = getenv(name), text[0] != 0 else { return nil }
            return String(cString: text)
        }
        let locale = (value("LC_ALL") ?? value("LC_CTYPE") ?? value("LANG") ?? "").lowercased()
        return value("TERM") == "dumb" || !(locale.contains("utf-8") || locale.contains("utf8"))
    }()

    /// Whether standard output is a terminal that can be cleared.
    static let canClear = isatty(STDOUT_FILENO) == 1 && getenv("TERM") != nil && !isPlain
}

extension String {
    /// The text as the beginning of a sentence.
    var asSentence: String { prefix(1).uppercased() + dropFirst() }

    /// The text, a sentence, behind a colon: in English it begins in lower case. In other languages it stays as it is,
    /// because it may begin with a noun. `source` is the English one.
    func asClause(of source: String) -> String { self == source ? prefix(1).lowercased() + dropFirst() : self }
}
