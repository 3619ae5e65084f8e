// SPDX-License-Identifier: GPL-3.0-or-later
import Glibc
import Host

/// Looks up a name, and connects to the first of its addresses that answers. It blocks, so it has a thread of its own.
package enum Dialling {
    /// Milliseconds for one address.
    private static let addressTime: Int32 = 10_000
    /// The number of addresses of a name that are tried.
    private static let mostAddresses = 8
    /// Milliseconds after which nobody waits for the outcome: those of all addresses, and of a look-up that asks each of
    /// three servers twice.
    package static let longest: Int64 = 120_000

    package enum Outcome: Sendable {
        /// A connected socket that does not block. Whoever gets it closes it.
        case socket(Int32)
        /// Why there is none.
        case failed(String)
    }

    package static func dial(_ host: String, port: Int) -> Outcome {
        var hints = addrinfo()
        hints.ai_socktype = Int32(SOCK_STREAM.rawValue)
        hints.ai_flags = AI_ADDRCONFIG
        var list: UnsafeMutablePointer<addrinfo>?
        let code = getaddrinfo(host, String(port), &hints, &list)
        guard code == 0 else {
            let reason = code == EAI_SYSTEM ? errorText() : String(cString: gai_strerror(code))
            return .failed("the name \(host) cannot be looked up: \(reason)")
        }
        defer { freeaddrinfo(list) }
        switch connect(list) {
        case .socket(let descriptor): return .socket(descriptor)
        case .failed(let reason): return .failed("cannot connect to \(host), port \(port): \(reason)")
        }
    }

    /// Connects to the first of the addresses that answers.
    static func connect(_ list: UnsafeMutablePointer<addrinfo>?) -> Outcome {
        var last = "there is no address"
        var next = list
        for _ in 0..<mostAddresses {
            guard let entry = next?.pointee else { break }
            next = entry.ai_next
            switch connect(entry) {
            case .socket(let descriptor): return .socket(descriptor)
            case .failed(let reason): last = reason
            }
        }
        return .failed(last)
    }

    private static func connect(_ entry: addrinfo) -> Outcome {
        let type = entry.ai_socktype | Int32(SOCK_CLOEXEC.rawValue | SOCK_NONBLOCK.rawValue)
        let descriptor = socket(entry.ai_family, type, entry.ai_protocol)
        guard descriptor >= 0 else { return .failed(errorText()) }
        var error: Int32 = 0
        if Glibc.connect(descriptor, entry.ai_addr, entry.ai_addrlen) != 0 { error = errno }
        if error == EINPROGRESS {
            var polled = pollfd(fd: descriptor, events: Int16(POLLOUT), revents: 0)
            var length = socklen_t(MemoryLayout<Int32>.size)
            switch poll(&polled, 1, addressTime) {
            case 0: error = ETIMEDOUT
            case 1: getsockopt(descriptor, SOL_SOCKET, SO_ERROR, &error, &length)
            default: error = errno
            }
        }
        guard error == 0 else {
            close(descriptor)
            return .failed(errorText(error))
        }
        var one: Int32 = 1
        setsockopt(descriptor, Int32(IPPROTO_TCP), TCP_NODELAY, &one, socklen_t(MemoryLayout<Int32>.size))
        return .socket(descriptor)
    }
}
