// SPDX-License-Identifier: Apache-2.0

/// What is wrong with bytes or text from outside: a message, an answer, a file, a value that a person has written.
///
/// The parsers throw it whose callers only report the words. A parser whose callers act on the reason has a type of its
/// own.
package struct Malformed: Error, Sendable, Equatable, CustomStringConvertible {
    /// Words for a person or the log, which name the place of the fault. They hold no secret.
    package let text: String

    package init(_ text: String) { self.text = text }

    package var description: String { text }

    /// The same fault, at a place inside of something else.
    package func at(_ place: String) -> Malformed { Malformed("\(place): \(text)") }

    /// Reads something inside of something else: a fault names the place.
    package static func at<Value: ~Copyable>(
        _ place: @autoclosure () -> String,
        _ read: () throws(Malformed) -> Value
    ) throws(Malformed) -> Value {
        try translating({ (error: Malformed) in error.at(place()) }, read)
    }
}
