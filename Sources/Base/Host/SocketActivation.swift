// SPDX-License-Identifier: GPL-3.0-or-later
import CLinux
import Glibc
import Text

/// The descriptors that systemd passes to the daemon. sd_listen_fds(3).
package enum SocketActivation {
    /// The name of the management socket of Bluetooth, which badged-bluetooth opens.
    package static let bluetoothName = "bluetooth"
    /// The first descriptor that systemd passes.
    private static let first: Int32 = 3

    /// The numbers and names of the descriptors; empty if there are none for this process.
    private static func passed(_ environment: Environment) -> [(descriptor: Int32, name: String)] {
        guard environment("LISTEN_PID") == String(getpid()),
            let count = environment("LISTEN_FDS").flatMap({ Int32($0) }), count > 0, count < 1000
        else { return [] }
        let names = environment("LISTEN_FDNAMES")?.split(separator: ":", omittingEmptySubsequences: false) ?? []
        return (0..<Int(count)).map { (first + Int32($0), $0 < names.count ? String(names[$0]) : "") }
    }

    /// Returns the management socket of Bluetooth, closed on exec; nil if systemd passes none. The caller checks its kind.
    package static func bluetooth(environment: Environment = systemEnvironment) -> Int32? {
        let found = passed(environment).filter { $0.name == bluetoothName }.map(\.descriptor)
        for descriptor in found { clinux_set_cloexec(descriptor) }
        // The unit allows one stored descriptor, so there is at most one.
        return found.first
    }

    /// Returns the socket for clients that systemd passes; nil if there is none for this process.
    /// - Throws: `StartError` if there are several, or if the descriptor is not a listening Unix stream socket.
    static func socket(environment: Environment) throws(StartError) -> ListeningSocket? {
        let sockets = passed(environment).filter { $0.name != bluetoothName }
        guard let socket = sockets.first?.descriptor else { return nil }
        guard sockets.count == 1 else {
            let names = environment("LISTEN_FDNAMES") ?? "without names"
            throw StartError(
                "systemd passes \(sockets.count) sockets (\(names)), badged serves one",
                hint: "leave one ListenStream= in badged.socket"
            )
        }
        guard option(socket, SO_DOMAIN) == AF_UNIX, option(socket, SO_TYPE) == Int32(SOCK_STREAM.rawValue),
            option(socket, SO_ACCEPTCONN) == 1
        else {
            throw StartError(
                "systemd passes a descriptor that is not a listening Unix stream socket",
                hint: "badged.socket needs ListenStream= with a path and Accept=no"
            )
        }
        guard clinux_set_cloexec(socket) == 0, clinux_set_nonblocking(socket) == 0 else {
            throw StartError(
                "cannot set up the passed socket: \(errorText())",
                hint: "restart it: systemctl restart badged.socket"
            )
        }
        return ListeningSocket(descriptor: socket, path: path(socket), file: nil)
    }

    /// Answers the clients that wait at the socket of systemd, because badged does not start. Takes a second.
    ///
    /// A client that waits makes systemd start badged again at once. So each client is answered, and the time limits how
    /// often systemd does that.
    package static func refuseClients(environment: Environment = systemEnvironment) {
        var sockets = passed(environment).filter { $0.name != bluetoothName }.map {
            pollfd(fd: $0.descriptor, events: Int16(POLLIN), revents: 0)
        }
        guard !sockets.isEmpty else { return }
        for socket in sockets { clinux_set_nonblocking(socket.fd) }
        let message = JSONWriter.bytes { message in
            message.member("msg", "INTERNAL_ERROR")
            message.member("error", "badged does not start")
        }
        let line = message + [0x0A]
        let end = ContinuousClock.now + .seconds(1)
        while case let rest = end - .now, rest > .zero {
            guard poll(&sockets, nfds_t(sockets.count), Int32(rest / .milliseconds(1)) + 1) > 0 else { continue }
            for socket in sockets where socket.revents != 0 {
                let client = clinux_accept(socket.fd)
                guard client >= 0 else { continue }
                _ = send(client, line, line.count, Int32(MSG_NOSIGNAL))
                close(client)
            }
        }
    }

    private static func option(_ socket: Int32, _ name: Int32) -> Int32? {
        var (value, size) = (Int32(0), socklen_t(MemoryLayout<Int32>.size))
        return getsockopt(socket, SOL_SOCKET, name, &value, &size) == 0 ? value : nil
    }

    /// Returns the path of the socket; empty if the socket is unnamed or abstract.
    private static func path(_ socket: Int32) -> String {
        var (address, size) = (sockaddr_un(), socklen_t(MemoryLayout<sockaddr_un>.size))
        let code = withUnsafeMutablePointer(to: &address) { pointer in
            pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) { getsockname(socket, $0, &size) }
        }
        guard code == 0 else { return "" }
        return withUnsafeBytes(of: address.sun_path) { String(decoding: $0.prefix { $0 != 0 }, as: UTF8.self) }
    }
}
