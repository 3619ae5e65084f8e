// SPDX-License-Identifier: GPL-3.0-or-later
package import Glibc

/// An IPv4 or IPv6 address with a port.
package struct RemoteAddress: Hashable, Sendable, CustomStringConvertible {
    package enum Host: Hashable, Sendable {
        /// In host byte order.
        case four(UInt32)
        /// 16 bytes; the index of the interface for a link-local address, else 0.
        case six([UInt8], scope: UInt32)

        package static let loopback = Host.four(0x7F00_0001)

        /// Reads a numeric address; nil for a name.
        package init?(_ text: String) {
            var (four, six) = (in_addr(), sockaddr_in6())
            if inet_pton(AF_INET, text, &four) == 1 {
                self = .four(UInt32(bigEndian: four.s_addr))
            } else if inet_pton(AF_INET6, text, &six.sin6_addr) == 1 {
                self.init(six)
            } else {
                return nil
            }
        }

        package var isLoopback: Bool {
            switch self {
            case .four(let number): number >> 24 == 127
            case .six(let bytes, _): bytes == [UInt8](repeating: 0, count: 15) + [1]
            }
        }

        /// Whether the address means the same device on each host of a network: neither link-local nor multicast.
        package var isGlobal: Bool {
            switch self {
            case .four(let number): number >> 24 != 0 && number >> 16 != 0xA9FE && number >> 28 < 0xE
            case .six(let bytes, _): bytes.contains { $0 != 0 } && bytes[0] < 0xFE
            }
        }
    }

    package var host: Host
    package var port: UInt16

    package init(host: Host, port: UInt16) { (self.host, self.port) = (host, port) }

    private static let mapped = [UInt8](repeating: 0, count: 10) + [0xFF, 0xFF]

    /// Reads what the system has written; nil for another family. An IPv4 address inside IPv6 becomes a plain one.
    init?(_ storage: sockaddr_storage) {
        let address = withUnsafeBytes(of: storage) { raw -> RemoteAddress? in
            switch Int32(storage.ss_family) {
            case AF_INET:
                let four = raw.loadUnaligned(as: sockaddr_in.self)
                return RemoteAddress(
                    host: .four(UInt32(bigEndian: four.sin_addr.s_addr)),
                    port: UInt16(bigEndian: four.sin_port)
                )
            case AF_INET6:
                let six = raw.loadUnaligned(as: sockaddr_in6.self)
                return RemoteAddress(host: Host(six), port: UInt16(bigEndian: six.sin6_port))
            default: return nil
            }
        }
        guard let address else { return nil }
        self = address
    }

    package var description: String {
        switch host {
        case .four: "\(host):\(port)"
        case .six: "[\(host)]:\(port)"
        }
    }

    /// The family of a socket for this address.
    package var family: Int32 {
        switch host {
        case .four: AF_INET
        case .six: AF_INET6
        }
    }

    /// Calls a function with the address for a socket of this family. A socket of IPv6 reaches IPv4 addresses, too.
    package func withSocketAddress<R>(for family: Int32, _ body: (UnsafePointer<sockaddr>, socklen_t) -> R) -> R {
        if family == AF_INET, case .four(let number) = host {
            var address = sockaddr_in()
            address.sin_family = sa_family_t(AF_INET)
            address.sin_addr.s_addr = number.bigEndian
            address.sin_port = port.bigEndian
            return Self.call(address, body)
        }
        var address = sockaddr_in6()
        address.sin6_family = sa_family_t(AF_INET6)
        address.sin6_port = port.bigEndian
        switch host {
        case .four(let number):
            let bytes = number == 0 ? [UInt8](repeating: 0, count: 16) : Self.mapped + Self.bytes(number)
            withUnsafeMutableBytes(of: &address.sin6_addr) { $0.copyBytes(from: bytes) }
        case .six(let bytes, let scope):
            withUnsafeMutableBytes(of: &address.sin6_addr) { $0.copyBytes(from: bytes.prefix(16)) }
            address.sin6_scope_id = scope
        }
        return Self.call(address, body)
    }

    private static func call<Address, R>(_ address: Address, _ body: (UnsafePointer<sockaddr>, socklen_t) -> R) -> R {
        withUnsafePointer(to: address) { pointer in
            pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                body($0, socklen_t(MemoryLayout<Address>.size))
            }
        }
    }

    private static func bytes(_ number: UInt32) -> [UInt8] { withUnsafeBytes(of: number.bigEndian, Array.init) }

    /// Calls a function of the system that writes an address.
    package static func read(_ body: (UnsafeMutablePointer<sockaddr>, UnsafeMutablePointer<socklen_t>) -> Int) -> (
        result: Int, address: RemoteAddress?
    ) {
        var (storage, count) = (sockaddr_storage(), socklen_t(MemoryLayout<sockaddr_storage>.size))
        let result = withUnsafeMutablePointer(to: &storage) { pointer in
            pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) { body($0, &count) }
        }
        return (result, result < 0 ? nil : RemoteAddress(storage))
    }
}

extension RemoteAddress.Host: CustomStringConvertible {
    package var description: String {
        switch self {
        case .four(let number):
            return stride(from: 24, through: 0, by: -8).map { String(number >> UInt32($0) & 0xFF) }
                .joined(separator: ".")
        case .six(let bytes, _):
            var text = [CChar](repeating: 0, count: Int(INET6_ADDRSTRLEN))
            inet_ntop(AF_INET6, bytes, &text, socklen_t(text.count))
            return String(decoding: text.prefix { $0 != 0 }.map { UInt8(bitPattern: $0) }, as: UTF8.self)
        }
    }

    fileprivate init(_ address: sockaddr_in6) {
        let bytes = withUnsafeBytes(of: address.sin6_addr, Array.init)
        if bytes.starts(with: [UInt8](repeating: 0, count: 10) + [0xFF, 0xFF]) {
            self = .four(bytes[12...].reduce(0) { $0 << 8 | UInt32($1) })
        } else {
            self = .six(bytes, scope: address.sin6_scope_id)
        }
    }
}
