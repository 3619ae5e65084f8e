// SPDX-License-Identifier: GPL-3.0-or-later
import Dispatch
import Glibc
import HTTP
import Synchronization
import Text
import Transfers

/// The input is what a proxy answers to CONNECT. libcurl reads it, so the target runs a whole transfer on loopback.
@Sendable func proxyAnswer(_ input: UnsafeRawBufferPointer) {
    guard let proxy = AnsweringProxy.shared, let address = Proxy("http://127.0.0.1:\(proxy.port)"),
        let service = WebAddress("https://a.example/"), let job = LocalJob.shared
    else { return require(false, "no proxy") }
    proxy.set(Array(input))
    let transfer = NetworkRequest.Transfer(
        number: 1,
        session: 1,
        HTTPRequest(address: service),
        proxy: address,
        connectMilliseconds: 5000,
        totalMilliseconds: 5000
    )
    switch job.run(transfer)?.result {
    case .failure: break
    case .success: require(false, "a request through this proxy has an answer")
    case nil: require(false, "there is no report")
    }
}

/// The work of badged-network in this process.
private final class LocalJob: Sendable {
    static let shared = LocalJob()
    private let socket: Int32

    private init?() {
        var pair: [Int32] = [-1, -1]
        guard TransferJob.fault == nil, socketpair(AF_UNIX, Int32(SOCK_STREAM.rawValue), 0, &pair) == 0 else {
            return nil
        }
        socket = pair[0]
        let other = pair[1]
        DispatchQueue(label: "job").async { TransferJob(socket: other).serve() }
        send(.open(session: 1, .system))
    }

    func run(_ transfer: NetworkRequest.Transfer) -> NetworkReport? {
        send(.transfer(transfer))
        guard let head = receive(4) else { return nil }
        return receive(head.reduce(0) { $0 << 8 | Int($1) }).flatMap { NetworkReport(bytes: $0) }
    }

    private func send(_ request: NetworkRequest) {
        let bytes = request.bytes
        let message = withUnsafeBytes(of: UInt32(bytes.count).bigEndian) { Array($0) } + bytes
        _ = Glibc.send(socket, message, message.count, Int32(MSG_NOSIGNAL))
    }

    private func receive(_ count: Int) -> [UInt8]? {
        var bytes = [UInt8](repeating: 0, count: count)
        var filled = 0
        while filled < count {
            let received = bytes[filled...].withUnsafeMutableBytes { recv(socket, $0.baseAddress, $0.count, 0) }
            // The timer of libFuzzer interrupts calls.
            if received < 0, errno == EINTR { continue }
            guard received > 0 else { return nil }
            filled += received
        }
        return bytes
    }
}

/// A message of badged to badged-network.
@Sendable func networkRequest(_ input: UnsafeRawBufferPointer) {
    guard let request = NetworkRequest(bytes: Array(input)) else { return }
    if case .transfer(let transfer) = request {
        require(transfer.request.address.origin.port != 0, "an address without a port")
    }
    let bytes = request.bytes
    require(NetworkRequest(bytes: bytes)?.bytes.count == bytes.count, "a request changes when it is read again")
}

/// A message of badged-network to badged.
@Sendable func networkReport(_ input: UnsafeRawBufferPointer) {
    guard let report = NetworkReport(bytes: Array(input)) else { return }
    if case .success(let response) = report.result {
        require((100...999).contains(response.status), "an answer without a status")
    }
    let again = NetworkReport(bytes: report.bytes)
    require(again?.result == report.result, "a report changes when it is read again")
    require(again?.handshakes == report.handshakes, "a report changes when it is read again")
}

/// Answers every request with the same bytes and closes.
private final class AnsweringProxy: Sendable {
    static let shared = AnsweringProxy()

    let port: UInt16
    private let answer = Mutex<[UInt8]>([])

    private init?() {
        let listener = socket(AF_INET, Int32(SOCK_STREAM.rawValue), 0)
        var address = sockaddr_in()
        address.sin_family = sa_family_t(AF_INET)
        address.sin_addr.s_addr = INADDR_LOOPBACK.bigEndian
        var length = socklen_t(MemoryLayout<sockaddr_in>.size)
        let isBound = withUnsafeMutablePointer(to: &address) {
            $0.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                bind(listener, $0, length) == 0 && getsockname(listener, $0, &length) == 0
            }
        }
        guard isBound, listen(listener, 16) == 0 else { return nil }
        port = address.sin_port.bigEndian
        DispatchQueue(label: "proxy").async { [self] in
            while true {
                let client = accept(listener, nil, nil)
                guard client >= 0 else { return }
                var buffer = [UInt8](repeating: 0, count: 4096)
                if recv(client, &buffer, buffer.count, 0) > 0 {
                    let answer = answer.withLock { $0 }
                    _ = send(client, answer, answer.count, Int32(MSG_NOSIGNAL))
                }
                shutdown(client, Int32(SHUT_WR))
                // Reads to the end, so that the answer is not lost by a reset.
                while recv(client, &buffer, buffer.count, 0) > 0 {}
                close(client)
            }
        }
    }

    func set(_ bytes: [UInt8]) { answer.withLock { $0 = bytes } }
}

/// What somebody sends to the port of the metrics.
@Sendable func metricsRequest(_ input: UnsafeRawBufferPointer) {
    let bytes = Array(input)
    switch MetricsRequest.answer(bytes) {
    case .metrics(_, let withBody):
        require(bytes.starts(with: (withBody ? "GET " : "HEAD ").utf8), "another request is answered")
    case .refused(let status):
        require(status != .ok, "a refusal is no success")
    }
    var ends: [Int32] = [-1, -1]
    guard bytes.count <= 2 * MetricsRequest.maximumBytes, pipe(&ends) == 0 else { return }
    _ = write(ends[1], bytes, bytes.count)
    close(ends[1])
    defer { close(ends[0]) }
    guard let read = MetricsRequest.read(from: ends[0]) else { return }
    require(read.count <= MetricsRequest.maximumBytes && bytes.starts(with: read), "more is read than was sent")
}
