// SPDX-License-Identifier: GPL-3.0-or-later
import Concurrency
package import ISO7816

/// Lends cards to other devices. A reader belongs to one of them or to one workflow, never to both.
extension ReaderRegistry {
    /// Whether an owner could use the card in a reader now.
    package func hasCard(in name: String, for owner: ObjectIdentifier) -> Bool {
        guard let reader = self[name], reader.insertion != nil, reader.showsCard else { return false }
        return reader.owner == nil || reader.owner == owner
    }

    /// Lends the card in a reader.
    /// - Throws: `CardError.exclusive` if a workflow or another owner has the reader, `.removed` if there is no card.
    package func lend(_ name: String, to owner: ObjectIdentifier) async throws(CardError) -> CardLease {
        guard let reader = self[name], let insertion = reader.insertion else { throw .removed }
        guard reader.owner == nil, claim(reader, for: owner) else { throw .exclusive }
        do throws(CardError) {
            return try await CardLease(reader, insertion, self)
        } catch {
            release(reader)
            throw error
        }
    }
}
