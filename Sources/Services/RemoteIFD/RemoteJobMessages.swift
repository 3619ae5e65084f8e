// SPDX-License-Identifier: GPL-3.0-or-later
package import Text

// badged and the run of badged-network that has the sockets and links of remote readers talk over a stream socket. Each
// message follows its length in four bytes. badged gives each socket and link its number, badged-network each connection.

/// A message from badged to badged-network.
package enum RemoteRequest: Sendable {
    /// The key and the certificate of this host, before the first link.
    case identity(key: SecretBox, certificate: [UInt8])
    case open(socket: UInt32, kind: PortKind, port: UInt16, interface: String?)
    case close(socket: UInt32)
    /// As many more datagrams or connections may be reported.
    case credit(socket: UInt32, UInt32)
    /// Join the multicast group of announcements, also on interfaces that are new.
    case join(socket: UInt32)
    /// Send a datagram to each address, on one interface.
    case announce([UInt8], interface: String, [RemoteAddress])
    case connect(link: UInt32, RemoteAddress, interface: String?, LinkOrder)
    case serve(link: UInt32, connection: UInt32, LinkOrder)
    /// Close a connection that has no link.
    case drop(connection: UInt32)
    case message(link: UInt32, [UInt8])
    case closeLink(UInt32, code: UInt16)
}

package enum PortKind: UInt8, Sendable { case datagrams, connections }

/// How a link is made.
package struct LinkOrder: Sendable {
    package let security: LinkSecurity
    package let times: RemoteLink.Times

    package init(_ security: LinkSecurity, _ times: RemoteLink.Times) {
        self.security = security
        self.times = times
    }
}

/// A message from badged-network to badged.
package enum RemoteReport: Sendable, Equatable {
    case opened(socket: UInt32, port: UInt16)
    /// The socket could not be opened; the text says why.
    case failed(socket: UInt32, String)
    case datagram(socket: UInt32, [UInt8], RemoteAddress)
    case connection(socket: UInt32, UInt32, RemoteAddress)
    /// The other side of a connection has sent its first byte.
    case spoke(connection: UInt32)
    /// The other side has closed a connection that has no link.
    case gone(connection: UInt32)
    case event(link: UInt32, RemoteLink.Event)
}

package enum RemoteJobMessage {
    /// The first byte of each request; those of `NetworkRequest` are smaller.
    package static let firstKind: UInt8 = 16
    /// The largest messages are those of a link.
    package static let maximumCount = IFDMessage.maximumCount + 4096
    /// How many datagrams or connections a new socket may report.
    package static let firstCredit: UInt32 = 64
    /// The maximum credit of a socket.
    package static let maximumCredit: UInt32 = 1024
    static let maximumDevices = 4096
    static let maximumAddresses = 64
}

// MARK: Requests

extension RemoteRequest: FieldMessage {
    package var bytes: [UInt8] {
        switch self {
        case .identity(let key, let certificate): return MessageWriter(kind: 16, key, certificate).bytes
        case .open(let socket, let kind, let port, let interface):
            return MessageWriter(kind: 17, socket, kind, port, interface).bytes
        case .close(let socket): return MessageWriter(kind: 18, socket).bytes
        case .credit(let socket, let count): return MessageWriter(kind: 19, socket, count).bytes
        case .join(let socket): return MessageWriter(kind: 20, socket).bytes
        case .announce(let datagram, let interface, let addresses):
            var writer = MessageWriter(kind: 21, datagram, interface)
            writer.append(list: addresses)
            return writer.bytes
        case .connect(let link, let address, let interface, let order):
            return MessageWriter(kind: 22, link, address, interface, order).bytes
        case .serve(let link, let connection, let order): return MessageWriter(kind: 23, link, connection, order).bytes
        case .drop(let connection): return MessageWriter(kind: 24, connection).bytes
        case .message(let link, let bytes): return MessageWriter(kind: 25, link, bytes).bytes
        case .closeLink(let link, let code): return MessageWriter(kind: 26, link, code).bytes
        }
    }

    package init(kind: UInt8, _ reader: inout MessageReader) throws(Malformed) {
        switch kind {
        case 16: self = .identity(key: try reader.read(), certificate: try reader.read())
        case 17:
            self = .open(
                socket: try reader.read(),
                kind: try reader.read(),
                port: try reader.read(),
                interface: try reader.read()
            )
        case 18: self = .close(socket: try reader.read())
        case 19: self = .credit(socket: try reader.read(), try reader.read())
        case 20: self = .join(socket: try reader.read())
        case 21:
            self = .announce(
                try reader.read(),
                interface: try reader.read(),
                try reader.list(maximum: RemoteJobMessage.maximumAddresses)
            )
        case 22:
            self = .connect(link: try reader.read(), try reader.read(), interface: try reader.read(), try reader.read())
        case 23: self = .serve(link: try reader.read(), connection: try reader.read(), try reader.read())
        case 24: self = .drop(connection: try reader.read())
        case 25: self = .message(link: try reader.read(), try reader.read())
        case 26: self = .closeLink(try reader.read(), code: try reader.read())
        default: throw Malformed("kind of a request")
        }
    }
}

extension PortKind: MessageField {}

/// The writer takes the secret, and writes nothing if it was taken before.
extension SecretBox: MessageField {
    package func write(to writer: inout MessageWriter) {
        guard let secret = take() else { return writer.append(block: []) }
        secret.withBytes { writer.append(block: $0) }
    }

    package convenience init(from reader: inout MessageReader) throws(Malformed) {
        var bytes: [UInt8] = try reader.read()
        defer { bytes.wipe() }
        self.init(Secret(bytes))
    }
}

/// The code is taken.
extension LinkOrder: MessageField {
    package func write(to writer: inout MessageWriter) {
        switch security {
        case .pairing(let code, let device): writer.append(fields: [UInt8(0), code, device])
        case .paired(let trusted):
            writer.append(UInt8(1))
            writer.append(list: trusted.sorted())
        }
        writer.append(fields: [times.setUp, times.ping, times.pong, times.answer])
    }

    package init(from reader: inout MessageReader) throws(Malformed) {
        switch try reader.read(UInt8.self) {
        case 0: security = .pairing(code: try reader.read(), device: try reader.read())
        case 1: security = .paired(trusted: Set(try reader.list(maximum: RemoteJobMessage.maximumDevices)))
        default: throw Malformed("security of a link")
        }
        var times = RemoteLink.Times()
        times.setUp = try reader.read()
        times.ping = try reader.read()
        times.pong = try reader.read()
        times.answer = try reader.read()
        self.times = times
    }
}

extension RemoteAddress: MessageField {
    package func write(to writer: inout MessageWriter) {
        switch host {
        case .four(let number): writer.append(fields: [UInt8(4), number])
        case .six(let bytes, let scope):
            writer.append(UInt8(6))
            writer.append(bytes)
            writer.append(scope)
        }
        writer.append(port)
    }

    package init(from reader: inout MessageReader) throws(Malformed) {
        let host: Host
        switch try reader.read(UInt8.self) {
        case 4: host = .four(try reader.read())
        case 6:
            let bytes = try (0..<16).map { _ throws(Malformed) in try reader.read(UInt8.self) }
            host = .six(bytes, scope: try reader.read())
        default: throw Malformed("kind of an address")
        }
        self.init(host: host, port: try reader.read())
    }
}

// MARK: Reports

extension RemoteReport: FieldMessage {
    package var bytes: [UInt8] {
        switch self {
        case .opened(let socket, let port): MessageWriter(kind: 1, socket, port).bytes
        case .failed(let socket, let text): MessageWriter(kind: 2, socket, text).bytes
        case .datagram(let socket, let bytes, let sender): MessageWriter(kind: 3, socket, bytes, sender).bytes
        case .connection(let socket, let connection, let sender):
            MessageWriter(kind: 4, socket, connection, sender).bytes
        case .spoke(let connection): MessageWriter(kind: 5, connection).bytes
        case .gone(let connection): MessageWriter(kind: 6, connection).bytes
        case .event(let link, .opened(let device)): MessageWriter(kind: 7, link, device).bytes
        case .event(let link, .message(let bytes)): MessageWriter(kind: 8, link, bytes).bytes
        case .event(let link, .ended(let ending)): MessageWriter(kind: 9, link, ending).bytes
        }
    }

    package init(kind: UInt8, _ reader: inout MessageReader) throws(Malformed) {
        let number: UInt32 = try reader.read()
        switch kind {
        case 1: self = .opened(socket: number, port: try reader.read())
        case 2: self = .failed(socket: number, try reader.read())
        case 3: self = .datagram(socket: number, try reader.read(), try reader.read())
        case 4: self = .connection(socket: number, try reader.read(), try reader.read())
        case 5: self = .spoke(connection: number)
        case 6: self = .gone(connection: number)
        case 7: self = .event(link: number, .opened(device: try reader.read()))
        case 8: self = .event(link: number, .message(try reader.read()))
        case 9: self = .event(link: number, .ended(try reader.read()))
        default: throw Malformed("kind of a report")
        }
    }
}

extension RemoteLink.Ending: MessageField {
    package func write(to writer: inout MessageWriter) {
        let (kind, code, text): (UInt8, UInt16, String) =
            switch self {
            case .closed(let code): (0, code, "")
            case .wrongCode: (1, 0, "")
            case .untrusted: (2, 0, "")
            case .refused: (3, 0, "")
            case .rejected: (4, 0, "")
            case .unreachable: (5, 0, "")
            case .silent: (6, 0, "")
            case .violation: (7, 0, "")
            case .failed(let text): (8, 0, text)
            }
        writer.append(fields: [kind, code, text])
    }

    package init(from reader: inout MessageReader) throws(Malformed) {
        let (kind, code, text): (UInt8, UInt16, String) = (try reader.read(), try reader.read(), try reader.read())
        switch kind {
        case 0: self = .closed(code)
        case 1: self = .wrongCode
        case 2: self = .untrusted
        case 3: self = .refused
        case 4: self = .rejected
        case 5: self = .unreachable
        case 6: self = .silent
        case 7: self = .violation
        case 8: self = .failed(text)
        default: throw Malformed("ending of a link")
        }
    }
}
