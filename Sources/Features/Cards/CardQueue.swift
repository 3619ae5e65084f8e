// SPDX-License-Identifier: GPL-3.0-or-later
import Concurrency
import Host
import Readers
import Server

/// The order in which those who wait for a card get it: root first, then one user after another.
///
/// A user goes behind all users who wait when it gets a card and when it gives the card back, with all its workflows, also
/// those that start later. A workflow that loses its card keeps its place for `ServerLimits.sharedPromptTimeout` from its
/// first card on; then it goes behind all.
@Loop struct CardQueue {
    /// The place of a workflow, or of a reading of badged.
    @Loop final class Place {
        fileprivate let number: UInt64
        /// The user of the workflow. Clients without a known user count as one.
        fileprivate let user: User
        /// How long the place is kept after a card was lost, in milliseconds.
        private let keeping: Int64
        /// The time of the loop until which it is kept; nil before the first card.
        private var keptUntil: Int64?

        fileprivate init(_ number: UInt64, _ workflow: Workflow?) {
            self.number = number
            user = workflow.map { .client($0.uid) } ?? .badged
            keeping = workflow.map { Int64($0.session.server.limits.sharedPromptTimeout / .milliseconds(1)) } ?? 0
        }

        fileprivate func serve() { keptUntil = keptUntil ?? Loop.now + keeping }

        /// Whether it keeps its place after a card; nil before the first card.
        fileprivate var isKept: Bool? { keptUntil.map { Loop.now < $0 } }
    }

    fileprivate enum User: Hashable {
        case badged
        case client(UInt32?)
    }

    struct Waiter {
        /// The workflow; nil for a reading.
        let workflow: Workflow?
        /// Whether it could take the card in a reader now.
        let canTake: @Loop (Reader) -> Bool
        /// Whether it waits for such a card, which somebody else may hold.
        let wants: @Loop (Reader) -> Bool
    }

    /// A card of SET_CARD that waits until a virtual reader is free.
    struct Supply {
        let workflow: Workflow
        let reader: String
        /// nil: the reader's own card.
        let card: (any CardDescription)?
    }

    private var supplies: [ObjectIdentifier: Supply] = [:]
    private var waiting: [ObjectIdentifier: (place: Place, waiter: Waiter)] = [:]
    /// When each user was served last.
    private var served: [User: UInt64] = [:]
    private var last: UInt64 = 0

    nonisolated init() {}

    var isEmpty: Bool { waiting.isEmpty }

    mutating func makePlace(for workflow: Workflow?) -> Place {
        last += 1
        return Place(last, workflow)
    }

    subscript(_ place: Place) -> Waiter? {
        get { waiting[ObjectIdentifier(place)]?.waiter }
        set {
            waiting[ObjectIdentifier(place)] = newValue.map { (place, $0) }
            // What happened before counts only for those who have waited meanwhile.
            if waiting.isEmpty { served = [:] }
        }
    }

    /// Notes that the user of a place gets a card.
    mutating func serve(_ place: Place) {
        last += 1
        served[place.user] = last
        place.serve()
    }

    /// Notes that a workflow has given its card back.
    mutating func release(by workflow: Workflow) {
        guard !waiting.isEmpty else { return }
        last += 1
        served[.client(workflow.uid)] = last
    }

    func isFirst(_ place: Place, for reader: Reader) -> Bool {
        let own = rank(of: place)
        return !waiting.values.contains { rank(of: $0.place) < own && $0.waiter.canTake(reader) }
    }

    /// Whether another user waits for the card in a reader.
    func isAwaited(_ reader: Reader, except user: UInt32?) -> Bool {
        waiting.values.contains { $0.place.user != .client(user) && $0.waiter.wants(reader) }
    }

    // MARK: Cards of SET_CARD

    mutating func supply(_ supply: Supply) { supplies[ObjectIdentifier(supply.workflow)] = supply }

    mutating func endSupplies(of workflow: Workflow) { supplies[ObjectIdentifier(workflow)] = nil }

    /// The card that a reader gets next.
    func nextSupply(for reader: String) -> Supply? {
        waiting.values
            .compactMap { place, waiter in
                waiter.workflow.flatMap { supplies[ObjectIdentifier($0)] }.map { (place, $0) }
            }
            .filter { $0.1.reader == reader }
            .min { rank(of: $0.0) < rank(of: $1.0) }?.1
    }

    private func rank(of place: Place) -> (Int, UInt64, UInt64) {
        if place.isKept == true { return (0, place.number, 0) }
        let time = place.isKept == nil ? max(place.number, served[place.user] ?? 0) : .max
        return (place.user == .client(0) ? 1 : 2, time, place.number)
    }
}
