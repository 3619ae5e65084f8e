// SPDX-License-Identifier: GPL-3.0-or-later
import Text

extension String {
    /// The text as one line for a terminal. Control characters, direction characters and line separators become
    /// `\u{HEX}`. So a name of a device cannot control the terminal, or forge or hide a line.
    var printable: String { escaped { _ in false } }

    /// As `printable`, but keeps line ends and tabs.
    var printableLines: String { escaped { $0 == "\n" || $0 == "\t" } }

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
