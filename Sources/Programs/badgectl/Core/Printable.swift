// SPDX-License-Identifier: GPL-3.0-or-later
import Text

extension String {
    /// The text as one line for a terminal. Control characters, direction characters and line separators become
    /// `\u{HEX}`. So a name of a device cannot control the terminal, or forge or hide a line.
    var printable: String { escaped { _ in false } }

    /// As `printable`, but keeps line ends and tabs.
    var printableLines: String { escaped { $0 == "\n" || $0 == "\t" } }

    /// JSON without characters that could control a terminal: they are written as `\uXXXX`, which means the same. Others
    /// below U+0020 are never in a text of JSON.
    var printableJSON: String {
        guard unicodeScalars.contains(where: { $0.isControl && $0.value >= 0x7F }) else { return self }
        return unicodeScalars.reduce(into: "") { out, scalar in
            guard scalar.isControl, scalar.value >= 0x7F else { return out.unicodeScalars.append(scalar) }
            for unit in String(scalar).utf16 {
                let digits = String(unit, radix: 16)
                out += "\\u" + String(repeating: "0", count: 4 - digits.utf8.count) + digits
            }
        }
    }

    private func escaped(unless isKept: (Unicode.Scalar) -> Bool) -> String {
        guard unicodeScalars.contains(where: { $0.isControl && !isKept($0) }) else { return self }
        var out = ""
        for scalar in unicodeScalars {
            if scalar.isControl, !isKept(scalar) {
                out += "\\u{" + String(scalar.value, radix: 16) + "}"
            } else {
                out.unicodeScalars.append(scalar)
            }
        }
        return out
    }
}
