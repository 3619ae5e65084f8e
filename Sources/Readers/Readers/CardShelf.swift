// SPDX-License-Identifier: GPL-3.0-or-later
package import Text

/// What a new virtual card is made of, as the backend has read it from SET_CARD.
package protocol CardDescription: Sendable {}

/// A backend whose readers take cards by command: SET_CARD. docs/protocol/readers.md, Virtual reader.
package protocol CardShelf: ReaderBackend {
    /// Reads the objects `simulator` and `card` of SET_CARD.
    /// - Throws: `CardShelfError.invalid`, which names the entry and what is wrong with it.
    func describe(simulator: JSON?, card: JSON?) throws(CardShelfError) -> any CardDescription

    /// Puts the shelved card of `reader` in. With a description a new card replaces it first.
    /// - Throws: `CardShelfError`; then nothing has changed.
    func insert(_ description: (any CardDescription)?, into reader: String) async throws(CardShelfError)

    /// Takes the card out. It keeps its state on the shelf.
    func shelve(reader: String) async
}

package enum CardShelfError: Error, Sendable, Equatable {
    case unknownReader
    /// A card is in the reader already; the command is ignored.
    case occupied
    /// Names the entry and what is wrong with it.
    case invalid(String)
}
