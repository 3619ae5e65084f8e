// SPDX-License-Identifier: GPL-3.0-or-later
import Crypto
import Text

extension PACE {
    /// The pseudo-random function of the integrated mapping. ICAO 9303-11 4.4.3.3.2.
    enum IntegratedMapping {
        /// The length of the nonce of the chip in bytes; that of the terminal is the length of a key.
        static func nonceLength(_ cipher: SessionCipher) -> Int { constants(cipher).0.count }

        /// Returns R(s, t), which is at least 64 bits longer than the prime; the mapping reduces it.
        /// - Throws: `.invalidLength` for nonces of another length.
        static func random(
            nonce: borrowing Secret,
            terminalNonce: borrowing Secret,
            primeBits: Int,
            cipher: SessionCipher
        ) throws(CryptoError) -> Secret {
            let (c0, c1) = constants(cipher)
            guard nonce.count == c0.count, terminalNonce.count == cipher.keyLength else { throw .invalidLength }
            var key = Secret(try cipher.block.encrypt(nonce, key: terminalNonce))
            var number = Secret([])
            while number.count * 8 < primeBits + 64 {
                guard let part = key.part(0..<cipher.keyLength) else { throw .invalidLength }
                number = number.appending(try cipher.block.encrypt(Secret(c1), key: part))
                key = Secret(try cipher.block.encrypt(Secret(c0), key: part))
            }
            return number
        }

        private static func constants(_ cipher: SessionCipher) -> ([UInt8], [UInt8]) {
            switch cipher {
            case .tripleDES, .aes128: (c0Short, c1Short)
            case .aes192, .aes256: (c0Long, c1Long)
            }
        }

        private static let c0Short: [UInt8] = [
            0xA6, 0x68, 0x89, 0x2A, 0x7C, 0x41, 0xE3, 0xCA, 0x73, 0x9F, 0x40, 0xB0, 0x57, 0xD8, 0x59, 0x04,
        ]
        private static let c1Short: [UInt8] = [
            0xA4, 0xE1, 0x36, 0xAC, 0x72, 0x5F, 0x73, 0x8B, 0x01, 0xC1, 0xF6, 0x02, 0x17, 0xC1, 0x88, 0xAD,
        ]
        private static let c0Long: [UInt8] = [
            0xD4, 0x63, 0xD6, 0x52, 0x34, 0x12, 0x4E, 0xF7, 0x89, 0x70, 0x54, 0x98, 0x6D, 0xCA, 0x0A, 0x17,
            0x4E, 0x28, 0xDF, 0x75, 0x8C, 0xBA, 0xA0, 0x3F, 0x24, 0x06, 0x16, 0x41, 0x4D, 0x5A, 0x16, 0x76,
        ]
        private static let c1Long: [UInt8] = [
            0x54, 0xBD, 0x72, 0x55, 0xF0, 0xAA, 0xF8, 0x31, 0xBE, 0xC3, 0x42, 0x3F, 0xCF, 0x39, 0xD6, 0x9B,
            0x6C, 0xBF, 0x06, 0x66, 0x77, 0xD0, 0xFA, 0xAE, 0x5A, 0xAD, 0xD9, 0x9D, 0xF8, 0xE5, 0x35, 0x17,
        ]
    }
}
