// SPDX-License-Identifier: GPL-3.0-or-later
package import Text
import Wire

extension JSON: CustomStringConvertible {
    /// Compact text, as it was sent.
    package var description: String { String(decoding: bytes, as: UTF8.self) }
}

extension JSON: ExpressibleByStringInterpolation {
    /// JSON text, not a JSON string; what is no JSON compares unequal to every message.
    package init(stringLiteral text: String) {
        self = (try? JSON(text.utf8)) ?? .string("not JSON: " + text)
    }
}
