// SPDX-License-Identifier: GPL-3.0-or-later
import CLinux
package import Concurrency
import Glibc

/// An IPv4 address with a port.
package struct RemoteAddress: Hashable, Sendable, CustomStringConvertible {
    /// In the order of the host.
    package var host: UInt32
    package var port: UInt16

    package init(host: UInt32, port: UInt16) { (self.host, self.port) = (host, port) }

    package static let loopback: UInt32 = 0x7F00_0001

    init(_ address: sockaddr_in) {
        self.init(host: UInt32(bigEndian: address.sin_addr.s_addr), port: UInt16(bigEndian: address.sin_port))
    }

    package var hostText: String {
        stride(from: 24, through: 0, by: -8).map { String(host >> UInt32($0) & 0xFF) }.joined(separator: ".")
    }

    package var description: String { "\(hostText):\(port)" }

    func withSocketAddress<R>(_ body: (UnsafePointer<sockaddr>, socklen_t) -> R) -> R {
        var address = sockaddr_in()
        address.sin_family = sa_family_t(AF_INET)
        address.sin_addr.s_addr = host.bigEndian
        address.sin_port = port.bigEndian
        return withUnsafePointer(to: &address) { pointer in
            pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                body($0, socklen_t(MemoryLayout<sockaddr_in>.size))
            }
        }
    }
}

/// Restricts a socket to one network interface.
@discardableResult
func bindToInterface(_ socket: Int32, _ name: String) -> Bool {
    setsockopt(socket, SOL_SOCKET, SO_BINDTODEVICE, name, socklen_t(name.utf8.count)) == 0
}

/// A network interface of this host with its IPv4 address.
package struct NetworkInterface: Sendable, Hashable {
    package let name: String
    package let address: UInt32
    /// The address that reaches all hosts of the network; on the loopback interface its own address.
    package let broadcast: UInt32

    /// The interfaces that are up. Without names: those with a broadcast address.
    package static func all(named names: [String]) -> [NetworkInterface] {
        var list: UnsafeMutablePointer<ifaddrs>?
        guard getifaddrs(&list) == 0 else { return [] }
        defer { freeifaddrs(list) }
        var found: [NetworkInterface] = []
        var next = list
        while let entry = next?.pointee {
            next = entry.ifa_next
            let name = String(cString: entry.ifa_name)
            guard let address = ipv4(entry.ifa_addr), Int32(entry.ifa_flags) & Int32(IFF_UP) != 0 else { continue }
            let isLoopback = Int32(entry.ifa_flags) & Int32(IFF_LOOPBACK) != 0
            guard names.isEmpty ? !isLoopback : names.contains(name) else { continue }
            let hasBroadcast = Int32(entry.ifa_flags) & Int32(IFF_BROADCAST) != 0
            guard let broadcast = isLoopback ? address : hasBroadcast ? ipv4(entry.ifa_ifu.ifu_broadaddr) : nil else {
                continue
            }
            found.append(NetworkInterface(name: name, address: address, broadcast: broadcast))
        }
        return found
    }

    private static func ipv4(_ pointer: UnsafeMutablePointer<sockaddr>?) -> UInt32? {
        guard let pointer, pointer.pointee.sa_family == sa_family_t(AF_INET) else { return nil }
        return pointer.withMemoryRebound(to: sockaddr_in.self, capacity: 1) {
            UInt32(bigEndian: $0.pointee.sin_addr.s_addr)
        }
    }
}

/// A UDP or TCP socket on one interface, or on all.
@Loop package final class NetworkSocket {
    private let descriptor: Int32
    private var registration: Loop.Registration?
    private lazy var resume = Loop.Alarm { [weak self] in self?.read(true) }
    package let interface: String?

    package enum Kind: Sendable { case datagrams, connections }

    /// Opens a socket at a port; 0 takes a free one. Listens for connections if the kind says so.
    package init(_ kind: Kind, port: UInt16, interface: String?) throws(SystemError) {
        let type = kind == .datagrams ? SOCK_DGRAM : SOCK_STREAM
        descriptor = socket(
            AF_INET,
            Int32(type.rawValue) | Int32(SOCK_CLOEXEC.rawValue) | Int32(SOCK_NONBLOCK.rawValue),
            0
        )
        self.interface = interface
        guard descriptor >= 0 else { throw SystemError("socket") }
        var failure: SystemError?
        if let interface, !bindToInterface(descriptor, interface) {
            failure = SystemError("SO_BINDTODEVICE \(interface)")
        }
        var one: Int32 = 1
        if kind == .datagrams { setsockopt(descriptor, SOL_SOCKET, SO_BROADCAST, &one, 4) }
        let address = RemoteAddress(host: 0, port: port)
        if failure == nil, address.withSocketAddress({ bind(descriptor, $0, $1) }) != 0 {
            failure = SystemError("bind")
        }
        if failure == nil, kind == .connections, listen(descriptor, 8) != 0 { failure = SystemError("listen") }
        if let failure {
            Glibc.close(descriptor)
            throw failure
        }
    }

    isolated deinit { close() }

    private var isClosed = false

    package func close() {
        guard !isClosed else { return }
        isClosed = true
        registration?.cancel()
        Glibc.close(descriptor)
    }

    /// The own port.
    package var port: UInt16 {
        var (address, count) = (sockaddr_in(), socklen_t(MemoryLayout<sockaddr_in>.size))
        let result = withUnsafeMutablePointer(to: &address) { pointer in
            pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) { getsockname(descriptor, $0, &count) }
        }
        return result == 0 ? RemoteAddress(address).port : 0
    }

    /// Calls a function whenever something has come.
    package func whenReady(_ body: @escaping @Loop () -> Void) throws(SystemError) {
        registration = try Loop.watch(descriptor, .read) { _ in body() }
    }

    /// Pauses or resumes the calls.
    package func read(_ isOn: Bool) { registration?.change(isOn ? .read : []) }

    /// Takes a datagram and its sender; nil if there is none.
    package func receive(limit: Int) -> (bytes: [UInt8], sender: RemoteAddress)? {
        var (address, count) = (sockaddr_in(), socklen_t(MemoryLayout<sockaddr_in>.size))
        var buffer = [UInt8](repeating: 0, count: limit + 1)
        let result = withUnsafeMutablePointer(to: &address) { pointer in
            pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                recvfrom(descriptor, &buffer, buffer.count, 0, $0, &count)
            }
        }
        guard result >= 0 else { return nil }
        return (Array(buffer.prefix(result)), RemoteAddress(address))
    }

    package func send(_ bytes: [UInt8], to address: RemoteAddress) {
        _ = address.withSocketAddress { sendto(descriptor, bytes, bytes.count, Int32(MSG_NOSIGNAL), $0, $1) }
    }

    /// Takes a connection and its sender; nil if there is none.
    package func accept() -> (socket: Int32, sender: RemoteAddress)? {
        var (address, count) = (sockaddr_in(), socklen_t(MemoryLayout<sockaddr_in>.size))
        let result = withUnsafeMutablePointer(to: &address) { pointer in
            pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) { Glibc.accept(descriptor, $0, &count) }
        }
        guard result >= 0 else {
            if [EMFILE, ENFILE, ENOBUFS, ENOMEM].contains(errno) {
                // The connection stays in the queue, so the loop would be called again at once.
                read(false)
                resume.set(after: 1000)
            }
            return nil
        }
        clinux_set_cloexec(result)
        return (result, RemoteAddress(address))
    }
}
