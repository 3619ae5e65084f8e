// SPDX-License-Identifier: GPL-3.0-or-later
import Concurrency
package import ISO7816
import Text

/// Lends cards to other devices. A reader belongs to one of them, to one workflow or to one reading.
extension ReaderRegistry {
    /// Whether an owner could use the card in a reader now.
    package func hasCard(in name: String, for owner: ObjectIdentifier) -> Bool {
        guard let reader = self[name], reader.insertion != nil, reader.showsCard else { return false }
        return !reader.isLent || reader.owner == owner
    }

    /// Lends the card in a reader to another device, whose name INSERT_CARD shows to other clients.
    /// - Throws: `CardError.exclusive` if a workflow, another owner or another program has the card, `.removed` if there
    ///   is no card.
    package func lend(_ name: String, to owner: ObjectIdentifier, called device: String) async throws(CardError)
        -> CardLease
    {
        while let reader = self[name], reader.isRead, !reader.isHindered, !Task.isCancelled { await nextChange() }
        guard let reader = self[name], let insertion = reader.insertion, reader.showsCard else { throw .removed }
        guard !reader.isHindered, reader.owner == nil, claim(reader, for: owner) else { throw .exclusive }
        reader.borrower = device
        let attempt = Task { @Loop in
            await Result { () async throws(CardError) in try await CardLease(reader, insertion, self) }
        }
        // The other device gets an answer while another program holds the card.
        let watch = Task { @Loop in
            while !reader.isHindered, !Task.isCancelled { await nextChange() }
            attempt.cancel()
        }
        let result = await attempt.cancellableValue
        watch.cancel()
        if case .success(let lease) = result { return lease }
        release(reader)
        guard case .failure(.cancelled) = result, reader.isHindered, !Task.isCancelled else { return try result.get() }
        throw .exclusive
    }
}
