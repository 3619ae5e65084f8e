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
        let description = try description(call.arguments, backend)
        // The task of a command prefers an executor, so each of its calls may wait. In a task without one, nothing
        // happens between a look at the reader and the wait for its change.
        let supply = Task { @Loop in
            await Result { () async throws(Malformed) in
                try await registry.supply(description, into: reader, for: workflow)
            }
        }
        let outcome = await supply.value
        let parameter = call.arguments.has("card") ? "card" : "simulator"
        switch try translating({ (fault: Malformed) in Self.invalid(parameter, fault) }, outcome.get()) {
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
    ) throws(Failure) -> (any CardDescription)? {
        let simulator = try arguments.sdk("simulator", .simulator) { $0.members == nil ? nil : $0 }
        let card = try arguments.sdk("card", .card) { $0.members == nil ? nil : $0 }
        guard simulator != nil || card != nil else { return nil }
        do throws(Malformed) {
            return try backend.describe(simulator: simulator, card: card)
        } catch {
            // With both, `simulator` is wrong if the card is right without it.
            let isCardWrong =
                simulator == nil || card != nil && (try? backend.describe(simulator: nil, card: card)) == nil
            throw Self.invalid(isCardWrong ? "card" : "simulator", error)
        }
    }

    private static func invalid(_ parameter: String, _ fault: Malformed) -> Failure {
        Failure(.wrongArgument, Phrase(verbatim: "Parameter '\(parameter)' is invalid: \(fault.text)"))
    }
}
