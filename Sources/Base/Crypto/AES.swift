// SPDX-License-Identifier: GPL-3.0-or-later
import COpenSSL
package import Text

/// AES with the modes of TR-03110: CBC without padding, and CMAC (`CMAC.swift`). FIPS 197, SP 800-38A.
package enum AES: Sendable, Hashable, CaseIterable {
    case aes128
    case aes192
    case aes256

    /// The length of a block, an initial vector and a full CMAC in bytes.
    package static let blockSize = 16

    /// The length of a key in bytes.
    package var keyLength: Int {
        switch self {
        case .aes128: 16
        case .aes192: 24
        case .aes256: 32
        }
    }

    /// Finds the AES with this length of key; nil when there is none.
    package init?(keyLength: Int) {
        switch keyLength {
        case 16: self = .aes128
        case 24: self = .aes192
        case 32: self = .aes256
        default: return nil
        }
    }

    /// The algorithms of libcrypto. They are fetched once, since fetching takes longer than encrypting a block.
    private struct Methods: @unchecked Sendable {
        // Unchecked: libcrypto only reads a fetched EVP_CIPHER.
        let aes128 = EVP_CIPHER_fetch(nil, permanent("AES-128-CBC"), nil)
        let aes192 = EVP_CIPHER_fetch(nil, permanent("AES-192-CBC"), nil)
        let aes256 = EVP_CIPHER_fetch(nil, permanent("AES-256-CBC"), nil)
    }
    private static let methods = Methods()

    private var method: OpaquePointer? {
        switch self {
        case .aes128: Self.methods.aes128
        case .aes192: Self.methods.aes192
        case .aes256: Self.methods.aes256
        }
    }

    private enum Direction: Int32 {
        case decrypt = 0
        case encrypt = 1
    }

    /// Encrypts `data` with CBC. The length of `data` is a multiple of 16; the length of the key selects the AES.
    package static func encrypt(
        _ data: [UInt8],
        key: borrowing Secret,
        initialVector: [UInt8] = zeroVector
    ) throws(CryptoError) -> [UInt8] {
        var out = [UInt8](repeating: 0, count: data.count)
        try run(.encrypt, key: key, initialVector: initialVector, input: data, output: &out, count: data.count)
        return out
    }

    /// Encrypts secret data with CBC.
    package static func encrypt(
        _ data: borrowing Secret,
        key: borrowing Secret,
        initialVector: [UInt8] = zeroVector
    ) throws(CryptoError) -> [UInt8] {
        let count = data.count
        var out = [UInt8](repeating: 0, count: count)
        try data.withBytes { input throws(CryptoError) in
            try run(
                .encrypt,
                key: key,
                initialVector: initialVector,
                input: input.octets,
                output: &out,
                count: count
            )
        }
        return out
    }

    /// Decrypts `data` with CBC. The length of `data` is a multiple of 16.
    package static func decrypt(
        _ data: [UInt8],
        key: borrowing Secret,
        initialVector: [UInt8] = zeroVector
    ) throws(CryptoError) -> Secret {
        try Secret(count: data.count) { output throws(CryptoError) in
            try run(
                .decrypt,
                key: key,
                initialVector: initialVector,
                input: data,
                output: output.octets,
                count: data.count
            )
        }
    }

    /// Encrypts many short messages with CBC under one key: libcrypto prepares the key once, which takes longer than a
    /// block. The row panelCPU of `make bench` shows it.
    package final class Encryptor {
        private let context: OpaquePointer

        package init(key: borrowing Secret) throws(CryptoError) {
            guard let size = AES(keyLength: key.count) else { throw .invalidLength }
            context = try check(EVP_CIPHER_CTX_new())
            try check(key.withBytes { EVP_CipherInit_ex(context, size.method, nil, $0.octets, zeroVector, 1) })
            try check(EVP_CIPHER_CTX_set_padding(context, 0))
        }

        deinit { EVP_CIPHER_CTX_free(context) }  // this also wipes the key schedule

        /// Encrypts `data`, whose length is a multiple of 16.
        package func encrypt(_ data: [UInt8], initialVector: [UInt8] = zeroVector) throws(CryptoError) -> [UInt8] {
            guard initialVector.count == blockSize, data.count % blockSize == 0, let length = Int32(exactly: data.count)
            else { throw .invalidLength }
            var out = [UInt8](repeating: 0, count: data.count)
            var written: Int32 = 0
            try check(EVP_CipherInit_ex(context, nil, nil, nil, initialVector, 1))
            try check(EVP_CipherUpdate(context, &out, &written, data, length))
            guard written == length else { throw .library }
            return out
        }
    }

    /// An initial vector of zeros.
    package static let zeroVector = [UInt8](repeating: 0, count: blockSize)

    private static func run(
        _ direction: Direction,
        key: borrowing Secret,
        initialVector: [UInt8],
        input: UnsafePointer<UInt8>?,
        output: UnsafeMutablePointer<UInt8>?,
        count: Int
    ) throws(CryptoError) {
        guard let size = AES(keyLength: key.count), initialVector.count == blockSize,
            count % blockSize == 0, let length = Int32(exactly: count)
        else { throw .invalidLength }
        guard length > 0 else { return }
        let method = try check(size.method, .unsupported)
        try runCBC(method, direction.rawValue, key, initialVector, input, output, length)
    }
}

/// Encrypts (`direction` 1) or decrypts (0) whole blocks with CBC and without padding. The caller has checked all
/// lengths. The C functions are EVP_CipherInit_ex and EVP_CipherUpdate.
func runCBC(
    _ method: OpaquePointer,
    _ direction: Int32,
    _ key: borrowing Secret,
    _ initialVector: [UInt8],
    _ input: UnsafePointer<UInt8>?,
    _ output: UnsafeMutablePointer<UInt8>?,
    _ length: Int32
) throws(CryptoError) {
    let context = try check(EVP_CIPHER_CTX_new())
    defer { EVP_CIPHER_CTX_free(context) }  // this also wipes the key schedule
    try check(key.withBytes { EVP_CipherInit_ex(context, method, nil, $0.octets, initialVector, direction) })
    try check(EVP_CIPHER_CTX_set_padding(context, 0))
    var written: Int32 = 0
    try check(EVP_CipherUpdate(context, output, &written, input, length))
    guard written == length else { throw .library }
}
