// SPDX-License-Identifier: GPL-3.0-or-later
package import Text

/// The description of a new virtual card, as the backend has parsed it from SET_CARD.
package protocol CardDescription: Sendable {}

/// A backend whose readers take cards by command: SET_CARD. docs/protocol/readers.md, Virtual reader.
package protocol VirtualReaderBackend: ReaderBackend {
    /// Parses the objects `simulator` and `card` of SET_CARD.
    /// - Throws: `VirtualReaderError.invalid`, which names the entry and what is wrong with it.
    func describe(simulator: JSON?, card: JSON?) throws(VirtualReaderError) -> any CardDescription

    /// Inserts the card of `reader`. With a description, a new card replaces it first.
    /// - Throws: `VirtualReaderError`; then nothing has changed.
    func insert(_ description: (any CardDescription)?, into reader: String) async throws(VirtualReaderError)

    /// Removes the card from the reader. The card keeps its state for the next insertion.
    func removeCard(from reader: String) async
}

package enum VirtualReaderError: Error, Sendable, Equatable {
    case unknownReader
    /// A card is in the reader already; the command is ignored.
    case occupied
    /// The description is wrong; the text has the entry and the fault.
    case invalid(String)
}
