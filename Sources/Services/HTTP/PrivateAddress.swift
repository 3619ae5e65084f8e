// SPDX-License-Identifier: GPL-3.0-or-later
import Glibc

/// Addresses that are no hosts of the Internet: this computer, private networks, and everything that is reserved.
package enum PrivateAddress {
    /// Whether a text is such an address; false for a name. IPv6 may be in brackets. RFC 6890.
    package static func isPrivate(_ text: String) -> Bool {
        let text = text.hasPrefix("[") && text.hasSuffix("]") ? String(text.dropFirst().dropLast()) : text
        var (v4, v6) = (in_addr(), in6_addr())
        if inet_pton(AF_INET, text, &v4) == 1 { return isPrivate(UInt32(bigEndian: v4.s_addr)) }
        guard inet_pton(AF_INET6, text, &v6) == 1 else { return false }
        return isPrivate(withUnsafeBytes(of: v6) { Array($0) })
    }

    /// The networks of IPv4 as address and number of bits.
    private static let networks: [(UInt32, Int)] = [
        (0x0000_0000, 8), (0x0A00_0000, 8), (0x6440_0000, 10), (0x7F00_0000, 8), (0xA9FE_0000, 16), (0xAC10_0000, 12),
        (0xC000_0000, 24), (0xC0A8_0000, 16), (0xC612_0000, 15), (0xE000_0000, 3),
    ]

    private static func isPrivate(_ address: UInt32) -> Bool {
        networks.contains { network, bits in (address ^ network) >> UInt32(32 - bits) == 0 }
    }

    private static func isPrivate(_ bytes: [UInt8]) -> Bool {
        func embedded(at start: Int) -> Bool { isPrivate(bytes[start..<start + 4].reduce(0) { $0 << 8 | UInt32($1) }) }
        // ::, ::1, and IPv4 in IPv6: compatible, mapped, and through NAT64 or 6to4.
        if bytes[..<12].allSatisfy({ $0 == 0 }) { return true }
        if bytes[..<10].allSatisfy({ $0 == 0 }), bytes[10...11].allSatisfy({ $0 == 0xFF }) { return embedded(at: 12) }
        if bytes[..<4] == [0x00, 0x64, 0xFF, 0x9B] { return embedded(at: 12) }
        if bytes[..<2] == [0x20, 0x02] { return embedded(at: 2) }
        // Only 2000::/3 has hosts of the Internet.
        return bytes[0] & 0xE0 != 0x20
    }
}
