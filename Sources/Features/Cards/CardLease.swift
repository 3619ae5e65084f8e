// SPDX-License-Identifier: GPL-3.0-or-later
package import Concurrency
package import ISO7816
package import Readers
package import Server
import Text

/// Lends a card to a workflow, another device or a reading: one insertion, one connection, one owner.
@Loop package final class CardLease {
    package let reader: Reader
    package let insertion: Insertion
    package let connection: any CardConnection
    /// Whether the card loses its power for a moment at the end. A phone that goes on over another radio keeps it.
    package var resetsAtEnd = true
    private let registry: ReaderRegistry

    /// Lends a connection. The reader must have been claimed for its owner.
    init(_ reader: Reader, _ insertion: Insertion, _ connection: any CardConnection, _ registry: ReaderRegistry) {
        self.reader = reader
        self.insertion = insertion
        self.connection = connection
        self.registry = registry
    }

    /// Connects to the card. The reader must have been claimed for its owner.
    convenience init(_ reader: Reader, _ insertion: Insertion, _ registry: ReaderRegistry) async throws(CardError) {
        self.init(reader, insertion, try await reader.backend.connect(insertion), registry)
        registry.unhinder(reader, insertion)
    }

    /// Whether the card is still in its reader.
    package var isCurrent: Bool { reader.insertion == insertion }

    /// The answer to reset of the card, as in ISO 7816-3 or PC/SC part 3.
    package var answerToReset: [UInt8] { isCurrent ? reader.answerToReset : [] }

    /// Returns when the card is removed or the task is cancelled.
    package func cardLeaves() async {
        while isCurrent, !Task.isCancelled { await registry.nextChange() }
    }

    /// The reader as the client of a session sees it.
    package func readerState(for session: Session) -> ReaderState { registry.state(reader.name, for: session) }

    /// Reports new properties of the card to clients.
    package func update(_ profile: any CardProfile) { registry.update(reader, insertion, profile) }

    /// Resets the card, if `resetsAtEnd`, and releases it. With `removingVirtualCard` a virtual card is also removed from its reader.
    package func release(removingVirtualCard: Bool) async {
        await connection.disconnect(reset: resetsAtEnd)
        if removingVirtualCard { await registry.removeVirtualCard(from: reader, insertion) }
        registry.release(reader)
    }
}

/// Lends cards to other devices. A reader belongs to one of them, to one workflow or to one reading.
extension ReaderRegistry {
    /// Whether an owner could use the card in a reader now.
    package func hasCard(in name: String, for owner: ObjectIdentifier) -> Bool {
        guard let reader = self[name], shownCard(in: name) != nil else { return false }
        return !reader.isLent || reader.owner == owner
    }

    /// The card that clients see in a reader, also one that somebody uses.
    package func shownCard(in name: String) -> Insertion? {
        guard let reader = self[name], reader.showsCard else { return nil }
        return reader.insertion
    }

    /// Lends the card in a reader to another device, whose name INSERT_CARD shows to other clients.
    /// - Throws: `CardError.exclusive` if a workflow, another owner or another program has the card, or a workflow is
    ///   about to take it; `.removed` if there is no card.
    package func lend(_ name: String, to owner: ObjectIdentifier, called device: String) async throws(CardError)
        -> CardLease
    {
        while let reader = self[name], reader.isRead, !reader.isHindered, !Task.isCancelled { await nextChange() }
        guard let reader = self[name], let insertion = reader.insertion, reader.showsCard else { throw .removed }
        guard !reader.isHindered, reader.owner == nil, isFirst(makePlace(), for: reader), claim(reader, for: owner)
        else { throw .exclusive }
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
