// SPDX-License-Identifier: GPL-3.0-or-later
import CSecp256k1
package import Crypto
package import Text

/// A private key with its public key. The number is wiped when the key is freed.
package struct PrivateKey: ~Copyable, Sendable {
    /// 32 bytes, big-endian.
    package let scalar: Secret
    package let publicKey: PublicKey

    /// The number of bytes of a private key.
    package static let count = 32

    /// Takes a key.
    /// - Throws: `.invalidKey` unless `scalar` has 32 bytes and is in 1 ..< order.
    package init(_ scalar: consuming Secret) throws(CryptoError) {
        guard scalar.count == Self.count else { throw .invalidKey }
        let context = try Context.pointer
        var key = secp256k1_pubkey()
        let result = scalar.withBytes { secp256k1_ec_pubkey_create(context, &key, $0.octets) }
        guard result == 1 else { throw .invalidKey }
        publicKey = try PublicKey(key)
        self.scalar = scalar
    }

    /// Draws a key. `random` gets a number of bytes and returns as many secret random bytes.
    package static func generate(
        _ random: (Int) throws(CryptoError) -> Secret = Random.secret
    ) throws(CryptoError) -> PrivateKey {
        while true {
            do throws(CryptoError) {
                return try PrivateKey(try random(count))
            } catch {
                guard error == .invalidKey else { throw error }
            }
        }
    }

    package borrowing func clone() throws(CryptoError) -> PrivateKey { try PrivateKey(scalar.clone()) }

    /// Runs ECDH and returns the x coordinate of the shared point: 32 bytes, not hashed. SEC 1, 3.3.1.
    package borrowing func sharedX(with peer: PublicKey) throws(CryptoError) -> Secret {
        let context = try Context.pointer
        var key = try peer.parsed
        return try Secret(count: 32) { out throws(CryptoError) in
            let target = UnsafeRawBufferPointer(out).octets
            let result = scalar.withBytes {
                secp256k1_ecdh_x(context, UnsafeMutablePointer(mutating: target), &key, $0.octets)
            }
            guard result == 1 else { throw .invalidKey }
        }
    }

    /// Signs a hash of 32 bytes; s is in the lower half of its range.
    ///
    /// 32 bytes of entropy make the nonce of RFC 6979 different each time; nil is for the plain nonce.
    package borrowing func sign(_ hash: [UInt8], entropy: [UInt8]? = nil) throws(CryptoError) -> Signature {
        guard hash.count == 32, entropy == nil || entropy?.count == 32 else { throw .invalidLength }
        let context = try Context.pointer
        var signature = secp256k1_ecdsa_signature()
        let result = scalar.withBytes { scalar in
            guard let entropy else {
                return secp256k1_ecdsa_sign(context, &signature, hash, scalar.octets, nil, nil)
            }
            return entropy.withUnsafeBytes {
                secp256k1_ecdsa_sign(context, &signature, hash, scalar.octets, nil, $0.baseAddress)
            }
        }
        guard result == 1 else { throw .invalidKey }
        return try Signature(signature)
    }

    /// Returns the key whose number is the sum of both numbers. BIP-32, Private parent key.
    /// - Throws: `.invalidKey` if the sum is 0 or `tweak` is not below the order.
    package borrowing func adding(_ tweak: borrowing Secret) throws(CryptoError) -> PrivateKey {
        guard tweak.count == Self.count else { throw .invalidLength }
        let context = try Context.pointer
        let sum = try Secret(count: Self.count) { out throws(CryptoError) in
            scalar.withBytes { out.copyMemory(from: $0) }
            let target = UnsafeRawBufferPointer(out).octets
            let result = tweak.withBytes {
                secp256k1_ec_seckey_tweak_add(context, UnsafeMutablePointer(mutating: target), $0.octets)
            }
            guard result == 1 else { throw .invalidKey }
        }
        return try PrivateKey(sum)
    }
}

/// The context of libsecp256k1, which is made once per process and blinded with random bytes.
///
/// The library ends the process when it is called with a null pointer or an invalid object. So every object that it gets
/// was parsed in the same function.
struct Context: @unchecked Sendable {
    // Sendable: the library only reads a finished context.
    let pointer: OpaquePointer

    private static let shared = Result<Context, CryptoError> { () throws(CryptoError) in
        guard let pointer = secp256k1_new_context() else { throw .library }
        let seed = try Random.secret(32)
        let result = seed.withBytes { secp256k1_context_randomize(pointer, $0.octets) }
        guard result == 1 else { throw .library }
        return Context(pointer: pointer)
    }

    static var pointer: OpaquePointer {
        get throws(CryptoError) { try shared.get().pointer }
    }
}

extension UnsafeRawBufferPointer {
    var octets: UnsafePointer<UInt8> {
        // The library never reads from the address of an empty buffer: all lengths are checked before.
        (baseAddress ?? UnsafeRawPointer(bitPattern: 1).unsafelyUnwrapped).assumingMemoryBound(to: UInt8.self)
    }
}
