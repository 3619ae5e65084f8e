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

    deinit { close(descriptor) }

    /// Fetches the packets that are there now; as many as find room.
    func receive(_ packets: inout ManagementPackets) {
        packets.makeRoom()
        let count = packets.bytes.withUnsafeMutableBytes { bytes in
            cbluetooth_receive(descriptor, bytes.baseAddress, ManagementPackets.longest, &packets.lengths)
        }
        packets.count = Int(count)
    }

    /// Throws away what has piled up.
    func drain(_ packets: inout ManagementPackets) {
        repeat { receive(&packets) } while packets.isFull
        packets.count = 0
    }

    /// False when the kernel does not take it. Some kernels say 0 where they mean all of it.
    func send(_ command: ManagementCommand) -> Bool {
        let bytes = command.bytes
        return Glibc.send(descriptor, bytes, bytes.count, Int32(MSG_NOSIGNAL)) >= 0
    }
}

/// What was received at once.
struct ManagementPackets {
    /// Longest packet: header and data of the longest advertisement, and more.
    fileprivate static let longest = 4096
    private static let most = CBLUETOOTH_MOST

    fileprivate(set) var bytes: [UInt8] = []
    fileprivate var lengths: [UInt32] = []
    fileprivate(set) var count = 0

    fileprivate mutating func makeRoom() {
        guard bytes.isEmpty else { return }
        bytes = [UInt8](repeating: 0, count: Self.most * Self.longest)
        lengths = [UInt32](repeating: 0, count: Self.most)
    }

    /// Where one of them lies in `bytes`.
    func range(_ index: Int) -> Range<Int> {
        let start = index * Self.longest
        return start..<start + Int(lengths[index])
    }

    /// There may be more.
    var isFull: Bool { count == Self.most && !isEnd }
    /// The other end, which only tests have, is gone.
    var isEnd: Bool { lengths.prefix(count).contains(0) }
}
