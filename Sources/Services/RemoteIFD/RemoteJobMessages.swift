// SPDX-License-Identifier: GPL-3.0-or-later
package import Secrets
import Text

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
        (self.security, self.times) = (security, times)
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

package enum RemoteMessage {
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

extension RemoteRequest {
    package var bytes: [UInt8] {
        var writer: MessageWriter
        switch self {
        case .identity(let key, let certificate):
            writer = MessageWriter(kind: 16)
            writer.append(block: key)
            writer.append(block: certificate)
        case .open(let socket, let kind, let port, let interface):
            writer = MessageWriter(kind: 17)
            writer.append(socket)
            writer.append(kind.rawValue)
            writer.append(port)
            writer.append(text: interface ?? "")
        case .close(let socket):
            writer = MessageWriter(kind: 18)
            writer.append(socket)
        case .credit(let socket, let count):
            writer = MessageWriter(kind: 19)
            writer.append(socket)
            writer.append(count)
        case .join(let socket):
            writer = MessageWriter(kind: 20)
            writer.append(socket)
        case .announce(let datagram, let interface, let addresses):
            writer = MessageWriter(kind: 21)
            writer.append(block: datagram)
            writer.append(text: interface)
            writer.append(list: addresses) { $1.write(to: &$0) }
        case .connect(let link, let address, let interface, let order):
            writer = MessageWriter(kind: 22)
            writer.append(link)
            address.write(to: &writer)
            writer.append(text: interface ?? "")
            order.write(to: &writer)
        case .serve(let link, let connection, let order):
            writer = MessageWriter(kind: 23)
            writer.append(link)
            writer.append(connection)
            order.write(to: &writer)
        case .drop(let connection):
            writer = MessageWriter(kind: 24)
            writer.append(connection)
        case .message(let link, let bytes):
            writer = MessageWriter(kind: 25)
            writer.append(link)
            writer.append(block: bytes)
        case .closeLink(let link, let code):
            writer = MessageWriter(kind: 26)
            writer.append(link)
            writer.append(code)
        }
        return writer.bytes
    }

    /// Parses a message; fails when the message is malformed.
    package init?(bytes: [UInt8]) {
        var reader = MessageReader(bytes)
        guard let kind = reader.number(UInt8.self), let request = Self.read(kind, &reader), reader.isAtEnd else {
            return nil
        }
        self = request
    }

    private static func read(_ kind: UInt8, _ reader: inout MessageReader) -> RemoteRequest? {
        if kind == 16 {
            guard let key = reader.block(), let certificate = reader.block() else { return nil }
            return .identity(key: SecretBox(Secret(key)), certificate: certificate)
        }
        if kind == 21 {
            guard let datagram = reader.block(), let interface = reader.text(),
                let addresses = reader.list(maximum: RemoteMessage.maximumAddresses, { RemoteAddress(&$0) })
            else { return nil }
            return .announce(datagram, interface: interface, addresses)
        }
        guard let number = reader.number(UInt32.self) else { return nil }
        switch kind {
        case 17:
            guard let kind = reader.number(UInt8.self).flatMap(PortKind.init(rawValue:)),
                let port = reader.number(UInt16.self), let interface = reader.text()
            else { return nil }
            return .open(socket: number, kind: kind, port: port, interface: interface.isEmpty ? nil : interface)
        case 18: return .close(socket: number)
        case 19: return reader.number(UInt32.self).map { .credit(socket: number, $0) }
        case 20: return .join(socket: number)
        case 22:
            guard let address = RemoteAddress(&reader), let interface = reader.text(), let order = LinkOrder(&reader)
            else { return nil }
            return .connect(link: number, address, interface: interface.isEmpty ? nil : interface, order)
        case 23:
            guard let connection = reader.number(UInt32.self), let order = LinkOrder(&reader) else { return nil }
            return .serve(link: number, connection: connection, order)
        case 24: return .drop(connection: number)
        case 25: return reader.block().map { .message(link: number, $0) }
        case 26: return reader.number(UInt16.self).map { .closeLink(number, code: $0) }
        default: return nil
        }
    }
}

extension MessageWriter {
    /// Takes a secret and appends it; nothing if it was taken before.
    fileprivate mutating func append(block secret: SecretBox) {
        guard let secret = secret.take() else { return append(block: []) }
        secret.withBytes { append(block: $0) }
    }
}

extension LinkOrder {
    /// The code is taken.
    fileprivate func write(to writer: inout MessageWriter) {
        switch security {
        case .pairing(let code, let device):
            writer.append(UInt8(0))
            writer.append(block: code)
            writer.append(text: device ?? "")
        case .paired(let trusted):
            writer.append(UInt8(1))
            writer.append(list: trusted.sorted()) { $0.append(text: $1) }
        }
        for time in [times.setUp, times.ping, times.pong, times.answer] { writer.append(time) }
    }

    fileprivate init?(_ reader: inout MessageReader) {
        let security: LinkSecurity
        switch reader.number(UInt8.self) {
        case 0:
            guard let code = reader.block(), let device = reader.text() else { return nil }
            security = .pairing(code: SecretBox(Secret(code)), device: device.isEmpty ? nil : device)
        case 1:
            guard let trusted = reader.list(maximum: RemoteMessage.maximumDevices, { $0.text() }) else { return nil }
            security = .paired(trusted: Set(trusted))
        default: return nil
        }
        var times = RemoteLink.Times()
        guard let setUp = reader.number(Int64.self), let ping = reader.number(Int64.self),
            let pong = reader.number(Int64.self), let answer = reader.number(Int64.self)
        else { return nil }
        (times.setUp, times.ping, times.pong, times.answer) = (setUp, ping, pong, answer)
        self.init(security, times)
    }
}

extension RemoteAddress {
    fileprivate func write(to writer: inout MessageWriter) {
        switch host {
        case .four(let number):
            writer.append(UInt8(4))
            writer.append(number)
        case .six(let bytes, let scope):
            writer.append(UInt8(6))
            for byte in bytes { writer.append(byte) }
            writer.append(scope)
        }
        writer.append(port)
    }

    fileprivate init?(_ reader: inout MessageReader) {
        let host: Host
        switch reader.number(UInt8.self) {
        case 4:
            guard let number = reader.number(UInt32.self) else { return nil }
            host = .four(number)
        case 6:
            let bytes = (0..<16).compactMap { _ in reader.number(UInt8.self) }
            guard bytes.count == 16, let scope = reader.number(UInt32.self) else { return nil }
            host = .six(bytes, scope: scope)
        default: return nil
        }
        guard let port = reader.number(UInt16.self) else { return nil }
        self.init(host: host, port: port)
    }
}

// MARK: Reports

extension RemoteReport {
    package var bytes: [UInt8] {
        var writer: MessageWriter
        switch self {
        case .opened(let socket, let port):
            writer = MessageWriter(kind: 1)
            writer.append(socket)
            writer.append(port)
        case .failed(let socket, let text):
            writer = MessageWriter(kind: 2)
            writer.append(socket)
            writer.append(text: text)
        case .datagram(let socket, let bytes, let sender):
            writer = MessageWriter(kind: 3)
            writer.append(socket)
            writer.append(block: bytes)
            sender.write(to: &writer)
        case .connection(let socket, let connection, let sender):
            writer = MessageWriter(kind: 4)
            writer.append(socket)
            writer.append(connection)
            sender.write(to: &writer)
        case .spoke(let connection):
            writer = MessageWriter(kind: 5)
            writer.append(connection)
        case .gone(let connection):
            writer = MessageWriter(kind: 6)
            writer.append(connection)
        case .event(let link, .opened(let device)):
            writer = MessageWriter(kind: 7)
            writer.append(link)
            writer.append(text: device)
        case .event(let link, .message(let bytes)):
            writer = MessageWriter(kind: 8)
            writer.append(link)
            writer.append(block: bytes)
        case .event(let link, .ended(let ending)):
            writer = MessageWriter(kind: 9)
            writer.append(link)
            ending.write(to: &writer)
        }
        return writer.bytes
    }

    /// Parses a message; fails when the message is malformed.
    package init?(bytes: [UInt8]) {
        var reader = MessageReader(bytes)
        guard let kind = reader.number(UInt8.self), let number = reader.number(UInt32.self),
            let report = Self.read(kind, number, &reader), reader.isAtEnd
        else { return nil }
        self = report
    }

    private static func read(_ kind: UInt8, _ number: UInt32, _ reader: inout MessageReader) -> RemoteReport? {
        switch kind {
        case 1: return reader.number(UInt16.self).map { .opened(socket: number, port: $0) }
        case 2: return reader.text().map { .failed(socket: number, $0) }
        case 3:
            guard let bytes = reader.block(), let sender = RemoteAddress(&reader) else { return nil }
            return .datagram(socket: number, bytes, sender)
        case 4:
            guard let connection = reader.number(UInt32.self), let sender = RemoteAddress(&reader) else { return nil }
            return .connection(socket: number, connection, sender)
        case 5: return .spoke(connection: number)
        case 6: return .gone(connection: number)
        case 7: return reader.text().map { .event(link: number, .opened(device: $0)) }
        case 8: return reader.block().map { .event(link: number, .message($0)) }
        case 9: return RemoteLink.Ending(&reader).map { .event(link: number, .ended($0)) }
        default: return nil
        }
    }
}

extension RemoteLink.Ending {
    fileprivate func write(to writer: inout MessageWriter) {
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
        writer.append(kind)
        writer.append(code)
        writer.append(text: text)
    }

    fileprivate init?(_ reader: inout MessageReader) {
        guard let kind = reader.number(UInt8.self), let code = reader.number(UInt16.self), let text = reader.text()
        else { return nil }
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
        default: return nil
        }
    }
}
