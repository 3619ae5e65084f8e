// SPDX-License-Identifier: GPL-3.0-or-later
package import Concurrency
package import Host
import Readers
package import Server
import Text

/// Reports readers and their cards to clients, and handles the commands for every kind of card.
@Loop package final class ReaderFeature: Feature {
    let registry: ReaderRegistry
    private var clients: [ObjectIdentifier: Client] = [:]
    /// How often a board is recorded in a minute: its cards cannot be used meanwhile.
    var boardRecordings = RepeatLimit(3)

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
            CommandSpec("GET_READER", ReaderMessage.name, permission: .readers, reader),
            CommandSpec("GET_READER_LIST", ReaderListMessage.name, permission: .readers) { [registry] call in
                Reply(ReaderListMessage(readers: registry.readers.map { registry.state($0.name, for: call.session) }))
            },
            CommandSpec("IDENTIFY_CARD", CardIdentityMessage.name, permission: .cards, identify),
            CommandSpec("RECORD_CARD", CardRecordingMessage.name, permission: .cards, record),
            CommandSpec("SET_CARD", InsertCardMessage.name, level: .two, permission: .cards, setCard),
            CommandSpec(answering: "CONTINUE"),
            // Several kinds of cards ask for these values.
            CommandSpec(answering: "SET_PIN"), CommandSpec(answering: "SET_NEW_PIN"), CommandSpec(answering: "SET_PUK"),
        ]
    }

    private func reader(_ call: Call) throws(Failure) -> Reply {
        let name = try call.arguments.sdk("name", .name, \.string) ?? ""
        return Reply(ReaderMessage(reader: registry.state(name, for: call.session)))
    }

    package func sessionBegan(_ session: Session) {
        let id = ObjectIdentifier(session)
        clients[id] = Client(session: session)
        updateWatching()
        guard session.permissions.contains(.readers) else { return }
        for reader in registry.readers { report(id, reader.name) }
    }

    package func permissionsChanged(_ session: Session, from old: Permissions) {
        let id = ObjectIdentifier(session)
        updateWatching()
        guard session.permissions.contains(.readers) != old.contains(.readers) else { return }
        clients[id]?.told = [:]
        guard session.permissions.contains(.readers) else { return }
        for reader in registry.readers { report(id, reader.name) }
    }

    package func sessionEnded(_ session: Session) {
        clients[ObjectIdentifier(session)] = nil
        updateWatching()
    }

    private func updateWatching() {
        let wanted: Permissions = [.readers, .cards]
        registry.isWatched = clients.values.contains { !$0.session.permissions.isDisjoint(with: wanted) }
    }

    package func levelChanged(_ session: Session) {
        // Below level 3 there is no PAUSE, so no client would answer CONTINUE.
        if session.level < .three { session.workflow?.prompt(PausePrompt.self)?.answer(()) }
    }

    package func workflowEnded(_ workflow: Workflow) async {
        await registry.reclaimCards(of: workflow)
    }

    package func health() async -> [HealthCheck] { await registry.currentHealth() }

    package func metrics() -> [Metric] {
        var (readers, cards): ([String: Int], [String: Int]) = ([:], [:])
        for driver in registry.drivers { readers[driver] = 0 }
        for reader in registry.readers {
            readers[reader.backend.name, default: 0] += 1
            if let kind = reader.countedKind { cards[kind, default: 0] += 1 }
        }
        return [
            .gauge("badged_readers", "Card readers.", by: "driver", readers),
            .gauge("badged_cards", "Cards in readers.", by: "kind", cards), registry.insertions.metric,
        ]
    }

    // MARK: READER

    private func readerChanged(_ name: String) {
        for (id, client) in clients {
            if client.session.permissions.contains(.readers) { report(id, name) }
            client.session.workflow?.checkPrompt()
        }
    }

    /// Sends READER if the client's view of the reader has changed.
    private func report(_ id: ObjectIdentifier, _ name: String) {
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
            case .none: .none
            case .recognizing: reader.showsCard ? .unknown : .none
            case .unusable, .unknown: .unknown
            case .known(let profile): .known(kind: profile.kind, members: profile.members)
            }
        return ReaderState(
            name: name,
            attached: .init(
                insertable: reader.description.takesCards,
                keypad: reader.description.hasKeypad,
                driver: reader.backend.name,
                remote: reader.description.isRemote,
                card: card,
                busy: reader.isLent && reader.owner != session.workflow.map { ObjectIdentifier($0) }
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
