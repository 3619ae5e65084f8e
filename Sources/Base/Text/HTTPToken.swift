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
