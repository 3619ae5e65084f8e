// SPDX-License-Identifier: Apache-2.0
import Synchronization
public import Text

/// A card that a library puts into a virtual reader when a workflow needs one; for tests.
public struct VirtualCardInsertion: Sendable, Equatable {
    public var reader: String
    /// The card, as `card` of SET_CARD; nil: the reader's own card.
    public var card: JSON?

    public init(reader: String = "Simulator", card: JSON? = nil) { (self.reader, self.card) = (reader, card) }
}

/// Inserts a virtual card during workflows, one after the other: first the card of the description, later the same card
/// again.
package final class VirtualInsertion: Sendable {
    private struct State {
        weak var connection: DaemonConnection?
        /// Insertions during this workflow.
        var count = 0
        var isMade = false
    }

    /// A card with faults may leave each time.
    private static let maximum = 10

    private let insertion: VirtualCardInsertion
    private let state = Mutex(State())

    package init(_ insertion: VirtualCardInsertion) { self.insertion = insertion }

    /// Sets the connection that runs the next workflow.
    package func use(_ connection: DaemonConnection) {
        state.withLock { ($0.connection, $0.count) = (connection, 0) }
    }

    package func insert() async {
        let (connection, count, isMade) = state.withLock { state in
            defer { state.isMade = true }
            state.count += 1
            return (state.connection, state.count, state.isMade)
        }
        guard count <= Self.maximum else { return }
        _ = try? await connection?.setCard(in: insertion.reader, card: isMade ? nil : insertion.card)
    }
}
