// SPDX-License-Identifier: GPL-3.0-or-later
import CBluetooth
import Glibc

/// The management socket of the kernel's Bluetooth. What it may do was decided when it was opened, so it is opened while
/// the process still has CAP_NET_ADMIN, and kept.
package final class ManagementSocket: Sendable {
    package let descriptor: Int32

    /// Takes over a descriptor; for tests, which play the kernel.
    package init(descriptor: Int32) { self.descriptor = descriptor }

    /// nil when the kernel has no Bluetooth, or does not give it away.
    package init?() {
        descriptor = cbluetooth_open_control()
        guard descriptor >= 0 else { return nil }
    }

    /// One that this program has opened in an earlier life. nil when it is no Bluetooth socket.
    package init?(taking descriptor: Int32) {
        guard cbluetooth_is_bluetooth(descriptor) != 0 else { return nil }
        self.descriptor = descriptor
    }

    deinit { close(descriptor) }

    /// Longest packet: header and data of the longest advertisement, and more.
    private static let longestPacket = 4096

    /// The next packet in `buffer`; nil when there is none now.
    func receive(_ buffer: inout [UInt8]) -> Int? {
        if buffer.count < Self.longestPacket { buffer = [UInt8](repeating: 0, count: Self.longestPacket) }
        while true {
            let count = recv(descriptor, &buffer, buffer.count, 0)
            if count >= 0 { return count }
            guard errno == EINTR else { return nil }
        }
    }

    /// False when the kernel does not take it. Some kernels say 0 where they mean all of it.
    func send(_ command: ManagementCommand) -> Bool {
        let bytes = command.bytes
        return Glibc.send(descriptor, bytes, bytes.count, Int32(MSG_NOSIGNAL)) >= 0
    }
}
