// SPDX-License-Identifier: GPL-3.0-or-later
import CLinux
import Glibc

/// A udevd message to its subscribers after it has processed a device.
///
/// The message is sent in a private network namespace without udevd. The format is that of systemd,
/// libsystemd/sd-device/device-monitor.c.
enum UdevMessage {
    struct Refused: Error { let errno: Int32 }

    static func send(action: String, subsystem: String, type: String? = nil) throws {
        let path = "/devices/platform/test/\(subsystem)/test0"
        var pairs = ["ACTION=\(action)", "DEVPATH=\(path)", "SUBSYSTEM=\(subsystem)", "SEQNUM=7", "DEVNAME=/dev/test0"]
        if let type { pairs.append("DEVTYPE=\(type)") }
        let properties = Array((pairs.joined(separator: "\0") + "\0").utf8)
        var message = Array("libudev".utf8) + [0]
        // Magic number, header size, and offset and size of the properties.
        message += bytes(UInt32(0xFEED_CAFE).bigEndian) + bytes(UInt32(40)) + bytes(UInt32(40))
        message += bytes(UInt32(properties.count))
        message += bytes(hash(subsystem).bigEndian) + bytes(type.map { hash($0).bigEndian } ?? UInt32(0))
        message += bytes(UInt32(0)) + bytes(UInt32(0)) + properties

        let socket = socket(AF_NETLINK, Int32(SOCK_RAW.rawValue) | Int32(SOCK_CLOEXEC.rawValue), Int32(15))
        guard socket >= 0 else { throw Refused(errno: errno) }
        defer { close(socket) }
        // sockaddr_nl: family, padding, port and groups. The multicast group of udev is 2.
        let address = bytes(UInt16(AF_NETLINK)) + [0, 0] + bytes(UInt32(0)) + bytes(UInt32(2))
        let sent = address.withUnsafeBytes { raw in
            sendto(
                socket,
                message,
                message.count,
                0,
                raw.baseAddress?.assumingMemoryBound(to: sockaddr.self),
                socklen_t(raw.count)
            )
        }
        guard sent == message.count else { throw Refused(errno: errno) }
    }

    private static func bytes<Number: FixedWidthInteger>(_ number: Number) -> [UInt8] {
        withUnsafeBytes(of: number) { Array($0) }
    }

    /// Returns the MurmurHash2 value with seed 0, which the filters of subscribers use.
    private static func hash(_ text: String) -> UInt32 {
        let multiplier: UInt32 = 0x5BD1_E995
        var remaining = Array(text.utf8)[...]
        var hash = UInt32(remaining.count)
        while remaining.count >= 4 {
            var word = remaining.prefix(4).reversed().reduce(0) { $0 << 8 | UInt32($1) }
            word = word &* multiplier
            word ^= word >> 24
            word = word &* multiplier
            hash = hash &* multiplier ^ word
            remaining = remaining.dropFirst(4)
        }
        if !remaining.isEmpty {
            hash ^= remaining.reversed().reduce(0) { $0 << 8 | UInt32($1) }
            hash = hash &* multiplier
        }
        hash ^= hash >> 13
        hash = hash &* multiplier
        return hash ^ hash >> 15
    }
}
