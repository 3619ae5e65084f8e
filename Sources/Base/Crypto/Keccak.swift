// SPDX-License-Identifier: GPL-3.0-or-later

/// Keccak-256 with the padding of the original submission, as Ethereum uses it. FIPS 202 has another padding.
///
/// libcrypto has this function from version 3.2 on.
package enum Keccak256 {
    /// The block of input in bytes: the state of 200 bytes without twice the length of the hash.
    private static let rate = 136

    /// Hashes public bytes; the hash has 32 bytes.
    package static func hash(_ bytes: some Collection<UInt8>) -> [UInt8] {
        var message = Array(bytes)
        message.append(0x01)
        message += [UInt8](repeating: 0, count: (rate - message.count % rate) % rate)
        message[message.count - 1] |= 0x80

        var state = [UInt64](repeating: 0, count: 25)
        for block in stride(from: 0, to: message.count, by: rate) {
            for lane in 0..<rate / 8 {
                for byte in 0..<8 { state[lane] ^= UInt64(message[block + 8 * lane + byte]) << (8 * byte) }
            }
            permute(&state)
        }
        return (0..<32).map { UInt8(truncatingIfNeeded: state[$0 / 8] >> (8 * ($0 % 8))) }
    }

    /// Keccak-f[1600]: 24 rounds of the steps theta, rho and pi, chi, iota. FIPS 202 3.3.
    private static func permute(_ state: inout [UInt64]) {
        for constant in roundConstants {
            var parity = [UInt64](repeating: 0, count: 5)
            for lane in 0..<25 { parity[lane % 5] ^= state[lane] }
            for lane in 0..<25 {
                state[lane] ^= parity[(lane + 4) % 5] ^ rotate(parity[(lane + 1) % 5], by: 1)
            }
            var moved = state
            for x in 0..<5 {
                for y in 0..<5 {
                    moved[y + 5 * ((2 * x + 3 * y) % 5)] = rotate(state[x + 5 * y], by: offsets[x + 5 * y])
                }
            }
            for lane in 0..<25 {
                let row = lane - lane % 5
                let next = moved[row + (lane + 1) % 5]
                let second = moved[row + (lane + 2) % 5]
                state[lane] = moved[lane] ^ (~next & second)
            }
            state[0] ^= constant
        }
    }

    private static func rotate(_ lane: UInt64, by count: UInt64) -> UInt64 {
        lane << count | lane >> ((64 - count) % 64)
    }

    /// The rotation of each lane x + 5y. FIPS 202, table 2.
    private static let offsets: [UInt64] = [
        0, 1, 62, 28, 27,
        36, 44, 6, 55, 20,
        3, 10, 43, 25, 39,
        41, 45, 15, 21, 8,
        18, 2, 61, 56, 14,
    ]

    /// The constant of each round. FIPS 202 3.2.5.
    private static let roundConstants: [UInt64] = [
        0x0000_0000_0000_0001, 0x0000_0000_0000_8082, 0x8000_0000_0000_808A, 0x8000_0000_8000_8000,
        0x0000_0000_0000_808B, 0x0000_0000_8000_0001, 0x8000_0000_8000_8081, 0x8000_0000_0000_8009,
        0x0000_0000_0000_008A, 0x0000_0000_0000_0088, 0x0000_0000_8000_8009, 0x0000_0000_8000_000A,
        0x0000_0000_8000_808B, 0x8000_0000_0000_008B, 0x8000_0000_0000_8089, 0x8000_0000_0000_8003,
        0x8000_0000_0000_8002, 0x8000_0000_0000_0080, 0x0000_0000_0000_800A, 0x8000_0000_8000_000A,
        0x8000_0000_8000_8081, 0x8000_0000_0000_8080, 0x0000_0000_8000_0001, 0x8000_0000_8000_8008,
    ]
}
