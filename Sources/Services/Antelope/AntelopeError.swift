// SPDX-License-Identifier: GPL-3.0-or-later

/// What is wrong with a value, an ABI or packed bytes. The text is for people and names the place of the fault.
package struct AntelopeError: Error, Sendable, Equatable {
    package let text: String

    package init(_ text: String) { self.text = text }

    /// The same error, at a place inside of something else.
    func at(_ place: String) -> AntelopeError { AntelopeError("\(place): \(text)") }
}
