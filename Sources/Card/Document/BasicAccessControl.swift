// SPDX-License-Identifier: GPL-3.0-or-later
package import ChipAccess
package import Crypto
import ISO7816
package import Text

/// Basic access control: both sides prove that they know the machine readable zone. ICAO 9303-11 4.3.
package enum BasicAccessControl {
    /// The length of the chip's and the terminal's random number in bytes.
    package static let randomLength = 8
    /// The length of the part of the session key that each side draws.
    package static let keyLength = 16
    /// The length of each side's message: four blocks and a MAC.
    package static let messageLength = 40

    /// Derives the two keys from the characters of `MachineReadableZone.information`. ICAO 9303-11 9.7.2.
    package static func keys(information: borrowing Secret) throws(CryptoError) -> SessionKeys {
        let hash = try DigestAlgorithm.sha1.hash(information)
        guard let seed = hash.part(0..<16) else { throw .invalidLength }
        return try SessionKeys(sharedSecret: seed, cipher: .tripleDES)
    }

    /// The terminal's side of one run.
    package struct Terminal: ~Copyable {
        private let keys: SessionKeys
        private let random: [UInt8]
        private let ownKey: Secret
        private let chipRandom: [UInt8]

        /// - Parameters:
        ///   - keys: from `keys(information:)`.
        ///   - chipRandom: the challenge of the chip, 8 bytes.
        ///   - random: 8 bytes, for the worked example only; nil for random ones.
        ///   - ownKey: 16 bytes, for the worked example only; nil for random ones.
        /// - Throws: `.invalidLength` for another length of the challenge.
        package init(
            keys: consuming SessionKeys,
            chipRandom: [UInt8],
            random: [UInt8]? = nil,
            ownKey: consuming Secret? = nil
        ) throws(CryptoError) {
            guard chipRandom.count == randomLength else { throw .invalidLength }
            let drawn = try Random.bytes(randomLength)
            let part: Secret
            if let given = ownKey { part = given } else { part = try Random.secret(keyLength) }
            self.keys = keys
            self.chipRandom = chipRandom
            self.random = random ?? drawn
            self.ownKey = part
        }

        /// The data of EXTERNAL AUTHENTICATE: 32 encrypted bytes and their MAC.
        package borrowing func command() throws(CryptoError) -> [UInt8] {
            try seal(Secret(random + chipRandom).appending(ownKey), keys)
        }

        /// Checks the answer, and makes the channel. The MAC is checked first.
        /// - Throws: `.protocolViolation` for a forged answer.
        package consuming func finish(_ answer: [UInt8]) throws(ChipError) -> SecureMessaging {
            guard let plain = try open(answer, keys) else { throw .protocolViolation("BAC: the answer is forged") }
            let (own, chip) = (random, chipRandom)
            let fits = plain.withBytes { Array($0.prefix(16)) == chip + own }
            guard fits, let other = plain.part(16..<32) else {
                throw .protocolViolation("BAC: the answer has other random numbers")
            }
            return try session(ownKey, other, chipRandom: chip, terminalRandom: own)
        }
    }

    /// Encrypts a message of 32 bytes and appends its MAC.
    package static func seal(
        _ message: borrowing Secret,
        _ keys: borrowing SessionKeys
    ) throws(CryptoError) -> [UInt8] {
        let encrypted = try TripleDES.encrypt(message, key: keys.encryption)
        return encrypted + (try BlockCipher.tripleDES.tag(encrypted, key: keys.authentication))
    }

    /// Checks and decrypts a message; nil for a wrong length or MAC.
    package static func open(
        _ message: [UInt8],
        _ keys: borrowing SessionKeys
    ) throws(ChipError) -> Secret? {
        guard message.count == messageLength else { return nil }
        let encrypted = Array(message.prefix(32))
        let (expected, plain) = try steps(encrypted, keys)
        guard ConstantTime.equal(expected, Array(message.suffix(8))) else { return nil }
        return plain.take()
    }

    private static func steps(
        _ encrypted: [UInt8],
        _ keys: borrowing SessionKeys
    ) throws(ChipError) -> ([UInt8], SecretBox) {
        try cryptoStep(
            (
                try BlockCipher.tripleDES.tag(encrypted, key: keys.authentication),
                SecretBox(try TripleDES.decrypt(encrypted, key: keys.encryption))
            )
        )
    }

    /// Makes the channel from both parts of the key. ICAO 9303-11 4.3.3, 9.8.6.3.
    package static func session(
        _ first: borrowing Secret,
        _ second: borrowing Secret,
        chipRandom: [UInt8],
        terminalRandom: [UInt8]
    ) throws(ChipError) -> SecureMessaging {
        try cryptoStep { () throws(CryptoError) in
            let seed = Secret(count: keyLength) { out in
                first.withBytes { out.copyBytes(from: $0.prefix(keyLength)) }
                second.withBytes { bytes in
                    for (index, byte) in bytes.prefix(keyLength).enumerated() { out[index] ^= byte }
                }
            }
            let keys = try SessionKeys(sharedSecret: seed, cipher: .tripleDES)
            return try SecureMessaging(keys, counter: Array(chipRandom.suffix(4) + terminalRandom.suffix(4)))
        }
    }
}
