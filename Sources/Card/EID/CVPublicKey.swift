// SPDX-License-Identifier: GPL-3.0-or-later
package import Crypto
package import ISO7816
package import Text

/// A public key data object, 7F49, of an elliptic curve key. TR-03110-3 D.3.3.
package struct CVPublicKey: Sendable, Equatable {
    /// The content of the object identifier, which names the protocol of the key.
    package let identifier: [UInt8]
    /// The curve of the explicit domain parameters; nil when the object has none and inherits them.
    package let curve: Curve?
    /// The uncompressed point. `key` checks that it is on the curve.
    package let point: [UInt8]

    package init(identifier: [UInt8], _ key: ECPublicKey, writesParameters: Bool) {
        self.identifier = identifier
        point = key.uncompressed
        curve = writesParameters ? key.curve : nil
    }

    /// Reads the objects inside 7F49.
    /// - Throws: `Malformed`, also for domain parameters that are not standardized.
    package init(objects: [BERTLV]) throws(Malformed) {
        switch objects.map(\.tag) {
        case [0x06, 0x86]:
            curve = nil
        case [0x06, 0x81, 0x82, 0x83, 0x84, 0x85, 0x86, 0x87]:
            let parameters = ExplicitDomainParameters(
                prime: objects[1].value,
                a: objects[2].value,
                b: objects[3].value,
                generator: objects[4].value,
                order: objects[5].value,
                cofactor: objects[7].value
            )
            guard let known = try? Curve(parameters) else { throw .unsupported }
            curve = known
        default:
            throw Malformed("public key with unexpected objects")
        }
        identifier = objects[0].value
        guard let point = objects.first(where: { $0.tag == 0x86 })?.value, point.count <= 133 else {
            throw Malformed("public point too long")
        }
        self.point = point
    }

    /// Returns the key on its own curve, or on `inherited` when it has none.
    /// - Throws: `.invalidKey` when the point is not on the curve; `.unsupported` without a curve.
    package func key(inheriting inherited: Curve? = nil) throws(Malformed) -> ECPublicKey {
        guard let curve = curve ?? inherited else { throw .unsupported }
        guard let key = try? ECPublicKey(point, on: curve) else { throw .invalidKey }
        return key
    }

    /// The object 7F49.
    /// - Throws: when libcrypto does not have the curve.
    package var object: BERTLV {
        get throws(CryptoError) {
            var objects = [BERTLV(0x06, identifier)]
            let parameters = try curve?.group.parameters
            if let parameters {
                objects += [
                    BERTLV(0x81, parameters.prime), BERTLV(0x82, parameters.a), BERTLV(0x83, parameters.b),
                    BERTLV(0x84, parameters.generator), BERTLV(0x85, parameters.order),
                ]
            }
            objects.append(BERTLV(0x86, point))
            if let parameters { objects.append(BERTLV(0x87, parameters.cofactor)) }
            return BERTLV(0x7F49, objects)
        }
    }
}
