// SPDX-License-Identifier: GPL-3.0-or-later
package import ISO7816
package import Readers
package import Text

/// Readers named `Simulator`, `Simulator 2`, ... that take virtual cards by command. Each has a card of its own, which
/// is not inserted at first. A card keeps its state while it is out of the reader.
package actor VirtualReaders: VirtualReaderBackend {
    package nonisolated let name = "virtual"
    package nonisolated let events: AsyncStream<ReaderEvent>

    private struct Slot {
        /// nil: the default card, not made yet, because making it takes milliseconds of the start of the daemon.
        var card: VirtualCard?
        /// The last card of each kind, with its state.
        var kept: [String: VirtualCard] = [:]
        /// nil: the card is not inserted.
        var insertion: Insertion?
        /// The connection that holds the card. Weak, so that deallocation of the connection releases the card.
        weak var holder: VirtualConnection?
    }

    private let kinds: VirtualCardKinds
    private let continuation: AsyncStream<ReaderEvent>.Continuation
    private var slots: [String: Slot] = [:]
    private var insertions: UInt64 = 0

    /// - Parameters:
    ///   - count: the number of readers.
    ///   - kinds: the kinds of cards that SET_CARD can insert. The default card of each reader is of the first kind.
    package init(count: Int = 1, kinds: [any VirtualCardKind]) {
        self.kinds = VirtualCardKinds(kinds)
        (events, continuation) = AsyncStream.makeStream()
        for number in 1...max(1, count) {
            let reader = number == 1 ? "Simulator" : "Simulator \(number)"
            slots[reader] = Slot()
            continuation.yield(.added(Self.description(of: reader, hasKeypad: false)))
        }
    }

    private static func description(of reader: String, hasKeypad: Bool) -> ReaderDescription {
        ReaderDescription(name: reader, hasKeypad: hasKeypad, takesCards: true)
    }

    package nonisolated func describe(simulator: JSON?, card: JSON?) throws(Malformed) -> any CardDescription {
        try kinds.name(simulator: simulator, card: card)
    }

    package func insert(_ description: (any CardDescription)?, into reader: String) async throws(Malformed) -> Bool {
        guard let slot = slots[reader], slot.insertion == nil else { return false }
        let card = try card(description, of: slot)
        if card.hasKeypad != slot.card?.hasKeypad ?? false {
            continuation.yield(.changed(Self.description(of: reader, hasKeypad: card.hasKeypad)))
        }
        insertions += 1
        let insertion = Insertion(reader: reader, number: insertions)
        slots[reader]?.card = card
        if let named = description as? NamedCard {
            slots[reader]?.kept[named.kind] = card
        } else if description == nil, slot.card == nil {
            slots[reader]?.kept[kinds.usual] = card
        }
        slots[reader]?.insertion = insertion
        slots[reader]?.holder = nil
        continuation.yield(.inserted(insertion, answerToReset: card.answerToReset))
        await card.enterReader(insertion: insertion.number)
        return true
    }

    /// The card of the description, or else the card of the reader, or else the default card.
    private func card(
        _ description: (any CardDescription)?,
        of slot: Slot
    ) throws(Malformed) -> VirtualCard {
        guard let description else {
            if let present = slot.card { return present }
            return try kinds.describe(simulator: nil, card: nil).makeCard()
        }
        if let named = description as? NamedCard, named.isKept, let card = slot.kept[named.kind] { return card }
        guard let description = description as? any VirtualCardDescription else {
            throw Malformed("the description is not of a virtual card")
        }
        return try description.makeCard()
    }

    package func removeCard(from reader: String) async {
        guard let insertion = slots[reader]?.insertion else { return }
        await withdraw(insertion)
    }

    package func connect(_ insertion: Insertion) async throws(CardError) -> any CardConnection {
        guard let slot = slots[insertion.reader], slot.insertion == insertion else { throw .removed }
        guard slot.holder == nil else { throw .exclusive }
        let connection = VirtualConnection(to: insertion, in: self)
        slots[insertion.reader]?.holder = connection
        guard let card = slot.card, let keypad = card.keypad else { return connection }
        return keypad(connection, card)
    }

    /// The card of the reader, inserted or not, for tests; nil if the card has not been made yet.
    package func card(in reader: String) -> VirtualCard? { slots[reader]?.card }

    private func withdraw(_ insertion: Insertion) async {
        guard let slot = slots[insertion.reader], slot.insertion == insertion else { return }
        slots[insertion.reader]?.insertion = nil
        slots[insertion.reader]?.holder = nil
        continuation.yield(.withdrawn(insertion))
        await slot.card?.leaveReader(insertion: insertion.number)
    }

    // MARK: For connections

    func transmit(_ command: [UInt8], for holder: VirtualConnection) async throws(CardError) -> ResponseAPDU {
        let card = try card(held: holder)
        let reply = await withTaskCancellationHandler {
            await card.exchange(command, insertion: holder.insertion.number)
        } onCancel: {
            Task { await card.hurry() }
        }
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
        guard slot.holder === holder else { throw .cancelled }
        return card
    }

    func release(_ holder: VirtualConnection, reset: Bool) async {
        guard let card = try? card(held: holder) else { return }
        slots[holder.insertion.reader]?.holder = nil
        if reset { await card.reset() }
    }
}

final class VirtualConnection: CardConnection {
    let insertion: Insertion
    let readers: VirtualReaders

    init(to insertion: Insertion, in readers: VirtualReaders) {
        self.insertion = insertion
        self.readers = readers
    }

    func transmit(_ command: CommandAPDU) async throws(CardError) -> ResponseAPDU {
        try await readers.transmit(command.bytes, for: self)
    }

    func disconnect(reset: Bool) async {
        await readers.release(self, reset: reset)
    }
}
