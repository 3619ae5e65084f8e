// SPDX-License-Identifier: GPL-3.0-or-later
import COpenSSL
import Synchronization

/// The elliptic curves of the standardized domain parameters. The raw value is the parameter ID. All have cofactor 1.
/// TR-03110-3 A.2.1.1, table 4.
package enum Curve: UInt8, Sendable, CaseIterable {
    case secp192r1 = 8
    case brainpoolP192r1 = 9
    case secp224r1 = 10
    case brainpoolP224r1 = 11
    case secp256r1 = 12
    case brainpoolP256r1 = 13
    case brainpoolP320r1 = 14
    case secp384r1 = 15
    case brainpoolP384r1 = 16
    case brainpoolP512r1 = 17
    case secp521r1 = 18

    /// The length of a field element in bytes, 24 to 66. Each coordinate of a point has this length.
    package var fieldLength: Int {
        switch self {
        case .secp192r1, .brainpoolP192r1: 24
        case .secp224r1, .brainpoolP224r1: 28
        case .secp256r1, .brainpoolP256r1: 32
        case .brainpoolP320r1: 40
        case .secp384r1, .brainpoolP384r1: 48
        case .brainpoolP512r1: 64
        case .secp521r1: 66
        }
    }

    /// The length of a scalar in bytes. The order of each of these curves is as long as its prime.
    package var scalarLength: Int { fieldLength }

    /// The number of the curve in libcrypto.
    var nid: Int32 {
        switch self {
        case .secp192r1: NID_X9_62_prime192v1
        case .brainpoolP192r1: NID_brainpoolP192r1
        case .secp224r1: NID_secp224r1
        case .brainpoolP224r1: NID_brainpoolP224r1
        case .secp256r1: NID_X9_62_prime256v1
        case .brainpoolP256r1: NID_brainpoolP256r1
        case .brainpoolP320r1: NID_brainpoolP320r1
        case .secp384r1: NID_secp384r1
        case .brainpoolP384r1: NID_brainpoolP384r1
        case .brainpoolP512r1: NID_brainpoolP512r1
        case .secp521r1: NID_secp521r1
        }
    }

    init?(nid: Int32) {
        guard let curve = Self.allCases.first(where: { $0.nid == nid }) else { return nil }
        self = curve
    }

    /// The group with the generator of the curve, which is made once per process.
    /// - Throws: `.unsupported` when libcrypto was built without the curve.
    package var group: ECGroup {
        get throws(CryptoError) {
            try Self.groups.withLock { groups throws(CryptoError) in
                if let group = groups[self] { return group }
                let group = try ECGroup(self)
                groups[self] = group
                return group
            }
        }
    }

    private static let groups = Mutex<[Curve: ECGroup]>([:])
}

/// Explicit domain parameters, as in a CV certificate or a PKCS#8 file: big-endian numbers. TR-03110-3 D.3.3.
package struct ExplicitDomainParameters: Sendable, Equatable {
    package var prime: [UInt8]
    package var a: [UInt8]
    package var b: [UInt8]
    /// An uncompressed point.
    package var generator: [UInt8]
    package var order: [UInt8]
    package var cofactor: [UInt8]

    package init(prime: [UInt8], a: [UInt8], b: [UInt8], generator: [UInt8], order: [UInt8], cofactor: [UInt8]) {
        self.prime = prime
        self.a = a
        self.b = b
        self.generator = generator
        self.order = order
        self.cofactor = cofactor
    }
}

extension Curve {
    /// Finds the standardized curve with exactly these parameters.
    ///
    /// Every parameter is compared, because parameters that only resemble a known curve allow forged signatures.
    /// - Throws: `.unsupported` for other parameters.
    package init(_ parameters: ExplicitDomainParameters) throws(CryptoError) {
        let length = parameters.prime.drop { $0 == 0 }.count
        for curve in Self.allCases where curve.fieldLength == length {
            if try curve.group.parameters == parameters.normalized(curve.fieldLength) {
                self = curve
                return
            }
        }
        throw .unsupported
    }
}

extension ExplicitDomainParameters {
    /// Pads or cuts leading zeros, so that each number has its full length. A number that is too large stays unchanged.
    fileprivate func normalized(_ length: Int) -> ExplicitDomainParameters {
        func fit(_ number: [UInt8], _ length: Int) -> [UInt8] {
            let digits = number.drop { $0 == 0 }
            guard digits.count <= length else { return number }
            return [UInt8](repeating: 0, count: length - digits.count) + digits
        }
        return ExplicitDomainParameters(
            prime: fit(prime, length),
            a: fit(a, length),
            b: fit(b, length),
            generator: generator,
            order: fit(order, length),
            cofactor: fit(cofactor, 1)
        )
    }
}
