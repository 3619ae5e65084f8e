// SPDX-License-Identifier: GPL-3.0-or-later
package import Concurrency
import Crypto
import Glibc
package import HTTP
import Host
import Secrets

/// The sockets and links of remote readers, in one run of badged-network. It starts with the first of them, and again
/// after an unexpected end. At such an end, each socket fails and each link ends.
@Loop package final class RemoteNetwork {
    private let network: Network
    private var run: (stream: JobStream, process: Int32?)?
    /// The identity that the run has.
    private var identity: RemoteIdentity?
    private var lastNumber: UInt32 = 0
    private var sockets: [UInt32: NetworkSocket] = [:]
    private var links: [UInt32: RemoteLink] = [:]
    /// The connections that wait for a link.
    private var connections: [UInt32: @Loop (_ isGone: Bool) -> Void] = [:]

    package nonisolated init(_ network: Network) { self.network = network }

    /// The process of the run, if it is a child of this one.
    package var process: Int32? { run?.process }

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
        send(.open(socket: number, kind: kind, port: port, interface: interface))
        return socket
    }

    /// Sends a datagram to each address.
    package func announce(_ bytes: [UInt8], on interface: String, to addresses: [RemoteAddress]) {
        send(.announce(bytes, interface: interface, addresses))
    }

    func closed(_ socket: UInt32) {
        guard sockets.removeValue(forKey: socket) != nil else { return }
        send(.close(socket: socket))
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
        link(identity) { .connect(link: $0, address, interface: interface, LinkOrder(security, times)) }
    }

    /// Serves a connection.
    package func serve(
        _ connection: UInt32,
        _ identity: RemoteIdentity,
        _ security: LinkSecurity,
        times: RemoteLink.Times = RemoteLink.Times()
    ) -> RemoteLink {
        connections[connection] = nil
        return link(identity) { .serve(link: $0, connection: connection, LinkOrder(security, times)) }
    }

    /// Calls a function when the other side of a connection has sent something, or has closed the connection.
    func watch(_ connection: UInt32, _ body: @escaping @Loop (_ isGone: Bool) -> Void) {
        connections[connection] = body
    }

    func drop(_ connection: UInt32) {
        connections[connection] = nil
        send(.drop(connection: connection))
    }

    private func link(_ identity: RemoteIdentity, _ request: (UInt32) -> RemoteRequest) -> RemoteLink {
        let number = next()
        let link = RemoteLink { [weak self] order in
            guard let self, links[number] != nil else { return }
            switch order {
            case .message(let bytes): send(.message(link: number, bytes))
            case .close(let code): send(.closeLink(number, code: code))
            }
        }
        links[number] = link
        if start() { introduce(identity) }
        send(request(number))
        return link
    }

    /// Gives the run the key of this host.
    private func introduce(_ identity: RemoteIdentity) {
        guard self.identity !== identity, let key = try? identity.encodedKey() else { return }
        self.identity = identity
        send(.identity(key: key.withBytes { Array($0) }, certificate: identity.encodedCertificate))
    }

    // MARK: The run

    private func next() -> UInt32 {
        lastNumber += 1
        return lastNumber
    }

    func send(_ request: RemoteRequest) {
        guard start() else { return }
        run?.stream.send(request.bytes)
    }

    /// Starts the run, unless there is one.
    /// - Returns: whether there is one. Otherwise all sockets and links end in the next turn of the loop.
    private func start() -> Bool {
        guard run == nil else { return true }
        do throws(HTTPFault) {
            let (descriptor, process) = try network.start()
            do throws(SystemError) {
                let stream = try JobStream(
                    descriptor,
                    maximum: { RemoteMessage.maximumCount },
                    onMessage: { [weak self] in self?.take($0) ?? false },
                    onEnd: { [weak self] _ in self?.finish("badged-network has ended unexpectedly") }
                )
                run = (stream, process)
            } catch {
                Glibc.close(descriptor)
                if let process { ChildProcess.end(process) }
                throw .unavailable(error.description)
            }
            return true
        } catch {
            let words = error.text("the network")
            Task { @Loop [weak self] in self?.finish(words) }
            return false
        }
    }

    private func finish(_ reason: String) {
        let (oldSockets, oldLinks, oldConnections) = (sockets, links, connections)
        (sockets, links, connections, identity) = ([:], [:], [:], nil)
        if let run {
            self.run = nil
            run.stream.close()
            if let process = run.process { ChildProcess.end(process) }
        }
        for link in oldLinks.values { link.finish(.failed(reason)) }
        for connection in oldConnections.values { connection(true) }
        for socket in oldSockets.values { socket.tell(.failed(reason)) }
    }

    /// - Returns: false if a report is malformed. Reports about what this side has ended meanwhile are ignored.
    private func take(_ bytes: [UInt8]) -> Bool {
        guard let report = RemoteReport(bytes: bytes) else { return false }
        switch report {
        case .opened(let number, let port): sockets[number]?.tell(.opened(port: port))
        case .failed(let number, let text): sockets.removeValue(forKey: number)?.tell(.failed(text))
        case .datagram(let number, let bytes, let sender): sockets[number]?.tell(.datagram(bytes, sender))
        case .connection(let number, let connection, let sender):
            guard let socket = sockets[number] else {
                drop(connection)
                break
            }
            socket.tell(.connection(connection, sender))
        case .spoke(let connection): connections[connection]?(false)
        case .gone(let connection): connections.removeValue(forKey: connection)?(true)
        case .event(let number, let event):
            guard let link = links[number] else { break }
            if case .ended = event { links[number] = nil }
            guard link.yield(event) else {
                links[number] = nil
                link.finish(.violation)
                send(.closeLink(number, code: 1011))
                break
            }
        }
        return true
    }
}

/// A UDP or TCP socket for IPv4 and IPv6, on one interface or on all, in a run of badged-network.
@Loop package final class NetworkSocket {
    package enum Event {
        case opened(port: UInt16)
        /// The last event.
        case failed(String)
        case datagram([UInt8], RemoteAddress)
        case connection(UInt32, RemoteAddress)
    }

    package let interface: String?
    /// The own port; 0 until it is open.
    package private(set) var port: UInt16 = 0
    private let number: UInt32
    private weak var network: RemoteNetwork?
    private let events: @Loop (NetworkSocket, Event) -> Void
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
        (self.number, self.interface, self.network) = (number, interface, network)
        (self.step, self.events) = (step, events)
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
        giveCredit()
    }

    fileprivate func tell(_ event: Event) {
        guard network != nil else { return }
        switch event {
        case .opened(let port): self.port = port
        case .failed: network = nil
        case .datagram, .connection: taken += 1
        }
        events(self, event)
        giveCredit()
    }

    private func giveCredit() {
        guard isReading, taken >= step, let network else { return }
        network.send(.credit(socket: number, taken))
        taken = 0
    }
}
