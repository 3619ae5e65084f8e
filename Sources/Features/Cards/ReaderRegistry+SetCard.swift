// SPDX-License-Identifier: GPL-3.0-or-later
import Concurrency
package import Readers
import Server
package import Text

/// Cards of SET_CARD: a workflow brings its card into a virtual reader, when its turn comes.
extension ReaderRegistry {
    enum SupplyResult {
        case inserted
        /// A card is in the reader already; nothing has changed.
        case ignored
        /// Another workflow has the reader. The card is inserted when its turn comes.
        case postponed
    }

    /// Inserts a card into a virtual reader for a workflow, at whose end the card is taken out. A card that no workflow
    /// can use is removed first.
    /// `card` is nil for the reader's own card. Throws if the card cannot be made; then nothing has changed.
    func supply(
        _ card: (any CardDescription)?,
        into reader: Reader,
        for workflow: Workflow
    ) async throws(Malformed) -> SupplyResult {
        let owner = ObjectIdentifier(workflow)
        await removeUselessCard(from: reader)
        let supply = Supply(place: makePlace(for: workflow), owner: owner, card: card)
        if reader.isFree(for: owner) {
            // Before the insertion, because the card may be recognised before `insert` returns. Others wait from now on.
            reader.supplier = owner
            return try await insert(supply, into: reader, workflow) ? .inserted : .ignored
        }
        let isForOther = reader.supplier.map { $0 != owner } ?? (reader.isLent && reader.owner != owner)
        guard isForOther else { return .ignored }
        reader.supplies.removeAll { $0.owner == owner }
        reader.supplies.append(supply)
        updateDemand()
        return .postponed
    }

    private func removeUselessCard(from reader: Reader) async {
        guard let insertion = reader.insertion, !reader.isLent, reader.hasUselessCard else { return }
        await removeVirtualCard(from: reader, insertion)
    }

    /// Inserts a card for everybody into a virtual reader. Returns false if a card is in the reader already.
    package func insert(_ card: (any CardDescription)?, into reader: Reader) async throws(Malformed) -> Bool {
        await removeUselessCard(from: reader)
        return try await (reader.backend as? any VirtualReaderBackend)?.insert(card, into: reader.name) ?? false
    }

    /// Inserts a card into a reader that is free, and has its workflow as supplier already.
    private func insert(_ supply: Supply, into reader: Reader, _ workflow: Workflow) async throws(Malformed) -> Bool {
        let result = await Result { () async throws(Malformed) in try await insert(supply.card, into: reader) }
        if case .success(true) = result {
            // At the end of the workflow the card is taken out, used or not.
            if workflow.isOver { await reclaimCards(of: workflow) }
        } else {
            if reader.supplier == supply.owner { reader.supplier = nil }
            // There is a card now, which is for everybody, or the next one can be inserted.
            if case .failure = result { insertNextSupply(into: reader) }
            wakeWaiters()
        }
        return try result.get()
    }

    /// Inserts the card whose turn it is, if the reader is free.
    func insertNextSupply(into reader: Reader) {
        guard reader.supplier == nil, reader.insertion == nil, !reader.isLent else { return }
        reader.supplies.removeAll { $0.place.workflow?.awaitedEvent != InsertCardMessage.eventName }
        let holders = holders
        guard let next = reader.supplies.min(by: { queue.precedes($0.place, $1.place, holders) }),
            let workflow = next.place.workflow
        else { return }
        reader.supplies.removeAll { $0.owner == next.owner }
        reader.supplier = next.owner
        Task { @Loop in
            let isInserted = try? await insert(next, into: reader, workflow)
            // Another card was faster, and will leave.
            if isInserted == false, !workflow.isOver { reader.supplies.append(next) }
        }
    }

    /// Removes the cards of an ended workflow from virtual readers, unless somebody else has them.
    func reclaimCards(of workflow: Workflow) async {
        let owner = ObjectIdentifier(workflow)
        for reader in readers {
            reader.supplies.removeAll { $0.owner == owner }
            guard reader.supplier == owner else { continue }
            if reader.isLent {
                // From now on it is a card like any other.
                reader.supplier = nil
            } else if let insertion = reader.insertion {
                await removeVirtualCard(from: reader, insertion)
            } else {
                // The insertion has not been reported yet.
                await (reader.backend as? any VirtualReaderBackend)?.removeCard(from: reader.name)
            }
        }
        updateDemand()
    }
}
