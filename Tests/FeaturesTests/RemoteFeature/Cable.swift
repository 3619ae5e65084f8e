// SPDX-License-Identifier: GPL-3.0-or-later
import Concurrency
import Dispatch
import Glibc
import RemoteDevices
import Synchronization
import TestSupport

/// The network between desk and laptop. It passes the announcements and the connections of the desk on, and counts the
/// messages by their TLS records. It can be cut at any of them.
@Loop final class Cable {
    private let announcements: PortSocket
    private let connections: PortSocket
    private let counter = MessageCounter()
    private var certificate: [UInt8] = []
    private var laptop: UInt16 = 0
    /// The TCP port of the desk, after its first announcement.
    private(set) var desk: UInt16 = 0
    private var announced = 0
    private let changes = Changes()
    /// While false the laptop receives nothing from the desk.
    var isPlugged = true

    init() throws {
        announcements = try PortSocket(.datagrams, port: 0, interface: "lo")
        connections = try PortSocket(.connections, port: 0, interface: "lo")
        try announcements.whenReady { [weak self] in self?.passAnnouncements() }
        try connections.whenReady { [weak self] in self?.passConnections() }
    }

    var announcementPort: UInt16 { announcements.port }

    /// Where announcements go, and the certificate in them.
    func connect(_ certificate: [UInt8], to laptop: UInt16) { (self.certificate, self.laptop) = (certificate, laptop) }

    private func passAnnouncements() {
        while let (bytes, _) = announcements.receive(limit: Offer.maximumCount) {
            guard let offer = Offer(bytes) else { continue }
            (desk, announced) = (offer.port, announced + 1)
            changes.notify()
            guard isPlugged else { continue }
            let copy = Offer.encode(
                name: offer.name,
                certificate: certificate,
                port: connections.port,
                isPairing: offer.isPairing
            )
            announcements.send(copy, to: RemoteAddress(host: .loopback, port: laptop))
        }
    }

    /// Waits until the desk announces itself again, which it does while no device is connected.
    func nextAnnouncement() async {
        let before = announced
        await changes.wait { announced > before }
    }

    private func passConnections() {
        while let (socket, _) = connections.accept() {
            guard let other = try? LoopbackSocket.connect(port: desk) else {
                close(socket)
                continue
            }
            let pair = SocketPair(socket, other)
            for isForward in [true, false] {
                DispatchQueue(label: "cable").async { [counter] in pair.pump(isForward, counter) }
            }
        }
    }

    /// The messages since the last call of `cut`.
    var messages: Int { counter.state.withLock { $0.passed } }

    /// Whether the cable was cut since the last call of `cut`.
    var wasCut: Bool { counter.state.withLock { $0.wasCut } }

    /// Cuts the connection before the message with this index, counted from now; nil: not at all. The next connection works.
    func cut(before index: Int?) { counter.state.withLock { $0 = MessageCounter.State(cut: index) } }
}

/// Counts messages and decides which one is lost.
private final class MessageCounter: Sendable {
    struct State {
        var cut: Int?
        var passed = 0
        var wasCut = false
    }

    let state = Mutex(State())

    /// Whether a message passes. After a cut the next connection passes everything.
    func passes() -> Bool {
        state.withLock { state in
            if state.cut == state.passed {
                (state.cut, state.wasCut) = (nil, true)
                return false
            }
            state.passed += 1
            return true
        }
    }
}

/// Two sockets, between which two threads pass TLS records.
private final class SocketPair: Sendable {
    private let sockets: (Int32, Int32)

    init(_ first: Int32, _ second: Int32) { sockets = (first, second) }

    deinit {
        close(sockets.0)
        close(sockets.1)
    }

    func pump(_ isForward: Bool, _ counter: MessageCounter) {
        let (source, target) = isForward ? sockets : (sockets.1, sockets.0)
        var (buffer, chunk) = ([UInt8](), [UInt8](repeating: 0, count: 65_536))
        loop: while true {
            let count = recv(source, &chunk, chunk.count, 0)
            guard count > 0 else { break }
            buffer += chunk.prefix(count)
            // A record: its type, two bytes of version, two bytes of length. 23: application data, here one message.
            while buffer.count >= 5, buffer.count >= 5 + Int(buffer[3]) << 8 + Int(buffer[4]) {
                let length = 5 + Int(buffer[3]) << 8 + Int(buffer[4])
                if buffer[0] == 23, !counter.passes() { break loop }
                let record = Array(buffer.prefix(length))
                buffer.removeFirst(length)
                guard send(target, record, length, Int32(MSG_NOSIGNAL)) == length else { break loop }
            }
        }
        shutdown(sockets.0, Int32(SHUT_RDWR))
        shutdown(sockets.1, Int32(SHUT_RDWR))
    }
}
