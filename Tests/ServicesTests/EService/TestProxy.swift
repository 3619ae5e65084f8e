// SPDX-License-Identifier: GPL-3.0-or-later
import Foundation
import Glibc
import Synchronization
import TestSupport

/// An HTTP proxy on loopback that supports only CONNECT. It is not a fake: it opens real tunnels.
final class TestProxy: Sendable {
    enum Behaviour: Sendable {
        /// Opens tunnels; with credentials only for a client that sends this base64 text.
        case opens(credentials: String? = nil)
        /// Answers these bytes and closes.
        case answers([UInt8])
        /// Answers these bytes and keeps the connection open.
        case keepsOpen([UInt8])
        /// Opens the first tunnels, and then refuses.
        case opensFirst(Int)
    }

    let port: UInt16
    private let listener: SharedDescriptor
    private let behaviour: Behaviour
    private let state = Mutex<(requests: [String], descriptors: [Int32])>(([], []))

    /// The lines of all requests so far.
    var requests: [String] { state.withLock { $0.requests } }

    init(_ behaviour: Behaviour = .opens()) throws {
        self.behaviour = behaviour
        let (socket, port) = try LoopbackSocket.listen()
        (listener, self.port) = (SharedDescriptor(socket), port)
        Thread.detachNewThread { [behaviour, listener, weak self] in
            var count = 0
            while true {
                let client = accept(listener.number, nil, nil)
                guard client >= 0 else { return }
                self?.keep(client)
                count += 1
                let number = count
                Thread.detachNewThread { [weak self] in Self.serve(client, behaviour, number) { self?.note($0) } }
            }
        }
    }

    deinit {
        listener.shutDown()
        state.withLock { for descriptor in $0.descriptors { shutdown(descriptor, Int32(SHUT_RDWR)) } }
    }

    private func keep(_ descriptor: Int32) { state.withLock { $0.descriptors.append(descriptor) } }

    private func note(_ request: String) { state.withLock { $0.requests.append(request) } }

    private static func serve(_ client: Int32, _ behaviour: Behaviour, _ number: Int, note: (String) -> Void) {
        while let request = readRequest(client) {
            note(request)
            switch behaviour {
            case .answers(let bytes):
                send(client, bytes)
                shutdown(client, Int32(SHUT_RDWR))
                return
            case .keepsOpen(let bytes): send(client, bytes)
            case .opensFirst(let count) where number > count:
                send(client, Array("HTTP/1.1 403 Forbidden\r\nContent-Length: 0\r\n\r\n".utf8))
            case .opens(.some(let credentials)) where !request.contains("Proxy-Authorization: Basic \(credentials)\r\n"):
                let challenge = "Proxy-Authenticate: Basic realm=\"test\"\r\nContent-Length: 0\r\n\r\n"
                send(client, Array("HTTP/1.1 407 Proxy Authentication Required\r\n\(challenge)".utf8))
            case .opens, .opensFirst: return tunnel(client, request)
            }
        }
    }

    private static func readRequest(_ client: Int32) -> String? {
        var bytes: [UInt8] = []
        while !bytes.suffix(4).elementsEqual("\r\n\r\n".utf8) {
            guard bytes.count < 16_384, let byte = BlockingSocket.receive(1, from: client) else { return nil }
            bytes += byte
        }
        return String(decoding: bytes, as: UTF8.self)
    }

    private static func send(_ descriptor: Int32, _ bytes: [UInt8]) {
        BlockingSocket.send(bytes, to: descriptor)
    }

    /// Connects to the port that the client names, on loopback, and copies in both directions.
    private static func tunnel(_ client: Int32, _ request: String) {
        let target = request.split(separator: " ").dropFirst().first ?? ""
        guard let port = target.split(separator: ":").last.flatMap({ UInt16($0) }) else { return }
        guard let server = try? LoopbackSocket.connect(port: port) else {
            return send(client, Array("HTTP/1.1 502 Bad Gateway\r\n\r\n".utf8))
        }
        send(client, Array("HTTP/1.1 200 Connection established\r\nVia: a proxy\r\n\r\n".utf8))
        Thread.detachNewThread { copy(from: server, to: client) }
        copy(from: client, to: server)
    }

    private static func copy(from source: Int32, to target: Int32) {
        while let part = BlockingSocket.receive(from: source), BlockingSocket.send(part, to: target) {}
        shutdown(source, Int32(SHUT_RDWR))
        shutdown(target, Int32(SHUT_RDWR))
    }
}
