// SPDX-License-Identifier: GPL-3.0-or-later
import Crypto
import Glibc
import RemoteIFD
import WebSocket

/// Where the connection of a link comes from.
enum LinkStart: Sendable {
    case connect(RemoteAddress, interface: String?)
    /// An accepted connection.
    case serve(Int32)

    var isServer: Bool {
        if case .serve = self { true } else { false }
    }
}

/// The WebSocket of one link: the work of its thread.
final class LinkWork {
    private let link: LinkThread
    private let times: RemoteLink.Times
    private let transport: LinkTransport

    init(_ link: LinkThread, _ settings: LinkSettings) {
        (self.link, times, transport) = (link, settings.times, LinkTransport(link, settings))
    }

    func run(_ start: LinkStart) -> RemoteLink.Ending {
        do throws(LinkStop) {
            var host = ""
            switch start {
            case .connect(let address, let interface):
                host = address.description
                try transport.connect(address, interface)
            case .serve(let socket): transport.take(socket)
            }
            let deadline = transport.now + times.setUp
            try transport.handshake(isServer: start.isServer, until: deadline)
            let rest = start.isServer ? try acceptWebSocket(deadline) : try openWebSocket(host, deadline)
            transport.isOpen = true
            try link.yield(.opened(device: transport.device))
            return try exchange(start.isServer, rest)
        } catch {
            return error.ending
        }
    }

    // MARK: HTTP

    /// Runs the HTTP exchange of a client, and returns the bytes that were received after it.
    private func openWebSocket(_ host: String, _ deadline: Int64) throws(LinkStop) -> [UInt8] {
        guard let key = try? WebSocketHandshake.makeKey() else { throw LinkStop(.failed("no random bytes")) }
        try transport.write(WebSocketHandshake.request(host: host, key: key))
        let (head, rest) = try readHead(deadline)
        guard WebSocketHandshake.isAccepted(head, key: key) else { throw LinkStop(.violation) }
        return rest
    }

    private func acceptWebSocket(_ deadline: Int64) throws(LinkStop) -> [UInt8] {
        let (head, rest) = try readHead(deadline)
        guard let answer = WebSocketHandshake.answer(to: head) else { throw LinkStop(.violation) }
        try transport.write(answer)
        return rest
    }

    /// Reads the head of an HTTP request or response, and the bytes that were received after it.
    private func readHead(_ deadline: Int64) throws(LinkStop) -> (head: [UInt8], rest: [UInt8]) {
        var bytes: [UInt8] = []
        while true {
            if let count = WebSocketHandshake.headCount(bytes) {
                return (Array(bytes.prefix(count)), Array(bytes.dropFirst(count)))
            }
            guard bytes.count <= WebSocketHandshake.maximumCount else { throw LinkStop(.violation) }
            if let more = try transport.receive() {
                bytes += more
            } else {
                try transport.wait(Int32(POLLIN), until: deadline)
            }
        }
    }

    // MARK: Frames

    private func exchange(_ isServer: Bool, _ first: [UInt8]) throws(LinkStop) -> RemoteLink.Ending {
        let writer = WebSocketWriter(isMasked: !isServer)
        var reader = WebSocketReader(isMasked: isServer, limit: IFDMessage.maximumCount)
        reader.append(first)
        var (lastMessage, pingTime, pongLimit) = (Int64(0), transport.now + times.ping, Int64?.none)
        while true {
            let (messages, code) = (link.takeMessages(), link.closeCode)
            if !messages.isEmpty, isServer, transport.now - lastMessage <= times.answer {
                usleep(UInt32(times.answer) * 1000)
            }
            for message in messages { try transport.write(frame(writer, .text, message)) }
            if let code { return leave(writer, code, .closed(code)) }
            while let event = reader.next() {
                switch event {
                case .text(let message):
                    lastMessage = transport.now
                    try link.yield(.message(message))
                case .binary: break
                case .ping(let payload): try transport.write(frame(writer, .pong, payload))
                case .pong: (pingTime, pongLimit) = (transport.now + times.ping, nil)
                case .close(let code): return leave(writer, code == 1005 ? 1000 : code, .closed(code))
                case .violation(let code): return leave(writer, code, .violation)
                }
            }
            if let bytes = try transport.receive() {
                reader.append(bytes)
                continue
            }
            let time = transport.now
            if let limit = pongLimit, time >= limit { return leave(writer, 1000, .silent) }
            if pongLimit == nil, time >= pingTime {
                try transport.write(frame(writer, .ping, []))
                pongLimit = time + times.pong
            }
            transport.poll(Int32(POLLIN), max((pongLimit ?? pingTime) - transport.now, 0))
        }
    }

    /// Closes the WebSocket with a code.
    private func leave(_ writer: WebSocketWriter, _ code: UInt16, _ ending: RemoteLink.Ending) -> RemoteLink.Ending {
        if let frame = try? writer.close(code) { try? transport.write(frame) }
        transport.shutDown()
        return ending
    }

    private func frame(_ writer: WebSocketWriter, _ opcode: WebSocketWriter.Opcode, _ payload: [UInt8]) -> [UInt8] {
        (try? writer.frame(opcode, payload)) ?? []
    }
}
