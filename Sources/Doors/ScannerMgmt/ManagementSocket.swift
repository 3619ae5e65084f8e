// SPDX-License-Identifier: GPL-3.0-or-later
import CLinux
import Glibc

/// The management socket of the kernel's Bluetooth. The kernel checks CAP_NET_ADMIN when the socket is opened, so
/// another process can open it, or this one before it drops the capability.
package final class ManagementSocket: Sendable {
    /// Longer than every packet of the kernel, in bytes.
    static let longestPacket = 4096

    package let descriptor: Int32

    /// Takes over a descriptor; for tests, which play the kernel.
    package init(descriptor: Int32) { self.descriptor = descriptor }

    /// Opens the socket; nil when the kernel has no Bluetooth or refuses.
    package init?() {
        descriptor = clinux_open_bluetooth_control()
        guard descriptor >= 0 else { return nil }
    }

    /// Takes over a socket that another program has opened. Closes the descriptor and returns nil if it is no Bluetooth
    /// socket.
    package init?(taking descriptor: Int32) {
        guard clinux_is_bluetooth(descriptor) != 0 else {
            close(descriptor)
            return nil
        }
        self.descriptor = descriptor
    }

    deinit { close(descriptor) }

    /// Reads one packet into the buffer.
    /// - Returns: the number of bytes; nil when no packet is waiting, 0 when the other end was closed (only in tests).
    func receive(_ buffer: inout [UInt8]) -> Int? {
        let count = recv(descriptor, &buffer, buffer.count, Int32(MSG_DONTWAIT))
        return count < 0 ? nil : count
    }

    /// Discards the packets that are waiting.
    func drain() {
        var buffer = [UInt8](repeating: 0, count: Self.longestPacket)
        while let count = receive(&buffer), count > 0 {}
    }

    /// Sends a command; false when the kernel does not accept it. Some kernels return 0 for a complete packet.
    func send(_ command: ManagementCommand) -> Bool {
        let bytes = command.bytes
        return Glibc.send(descriptor, bytes, bytes.count, Int32(MSG_NOSIGNAL)) >= 0
    }
}
