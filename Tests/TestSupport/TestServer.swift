// SPDX-License-Identifier: GPL-3.0-or-later
import CLinux
package import Cards
package import Concurrency
import DoorFeature
package import DoorOpening
import EID
import EIDFeature
package import EService
import Glibc
package import Host
package import Readers
package import ReadersVirtual
package import Scanners
package import Server
package import Store
import Text
package import VirtualEID

/// A complete server in the test process, with virtual readers and clients on socket pairs.
@Loop package final class TestServer {
    package let registry = ReaderRegistry()
    package let readers: VirtualReaders?
    package let server: SocketServer

    /// Makes a server, and returns when its virtual readers are attached.
    package init(
        readers count: Int = 1,
        backends: [any ReaderBackend] = [],
        limits: ServerLimits = ServerLimits(),
        permissions: Permissions = .all.union(.activate),
        access: AccessControl? = nil,
        rootServesAll: Bool = false,
        allowsAutomaticPINs: Bool = false,
        radio: Radio? = nil,
        opener: DoorOpener? = nil,
        credentials: (any CredentialProvider)? = nil,
        store: StateStore? = nil,
        moreCards: [any VirtualCardKind] = [],
        moreFeatures: (ReaderRegistry) -> [any Feature] = { _ in [] },
        allowsDeveloperMode: Bool = true,
        service: @escaping @Sendable (_ url: String, _ developerMode: Bool) -> any EServiceConnection = { _, _ in
            TestService()
        }
    ) async throws {
        readers = count > 0 ? VirtualReaders(count: count, kinds: [VirtualEIDKind()] + moreCards) : nil
        if let readers { registry.add(readers) }
        for backend in backends { registry.add(backend) }
        virtualReaders = ((readers.map { [$0] } ?? []) + backends).compactMap { $0 as? any VirtualReaderBackend }
        let box = LogBox()
        // The clock is fixed, so the duration of a dialogue on a busy machine does not change the result.
        let start = ContinuousClock.now
        let services = OnlineServices(
            allowsDeveloperMode: allowsDeveloperMode,
            today: { TestService.today },
            connect: service
        )
        let features: [any Feature] =
            [
                ReaderFeature(registry),
                EIDFeature(
                    registry,
                    services,
                    rootServesAll: rootServesAll,
                    allowsAutomaticPINs: allowsAutomaticPINs,
                    now: { start }
                ),
                DoorFeature(radio, opener: opener, credentials: credentials, store: store),
            ]
            + moreFeatures(registry)
        registry.kinds = features.compactMap { $0 as? any CardFeature }.flatMap(\.cardKinds)
        registry.log = { level, text, reader in
            box.lines.append((level, text))
            box.fields.append(Log.Fields(reader: reader))
        }
        server = SocketServer(
            features: features,
            info: ServerInfo(version: "0.0.0", drivers: registry.drivers),
            limits: limits,
            permissions: { peer in
                await access?.permissions(uid: peer.uid, gid: peer.gid, groups: peer.groups) ?? permissions
            },
            log: { level, text, fields in
                box.lines.append((level, text))
                box.fields.append(fields)
            }
        )
        log = box
        server.onClientsChange = { box.changes.notify() }
        await ready((0..<count).map { $0 == 0 ? "Simulator" : "Simulator \($0 + 1)" })
    }

    private let virtualReaders: [any VirtualReaderBackend]
    private let log: LogBox

    @Loop private final class LogBox {
        nonisolated init() {}
        let changes = Changes()
        var lines: [(level: Log.Level, text: String)] = [] { didSet { changes.notify() } }
        var fields: [Log.Fields] = []
    }

    package var logged: [String] { log.lines.map(\.text) }

    /// The fields of the lines for the journal.
    package var loggedFields: [(text: String, fields: Log.Fields)] {
        zip(log.lines, log.fields).map { ($0.text, $1) }
    }

    /// What the log has at the default level.
    package var notices: [String] { log.lines.filter { $0.level <= .notice }.map(\.text) }

    /// Takes the card out of a virtual reader, and returns when badged has seen it: before, SET_CARD would be ignored.
    package func removeCard(from reader: String) async {
        await readers?.removeCard(from: reader)
        while registry.shownCard(in: reader) != nil { await registry.nextChange() }
    }

    /// Connects a client that the server already serves.
    package func connect() throws -> TestClient {
        let (own, client) = try pair()
        server.serve(own)
        return client
    }

    /// Connects a client of another user, as the browser port does.
    package func connect(
        uid: UInt32?,
        _ permissions: Permissions = .all,
        evaluate: (@Loop () async -> Permissions)? = nil
    ) throws -> TestClient {
        let (own, client) = try pair()
        server.serve(own, permissions, from: "test", uid: uid, evaluate: evaluate)
        return client
    }

    /// Makes a connection: the socket of the server, and the client.
    private func pair() throws -> (Int32, TestClient) {
        let (client, server) = try UnixSocket.pair()
        for socket in [client, server] { clinux_set_nonblocking(socket) }
        return (server, try TestClient(socket: client))
    }

    /// Starts to listen on a temporary socket, for clients on other threads, and returns its path.
    package func listen() throws -> String {
        let path = UnixSocket.temporaryPath
        let socket = try UnixSocket.listen(on: path)
        clinux_set_nonblocking(socket)
        try server.listen(on: socket)
        listening = (path, socket)
        return path
    }

    /// Stops listening and ends every session.
    package func stopListening() async {
        guard let listening else { return }
        await server.stop()
        close(listening.socket)
        unlink(listening.path)
        self.listening = nil
    }

    private var listening: (path: String, socket: Int32)?

    isolated deinit { if let listening { unlink(listening.path) } }

    /// Waits until readers of the backends are attached.
    package func ready(_ names: [String]) async {
        while names.contains(where: { registry[$0] == nil }) {
            await registry.waitForReaders(registry.readers.count + 1)
        }
    }

    /// Waits until the server has this number of clients; it detects disconnections asynchronously.
    package func clients(_ count: Int) async { await log.changes.wait { server.clientCount == count } }

    /// Returns whether a workflow owns the reader.
    package func isLent(_ name: String = "Simulator") -> Bool { registry[name]?.owner != nil }

    /// Waits until no workflow has the reader.
    package func released(_ name: String) async { while isLent(name) { await registry.nextChange() } }

    /// Inserts a card as a user would; without a description the reader's own card.
    package func insert(_ card: VirtualEIDDescription? = nil, into name: String = "Simulator") async throws {
        guard let reader = registry[name] else { throw Malformed("no reader \(name)") }
        guard try await registry.insert(card, into: reader) else { throw Malformed("a card is in \(name) already") }
    }

    /// Removes a card as a user would.
    package func withdraw(from name: String = "Simulator") async {
        for backend in virtualReaders { await backend.removeCard(from: name) }
    }
}

extension ServerLimits {
    /// Limits at which the user of the tests may have this number of clients and of workflows. Root has a whole table.
    package static func own(_ count: Int) -> ServerLimits {
        var limits = ServerLimits()
        limits.clients = geteuid() == 0 ? count : 4 * count
        (limits.workflows, limits.clientsPerUser, limits.workflowsPerUser) = (limits.clients, count, count)
        return limits
    }
}
