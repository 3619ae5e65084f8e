// SPDX-License-Identifier: GPL-3.0-or-later
package import Crypto
import ISO7816
package import Secrets

/// Password Authenticated Connection Establishment with generic mapping over elliptic curves. TR-03110-2 3.2,
/// TR-03110-3 B.1; ICAO 9303-11 4.4.
///
/// `PACE.Terminal` and `PACE.Chip` are the two sides as step machines without input or output: each takes what the other
/// sent in the data field of a command or answer (the 7C object) and gives what to send next.
///
/// These steps are ours over libcrypto and not libeac's (OpenPACE). No function of that library takes an ephemeral key:
/// its steps draw them, and the worked example of ICAO 9303-11 could be run only by overwriting function pointers inside
/// its context structures. Its Comp() drops leading zero bytes of the x coordinate. Its keys would lie in memory that we
/// do not wipe, and it would be one library more at run time. It judges these steps in the tests, in both roles.
package enum PACE {
    /// Private keys given from outside instead of drawn, for the worked examples; nil is drawn.
    package struct FixedKeys: ~Copyable, Sendable {
        package let mapping: Secret
        package let ephemeral: Secret

        package init(mapping: consuming Secret, ephemeral: consuming Secret) {
            self.mapping = mapping
            self.ephemeral = ephemeral
        }
    }

    /// What both sides have in the end.
    package struct Outcome: ~Copyable, Sendable {
        package let keys: SessionKeys
        /// Comp() of the chip's ephemeral public key. TR-03110-2 3.2.
        package let idPICC: [UInt8]
        /// Comp() of the terminal's ephemeral public key.
        package let idPCD: [UInt8]
        /// Name of the most recent and of the previous CVCA key (data objects 87 and 88), when the chip sent them.
        package let certificationAuthorities: CertificationAuthorities
    }

    /// References of the trust points that a chip has. TR-03110-3 B.1.
    package struct CertificationAuthorities: Sendable, Equatable {
        package var current: [UInt8]?
        package var previous: [UInt8]?

        package init(current: [UInt8]? = nil, previous: [UInt8]? = nil) {
            (self.current, self.previous) = (current, previous)
        }
    }

    /// Derives the key that encrypts the nonce; the password is wiped when this returns.
    ///
    /// `password` holds the ASCII digits of CAN, PIN or PUK, or for `.mrz` the characters of document number, date of
    /// birth and date of expiry with their check digits. TR-03110-3 A.2.3, D.2.1.4; ICAO 9303-11 9.7.3.
    package static func passwordKey(
        _ password: consuming Secret,
        id: PasswordID,
        cipher: AES
    ) throws(CryptoError) -> Secret {
        switch id {
        case .mrz:
            let hash = try DigestAlgorithm.sha1.hash(password)
            return try KeyDerivation.derive(.password, from: hash, for: cipher)
        case .can, .pin, .puk:
            return try KeyDerivation.derive(.password, from: password, for: cipher)
        }
    }

    /// The token of one side: an 8-byte CMAC over the public key object of the other side's ephemeral key.
    /// TR-03110-3 A.2.4, D.3.3.
    static func token(
        for key: ECPublicKey,
        parameters: PACEParameters,
        keys: borrowing SessionKeys
    ) throws(CryptoError) -> [UInt8] {
        let object = BERTLV(0x7F49, [BERTLV(0x06, parameters.protocolID), BERTLV(0x86, key.uncompressed)])
        return try CMAC.truncatedTag(object.encoded, key: keys.authentication)
    }

    /// Dynamic authentication data with these objects.
    static func wrap(_ objects: BERTLV...) -> [UInt8] { BERTLV(0x7C, objects).encoded }

    /// The objects of dynamic authentication data.
    static func unwrap(_ bytes: [UInt8]) throws(PACEError) -> [BERTLV] {
        do throws(BERError) {
            let data = try BERTLV(bytes)
            if data.tag == 0x7C { return try data.children }
        } catch {
            throw .malformed("dynamic authentication data cannot be read")
        }
        throw .malformed("no dynamic authentication data")
    }

    /// The value of the one object that there must be.
    static func only(_ tag: UInt32, in bytes: [UInt8]) throws(PACEError) -> [UInt8] {
        let objects = try unwrap(bytes)
        guard let object = objects.first, objects.count == 1, object.tag == tag else {
            throw .malformed("another object than the expected one")
        }
        return object.value
    }

    /// The other side's public key in the one object that there must be; never our own.
    static func point(
        _ tag: UInt32,
        in bytes: [UInt8],
        differentFrom own: ECPublicKey?,
        on curve: Curve
    ) throws(PACEError) -> ECPublicKey {
        let encoding = try only(tag, in: bytes)
        let key: ECPublicKey
        do throws(CryptoError) {
            key = try ECPublicKey(encoding, on: curve)
        } catch {
            throw PACEError(error)
        }
        guard key != own else { throw .equalKeys }
        return key
    }

    /// Lengths that an encrypted nonce may have: whole blocks. TR-03110-3 A.2.
    static let nonceLengths = Set(stride(from: AES.blockSize, through: 4 * AES.blockSize, by: AES.blockSize))

    /// The two key agreements of a run.
    enum Agreement { case mapping, ephemeral }

    /// A fresh key, or the fixed one of a worked example.
    static func makeKey(
        for agreement: Agreement,
        _ fixed: borrowing FixedKeys?,
        on group: ECGroup
    ) throws(CryptoError) -> ECPrivateKey {
        switch fixed {
        case nil: return try ECPrivateKey(on: group)
        case .some(let keys):
            switch agreement {
            case .mapping: return try ECPrivateKey(keys.mapping, on: group)
            case .ephemeral: return try ECPrivateKey(keys.ephemeral, on: group)
            }
        }
    }
}

/// Why a PACE run ended; the state machine is of no use afterwards.
package enum PACEError: Error, Sendable, Equatable {
    /// Wrong structure, tags or lengths; words for the log.
    case malformed(String)
    /// The other side sent no valid point of the curve.
    case invalidPoint
    /// Both sides' public keys are the same: somebody mirrors us. TR-03110-2 3.2.
    case equalKeys
    /// The other side's token is wrong: another password, or somebody in between.
    case wrongToken
    /// A step was called that is not due.
    case outOfOrder
    case crypto(CryptoError)

    init(_ error: CryptoError) {
        self = error == .invalidPoint ? .invalidPoint : .crypto(error)
    }
}
