// SPDX-License-Identifier: Apache-2.0

/// Percent-encoding of URIs. RFC 3986, 2.1.
package enum PercentEncoding {
    /// Decodes bytes in percent-encoding; nil for a percent sign without two hexadecimal digits.
    package static func decode(_ bytes: some Sequence<UInt8>) -> [UInt8]? {
        var decoded: [UInt8] = []
        var rest = bytes.makeIterator()
        while let byte = rest.next() {
            guard byte == UInt8(ascii: "%") else {
                decoded.append(byte)
                continue
            }
            guard let high = rest.next().flatMap(Hex.value), let low = rest.next().flatMap(Hex.value) else {
                return nil
            }
            decoded.append(high << 4 | low)
        }
        return decoded
    }
}
