// SPDX-License-Identifier: GPL-3.0-or-later
import CLinux
import Glibc

/// The socket that systemd opened for the daemon. sd_listen_fds(3).
enum SocketActivation {
    /// The first descriptor that systemd passes.
    private static let first: Int32 = 3

    /// Returns the socket that systemd passes; nil if there is none for this process.
    /// - Throws: `StartError` if there are several, or if the descriptor is not a listening Unix stream socket.
    static func socket(environment: Environment) throws(StartError) -> ListeningSocket? {
        guard environment("LISTEN_PID") == String(getpid()),
            let count = environment("LISTEN_FDS").flatMap({ Int32($0) }), count > 0
        else { return nil }
        guard count == 1 else {
            let names = environment("LISTEN_FDNAMES") ?? "without names"
            throw StartError(
                "systemd passes \(count) sockets (\(names)), badged serves one",
                hint: "leave one ListenStream= in badged.socket"
            )
        }
        guard option(SO_DOMAIN) == AF_UNIX, option(SO_TYPE) == Int32(SOCK_STREAM.rawValue),
            option(SO_ACCEPTCONN) == 1
        else {
            throw StartError(
                "systemd passes a descriptor that is not a listening Unix stream socket",
                hint: "badged.socket needs ListenStream= with a path and Accept=no"
            )
        }
        guard clinux_set_cloexec(first) == 0, clinux_set_nonblocking(first) == 0 else {
            throw StartError("cannot set up the passed socket: \(errorText())", hint: "this is an error of the system")
        }
        return ListeningSocket(descriptor: first, path: path, file: nil)
    }

    private static func option(_ name: Int32) -> Int32? {
        var (value, size) = (Int32(0), socklen_t(MemoryLayout<Int32>.size))
        return getsockopt(first, SOL_SOCKET, name, &value, &size) == 0 ? value : nil
    }

    /// Returns the path of the socket; empty if the socket is unnamed or abstract.
    private static var path: String {
        var (address, size) = (sockaddr_un(), socklen_t(MemoryLayout<sockaddr_un>.size))
        let code = withUnsafeMutablePointer(to: &address) { pointer in
            pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) { getsockname(first, $0, &size) }
        }
        guard code == 0 else { return "" }
        return withUnsafeBytes(of: address.sun_path) { String(decoding: $0.prefix { $0 != 0 }, as: UTF8.self) }
    }
}
