// SPDX-License-Identifier: GPL-3.0-or-later

/// Returns a copy of the bytes for each byte, with one bit of this byte changed.
package func changed(_ bytes: [UInt8]) -> [[UInt8]] {
    bytes.indices.map { index in
        var copy = bytes
        copy[index] ^= 1
        return copy
    }
}

/// Returns the bytes with one bit changed, cut at each place, twice in a row, and with one byte more.
package func damaged(_ bytes: [UInt8]) -> [[UInt8]] {
    changed(bytes) + bytes.indices.map { Array(bytes.prefix($0)) } + [bytes + bytes, bytes + [0]]
}
