// SPDX-License-Identifier: GPL-3.0-or-later
import CLinux
import Concurrency
import Dispatch
import Glibc
import HTTP
import Synchronization
import TestSupport
import Testing
import Text

extension Network {
    /// Runs of badged-network that may answer late, because the machine may be busy.
    static func patient(proxies: ProxySettings? = nil, socket: String? = nil) -> Network {
        var network = Network(proxies: proxies, socket: socket)
        network.heartbeat = .patient
        return network
    }
}

/// A program in the place of badged-network, which answers each transfer with bytes of a script.
final class StandIn: Sendable {
    /// Patient, unless a test is about the answer that does not come.
    let network: Network
    private let folder: TemporaryFolder

    enum Answer: Sendable {
        case bytes([UInt8]), end
    }

    /// Answers each request with what `script` returns for it. `onStart` is told the number of each run, and returns whether
    /// the run goes on. `lives` returns whether the run answers the next question of `Heartbeat`.
    convenience init(
        onStart: @escaping @Sendable (Int) -> Bool = { _ in true },
        lives: @escaping @Sendable () -> Bool = { true },
        _ script: @escaping @Sendable (NetworkRequest) -> [Answer]
    ) throws {
        let count = Mutex(0)
        try self.init(serving: { client in
            let number = count.withLock {
                $0 += 1
                return $0
            }
            guard onStart(number) else { return }
            while let bytes = Self.message(client, lives), let request = NetworkRequest(bytes: bytes) {
                for answer in script(request) where !Self.send(answer, client) { return }
            }
        })
    }

    /// Answers the first request with descriptors, each in a message of its own.
    convenience init(passing descriptors: @escaping @Sendable () -> [Int32]) throws {
        try self.init(serving: { client in
            guard Self.message(client, { true }) != nil else { return }
            for descriptor in descriptors() {
                _ = clinux_pass_descriptor(client, descriptor, [1], 1)
                close(descriptor)
            }
        })
    }

    private init(serving body: @escaping @Sendable (Int32) -> Void) throws {
        folder = try TemporaryFolder()
        let path = "\(folder.path)/network.sock"
        let listener = try UnixSocket.listen(on: path)
        network = .patient(socket: path)
        DispatchQueue(label: "stand-in").async {
            while true {
                let client = accept(listener, nil, nil)
                guard client >= 0 else { return }
                DispatchQueue(label: "run").async {
                    body(client)
                    close(client)
                }
            }
        }
    }

    private static func message(_ client: Int32, _ lives: () -> Bool) -> [UInt8]? {
        while true {
            let message = BlockingSocket.receive(4, from: client).flatMap { length in
                BlockingSocket.receive(length.reduce(0) { $0 << 8 | Int($1) }, from: client)
            }
            guard message == Heartbeat.message else { return message }
            if lives() { _ = send(framed(Heartbeat.message), client) }
        }
    }

    /// - Returns: false at the end.
    private static func send(_ answer: Answer, _ client: Int32) -> Bool {
        guard case .bytes(let bytes) = answer else { return false }
        return BlockingSocket.send(bytes, to: client)
    }

    static func framed(_ message: [UInt8]) -> Answer {
        .bytes(withUnsafeBytes(of: UInt32(message.count).bigEndian) { Array($0) } + message)
    }
}
