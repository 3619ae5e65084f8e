// SPDX-License-Identifier: GPL-3.0-or-later
import CLinux
import Glibc

/// The client's end of a TCP connection to a port of this computer: its address and its port.
package struct LoopbackClient: Sendable, Equatable {
    /// 4 or 16 bytes.
    let address: [UInt8]
    let port: UInt16

    /// Reads the other end of a connected TCP socket; nil for another kind of socket.
    package init?(socket: Int32) {
        var address = [UInt8](repeating: 0, count: 16)
        var port: UInt16 = 0
        let size = clinux_tcp_peer(socket, &address, &port)
        guard size > 0 else { return nil }
        self.address = Array(address.prefix(Int(size)))
        self.port = port
    }

    /// Reads what `bytes` returned; nil for anything else.
    package init?(bytes: [UInt8]) {
        guard bytes.count == 6 || bytes.count == 18 else { return nil }
        address = Array(bytes.dropFirst(2))
        port = UInt16(bytes[0]) << 8 | UInt16(bytes[1])
    }

    /// The port and the address.
    package var bytes: [UInt8] { [UInt8(port >> 8), UInt8(port & 0xFF)] + address }

    /// Returns the user whose process has this end of a connection to `server`, a port on 127.0.0.1 or ::1.
    ///
    /// Nil if the process has closed the connection, or if the kernel does not know. The C function is `clinux_tcp_owner`.
    package func user(connectedTo server: UInt16, _ diagnosis: SocketDiagnosis? = SocketDiagnosis()) -> UInt32? {
        guard let diagnosis else { return nil }
        let isIPv6 = address.count == 16
        let local = isIPv6 ? [UInt8](repeating: 0, count: 15) + [1] : [127, 0, 0, 1]
        var uid: UInt32 = 0
        return clinux_tcp_owner(diagnosis.descriptor, isIPv6 ? 1 : 0, address, port, local, server, &uid) == 0
            ? uid : nil
    }
}

/// A socket at which the kernel answers questions about the sockets of this computer. sock_diag(7)
package final class SocketDiagnosis: Sendable {
    fileprivate let descriptor: Int32

    /// nil if the kernel or a sandbox refuses it.
    package init?() {
        descriptor = clinux_open_diagnosis()
        guard descriptor >= 0 else { return nil }
    }

    deinit { close(descriptor) }
}
