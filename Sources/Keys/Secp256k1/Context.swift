// SPDX-License-Identifier: GPL-3.0-or-later
import CSecp256k1
import Crypto
import Secrets

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
