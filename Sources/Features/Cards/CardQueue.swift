// SPDX-License-Identifier: GPL-3.0-or-later
import Concurrency
import Readers
import Server

/// The order in which those who wait for a card get it: one user after another. docs/protocol/readers.md, Whose turn it
/// is.
///
/// A user who holds a card, or has held one, stands behind all users who have waited meanwhile. The order depends on no
/// time: it changes only in `ReaderRegistry.claim` and `release`, which wake all who wait.
@Loop struct CardQueue {
    enum User: Hashable {
        /// A reading, or another device. It stands where it came, whoever was served.
        case badged
        /// Clients whose user the kernel does not report count as one.
        case client(UInt32?)
    }

    /// The place of a workflow, which it has until its end, or of another use.
    @Loop final class Place {
        fileprivate let number: UInt64
        let user: User
        weak var workflow: Workflow?
        /// The number of cards that the workflow has used.
        var uses = 0

        fileprivate init(_ number: UInt64, _ workflow: Workflow?) {
            self.number = number
            self.workflow = workflow
            user = workflow.map { .client($0.session.uid) } ?? .badged
        }

        /// Whether the workflow has lost its card, and gets the next one before all others.
        fileprivate var isKept: Bool { (1...CardPosition.maximumLosses).contains(uses) }
    }

    struct Waiter {
        let place: Place
        /// Whether it could take the card in a reader now.
        let canTake: @Loop (Reader) -> Bool
        /// Whether it waits for such a card, which somebody else may hold.
        var wants: @Loop (Reader) -> Bool = { _ in false }
    }

    private var waiting: [ObjectIdentifier: Waiter] = [:]
    /// When each user was served last, in the numbers of the places.
    private var served: [User: UInt64] = [:]
    private var last: UInt64 = 0

    nonisolated init() {}

    var isEmpty: Bool { waiting.isEmpty }

    mutating func makePlace(for workflow: Workflow?) -> Place {
        last += 1
        return Place(last, workflow)
    }

    mutating func add(_ waiter: Waiter) { waiting[ObjectIdentifier(waiter.place)] = waiter }

    mutating func remove(_ place: Place) { waiting[ObjectIdentifier(place)] = nil }

    /// Notes that the user of a place gets a card, or has released it.
    mutating func serve(_ place: Place) {
        guard place.user != .badged else { return }
        // Who comes later stands behind anyway.
        if waiting.isEmpty { served = [:] }
        last += 1
        served[place.user] = last
    }

    /// Whether nobody who could take the card in a reader comes first. `holders` are the users who hold a card.
    func isFirst(_ place: Place, for reader: Reader, _ holders: Set<User>) -> Bool {
        !waiting.values.contains { precedes($0.place, place, holders) && $0.canTake(reader) }
    }

    /// Whether another user waits for the card in a reader.
    func isAwaited(_ reader: Reader, except user: User) -> Bool {
        waiting.values.contains { $0.place.user != user && $0.wants(reader) }
    }

    func precedes(_ place: Place, _ other: Place, _ holders: Set<User>) -> Bool {
        rank(of: place, holders) < rank(of: other, holders)
    }

    private func rank(of place: Place, _ holders: Set<User>) -> (Int, UInt64, UInt64) {
        if place.isKept { return (0, place.number, 0) }
        return (holders.contains(place.user) ? 2 : 1, max(place.number, served[place.user] ?? 0), place.number)
    }
}

/// A card of SET_CARD, which waits until its virtual reader is free.
@Loop struct Supply {
    let place: CardQueue.Place
    /// The workflow to which the card belongs.
    let owner: ObjectIdentifier
    /// nil: the reader's own card.
    let card: (any CardDescription)?
}
