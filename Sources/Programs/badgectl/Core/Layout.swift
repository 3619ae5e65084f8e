// SPDX-License-Identifier: GPL-3.0-or-later
import Glibc
import Text

/// The form of texts: lines of at most 80 columns, and what the terminal can show.
enum Layout {
    static let columns = 80

    /// Breaks the lines of a text that are longer than `columns`, between words. `indentation` begins each further
    /// line; nil: the indentation of the line.
    static func wrapped(_ text: String, columns: Int = columns, indentation: String? = nil) -> String {
        // What cannot be compared cannot be split at blanks.
        guard text.isComparable else { return text }
        return text.split(separator: "\n", omittingEmptySubsequences: false).map { line -> String in
            guard line.count > columns else { return String(line) }
            let start = indentation ?? String(line.prefix { $0 == " " })
            var (rows, row) = ([String](), String(line.prefix { $0 == " " }))
            var isEmpty = true
            for word in line.split(separator: " ") {
                if !isEmpty, row.count + 1 + word.count > columns {
                    rows.append(row)
                    row = start
                    isEmpty = true
                }
                row += (isEmpty ? "" : " ") + word
                isEmpty = false
            }
            return (rows + [row]).joined(separator: "\n")
        }.joined(separator: "\n")
    }

    /// The text as it is written to `descriptor`: wrapped for a terminal, unchanged for a file or another program.
    static func wrapped(_ text: String, for descriptor: Int32) -> String {
        guard isatty(descriptor) == 1 else { return text }
        return wrapped(text, columns: width(of: descriptor))
    }

    /// The columns of a terminal.
    static func width(of descriptor: Int32) -> Int {
        var size = winsize()
        guard ioctl(descriptor, UInt(TIOCGWINSZ), &size) == 0, size.ws_col > 0 else { return columns }
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
