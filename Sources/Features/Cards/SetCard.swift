// SPDX-License-Identifier: GPL-3.0-or-later
import Concurrency
import Host
import Readers
import Server
import Text

/// SET_CARD: a client puts a card into a virtual reader. docs/protocol/readers.md, Virtual reader.
extension ReaderFeature {
    func setCard(_ call: Call) async throws(Failure) -> Reply {
        guard let workflow = call.session.workflow, workflow.awaitedEvent == InsertCardMessage.eventName else {
            throw .badState
        }
        let (reader, backend) = try virtualReader(call)
        let description = try await description(call.arguments, backend)
        // The task of a command prefers an executor, so each of its calls may wait. In a task without one, nothing
        // happens between a look at the reader and the wait for its change.
        let supply = Task { @Loop in
            await Result { () async throws(Malformed) in
                try await registry.supply(description, into: reader, for: workflow)
            }
        }
        switch try await Self.valid(await supply.value.get()) {
        case .inserted: break
        case .postponed: throw Failure(.wrongArgument, reader.useObstacle.text(reader.name))
        case .ignored:
            // As with the SDK's simulator, the card in the reader stays, and there is no answer.
            call.session.log(
                .notice,
                "\(call.session.name): SET_CARD ignored, a card is in '\(reader.name)' already",
                reader: reader.name
            )
        }
        return .none
    }

    private func virtualReader(_ call: Call) throws(Failure) -> (Reader, any VirtualReaderBackend) {
        let name = try call.arguments.sdk("name", .name, \.string) ?? ""
        guard let reader = registry[name] else { throw Failure(.wrongArgument, "Unknown reader name") }
        guard reader.description.takesCards, let backend = reader.backend as? any VirtualReaderBackend else {
            throw Failure(.wrongArgument, "Card is not insertable")
        }
        return (reader, backend)
    }

    /// The description of the new card; nil for the reader's own card.
    private func description(
        _ arguments: Arguments,
        _ backend: any VirtualReaderBackend
    ) async throws(Failure) -> (any CardDescription)? {
        let simulator = try arguments.sdk("simulator", .simulator) { $0.members == nil ? nil : $0 }
        let card = try arguments.sdk("card", .card) { $0.members == nil ? nil : $0 }
        guard simulator != nil || card != nil else { return nil }
        return try await Self.valid(backend.describe(simulator: simulator, card: card))
    }

    private static func valid<T>(_ value: @autoclosure () async throws(Malformed) -> T) async throws(Failure) -> T {
        do throws(Malformed) {
            return try await value()
        } catch {
            // The text names the wrong entry of `card` or of `simulator`.
            let name = error.text.hasPrefix("card") ? "card" : "simulator"
            throw Failure(.wrongArgument, Phrase(verbatim: "Parameter '\(name)' is invalid: \(error.text)"))
        }
    }
}
