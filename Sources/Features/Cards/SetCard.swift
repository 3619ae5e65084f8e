// SPDX-License-Identifier: GPL-3.0-or-later
import Host
import Readers
import Server
import Text
import Wire

/// SET_CARD: a client puts a card into a virtual reader. docs/protocol/readers.md, Virtual reader.
extension ReaderFeature {
    func setCard(_ session: Session, _ command: Command) -> CommandOutcome {
        guard let workflow = session.workflow, workflow.awaitedEvent == InsertCardMessage.eventName else {
            return .badState
        }
        do throws(SetCardError) {
            let (reader, backend) = try virtualReader(session, command)
            let description = try description(command, backend)
            insert(description, into: reader, for: workflow, command)
        } catch {
            session.answer(InsertCardMessage(error: error.text), to: command)
        }
        return .answered
    }

    private struct SetCardError: Error {
        let text: String

        init(_ text: String) { self.text = text }
    }

    private func virtualReader(
        _ session: Session,
        _ command: Command
    ) throws(SetCardError) -> (Reader, any VirtualReaderBackend) {
        switch command.string("name") {
        case .missing: throw SetCardError("Name cannot be undefined")
        case .invalid: throw SetCardError("Invalid name")
        case .value(let name):
            guard let reader = registry[name] else { throw SetCardError("Unknown reader name") }
            guard reader.description.takesCards, let backend = reader.backend as? any VirtualReaderBackend else {
                throw SetCardError("Card is not insertable")
            }
            // The end of the other client's workflow removes the card, so a new one would never be used.
            guard registry.state(name, for: session).attached?.busy != true else {
                throw SetCardError(CardObstacle.busy.text(name))
            }
            return (reader, backend)
        }
    }

    /// The description of the new card; nil for the reader's own card.
    private func description(
        _ command: Command,
        _ backend: any VirtualReaderBackend
    ) throws(SetCardError) -> (any CardDescription)? {
        let simulator = try object(command, "simulator")
        let card = try object(command, "card")
        guard simulator != nil || card != nil else { return nil }
        do throws(VirtualReaderError) {
            return try backend.describe(simulator: simulator, card: card)
        } catch {
            guard case .invalid(let text) = error else { throw SetCardError("Unknown reader name") }
            throw SetCardError(Self.invalid(text))
        }
    }

    /// The error for a description. `text` names the wrong entry of `card` or of `simulator`.
    private static func invalid(_ text: String) -> String {
        "Parameter '\(text.hasPrefix("card") ? "card" : "simulator")' is invalid: \(text)"
    }

    private func object(_ command: Command, _ key: StaticString) throws(SetCardError) -> JSON? {
        switch command.object(key) {
        case .missing: nil
        case .invalid: throw SetCardError("Parameter '\(key)' is invalid")
        case .value(let object): object
        }
    }

    private func insert(
        _ description: (any CardDescription)?,
        into reader: Reader,
        for workflow: Workflow,
        _ command: Command
    ) {
        let session = workflow.session
        session.answerLater(to: command) { [registry] in
            do throws(VirtualReaderError) {
                try await registry.insert(description, into: reader, for: ObjectIdentifier(workflow))
                // At the end of the workflow the card is taken out, used or not.
                if workflow.isOver { await registry.takeCardsBack(of: ObjectIdentifier(workflow)) }
                return nil
            } catch {
                switch error {
                case .occupied:
                    // As with the SDK's simulator, the card in the reader stays, and there is no answer.
                    session.server.log(
                        .notice,
                        "\(session.name): SET_CARD ignored, a card is in '\(reader.name)' already"
                    )
                    return nil
                case .unknownReader: return InsertCardMessage(error: "Unknown reader name")
                case .invalid(let text): return InsertCardMessage(error: Self.invalid(text))
                }
            }
        }
    }
}
