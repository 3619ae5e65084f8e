// SPDX-License-Identifier: Apache-2.0

extension Sequence<UInt8> {
    /// Whether these bytes are a token, such as the name of a header. RFC 9110, 5.6.2.
    package var isHTTPToken: Bool {
        var isEmpty = true
        for byte in self {
            isEmpty = false
            switch byte {
            case 0x30...0x39, 0x41...0x5A, 0x61...0x7A: continue
            case _ where "!#$%&'*+-.^_`|~".utf8.contains(byte): continue
            default: return false
            }
        }
        return !isEmpty
    }
}

extension Collection<UInt8> {
    /// Thousandths of a weight: a number from 0 to 1 with at most three places; what is no such number counts as 0.
    /// RFC 9110, 12.4.2.
    package var httpQuality: Int {
        let parts = split(separator: UInt8(ascii: "."), omittingEmptySubsequences: false)
        guard parts.count <= 2, let whole = parts.first,
            whole.elementsEqual("0".utf8) || whole.elementsEqual("1".utf8)
        else { return 0 }
        let places = parts.count == 2 ? Array(parts[1]) : []
        guard places.count <= 3, places.allSatisfy({ (0x30...0x39).contains($0) }) else { return 0 }
        let padded = places + [UInt8](repeating: 0x30, count: 3 - places.count)
        return Swift.min(padded.reduce(whole.first == 0x31 ? 1 : 0) { $0 * 10 + Int($1 - 0x30) }, 1000)
    }
}
