// SPDX-License-Identifier: GPL-3.0-or-later
package import Concurrency
import Crypto
import Glibc
package import HTTP
import Host
import Text

/// The sockets and links of remote readers, in one run of badged-network. It starts with the first of them, and ends with
/// the last. At an unexpected end, and when the run does not answer, each socket and each link ends; the next one starts
/// the run again.
@Loop package final class RemoteNetwork {
    private let network: Network
    private var stream: JobStream?
    /// The identity that the run has.
    private var identity: RemoteIdentity?
    private var lastNumber: UInt32 = 0
    private var sockets: [UInt32: NetworkSocket] = [:]
    private var links: [UInt32: (link: RemoteLink, security: LinkSecurity)] = [:]
    /// The connections that wait for a link.
    private var connections: [UInt32: @Loop (_ isGone: Bool) -> Void] = [:]

    /// The alarms of sockets and links about which nothing was reported yet.
    private var limits: [UInt32: Loop.Alarm] = [:]
    /// How long a run may say nothing beyond the limits of a link, in milliseconds.
    private let grace: Int64
    private let heartbeat: Heartbeat.Times

    package nonisolated init(_ network: Network, grace: Int64 = 5000, heartbeat: Heartbeat.Times = .init()) {
        self.network = network
        self.grace = grace
        self.heartbeat = heartbeat
    }

    /// Whether the run answers, or none is needed. One that does not answer is ended.
    package func answers() async -> Bool { await stream?.answers() ?? true }

    /// The process of the run, if it is a child of this one.
    package var process: Int32? { stream?.process }

    isolated deinit { stop() }

    /// Ends the run, with all sockets and links.
    package func stop() { finish("the network was ended") }

    // MARK: Sockets

    /// Opens a socket at a port; 0 takes a free one. The result is an event of the socket.
    package func open(
        _ kind: PortKind,
        port: UInt16,
        interface: String?,
        _ events: @escaping @Loop (NetworkSocket, NetworkSocket.Event) -> Void
    ) -> NetworkSocket {
        let number = next()
        let socket = NetworkSocket(number, interface, self, kind == .datagrams ? 32 : 1, events)
        sockets[number] = socket
        if start() {
            send(.open(socket: number, kind: kind, port: port, interface: interface))
            expect(number, within: grace)
        }
        return socket
    }

    /// Sends a datagram to each address.
    package func announce(_ bytes: [UInt8], on interface: String, to addresses: [RemoteAddress]) {
        send(.announce(bytes, interface: interface, addresses))
    }

    func closed(_ socket: UInt32) {
        guard sockets.removeValue(forKey: socket) != nil else { return }
        limits[socket] = nil
        send(.close(socket: socket))
        endIfIdle()
    }

    // MARK: Connections and links

    /// Connects to a device.
    package func connect(
        to address: RemoteAddress,
        interface: String?,
        _ identity: RemoteIdentity,
        _ security: LinkSecurity,
        times: RemoteLink.Times = RemoteLink.Times()
    ) -> RemoteLink {
        link(identity, security, times) {
            .connect(link: $0, address, interface: interface, LinkOrder(security, times))
        }
    }

    /// Serves a connection.
    package func serve(
        _ connection: UInt32,
        _ identity: RemoteIdentity,
        _ security: LinkSecurity,
        times: RemoteLink.Times = RemoteLink.Times()
    ) -> RemoteLink {
        connections[connection] = nil
        return link(identity, security, times) { .serve(link: $0, connection: connection, LinkOrder(security, times)) }
    }

    /// Calls a function when the other side of a connection has sent something, or has closed the connection.
    func watch(_ connection: UInt32, _ body: @escaping @Loop (_ isGone: Bool) -> Void) {
        connections[connection] = body
    }

    func drop(_ connection: UInt32) {
        connections[connection] = nil
        send(.drop(connection: connection))
    }

    private func link(
        _ identity: RemoteIdentity,
        _ security: LinkSecurity,
        _ times: RemoteLink.Times,
        _ request: (UInt32) -> RemoteRequest
    ) -> RemoteLink {
        let number = next()
        let link = RemoteLink { [weak self] order in
            guard let self, links[number] != nil else { return }
            switch order {
            case .message(let bytes): send(.message(link: number, bytes))
            case .close(let code): send(.closeLink(number, code: code))
            }
        }
        links[number] = (link, security)
        if start() {
            introduce(identity)
            send(request(number))
            // The connection has this time, and then the handshakes.
            expect(number, within: 2 * times.setUp + grace)
        }
        return link
    }

    /// Gives the run the key of this host.
    private func introduce(_ identity: RemoteIdentity) {
        guard self.identity !== identity, let key = try? identity.encodedKey() else { return }
        self.identity = identity
        send(.identity(key: SecretBox(key), certificate: identity.encodedCertificate))
    }

    // MARK: The run

    private func next() -> UInt32 {
        lastNumber += 1
        return lastNumber
    }

    /// Sends a message to the run, if there is one. Without a run there is nothing that the message could be about.
    fileprivate func send(_ request: RemoteRequest) { stream?.send(request.bytes) }

    /// Ends the run if it says nothing about a socket or a link.
    private func expect(_ number: UInt32, within milliseconds: Int64) {
        let alarm = Loop.Alarm { [weak self] in self?.finish("badged-network does not answer") }
        alarm.set(after: milliseconds)
        limits[number] = alarm
    }

    /// Ends the run when nothing needs it.
    private func endIfIdle() {
        if sockets.isEmpty, links.isEmpty, connections.isEmpty { stop() }
    }

    /// Starts the run, unless there is one.
    /// - Returns: whether there is one. Otherwise all sockets and links end in the next turn of the loop.
    private func start() -> Bool {
        guard stream == nil else { return true }
        do throws(HTTPFault) {
            stream = try JobStream(
                network.start(),
                asking: heartbeat,
                maximum: { RemoteJobMessage.maximumCount },
                onMessage: { [weak self] in self?.handle($0) ?? false },
                onEnd: { [weak self] in self?.ended($0) }
            )
            stream?.isNeeded = true
            return true
        } catch {
            let words = error.text("the network")
            Task { @Loop [weak self] in self?.finish(words) }
            return false
        }
    }

    private func ended(_ ending: JobStream.Ending) {
        switch ending {
        case .closed, .violation:
            Log.error("badged-network for remote readers has ended unexpectedly")
            finish("badged-network has ended unexpectedly")
        case .silent: finish("badged-network does not answer")
        }
    }

    private func finish(_ reason: String) {
        let (oldSockets, oldLinks, oldConnections) = (sockets, links, connections)
        sockets = [:]
        links = [:]
        connections = [:]
        limits = [:]
        identity = nil
        stream?.close()
        stream = nil
        for (link, _) in oldLinks.values { link.finish(.failed(reason)) }
        for connection in oldConnections.values { connection(true) }
        for socket in oldSockets.values { socket.deliver(.ended(reason)) }
    }

    /// - Returns: false if a report is not allowed. Reports about what this side has ended meanwhile are ignored.
    private func handle(_ bytes: [UInt8]) -> Bool {
        guard let report = RemoteReport(bytes: bytes) else { return false }
        switch report {
        case .opened(let number, let port):
            limits[number] = nil
            sockets[number]?.deliver(.opened(port: port))
        case .failed(let number, let text):
            limits[number] = nil
            sockets.removeValue(forKey: number)?.deliver(.failed(text))
        case .datagram(let number, let bytes, let sender):
            guard let socket = sockets[number] else { break }
            guard socket.useCredit() else { return false }
            socket.deliver(.datagram(bytes, sender))
        case .connection(let number, let connection, let sender):
            guard let socket = sockets[number] else {
                drop(connection)
                break
            }
            guard socket.useCredit(), connections[connection] == nil else { return false }
            socket.deliver(.connection(connection, sender))
        case .spoke(let connection): connections[connection]?(false)
        case .gone(let connection): connections.removeValue(forKey: connection)?(true)
        case .event(let number, let event):
            limits[number] = nil
            guard let (link, security) = links[number] else { break }
            if case .opened(let device) = event, !security.allows(device) { return false }
            if case .ended = event { links[number] = nil }
            if !link.yield(event) {
                links[number] = nil
                link.finish(.violation)
                send(.closeLink(number, code: 1011))
            }
            endIfIdle()
        }
        return true
    }
}

/// A UDP or TCP socket for IPv4 and IPv6, on one interface or on all, in a run of badged-network.
@Loop package final class NetworkSocket {
    package enum Event {
        case opened(port: UInt16)
        /// The last event: the socket cannot be opened.
        case failed(String)
        /// The last event: badged-network has ended, or cannot be started.
        case ended(String)
        case datagram([UInt8], RemoteAddress)
        case connection(UInt32, RemoteAddress)
    }

    package let interface: String?
    /// The own port; 0 until it is open.
    package private(set) var port: UInt16 = 0
    private let number: UInt32
    private weak var network: RemoteNetwork?
    private let events: @Loop (NetworkSocket, Event) -> Void
    /// How many datagrams or connections may still be reported.
    private var credit = RemoteJobMessage.firstCredit
    /// What this side has taken and not given back as credit.
    private var taken: UInt32 = 0
    private let step: UInt32
    private var isReading = true

    fileprivate init(
        _ number: UInt32,
        _ interface: String?,
        _ network: RemoteNetwork,
        _ step: UInt32,
        _ events: @escaping @Loop (NetworkSocket, Event) -> Void
    ) {
        self.number = number
        self.interface = interface
        self.network = network
        self.step = step
        self.events = events
    }

    isolated deinit { network?.closed(number) }

    package func close() {
        network?.closed(number)
        network = nil
    }

    /// Joins the multicast group of announcements, also on interfaces that were added since the last call.
    package func joinAnnouncements() { network?.send(.join(socket: number)) }

    /// Pauses or resumes the reports, of which some may be under way.
    package func read(_ isOn: Bool) {
        isReading = isOn
        grantCredit()
    }

    /// Counts a datagram or a connection.
    /// - Returns: false if it exceeds the credit.
    fileprivate func useCredit() -> Bool {
        guard credit > 0 else { return false }
        credit -= 1
        return true
    }

    fileprivate func deliver(_ event: Event) {
        guard network != nil else { return }
        switch event {
        case .opened(let port): self.port = port
        case .failed, .ended: network = nil
        case .datagram, .connection: taken += 1
        }
        events(self, event)
        grantCredit()
    }

    private func grantCredit() {
        guard isReading, taken >= step, let network else { return }
        network.send(.credit(socket: number, taken))
        credit = credit + taken
        taken = 0
    }
}
