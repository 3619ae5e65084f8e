// SPDX-License-Identifier: GPL-3.0-or-later
import CLinux
package import Concurrency
import Glibc
package import Host

/// Restricts a socket to one network interface.
@discardableResult
func bindToInterface(_ socket: Int32, _ name: String) -> Bool {
    setsockopt(socket, SOL_SOCKET, SO_BINDTODEVICE, name, socklen_t(name.utf8.count)) == 0
}

package enum PortKind { case datagrams, connections }

/// A UDP or TCP socket for IPv4 and IPv6, on one interface or on all. Where the kernel has no IPv6: for IPv4.
@Loop package final class PortSocket {
    private let descriptor: Int32
    private let family: Int32
    private var registration: Loop.Registration?
    private lazy var resume = Loop.Alarm { [weak self] in self?.read(true) }
    package let interface: String?

    /// Opens a socket at a port; 0 takes a free one. Listens for connections if the kind says so.
    package init(_ kind: PortKind, port: UInt16, interface: String?) throws(SystemError) {
        self.interface = interface
        do throws(SystemError) {
            descriptor = try Self.open(AF_INET6, kind, port, interface)
            family = AF_INET6
        } catch {
            guard [EAFNOSUPPORT, EADDRNOTAVAIL].contains(error.code) else { throw error }
            descriptor = try Self.open(AF_INET, kind, port, interface)
            family = AF_INET
        }
    }

    private static func open(
        _ family: Int32,
        _ kind: PortKind,
        _ port: UInt16,
        _ interface: String?
    ) throws(SystemError) -> Int32 {
        let type = kind == .datagrams ? SOCK_DGRAM : SOCK_STREAM
        let flags = Int32(SOCK_CLOEXEC.rawValue) | Int32(SOCK_NONBLOCK.rawValue)
        let descriptor = socket(family, Int32(type.rawValue) | flags, 0)
        guard descriptor >= 0 else { throw SystemError("socket") }
        var failure: SystemError?
        if let interface, !bindToInterface(descriptor, interface) {
            failure = SystemError("SO_BINDTODEVICE \(interface)")
        }
        var (one, zero): (Int32, Int32) = (1, 0)
        if kind == .datagrams {
            setsockopt(descriptor, SOL_SOCKET, SO_BROADCAST, &one, 4)
            // A run that was given up because it hangs may still have the port.
            setsockopt(descriptor, SOL_SOCKET, SO_REUSEADDR, &one, 4)
        }
        if family == AF_INET6 { setsockopt(descriptor, Int32(IPPROTO_IPV6), IPV6_V6ONLY, &zero, 4) }
        let address = RemoteAddress(host: .four(0), port: port)
        if failure == nil, address.withSocketAddress(for: family, { bind(descriptor, $0, $1) }) != 0 {
            failure = SystemError("bind")
        }
        if failure == nil, kind == .connections, listen(descriptor, 128) != 0 { failure = SystemError("listen") }
        if let failure {
            Glibc.close(descriptor)
            throw failure
        }
        return descriptor
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
        RemoteAddress.read { Int(getsockname(descriptor, $0, $1)) }.address?.port ?? 0
    }

    /// Joins the multicast group of announcements, also on interfaces that were added since the last call.
    package func joinAnnouncements() {
        if family == AF_INET6, !isClosed { NetworkInterface.join(descriptor, on: interface) }
    }

    /// Calls a function whenever a datagram or a connection has arrived.
    package func whenReady(_ body: @escaping @Loop () -> Void) throws(SystemError) {
        registration = try Loop.watch(descriptor, .read) { _ in body() }
    }

    /// Pauses or resumes the calls.
    package func read(_ isOn: Bool) { registration?.change(isOn ? .read : []) }

    /// Takes a datagram and its sender; nil if there is none.
    package func receive(limit: Int) -> (bytes: [UInt8], sender: RemoteAddress)? {
        var buffer = [UInt8](repeating: 0, count: limit + 1)
        let (count, sender) = RemoteAddress.read { recvfrom(descriptor, &buffer, buffer.count, 0, $0, $1) }
        guard let sender else { return nil }
        return (Array(buffer.prefix(count)), sender)
    }

    package func send(_ bytes: [UInt8], to address: RemoteAddress) {
        guard family == AF_INET6 || address.family == family else { return }
        _ = address.withSocketAddress(for: family) {
            sendto(descriptor, bytes, bytes.count, Int32(MSG_NOSIGNAL), $0, $1)
        }
    }

    /// Takes a connection and its sender; nil if there is none.
    package func accept() -> (socket: Int32, sender: RemoteAddress)? {
        let (result, sender) = RemoteAddress.read { Int(Glibc.accept(descriptor, $0, $1)) }
        guard result >= 0 else {
            if [EMFILE, ENFILE, ENOBUFS, ENOMEM].contains(errno) {
                // The connection stays in the queue, so the loop would be called again at once.
                read(false)
                resume.set(after: 1000)
            }
            return nil
        }
        guard let sender else {
            Glibc.close(Int32(result))
            return nil
        }
        clinux_set_cloexec(Int32(result))
        return (Int32(result), sender)
    }
}
