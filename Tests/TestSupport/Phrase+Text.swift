// SPDX-License-Identifier: GPL-3.0-or-later
package import Text

/// Looks into the English text of a phrase.
extension Phrase {
    package func contains(_ text: String) -> Bool { description.contains(text) }
    package func hasPrefix(_ text: String) -> Bool { description.hasPrefix(text) }
    package func hasSuffix(_ text: String) -> Bool { description.hasSuffix(text) }
}
