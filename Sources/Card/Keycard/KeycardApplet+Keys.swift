// SPDX-License-Identifier: GPL-3.0-or-later
import Crypto
package import HDWallet
import ISO7816
package import Text

/// A signature of a Keycard that was checked against its public key.
package struct KeycardSignature: Sendable, Equatable {
    /// s is in the lower half of its range.
    package var signature: Signature
    package var publicKey: PublicKey
    /// 0 to 3: with it the public key is recovered from the signature.
    package var recoveryID: UInt8
}

extension KeycardApplet {
    // MARK: Making and loading keys

    /// Lets the card draw 12, 15, 18, 21 or 24 words. The card does not keep them.
    package func generateMnemonic(words count: Int) async throws(KeycardError) -> Mnemonic {
        guard Mnemonic.counts.contains(count) else { throw .wrongForm }
        // P1 is the number of bits of the checksum: one for three words.
        let indexes = try await run(KeycardInstruction.generateMnemonic, p1: UInt8(count / 3))
        guard indexes.count == 2 * count else { throw .malformed("GENERATE MNEMONIC: a wrong number of words") }
        guard let mnemonic = try? Mnemonic(indexes: indexes) else {
            throw .malformed("GENERATE MNEMONIC: no valid words")
        }
        return mnemonic
    }

    /// Loads the keys of words, and checks that the card derives the same keys as BIP-32.
    ///
    /// - Returns: the key UID.
    /// - Throws: `.status` if the card refuses the keys, and `.wrongWallet` if it derives other keys, which are removed
    ///   then: it is as before. After another error the key UID that `select` reads shows whether the keys are loaded.
    package func loadWallet(_ mnemonic: borrowing Mnemonic) async throws(KeycardError) -> [UInt8] {
        let seed = try crypto(mnemonic.seed())
        return try await loadWallet(seed: seed)
    }

    /// Loads the keys of a BIP-39 seed of 64 bytes, and checks them as `loadWallet(_:)` does.
    package func loadWallet(seed: consuming Secret) async throws(KeycardError) -> [UInt8] {
        let expected = try KeycardWallet(seed: seed)
        let uid = try await loadSeed(seed)
        do throws(KeycardError) {
            guard uid == expected.keyUID, try await exportPublicKey(.firstEthereumAddress) == expected.firstKey else {
                try await removeKey()
                throw .wrongWallet
            }
        } catch {
            // Not of LOAD KEY: the card has keys.
            guard case .status(let status) = error else { throw error }
            throw .malformed("it refuses to show or remove the keys that it has taken (\(status))")
        }
        return uid
    }

    /// Loads a seed of 64 bytes (3.1), or 16 to 64 bytes (4.0), without a check of the keys.
    /// - Returns: the key UID.
    package func loadSeed(_ seed: consuming Secret) async throws(KeycardError) -> [UInt8] {
        guard seed.count == 64 || info.generation == .certificate && ExtendedPrivateKey.seedCounts.contains(seed.count)
        else { throw .wrongForm }
        return try keyUID(try await run(KeycardInstruction.loadKey, p1: 3, seed))
    }

    package func removeKey() async throws(KeycardError) {
        try await perform(KeycardInstruction.removeKey)
    }

    private func keyUID(_ data: borrowing Secret) throws(KeycardError) -> [UInt8] {
        guard data.count == 32 else { throw .malformed("the card returned no key UID") }
        return data.withBytes { Array($0) }
    }

    // MARK: Signing

    /// Signs a hash of 32 bytes with the key at a path from the master key, and checks the signature.
    ///
    /// `key` is the key that must have signed, if it is known.
    /// - Throws: `.malformed` if another key has signed or the signature is wrong.
    package func sign(
        _ hash: [UInt8],
        with path: DerivationPath,
        expecting key: PublicKey? = nil
    ) async throws(KeycardError) -> KeycardSignature {
        guard hash.count == 32 else { throw .wrongForm }
        let data = try await run(KeycardInstruction.sign, p1: 1, Secret(hash + path.bytes))
        return try Self.signature(data.withBytes { Array($0) }, hash, key)
    }

    /// Reads the template A0 and checks the signature.
    package static func signature(
        _ bytes: [UInt8],
        _ hash: [UInt8],
        _ expected: PublicKey?
    ) throws(KeycardError) -> KeycardSignature {
        guard let template = try? BERTLV(bytes), template.tag == 0xA0, let fields = try? template.children,
            fields.map(\.tag) == [0x80, 0x30], let key = try? PublicKey(fields[0].value),
            let found = try? Signature(der: fields[1].encoded), let signature = try? found.normalized
        else { throw .malformed("SIGN: no key or signature") }
        guard expected == nil || expected == key else { throw .malformed("SIGN: another key has signed") }
        let id = try crypto(signature.recoveryID(for: hash, by: key))
        guard let id else { throw .malformed("SIGN: the signature is wrong") }
        return KeycardSignature(signature: signature, publicKey: key, recoveryID: id)
    }

    // MARK: Exporting

    /// Reads the public key at a path from the master key.
    package func exportPublicKey(_ path: DerivationPath) async throws(KeycardError) -> PublicKey {
        let data = try await run(KeycardInstruction.exportKey, p1: 1, p2: 1, Secret(path.bytes))
        guard let fields = KeyTemplate(data), let point = fields.publicKey, fields.privateRange == nil else {
            throw .malformed("EXPORT KEY: no public key")
        }
        return point
    }

    /// Reads a private key. The card refuses all paths except those below m/43'/60'/1581'.
    package func exportPrivateKey(_ path: DerivationPath) async throws(KeycardError) -> PrivateKey {
        let data = try await run(KeycardInstruction.exportKey, p1: 1, p2: 0, Secret(path.bytes))
        guard let fields = KeyTemplate(data), let range = fields.privateRange, let scalar = data.part(range),
            let key = try? PrivateKey(scalar), fields.publicKey == nil || fields.publicKey == key.publicKey
        else { throw .malformed("EXPORT KEY: no private key") }
        return key
    }
}

/// The template A1 of EXPORT KEY. The secret part is a range, so that it is not copied.
package struct KeyTemplate {
    package private(set) var publicKey: PublicKey?
    package private(set) var privateRange: Range<Int>?

    /// Finds the fields; nil for bytes that are no such template.
    package init?(_ data: borrowing Secret) {
        var fields: [(tag: UInt8, range: Range<Int>)] = []
        let isWhole = data.withBytes { bytes in
            guard bytes.count >= 2, bytes[0] == 0xA1 else { return false }
            var position = bytes[1] == 0x81 ? 3 : 2
            guard bytes.count >= position, bytes[position - 1] == bytes.count - position, bytes[1] <= 0x81 else {
                return false
            }
            while position < bytes.count {
                guard bytes.count - position >= 2 else { return false }
                let start = position + 2
                let end = start + Int(bytes[position + 1])
                guard bytes[position + 1] < 0x80, end <= bytes.count else { return false }
                fields.append((bytes[position], start..<end))
                position = end
            }
            return true
        }
        guard isWhole, Set(fields.map(\.tag)).count == fields.count else { return nil }
        for field in fields {
            switch (field.tag, field.range.count) {
            case (0x80, PublicKey.uncompressedCount):
                guard let point = data.part(field.range), let key = try? PublicKey(point.withBytes { Array($0) }) else {
                    return nil
                }
                publicKey = key
            case (0x81, PrivateKey.count): privateRange = field.range
            default: return nil
            }
        }
    }
}

/// What BIP-32 derives from the seed of a wallet, to compare it with what a card derives.
package struct KeycardWallet: Sendable, Equatable {
    /// SHA-256 of the master public key.
    package let keyUID: [UInt8]
    /// The public key m/44'/60'/0'/0/0.
    package let firstKey: PublicKey

    /// Derives the keys of a seed of 64 bytes.
    package init(seed: borrowing Secret) throws(KeycardError) {
        (keyUID, firstKey) = try crypto { () throws(CryptoError) in
            let master = try ExtendedPrivateKey(seed: seed)
            return (try master.keyUID, try master.derive(.firstEthereumAddress).key.publicKey)
        }
    }

    /// Derives the keys of words.
    package init(_ mnemonic: borrowing Mnemonic) throws(KeycardError) {
        try self.init(seed: try crypto(mnemonic.seed()))
    }
}
