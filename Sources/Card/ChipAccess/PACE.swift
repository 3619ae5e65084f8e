// SPDX-License-Identifier: GPL-3.0-or-later
package import Crypto
package import ISO7816
package import Text

/// Password Authenticated Connection Establishment. TR-03110-2 3.2, TR-03110-3 B.1; ICAO 9303-11 4.4.
///
/// `PACE.Terminal` and `PACE.Chip` are the two sides as state machines without input or output. Each step takes the data
/// field that the other side sent (the object 7C) and returns the data field to send next.
///
/// libeac (OpenPACE) is not used: it generates every ephemeral key itself, so that the worked example of ICAO 9303-11
/// could not be tested. Its Comp() drops leading zero bytes, and its keys are in memory that is not wiped. The tests
/// use libeac as the other side of both roles.
package enum PACE {
    /// Fixed private keys for the worked examples.
    package struct FixedKeys: ~Copyable, Sendable {
        /// The key of the generic mapping, or the nonce of the terminal in the integrated mapping.
        package let mapping: Secret
        package let ephemeral: Secret

        package init(mapping: consuming Secret, ephemeral: consuming Secret) {
            self.mapping = mapping
            self.ephemeral = ephemeral
        }
    }

    /// The result of a run on both sides.
    package struct Outcome: ~Copyable, Sendable {
        package let keys: SessionKeys
        /// Comp() of the chip's ephemeral public key. TR-03110-2 3.2.
        package let idPICC: [UInt8]
        /// Comp() of the terminal's ephemeral public key.
        package let idPCD: [UInt8]
        /// The names of the current and the previous CVCA key (data objects 87 and 88), if the chip sent them.
        package let certificationAuthorities: CertificationAuthorities
        /// What the chip authentication mapping proves; nil for other mappings, and for data that cannot be read.
        package let mappingProof: MappingProof?
    }

    /// The proof of the chip's static key in the chip authentication mapping. ICAO 9303-11 4.4.3.5.
    package struct MappingProof: Sendable, Equatable {
        /// The decrypted number, at most as long as a scalar.
        package let number: [UInt8]
        /// The chip's key of the mapping.
        package let mappingKey: ECPublicKey

        /// Whether the chip has the private key of `key`: number · key is the key of the mapping.
        /// - Throws: only when libcrypto fails.
        package func proves(_ key: ECPublicKey) throws(CryptoError) -> Bool {
            guard key.curve == mappingKey.curve else { return false }
            do throws(CryptoError) {
                return try key.multiplied(by: Secret(number)) == mappingKey
            } catch {
                switch error {
                case .invalidKey, .invalidPoint, .invalidLength: return false
                case .unsupported, .library: throw error
                }
            }
        }
    }

    /// The references of the trust points of a chip. TR-03110-3 B.1.
    package struct CertificationAuthorities: Sendable, Equatable {
        package var current: [UInt8]?
        package var previous: [UInt8]?

        package init(current: [UInt8]? = nil, previous: [UInt8]? = nil) {
            self.current = current
            self.previous = previous
        }
    }

    /// Derives the key that encrypts the nonce.
    ///
    /// `password` is the ASCII digits of CAN, PIN or PUK. For `.mrz` it is document number, date of birth and date of
    /// expiry with their check digits. TR-03110-3 A.2.3, D.2.1.4; ICAO 9303-11 9.7.3.
    package static func passwordKey(
        _ password: borrowing Secret,
        id: PasswordID,
        cipher: SessionCipher
    ) throws(CryptoError) -> Secret {
        switch id {
        case .mrz:
            let hash = try DigestAlgorithm.sha1.hash(password)
            return try KeyDerivation.derive(.password, from: hash, for: cipher)
        case .can, .pin, .puk:
            return try KeyDerivation.derive(.password, from: password, for: cipher)
        }
    }

    /// Computes the token of one side: an 8-byte MAC over the public key object of the other side's ephemeral key.
    /// TR-03110-3 A.2.4, D.3.3.
    static func token(
        for key: AgreementPublicKey,
        parameters: PACEParameters,
        keys: borrowing SessionKeys
    ) throws(CryptoError) -> [UInt8] {
        let object = BERTLV(0x7F49, [BERTLV(0x06, parameters.protocolID), BERTLV(key.tag, key.encoded)])
        return try keys.cipher.tag(object.encoded, key: keys.authentication)
    }

    /// Encodes dynamic authentication data, the object 7C.
    package static func wrap(_ objects: BERTLV...) -> [UInt8] { BERTLV(0x7C, objects).encoded }

    /// Reads the objects of dynamic authentication data, the object 7C.
    package static func unwrap(_ bytes: [UInt8]) throws(ChipError) -> [BERTLV] {
        let unreadable = ChipError.pace("dynamic authentication data cannot be read")
        guard let data = try? BERTLV(bytes) else { throw unreadable }
        guard data.tag == 0x7C else { throw .pace("no dynamic authentication data") }
        guard let objects = try? data.children else { throw unreadable }
        return objects
    }

    /// Reads dynamic authentication data with exactly one object and returns its value.
    package static func only(_ tag: UInt32, in bytes: [UInt8]) throws(ChipError) -> [UInt8] {
        let objects = try unwrap(bytes)
        guard let object = objects.first, objects.count == 1, object.tag == tag else {
            throw .pace("unexpected object")
        }
        return object.value
    }

    /// Reads dynamic authentication data with one public key, which must differ from our own.
    static func point(
        _ tag: UInt32,
        in bytes: [UInt8],
        differentFrom own: AgreementPublicKey?,
        in domain: KeyAgreementDomain
    ) throws(ChipError) -> AgreementPublicKey {
        let encoding = try only(tag, in: bytes)
        let key = try cryptoStep(AgreementPublicKey(encoding, in: domain))
        guard key != own else { throw .equalKeys }
        return key
    }

    /// Whether an encrypted nonce may have this length: whole blocks, at most 64 bytes. TR-03110-3 A.2.
    static func isNonceLength(_ count: Int, _ cipher: SessionCipher) -> Bool {
        (1...64).contains(count) && count.isMultiple(of: cipher.block.blockSize)
    }

    /// The initial vector of the encrypted proof of the chip authentication mapping. ICAO 9303-11 4.4.3.5.
    static func proofVector(_ keys: borrowing SessionKeys) throws(CryptoError) -> [UInt8] {
        try AES.encrypt([UInt8](repeating: 0xFF, count: AES.blockSize), key: keys.encryption)
    }

    /// The two key agreements of a run.
    enum Agreement { case mapping, ephemeral }

    /// Returns a random key, or the fixed one of a worked example.
    static func makeKey(
        for agreement: Agreement,
        _ fixed: borrowing FixedKeys?,
        on group: AgreementGroup
    ) throws(CryptoError) -> AgreementPrivateKey {
        switch fixed {
        case nil: return try AgreementPrivateKey(on: group)
        case .some(let keys):
            switch agreement {
            case .mapping: return try AgreementPrivateKey(keys.mapping, on: group)
            case .ephemeral: return try AgreementPrivateKey(keys.ephemeral, on: group)
            }
        }
    }
}

/// The kind of password that PACE proves: the value of data object 83. TR-03110-3 B.14.1.
package enum PasswordID: UInt8, Sendable, CaseIterable {
    /// Document number, date of birth and date of expiry, each with its check digit.
    case mrz = 1
    case can = 2
    case pin = 3
    case puk = 4
}

/// The two keys of a secure messaging session, 16, 24 or 32 bytes each. TR-03110-3 A.2.3.
package struct SessionKeys: ~Copyable, Sendable {
    package let encryption: Secret
    package let authentication: Secret
    package let cipher: BlockCipher

    package init(encryption: consuming Secret, authentication: consuming Secret, cipher: BlockCipher = .aes) {
        self.encryption = encryption
        self.authentication = authentication
        self.cipher = cipher
    }

    /// Derives both from the shared secret of a key agreement.
    package init(sharedSecret: borrowing Secret, cipher: SessionCipher) throws(CryptoError) {
        let encryption = try KeyDerivation.derive(.encryption, from: sharedSecret, for: cipher)
        let authentication = try KeyDerivation.derive(.authentication, from: sharedSecret, for: cipher)
        self.init(encryption: encryption, authentication: authentication, cipher: cipher.block)
    }

    /// Returns a copy.
    package borrowing func clone() -> SessionKeys {
        SessionKeys(encryption: encryption.clone(), authentication: authentication.clone(), cipher: cipher)
    }
}
