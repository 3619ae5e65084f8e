// SPDX-License-Identifier: GPL-3.0-or-later
import Server
package import Text

extension JSON: CustomStringConvertible {
    /// The compact JSON text.
    package var description: String { String(decoding: bytes, as: UTF8.self) }
}

extension JSON: ExpressibleByStringInterpolation {
    /// Parses JSON text. Invalid JSON becomes a value that is unequal to every message.
    package init(stringLiteral text: String) {
        self = (try? JSON(text.utf8)) ?? .string("not JSON: " + text)
    }
}
