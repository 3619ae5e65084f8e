// SPDX-License-Identifier: GPL-3.0-or-later
import COpenSSL
package import Text

/// Triple DES with two keys: CBC without padding, and the retail MAC. Documents older than AES use it.
/// ICAO 9303-11 9.8; ISO/IEC 18033-3, ISO/IEC 9797-1.
package enum TripleDES {
    /// The length of a block and of a MAC in bytes.
    package static let blockSize = 8
    /// The length of both keys together in bytes.
    package static let keyLength = 16

    // Unchecked: libcrypto only reads a fetched EVP_CIPHER.
    private struct Method: @unchecked Sendable {
        let cbc = EVP_CIPHER_fetch(nil, permanent("DES-EDE-CBC"), nil)
    }
    private static let method = Method()

    /// Encrypts whole blocks with CBC and a vector of zeros.
    package static func encrypt(_ data: borrowing Secret, key: borrowing Secret) throws(CryptoError) -> [UInt8] {
        let count = data.count
        var out = [UInt8](repeating: 0, count: count)
        try data.withBytes { input throws(CryptoError) in
            try run(1, key: key, input: input.octets, output: &out, count: count)
        }
        return out
    }

    /// Decrypts whole blocks with CBC and a vector of zeros.
    package static func decrypt(_ data: [UInt8], key: borrowing Secret) throws(CryptoError) -> Secret {
        try Secret(count: data.count) { output throws(CryptoError) in
            try run(0, key: key, input: data, output: output.octets, count: data.count)
        }
    }

    /// Computes the retail MAC of whole blocks, which get no further padding: DES with the first key in CBC, the last
    /// block with Triple DES. ISO/IEC 9797-1, algorithm 3.
    package static func retailMAC(_ blocks: [UInt8], key: borrowing Secret) throws(CryptoError) -> [UInt8] {
        guard !blocks.isEmpty, blocks.count % blockSize == 0, let first = key.part(0..<blockSize),
            key.count == keyLength
        else { throw .invalidLength }
        var last = Array(blocks.suffix(blockSize))
        let others = Array(blocks.dropLast(blockSize))
        if !others.isEmpty {
            // Triple DES with twice the same key is DES, which libcrypto has no longer by default.
            let chained = try encrypt(Secret(others), key: first.appending(first))
            for (index, byte) in chained.suffix(blockSize).enumerated() { last[index] ^= byte }
        }
        return try encrypt(Secret(last), key: key)
    }

    /// Sets the last bit of each byte so that the byte has an odd number of ones. ICAO 9303-11 9.7.2.
    static func adjustParity(_ key: UnsafeMutableRawBufferPointer) {
        for index in key.indices {
            let bits = key[index] & 0xFE
            key[index] = bits | (bits.nonzeroBitCount.isMultiple(of: 2) ? 1 : 0)
        }
    }

    private static func run(
        _ direction: Int32,
        key: borrowing Secret,
        input: UnsafePointer<UInt8>?,
        output: UnsafeMutablePointer<UInt8>?,
        count: Int
    ) throws(CryptoError) {
        guard key.count == keyLength, count % blockSize == 0, let length = Int32(exactly: count) else {
            throw .invalidLength
        }
        guard length > 0 else { return }
        let method = try check(Self.method.cbc, .unsupported)
        try runCBC(method, direction, key, [UInt8](repeating: 0, count: blockSize), input, output, length)
    }
}
