// SPDX-License-Identifier: GPL-3.0-or-later
import COpenSSL
import Crypto
import EID
import Glibc
import Server
import Synchronization
package import Text

/// An eService with its eID-Server on loopback, for tests: TR-03124-1 and TR-03112 towards the client, TR-03110 towards
/// the card. `ServiceOptions` and `Fault` select its behaviour.
package final class EIDServer: Sendable {
    /// The authority of its CV certificates.
    package let authority: CVAuthority
    private let certificates: TLSCertificates
    private let certificateHashes: [[UInt8]]
    private let state: State
    let listeners: Listeners

    /// The state that threads share.
    final class State: Sendable {
        let conversations = Mutex<(all: [String: Conversation], order: [String])>(([:], []))
        let server = Mutex<Weak>(Weak())

        /// Weak, so that the handlers of connections do not keep the server alive.
        struct Weak { weak var server: EIDServer? }

        /// The maximum number of runs; older ones are forgotten.
        static let capacity = 1000
    }

    /// Starts to listen on free ports.
    package init() throws {
        // A client that disconnects during an answer must not end the process.
        signal(SIGPIPE, SIG_IGN)
        let state = State()
        self.state = state
        authority = try CVAuthority(folder: CVAuthority.folder)
        certificates = try TLSCertificates()
        certificateHashes = try certificates.listedHashes(CVAuthority.digest)
        let callbacks = Listeners.Callbacks(
            handle: { request, handshake, listener in
                let server = state.server.withLock { $0.server }
                return server?.answer(request, handshake, listener) ?? HTTPResponse(500)
            },
            key: { Self.key($0, state) }
        )
        listeners = Listeners(certificates, callbacks)
        state.server.withLock { $0.server = self }
        _ = try listeners.port(.web)
        _ = try listeners.port(.psk)
    }

    deinit { listeners.close() }

    /// Ends all connections.
    package func stop() { listeners.close() }

    /// The authority of the TLS certificates in PEM, for other tools.
    package var tlsAuthority: String {
        let buffer = BIO_new(BIO_s_mem())
        defer { BIO_free(buffer) }
        guard PEM_write_bio_X509(buffer, certificates.authority.pointer) == 1 else { return "" }
        var bytes = [UInt8](repeating: 0, count: 8192)
        let count = BIO_read(buffer, &bytes, Int32(bytes.count))
        return String(decoding: bytes.prefix(Int(max(count, 0))), as: UTF8.self)
    }

    // MARK: Addresses

    /// The scheme, host and port of a listener.
    package func origin(_ listener: ListenerName = .web) throws -> String {
        "https://localhost:\(try listeners.port(listener))"
    }

    /// The TcToken URL of a run with these parameters.
    package func tcTokenURL(_ parameters: [String: String] = [:], on listener: ListenerName = .web) throws -> String {
        let query = parameters.sorted { $0.key < $1.key }.map { "\($0)=\(Percent.encode($1))" }
        return try origin(listener) + "/tctoken" + (query.isEmpty ? "" : "?" + query.joined(separator: "&"))
    }

    // MARK: Reports

    /// The report of a run, or of the last one without a session; nil when there is none.
    package func report(_ session: String? = nil) -> JSON? { conversation(session)?.json }

    /// All messages of a run.
    package func messages(_ session: String? = nil) -> JSON? { conversation(session)?.messages }

    package var reports: JSON {
        let all = state.conversations.withLock { state in state.order.compactMap { state.all[$0] } }
        return .array(all.map(\.json))
    }

    func conversation(_ id: String?) -> Conversation? {
        state.conversations.withLock { state in (id ?? state.order.last).flatMap { state.all[$0] } }
    }

    // MARK: Runs

    func begin(_ options: ServiceOptions, on listener: ListenerName, _ handshake: Handshake) throws -> Conversation {
        let conversation = try Conversation(
            options,
            origin: try origin(listener),
            authority: authority,
            certificateHashes: certificateHashes,
            today: .today,
            handshake: handshake
        )
        state.conversations.withLock { state in
            state.all[conversation.id] = conversation
            state.order.append(conversation.id)
            if state.order.count > State.capacity { state.all[state.order.removeFirst()] = nil }
        }
        return conversation
    }

    private static func key(_ identity: String, _ state: State) -> [UInt8]? {
        guard let conversation = state.conversations.withLock({ $0.all[identity] }) else { return nil }
        switch conversation.options.fault {
        case .tlsPSKUnknown: return nil
        case .tlsPSKWrong: return conversation.psk.map { ~$0 }
        default: return conversation.psk
        }
    }
}
