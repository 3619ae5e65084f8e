// SPDX-License-Identifier: GPL-3.0-or-later
package import Concurrency
import Glibc
package import HTTP
import Host
import RemoteIFD
import Text

/// The work of badged-network for remote readers: has their sockets and links for badged, until badged closes the socket.
@Loop package final class RemoteJob {
    private var stream: JobStream?
    private let onEnd: @Loop () -> Void
    private var identity: RemoteIdentity?
    private var sockets: [UInt32: Port] = [:]
    private var links: [UInt32: DeviceLink] = [:]
    /// The connections without a link.
    private var connections: [UInt32: Connection] = [:]
    private var lastConnection: UInt32 = 0

    private struct Port {
        let socket: PortSocket
        let kind: PortKind
        /// How many datagrams or connections may be reported.
        var credit = RemoteJobMessage.firstCredit
    }

    private struct Connection {
        let socket: Int32
        let registration: Loop.Registration?
    }

    /// Takes the socket to badged. `onEnd` is called when badged has closed it, or has sent a message that is not as it
    /// must be.
    package init(socket: Int32, onEnd: @escaping @Loop () -> Void) throws(HTTPFault) {
        self.onEnd = onEnd
        stream = try JobStream(
            Network.Run(descriptor: socket, process: nil),
            asking: nil,
            maximum: { RemoteJobMessage.maximumCount },
            onMessage: { [weak self] in self?.handle($0) ?? false },
            onEnd: { [weak self] _ in self?.onEnd() }
        )
    }

    private func report(_ report: RemoteReport) { stream?.send(report.bytes) }

    private func handle(_ bytes: [UInt8]) -> Bool {
        guard let request = RemoteRequest(bytes: bytes) else { return false }
        switch request {
        case .identity(let key, let certificate):
            guard let key = key.take() else { return false }
            identity = try? RemoteIdentity(key: key, certificate: certificate)
            return identity != nil
        case .open(let number, let kind, let port, let interface): open(number, kind, port, interface)
        case .close(let number): sockets.removeValue(forKey: number)?.socket.close()
        case .credit(let number, let count):
            guard let credit = sockets[number]?.credit else { break }
            guard count <= RemoteJobMessage.maximumCredit - credit else { return false }
            sockets[number]?.credit = credit + count
            sockets[number]?.socket.read(true)
        case .join(let number): sockets[number]?.socket.joinAnnouncements()
        case .announce(let datagram, let interface, let addresses):
            guard let socket = try? PortSocket(.datagrams, port: 0, interface: interface) else { break }
            for address in addresses { socket.send(datagram, to: address) }
            socket.close()
        case .connect(let number, let address, let interface, let order):
            guard let link = link(number, order) else { return false }
            link.connect(to: address, interface: interface)
        case .serve(let number, let connection, let order):
            guard let waiting = connections.removeValue(forKey: connection) else {
                report(.event(link: number, .ended(.refused)))
                break
            }
            waiting.registration?.cancel()
            guard let link = link(number, order) else {
                Glibc.close(waiting.socket)
                return false
            }
            link.serve(waiting.socket)
        case .drop(let connection): drop(connection)
        case .message(let number, let bytes): links[number]?.send(bytes)
        case .closeLink(let number, let code): links[number]?.close(code)
        }
        return true
    }

    // MARK: Sockets

    private func open(_ number: UInt32, _ kind: PortKind, _ port: UInt16, _ interface: String?) {
        do throws(SystemError) {
            let socket = try PortSocket(kind, port: port, interface: interface)
            try socket.whenReady { [weak self] in self?.read(number) }
            sockets[number] = Port(socket: socket, kind: kind)
            report(.opened(socket: number, port: socket.port))
        } catch {
            report(.failed(socket: number, error.description))
        }
    }

    private func read(_ number: UInt32) {
        while let port = sockets[number] {
            guard port.credit > 0 else { return port.socket.read(false) }
            switch port.kind {
            case .datagrams:
                guard let (bytes, sender) = port.socket.receive(limit: Offer.maximumCount) else { return }
                report(.datagram(socket: number, bytes, sender))
            case .connections:
                guard let (connection, sender) = port.socket.accept() else { return }
                add(connection, sender, number)
            }
            sockets[number]?.credit -= 1
        }
    }

    private func add(_ socket: Int32, _ sender: RemoteAddress, _ port: UInt32) {
        lastConnection += 1
        let number = lastConnection
        let registration = try? Loop.watch(socket, .read) { [weak self] _ in self?.spoke(number) }
        connections[number] = Connection(socket: socket, registration: registration)
        report(.connection(socket: port, number, sender))
        // A handshake that is here already begins now.
        spoke(number)
    }

    private func spoke(_ number: UInt32) {
        guard let connection = connections[number] else { return }
        var byte: UInt8 = 0
        let count = recv(connection.socket, &byte, 1, Int32(MSG_PEEK) | Int32(MSG_DONTWAIT))
        if count < 0, errno == EAGAIN { return }
        if count > 0 {
            connection.registration?.cancel()
            report(.spoke(connection: number))
        } else {
            drop(number)
            report(.gone(connection: number))
        }
    }

    private func drop(_ number: UInt32) {
        guard let connection = connections.removeValue(forKey: number) else { return }
        connection.registration?.cancel()
        Glibc.close(connection.socket)
    }

    // MARK: Links

    /// Makes a link that has no connection yet; nil if the key of this host is missing.
    private func link(_ number: UInt32, _ order: LinkOrder) -> DeviceLink? {
        guard let identity else { return nil }
        let link = DeviceLink(identity, order.security, order.times) { [weak self] event in
            if case .ended = event { self?.links[number] = nil }
            self?.report(.event(link: number, event))
        }
        links[number] = link
        return link
    }
}
