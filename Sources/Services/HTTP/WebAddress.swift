// SPDX-License-Identifier: GPL-3.0-or-later
import Glibc
import Host

/// An absolute http or https URI. RFC 3986.
///
/// A URI with other characters than printable ASCII, with a user name, or without a host is refused.
package struct WebAddress: Sendable, Hashable {
    /// Scheme, host and port. RFC 6454.
    package struct Origin: Sendable, Hashable {
        package let isSecure: Bool
        /// Lower case; an IPv6 address without its brackets.
        package let host: String
        package let port: UInt16

        /// Whether the host is this computer, or an address in a private network. A name may lead to such an address.
        package var isPrivate: Bool { isThisComputer || PrivateAddress.isPrivate(host) }

        package var isThisComputer: Bool { LoopbackSockets.areReached(by: host) }
    }

    /// The URI as it was given, without the fragment.
    package let text: String
    package let origin: Origin

    /// The maximum length in bytes.
    static let maximumLength = 16_384

    /// Reads a URI; nil when it is refused.
    package init?(_ text: String) {
        let bytes = Array(text.utf8)
        guard bytes.count <= Self.maximumLength,
            bytes.allSatisfy({ (0x21...0x7E) ~= $0 && !Self.excluded.contains($0) })
        else { return nil }
        let isSecure: Bool
        let afterScheme: ArraySlice<UInt8>
        if Self.starts(bytes, with: "https://") {
            isSecure = true
            afterScheme = bytes[8...]
        } else if Self.starts(bytes, with: "http://") {
            isSecure = false
            afterScheme = bytes[7...]
        } else {
            return nil
        }
        let authority = afterScheme.prefix { !Self.authorityEnds.contains($0) }
        guard let (host, port) = Self.hostAndPort(authority) else { return nil }
        origin = Origin(isSecure: isSecure, host: host, port: port ?? (isSecure ? 443 : 80))
        self.text = String(decoding: bytes.prefix { $0 != UInt8(ascii: "#") }, as: UTF8.self)
    }

    package var isSecure: Bool { origin.isSecure }

    /// Whether nobody in the network can read or change what is sent: by TLS, or because it stays on this computer.
    package var isConfidential: Bool { isSecure || origin.isThisComputer }

    /// Printable ASCII characters that RFC 3986 excludes.
    private static let excluded = Set("\"<>\\^`{|}".utf8)
    private static let authorityEnds = Set("/?#".utf8)
    private static let hostBytes = Set("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-._".utf8)
    private static let ipv6Bytes = Set("0123456789abcdefABCDEF:.".utf8)

    private static func starts(_ bytes: [UInt8], with prefix: String) -> Bool {
        bytes.prefix(prefix.utf8.count).map { (0x41...0x5A) ~= $0 ? $0 | 0x20 : $0 }.elementsEqual(prefix.utf8)
    }

    private static func hostAndPort(_ authority: ArraySlice<UInt8>) -> (host: String, port: UInt16?)? {
        let host: ArraySlice<UInt8>
        var port: ArraySlice<UInt8>
        if authority.first == UInt8(ascii: "[") {
            guard let end = authority.firstIndex(of: UInt8(ascii: "]")) else { return nil }
            (host, port) = (authority[(authority.startIndex + 1)..<end], authority[(end + 1)...])
            guard host.contains(UInt8(ascii: ":")), host.allSatisfy(ipv6Bytes.contains) else { return nil }
        } else {
            host = authority.prefix { $0 != UInt8(ascii: ":") }
            port = authority[host.endIndex...]
            guard !host.isEmpty, host.allSatisfy(hostBytes.contains) else { return nil }
        }
        let name = String(decoding: host, as: UTF8.self).lowercased()
        guard let colon = port.popFirst() else { return (name, nil) }
        guard colon == UInt8(ascii: ":"), port.count <= 5, port.allSatisfy({ (0x30...0x39) ~= $0 }) else { return nil }
        if port.isEmpty { return (name, nil) }
        guard let number = UInt16(String(decoding: port, as: UTF8.self)), number != 0 else { return nil }
        return (name, number)
    }

    /// Returns the address with these items appended to its query.
    package func adding(query: [(name: String, value: String)]) -> String {
        let items = query.map { "\($0.name)=\($0.value)" }.joined(separator: "&")
        guard text.contains("?") else { return "\(text)?\(items)" }
        return text.hasSuffix("?") || text.hasSuffix("&") ? text + items : "\(text)&\(items)"
    }
}

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
