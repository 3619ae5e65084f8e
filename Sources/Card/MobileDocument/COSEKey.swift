// SPDX-License-Identifier: GPL-3.0-or-later
package import Crypto
package import Text

extension Curve {
    /// The curves of ISO/IEC 18013-5, 9.1.5.2, for agreement and ECDSA, by their numbers in the registry of COSE.
    private static let ofCOSE: [Int64: Curve] = [
        1: .secp256r1, 2: .secp384r1, 3: .secp521r1, 256: .brainpoolP256r1, 257: .brainpoolP320r1,
        258: .brainpoolP384r1, 259: .brainpoolP512r1,
    ]

    /// The curve with this number in the registry of COSE.
    init?(cose number: Int64) {
        guard let curve = Self.ofCOSE[number] else { return nil }
        self = curve
    }

    /// The number of the curve in the registry of COSE; nil for one that mobile documents do not use.
    var coseNumber: Int64? { Self.ofCOSE.first { $0.value == self }?.key }
}

extension ECPublicKey {
    /// Reads a COSE_Key with a point. RFC 9052, 7; RFC 9053, 7.1.1.
    package init(cose key: CBOR) throws(MdocProblem) {
        guard let type = key[1]?.integer else { throw .malformed("a COSE_Key has no type") }
        guard type == 2 else { throw .unsupported("keys of the COSE type \(type)") }
        guard let number = key[-1]?.integer else { throw .malformed("a COSE_Key has no curve") }
        guard let curve = Curve(cose: number) else { throw .unsupported("the COSE curve \(number)") }
        guard let x = key[-2]?.bytes, x.count == curve.fieldLength else {
            throw .malformed("x of a COSE_Key has not the length of its curve")
        }
        do throws(CryptoError) {
            if let isOdd = key[-3]?.bool {
                try self.init(compressedPoint: [isOdd ? 3 : 2] + x, on: curve)
                return
            }
            guard let y = key[-3]?.bytes, y.count == curve.fieldLength else { throw .invalidPoint }
            try self.init([4] + x + y, on: curve)
        } catch .invalidPoint {
            throw .malformed("a COSE_Key is no point of its curve")
        } catch {
            throw .library(error)
        }
    }

    /// The COSE_Key of the point; nil on a curve that mobile documents do not use.
    package var cose: CBORValue? {
        guard let number = curve.coseNumber else { return nil }
        let coordinates = uncompressed.dropFirst()
        return [
            1: 2, -1: .integer(number), -2: .bytes(Array(coordinates.prefix(curve.fieldLength))),
            -3: .bytes(Array(coordinates.suffix(curve.fieldLength))),
        ]
    }
}
