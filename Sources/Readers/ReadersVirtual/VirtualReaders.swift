// SPDX-License-Identifier: GPL-3.0-or-later
package import ISO7816
package import Readers
package import Secrets
package import Text

/// Readers named `Simulator`, `Simulator 2`, ... that take virtual cards by command. Each has a card on its shelf from
/// the start; what happens to a card, happens to it for good, in the reader or on the shelf.
package actor VirtualReaders: CardShelf {
    package nonisolated let name = "virtual"
    package nonisolated let events: AsyncStream<ReaderEvent>

    private struct Slot {
        /// nil: the default card, not made yet. Making it costs milliseconds that a daemon's start should not.
        var card: VirtualCard?
        /// nil: the card lies on the shelf.
        var insertion: Insertion?
        /// Who holds the card. Weak: a connection that is dropped lets go.
        weak var holder: VirtualConnection?
    }

    private let surroundings: VirtualCard.Surroundings
    private let continuation: AsyncStream<ReaderEvent>.Continuation
    private var slots: [String: Slot] = [:]
    private var insertions: UInt64 = 0

    /// - Parameters:
    ///   - count: how many readers.
    ///   - surroundings: of every card, the default ones included.
    /// - Throws: `CardShelfError.invalid` for a trust point that is none.
    package init(count: Int = 1, surroundings: VirtualCard.Surroundings = .init()) throws(CardShelfError) {
        self.surroundings = surroundings
        (events, continuation) = AsyncStream.makeStream()
        if surroundings.trustPoint != nil { _ = try VirtualCard(in: surroundings) }
        for number in 1...max(1, count) {
            let reader = number == 1 ? "Simulator" : "Simulator \(number)"
            slots[reader] = Slot()
            continuation.yield(.added(Self.description(of: reader, hasKeypad: false)))
        }
    }

    private static func description(of reader: String, hasKeypad: Bool) -> ReaderDescription {
        ReaderDescription(name: reader, hasKeypad: hasKeypad, takesCards: true)
    }

    package nonisolated func describe(simulator: JSON?, card: JSON?) throws(CardShelfError) -> any CardDescription {
        do throws(CardFileError) {
            return try CardFile.description(simulator: simulator, card: card)
        } catch {
            throw .invalid(error.text)
        }
    }

    package func insert(_ description: (any CardDescription)?, into reader: String) async throws(CardShelfError) {
        guard let slot = slots[reader] else { throw .unknownReader }
        guard slot.insertion == nil else { throw .occupied }
        let card: VirtualCard
        if let description {
            guard let description = description as? VirtualCardDescription else {
                throw .invalid("card.kind is unknown")
            }
            card = try VirtualCard(description, in: surroundings)
            if card.hasKeypad != slot.card?.hasKeypad ?? false {
                continuation.yield(.changed(Self.description(of: reader, hasKeypad: card.hasKeypad)))
            }
        } else {
            if let shelved = slot.card { card = shelved } else { card = try VirtualCard(in: surroundings) }
        }
        insertions += 1
        let insertion = Insertion(reader: reader, number: insertions)
        slots[reader] = Slot(card: card, insertion: insertion)
        continuation.yield(.inserted(insertion, answerToReset: VirtualCard.answerToReset))
        await card.enterReader(stay: insertion.number)
    }

    package func shelve(reader: String) async {
        guard let insertion = slots[reader]?.insertion else { return }
        await withdraw(insertion)
    }

    package func connect(_ insertion: Insertion) async throws(CardError) -> any CardConnection {
        guard let slot = slots[insertion.reader], slot.insertion == insertion else { throw .removed }
        guard slot.holder == nil else { throw .exclusive }
        let connection = VirtualConnection(to: insertion, in: self)
        slots[insertion.reader]?.holder = connection
        guard let card = slot.card, card.hasKeypad else { return connection }
        return VirtualKeypadConnection(connection, to: card)
    }

    /// What the card in the reader looks like; nil for an unknown reader.
    package func cardState(in reader: String) async -> VirtualCard.State? {
        await slots[reader]?.card?.state
    }

    /// Has the card of the reader, in it or on the shelf, this PIN? For tests; false for an unknown reader.
    package func cardHasPIN(_ pin: consuming Secret, in reader: String) async -> Bool {
        await slots[reader]?.card?.hasPIN(pin) ?? false
    }

    private func withdraw(_ insertion: Insertion) async {
        guard let slot = slots[insertion.reader], slot.insertion == insertion else { return }
        slots[insertion.reader] = Slot(card: slot.card)
        continuation.yield(.withdrawn(insertion))
        await slot.card?.leaveReader(stay: insertion.number)
    }

    // MARK: For connections

    func transmit(_ command: [UInt8], for holder: VirtualConnection) async throws(CardError) -> ResponseAPDU {
        let card = try card(held: holder)
        let reply = await card.exchange(command, stay: holder.insertion.number)
        if reply == .removed { await withdraw(holder.insertion) }
        _ = try self.card(held: holder)
        guard case .answer(let bytes) = reply, let answer = ResponseAPDU(bytes: bytes) else { throw .mute }
        return answer
    }

    /// The card that `holder` still holds.
    func card(held holder: VirtualConnection) throws(CardError) -> VirtualCard {
        guard let slot = slots[holder.insertion.reader], slot.insertion == holder.insertion,
            let card = slot.card
        else { throw .removed }
        guard slot.holder === holder else { throw .other("the connection has ended") }
        return card
    }

    func release(_ holder: VirtualConnection, reset: Bool) async {
        guard let card = try? card(held: holder) else { return }
        slots[holder.insertion.reader]?.holder = nil
        if reset { await card.reset() }
    }
}
