// SPDX-License-Identifier: GPL-3.0-or-later
import Dispatch
import EService
import Glibc
import HTTP
import Synchronization

/// The input is what a proxy answers to CONNECT. libcurl reads it, so the target runs a whole request on loopback.
@Sendable func proxyAnswer(_ input: UnsafeRawBufferPointer) {
    guard let proxy = AnsweringProxy.shared, let address = Proxy("http://127.0.0.1:\(proxy.port)") else {
        return require(false, "no proxy")
    }
    proxy.set(Array(input))
    var configuration = EServiceConfiguration(userAgent: .init(name: "badged", version: (0, 1, 0)))
    configuration.proxies = ProxySettings(address)
    (configuration.limits.connect, configuration.limits.transfer) = (.seconds(5), .seconds(5))
    let session = EServiceSession(tcTokenURL: "https://a.example/", isDeveloperMode: false, configuration)
    let reason = Mutex<FailureCode?>(nil)
    let done = DispatchSemaphore(value: 0)
    Task {
        do throws(EServiceFailure) {
            _ = try await session.request()
        } catch {
            reason.withLock { $0 = error.reason }
        }
        done.signal()
    }
    done.wait()
    require(reason.withLock { $0 } == .getTcTokenNetworkError, "a request through this proxy has another end")
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
