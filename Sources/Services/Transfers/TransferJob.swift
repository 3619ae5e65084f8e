// SPDX-License-Identifier: GPL-3.0-or-later
import CCurl
import CLinux
import Concurrency
import Glibc
import HTTP
import Host
import Text

/// The work of badged-network: runs transfers for badged, one after the other, until badged closes the socket.
package final class TransferJob {
    private let socket: Int32
    private var sessions: [UInt8: (curl: CurlSession, guard: ServiceGuard?)] = [:]

    package init(socket: Int32) { self.socket = socket }

    /// Says why libcurl cannot be used, or nil.
    package static var fault: String? { ccurl_start() ? nil : "libcurl cannot be initialised" }

    /// Serves until badged closes the socket, or sends a message that is not as it must be.
    package func serve() {
        while let request = next(), handle(request) {}
    }

    /// - Returns: whether the request was allowed.
    private func handle(_ request: NetworkRequest) -> Bool {
        switch request {
        case .open(let number, let trust):
            guard number <= NetworkMessage.maximumSessions, sessions[number] == nil,
                let session = session(trust)
            else { return false }
            sessions[number] = session
        case .transfer(let transfer):
            guard let session = sessions[transfer.session] else { return false }
            session.guard?.conditions = transfer.conditions
            let result = Result { () throws(HTTPFault) in
                Self.read(try session.curl.run(transfer), transfer.request)
            }
            let report = NetworkReport(
                number: transfer.number,
                result,
                handshakes: session.guard?.handshakes ?? [],
                notes: session.guard?.notes ?? []
            )
            return send(report.bytes)
        case .listen(let port):
            listen(port)
            return false
        case .askOwner(let port):
            reply(LoopbackSockets.askOwnerToShowItself(port: port) ?? "")
            return false
        case .stop:
            // Its arrival has ended the transfer.
            break
        }
        return true
    }

    private func session(_ trust: TLSTrust) -> (curl: CurlSession, guard: ServiceGuard?)? {
        let mayGoOn = { [weak self] in self?.answerHeartbeat() ?? false }
        switch trust {
        case .system: return CurlSession(nil, stop: socket, mayGoOn: mayGoOn).map { ($0, nil) }
        case .authorities(let certificates):
            return CurlSession(nil, authorities: certificates, stop: socket, mayGoOn: mayGoOn).map { ($0, nil) }
        case .service(let key, let isDeveloperMode):
            let rules = ServiceGuard(key, isDeveloperMode: isDeveloperMode)
            return CurlSession(rules, stop: socket, mayGoOn: mayGoOn).map { ($0, rules) }
        }
    }

    /// Answers a question of `Heartbeat`, if that is the next message. Every other message ends a transfer.
    private func answerHeartbeat() -> Bool {
        let question = Self.framed(Heartbeat.message)
        var head = [UInt8](repeating: 0, count: question.count)
        // No message is shorter.
        guard recv(socket, &head, head.count, Int32(MSG_PEEK) | Int32(MSG_WAITALL)) == head.count, head == question
        else { return false }
        return receive(head.count) != nil && send(Heartbeat.message)
    }

    /// Reads the document of an answer, if the request asks for it.
    private static func read(_ response: HTTPResponse, _ request: HTTPRequest) -> HTTPResponse {
        guard request.readsDocument, response.status == 200, response.body.contains(where: { $0 > 0x20 }) else {
            return response
        }
        var read = HTTPResponse(status: response.status, headers: response.headers)
        read.document = Result { () throws(Malformed) in
            try XMLReader.read(response.body, maximumLength: request.maximumLength)
        }
        return read
    }

    /// Passes a descriptor with each message; a message without one has errno in digits.
    private func listen(_ port: UInt16) {
        do throws(SystemError) {
            for descriptor in try LoopbackSockets.open(port: port) {
                _ = clinux_pass_descriptor(socket, descriptor, [1], 1)
            }
        } catch {
            reply("\(error.code)")
        }
    }

    /// Sends a text without its length, as the end of a job.
    private func reply(_ text: String) { _ = Glibc.send(socket, text, text.utf8.count, Int32(MSG_NOSIGNAL)) }

    // MARK: Messages

    /// The next message; nil at the end of the socket, or if the message is not as it must be. Its bytes are wiped: they may
    /// hold a key or a password.
    private func next() -> NetworkRequest? {
        while answerHeartbeat() {}
        guard let head = receive(4) else { return nil }
        let length = head.reduce(0) { $0 << 8 | Int($1) }
        guard length <= NetworkMessage.maximumRequest, var bytes = receive(length) else { return nil }
        defer { bytes.wipe() }
        return NetworkRequest(bytes: bytes)
    }

    private func receive(_ count: Int) -> [UInt8]? {
        var bytes = [UInt8](repeating: 0, count: count)
        var filled = 0
        while filled < count {
            let read = bytes.withUnsafeMutableBytes { bytes in
                recv(socket, bytes.baseAddress.map { $0 + filled }, count - filled, 0)
            }
            if read < 0, errno == EINTR { continue }
            guard read > 0 else { return nil }
            filled += read
        }
        return bytes
    }

    private static func framed(_ message: [UInt8]) -> [UInt8] {
        ProgramChannel.length(of: message) + message
    }

    private func send(_ bytes: [UInt8]) -> Bool {
        let message = Self.framed(bytes)
        var sent = 0
        while sent < message.count {
            let count = message.withUnsafeBytes { message in
                Glibc.send(socket, message.baseAddress.map { $0 + sent }, message.count - sent, Int32(MSG_NOSIGNAL))
            }
            if count < 0, errno == EINTR { continue }
            guard count > 0 else { return false }
            sent += count
        }
        return true
    }
}
