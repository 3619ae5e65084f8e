// SPDX-License-Identifier: GPL-3.0-or-later
import COpenSSL
package import Text

/// The groups of integers modulo a prime among the standardized domain parameters. The raw value is the parameter ID.
/// ICAO 9303-11 9.5.1, RFC 5114 2.1 to 2.3.
package enum DHParameters: UInt8, Sendable, Hashable, CaseIterable {
    case modp1024 = 0
    case modp2048Subgroup224 = 1
    case modp2048Subgroup256 = 2

    /// The length of the prime, of a public key and of a shared secret in bytes.
    package var primeLength: Int { self == .modp1024 ? 128 : 256 }

    /// The group with the generator of RFC 5114, which is made once per process.
    package var group: DHGroup {
        get throws(CryptoError) {
            let group: DHGroup? =
                switch self {
                case .modp1024: Self.groups.modp1024
                case .modp2048Subgroup224: Self.groups.modp2048Subgroup224
                case .modp2048Subgroup256: Self.groups.modp2048Subgroup256
                }
            return try check(group)
        }
    }

    private struct Groups: Sendable {
        let modp1024 = try? DHGroup(.modp1024)
        let modp2048Subgroup224 = try? DHGroup(.modp2048Subgroup224)
        let modp2048Subgroup256 = try? DHGroup(.modp2048Subgroup256)
    }
    private static let groups = Groups()

    /// Finds the group with exactly this prime and generator, big-endian; nil for others.
    package init?(prime: [UInt8], generator: [UInt8]) {
        let (prime, generator) = (Array(prime.drop { $0 == 0 }), Array(generator.drop { $0 == 0 }))
        for parameters in Self.allCases where parameters.primeLength == prime.count {
            guard let group = try? parameters.group, let p = try? octets(group.prime.pointer, prime.count),
                let g = try? octets(group.generator.pointer, prime.count)
            else { continue }
            if p == prime, g.drop(while: { $0 == 0 }) == generator[...] {
                self = parameters
                return
            }
        }
        return nil
    }
}

/// A cyclic group of integers modulo a prime, with the generator of its parameters or one that PACE has mapped.
package final class DHGroup: @unchecked Sendable {
    // Sendable: all members are constants, and libcrypto only reads a finished BIGNUM.
    package let parameters: DHParameters
    let prime: BigNumber
    let order: BigNumber
    let generator: BigNumber

    fileprivate init(_ parameters: DHParameters) throws(CryptoError) {
        let (p, g, q) = parameters.numbers
        self.parameters = parameters
        prime = try BigNumber(hexadecimal: p)
        order = try BigNumber(hexadecimal: q)
        generator = try BigNumber(hexadecimal: g)
    }

    private init(_ base: DHGroup, generator: consuming BigNumber) throws(CryptoError) {
        parameters = base.parameters
        prime = try base.prime.copy()
        order = try base.order.copy()
        self.generator = generator
    }

    /// Runs the generic mapping: the new generator is g^nonce · h, where h is the shared number of both mapping keys.
    /// ICAO 9303-11 4.4.3.3.1.
    /// - Throws: `.invalidPoint` for a generator that generates nothing.
    package func mapped(
        nonce: borrowing Secret,
        key: borrowing DHPrivateKey,
        peer: DHPublicKey
    ) throws(CryptoError) -> DHGroup {
        let number = try BigNumber(nonce)
        let power = try raise(generator, to: number)
        let shared = try key.sharedNumber(with: peer)
        let product = try BigNumber()
        let context = try BigNumberContext()
        try check(BN_mod_mul(product.pointer, power.pointer, shared.pointer, prime.pointer, context.pointer))
        return try mapped(to: product)
    }

    /// Runs the integrated mapping: the new generator is r^((p-1)/q), where r is the pseudo-random number below p.
    /// ICAO 9303-11 4.4.3.3.2.
    package func mapped(random: borrowing Secret) throws(CryptoError) -> DHGroup {
        let context = try BigNumberContext()
        let number = try BigNumber(random)
        let reduced = try BigNumber()
        try check(BN_div(nil, reduced.pointer, number.pointer, prime.pointer, context.pointer))
        let cofactor = try BigNumber()
        let minusOne = try prime.copy()
        try check(BN_sub_word(minusOne.pointer, 1))
        try check(BN_div(cofactor.pointer, nil, minusOne.pointer, order.pointer, context.pointer))
        return try mapped(to: try raise(reduced, to: cofactor))
    }

    private func mapped(to generator: consuming BigNumber) throws(CryptoError) -> DHGroup {
        guard !generator.isZero, BN_is_one(generator.pointer) == 0 else { throw .invalidPoint }
        return try DHGroup(self, generator: generator)
    }

    /// Raises a number in constant time for the exponent, which is a secret.
    func raise(_ base: borrowing BigNumber, to exponent: borrowing BigNumber) throws(CryptoError) -> BigNumber {
        let result = try BigNumber()
        let context = try BigNumberContext()
        let (p, b, e) = (prime.pointer, base.pointer, exponent.pointer)
        try check(BN_mod_exp_mont_consttime(result.pointer, b, e, p, context.pointer, nil))
        return result
    }
}

/// A public key: a number y with 2 <= y <= p-2 in the subgroup.
package struct DHPublicKey: Sendable, Equatable {
    package let parameters: DHParameters
    /// Big-endian without leading zeros, as it is sent. TR-03110-3 D.2.1.1.
    package let bytes: [UInt8]

    /// Reads a big-endian number.
    /// - Throws: `.invalidPoint` for a number out of range or out of the subgroup.
    package init(_ bytes: [UInt8], in parameters: DHParameters) throws(CryptoError) {
        let digits = Array(bytes.drop { $0 == 0 })
        guard !digits.isEmpty, digits.count <= parameters.primeLength else { throw .invalidPoint }
        let group = try parameters.group
        let number = try BigNumber(digits)
        let limit = try group.prime.copy()
        try check(BN_sub_word(limit.pointer, 1))
        let power = try group.raise(number, to: group.order)
        guard BN_is_one(number.pointer) == 0, BN_cmp(number.pointer, limit.pointer) < 0,
            BN_is_one(power.pointer) == 1
        else { throw .invalidPoint }
        self.parameters = parameters
        self.bytes = digits
    }

    fileprivate init(_ number: borrowing BigNumber, of group: DHGroup) throws(CryptoError) {
        parameters = group.parameters
        bytes = Array(try octets(number.pointer, group.parameters.primeLength).drop { $0 == 0 })
    }
}

/// A private key with its public key. The exponent is wiped when the key is freed.
package struct DHPrivateKey: ~Copyable, @unchecked Sendable {
    // Unchecked: libcrypto only reads a finished BIGNUM.
    package let group: DHGroup
    package let publicKey: DHPublicKey
    private let exponent: BigNumber

    /// Draws a key.
    package init(on group: DHGroup) throws(CryptoError) {
        try self.init(exponent: try .random(below: group.order.pointer), on: group)
    }

    /// Takes a key: a big-endian number.
    /// - Throws: `.invalidKey` unless the number is above 0 and shorter than the prime.
    package init(_ exponent: borrowing Secret, on group: DHGroup) throws(CryptoError) {
        let number = try BigNumber(exponent)
        guard number.isScalar(below: group.prime.pointer) else { throw .invalidKey }
        try self.init(exponent: number, on: group)
    }

    private init(exponent: consuming BigNumber, on group: DHGroup) throws(CryptoError) {
        let power = try group.raise(group.generator, to: exponent)
        publicKey = try DHPublicKey(power, of: group)
        self.group = group
        self.exponent = exponent
    }

    /// Returns the shared number at the full length of the prime. ICAO 9303-11 9.6.
    package func sharedSecret(with peer: DHPublicKey) throws(CryptoError) -> Secret {
        let number = try sharedNumber(with: peer)
        let count = group.parameters.primeLength
        let pointer = number.pointer
        return try Secret(count: count) { out throws(CryptoError) in
            guard BN_bn2binpad(pointer, out.octets, Int32(count)) == Int32(count) else { throw .library }
        }
    }

    fileprivate func sharedNumber(with peer: DHPublicKey) throws(CryptoError) -> BigNumber {
        guard peer.parameters == group.parameters else { throw .invalidPoint }
        return try group.raise(try BigNumber(peer.bytes), to: exponent)
    }
}
