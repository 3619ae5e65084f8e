// SPDX-License-Identifier: GPL-3.0-or-later
package import Concurrency
package import Host
import Readers
package import Server
import Wire

/// Reports readers and their cards to clients, and handles the commands for every kind of card.
@Loop package final class ReaderFeature: Feature {
    let registry: ReaderRegistry
    private var clients: [ObjectIdentifier: Client] = [:]

    private struct Client {
        let session: Session
        /// The last message about each reader, as the client's level shows the reader.
        var told: [String: ReaderState] = [:]
    }

    package init(_ registry: ReaderRegistry) {
        self.registry = registry
        registry.observer = { [weak self] name in self?.readerChanged(name) }
    }

    package var commands: [CommandSpec] {
        [
            CommandSpec("GET_READER", permission: .readers) { [self] session, command in
                switch command.string("name") {
                case .missing: session.answer(ReaderRefusedMessage(error: "Name cannot be undefined"), to: command)
                case .invalid: session.answer(ReaderRefusedMessage(error: "Invalid name"), to: command)
                case .value(let name):
                    session.answer(ReaderMessage(reader: registry.state(name, for: session)), to: command)
                }
                return .answered
            },
            CommandSpec("GET_READER_LIST", permission: .readers) { [self] session, command in
                let readers = registry.readers.map { registry.state($0.name, for: session) }
                session.answer(ReaderListMessage(readers: readers), to: command)
                return .answered
            },
            CommandSpec("SET_CARD", level: .two, permission: .cards) { [self] session, command in
                setCard(session, command)
            },
            CommandSpec("CONTINUE", permission: .cards) { session, _ in
                guard let pause = session.workflow?.prompt(PausePrompt.self) else { return .badState }
                pause.answer(())
                return .answered
            },
            // Several kinds of cards ask for these values.
            CommandSpec(answering: "SET_PIN"), CommandSpec(answering: "SET_NEW_PIN"), CommandSpec(answering: "SET_PUK"),
        ]
    }

    package func sessionBegan(_ session: Session) {
        let id = ObjectIdentifier(session)
        clients[id] = Client(session: session)
        guard session.permissions.contains(.readers) else { return }
        for reader in registry.readers { tell(id, reader.name) }
    }

    package func sessionEnded(_ session: Session) { clients[ObjectIdentifier(session)] = nil }

    package func levelChanged(_ session: Session) {
        // Below level 3 there is no PAUSE, so no client would answer CONTINUE.
        if session.level < .three { session.workflow?.prompt(PausePrompt.self)?.answer(()) }
    }

    package func workflowEnded(_ workflow: Workflow) async {
        await registry.takeCardsBack(of: ObjectIdentifier(workflow))
    }

    package func health() async -> [HealthCheck] { await registry.currentHealth() }

    // MARK: READER

    private func readerChanged(_ name: String) {
        for (id, client) in clients {
            if client.session.permissions.contains(.readers) { tell(id, name) }
            client.session.workflow?.checkPrompt()
        }
    }

    /// Sends READER if the client's view of the reader has changed.
    private func tell(_ id: ObjectIdentifier, _ name: String) {
        guard let client = clients[id] else { return }
        let state = registry.state(name, for: client.session).shown(at: client.session.level)
        guard client.told[name] ?? ReaderState(name: name, attached: nil) != state else { return }
        clients[id]?.told[name] = state.attached == nil ? nil : state
        client.session.push(ReaderMessage(reader: state), coalescing: "READER " + name)
    }
}

extension ReaderRegistry {
    /// Returns the reader with that name as the client of a session sees it.
    package func state(_ name: String, for session: Session) -> ReaderState {
        guard let reader = self[name] else { return ReaderState(name: name, attached: nil) }
        let card: ReaderState.Card =
            switch reader.card {
            case .none, .recognizing: .none
            case .unusable, .unknown: .unknown
            case .known(let profile): .known(kind: type(of: profile).kind.description, members: profile.members)
            }
        return ReaderState(
            name: name,
            attached: .init(
                insertable: reader.description.takesCards,
                keypad: reader.description.hasKeypad,
                remote: reader.description.isRemote,
                card: card,
                busy: reader.owner != nil && reader.owner != session.workflow.map { ObjectIdentifier($0) }
            )
        )
    }
}

extension ReaderState {
    /// Below level 3 clients do not see unknown cards.
    fileprivate func shown(at level: APILevel) -> ReaderState {
        var state = self
        if level < .three, state.attached?.card == .unknown { state.attached?.card = .none }
        return state
    }
}
