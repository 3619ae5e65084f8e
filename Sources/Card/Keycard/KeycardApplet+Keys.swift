// SPDX-License-Identifier: GPL-3.0-or-later
import Crypto
package import HDWallet
import ISO7816
package import Secp256k1
package import Secrets

/// A signature of a Keycard that was checked against its public key.
package struct KeycardSignature: Sendable, Equatable {
    /// s is in the lower half of its range.
    package var signature: Signature
    package var publicKey: PublicKey
    /// 0 to 3: with it the public key is recovered from the signature.
    package var recoveryID: UInt8
}

/// A public key with its chain code.
package struct ExtendedPublicKey: Sendable, Equatable {
    package var key: PublicKey
    /// 32 bytes.
    package var chainCode: [UInt8]
}

extension KeycardApplet {
    // MARK: Making and loading keys

    /// Lets the card draw 12, 15, 18, 21 or 24 words. The card does not keep them.
    package func generateMnemonic(words count: Int) async throws(KeycardError) -> Mnemonic {
        guard Mnemonic.counts.contains(count) else { throw .wrongForm }
        // P1 is the number of bits of the checksum: one for three words.
        let indexes = try await run(KeycardInstruction.generateMnemonic, p1: UInt8(count / 3))
        guard indexes.count == 2 * count else { throw .malformed("GENERATE MNEMONIC: a wrong number of words") }
        do throws(MnemonicError) {
            return try Mnemonic(indexes: indexes)
        } catch {
            throw .malformed("GENERATE MNEMONIC: no valid words")
        }
    }

    /// Loads the keys of words, and checks that the card derives the same keys as BIP-32.
    ///
    /// - Returns: the key UID.
    /// - Throws: `.wrongWallet` if the card derives other keys. Then the keys are removed from the card. If the answer
    ///   is lost, the key UID after `select` shows whether the keys are loaded.
    package func loadWallet(_ mnemonic: borrowing Mnemonic) async throws(KeycardError) -> [UInt8] {
        let seed = try crypto { () throws(CryptoError) in try mnemonic.seed() }
        return try await loadWallet(seed: seed)
    }

    /// Loads the keys of a BIP-39 seed of 64 bytes, and checks them as `loadWallet(_:)` does.
    package func loadWallet(seed: consuming Secret) async throws(KeycardError) -> [UInt8] {
        let expected = try KeycardWallet(seed: seed)
        let uid = try await loadSeed(seed)
        guard uid == expected.keyUID, try await exportPublicKey(.firstEthereumAddress) == expected.firstKey else {
            try await removeKey()
            throw .wrongWallet
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

    /// Loads a key without a chain code. The card derives no keys from it.
    package func loadKey(_ key: borrowing PrivateKey) async throws(KeycardError) -> [UInt8] {
        try keyUID(try await run(KeycardInstruction.loadKey, p1: 1, Self.template(key, nil)))
    }

    /// Loads a key with its chain code.
    package func loadKey(_ key: borrowing ExtendedPrivateKey) async throws(KeycardError) -> [UInt8] {
        try keyUID(try await run(KeycardInstruction.loadKey, p1: 2, Self.template(key.key, key.chainCode.clone())))
    }

    private static func template(_ key: borrowing PrivateKey, _ chainCode: consuming Secret?) -> Secret {
        let point = key.publicKey.uncompressed
        var content = Secret([0x80, UInt8(truncatingIfNeeded: point.count)] + point)
        content = content.appending([0x81, UInt8(PrivateKey.count)]).appending(key.scalar)
        if let chainCode { content = content.appending([0x82, 32]).appending(chainCode) }
        let header: [UInt8] = content.count < 0x80 ? [0xA1] : [0xA1, 0x81]
        return Secret(header + [UInt8(truncatingIfNeeded: content.count)]).appending(content)
    }

    /// Lets the card draw keys. There are no words for them, so they are lost with the card.
    package func generateKey() async throws(KeycardError) -> [UInt8] {
        try keyUID(try await run(KeycardInstruction.generateKey))
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

    /// Signs with the key that needs no PIN; only 3.x. The path was set before with `setPinlessPath`.
    package func signPinless(_ hash: [UInt8]) async throws(KeycardError) -> KeycardSignature {
        guard info.generation == .pairing else { throw .unsupported }
        guard hash.count == 32 else { throw .wrongForm }
        let data = try await run(KeycardInstruction.sign, p1: 3, Secret(hash))
        return try Self.signature(data.withBytes { Array($0) }, hash, nil)
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
        let id = try crypto { () throws(CryptoError) in try signature.recoveryID(for: hash, by: key) }
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

    /// Reads a public key and its chain code. The card refuses paths below m/43'/60'/1581'. Version 4.0 also refuses
    /// the master key.
    package func exportExtendedPublicKey(_ path: DerivationPath) async throws(KeycardError) -> ExtendedPublicKey {
        let data = try await run(KeycardInstruction.exportKey, p1: 1, p2: 2, Secret(path.bytes))
        guard let fields = KeyTemplate(data), let point = fields.publicKey, let range = fields.chainCodeRange,
            let chainCode = data.part(range)
        else { throw .malformed("EXPORT KEY: no extended public key") }
        return ExtendedPublicKey(key: point, chainCode: chainCode.withBytes { Array($0) })
    }

    /// Reads a private key. The card refuses all paths except those below m/43'/60'/1581'.
    package func exportPrivateKey(_ path: DerivationPath) async throws(KeycardError) -> PrivateKey {
        let data = try await run(KeycardInstruction.exportKey, p1: 1, p2: 0, Secret(path.bytes))
        guard let fields = KeyTemplate(data), let range = fields.privateRange, let scalar = data.part(range),
            let key = try? PrivateKey(scalar), fields.publicKey == nil || fields.publicKey == key.publicKey
        else { throw .malformed("EXPORT KEY: no private key") }
        return key
    }

    // MARK: Paths (3.x)

    /// Sets the current path, which SIGN and EXPORT KEY of other clients may use.
    package func deriveKey(_ path: DerivationPath) async throws(KeycardError) {
        guard info.generation == .pairing else { throw .unsupported }
        try await perform(KeycardInstruction.deriveKey, Secret(path.bytes))
    }

    /// Reads the current path.
    package func currentPath() async throws(KeycardError) -> DerivationPath {
        guard info.generation == .pairing else { throw .unsupported }
        let bytes = try await run(KeycardInstruction.getStatus, p1: 1).withBytes { Array($0) }
        guard bytes.count.isMultiple(of: 4) else { throw .malformed("GET STATUS: no path") }
        let indexes = stride(from: 0, to: bytes.count, by: 4).map { start in
            bytes[start..<start + 4].reduce(UInt32(0)) { $0 << 8 | UInt32($1) }
        }
        guard let path = DerivationPath(indexes) else { throw .malformed("GET STATUS: the path is too long") }
        return path
    }

    /// Sets the path that signs without a PIN; nil for no such path.
    package func setPinlessPath(_ path: DerivationPath?) async throws(KeycardError) {
        guard info.generation == .pairing else { throw .unsupported }
        try await perform(KeycardInstruction.setPinlessPath, Secret(path?.bytes ?? []))
    }

    // MARK: Further exports (4.0)

    /// Draws random bytes on the card, 1 to 245.
    package func getChallenge(_ count: Int) async throws(KeycardError) -> Secret {
        guard info.generation == .certificate else { throw .unsupported }
        guard (1...245).contains(count) else { throw .wrongForm }
        let data = try await run(KeycardInstruction.getChallenge, p1: UInt8(count))
        guard data.count == count else { throw .malformed("GET CHALLENGE: a wrong length") }
        return data
    }

    /// Reads 1 to 64 bytes of entropy that belong to a hardened path below m/83696968'. BIP-85.
    package func exportBIP85(_ path: DerivationPath, count: Int) async throws(KeycardError) -> Secret {
        guard info.generation == .certificate else { throw .unsupported }
        guard (1...64).contains(count) else { throw .wrongForm }
        let data = try await run(KeycardInstruction.exportBIP85, p1: UInt8(count), Secret(path.bytes))
        guard data.count == count else { throw .malformed("EXPORT BIP85: a wrong length") }
        return data
    }

    /// Computes the x coordinate of the shared point of a key on the card and `peer`.
    package func sharedX(with peer: PublicKey, _ path: DerivationPath) async throws(KeycardError) -> Secret {
        guard info.generation == .certificate else { throw .unsupported }
        let data = try await run(KeycardInstruction.ecdh, p1: 1, Secret(peer.uncompressed + path.bytes))
        guard let x = data.part(0..<min(32, data.count)), x.count == 32 else {
            throw .malformed("ECDH: a wrong length")
        }
        return x
    }

    /// Reads the template A1 with the LEE keys of a path: 83 the nullifier key, 84 the viewing key.
    package func exportLEE(_ path: DerivationPath) async throws(KeycardError) -> Secret {
        guard info.generation == .certificate else { throw .unsupported }
        return try await run(KeycardInstruction.exportLEE, Secret(path.bytes))
    }

    // MARK: Data

    /// The places for data on the card.
    package enum DataPlace: UInt8, Sendable {
        case general = 0
        case ndef = 1
        case cash = 2
    }

    /// Reads public data. Needs no PIN.
    package func readData(_ place: DataPlace) async throws(KeycardError) -> [UInt8] {
        try await run(KeycardInstruction.getData, p1: place.rawValue).withBytes { Array($0) }
    }

    /// Writes at most 127 bytes. Needs the PIN.
    package func storeData(_ data: [UInt8], _ place: DataPlace) async throws(KeycardError) {
        guard data.count <= 127 else { throw .wrongForm }
        try await perform(KeycardInstruction.storeData, p1: place.rawValue, Secret(data))
    }
}

/// The template A1 of EXPORT KEY. The secret parts are ranges, so that they are not copied.
package struct KeyTemplate {
    package private(set) var publicKey: PublicKey?
    package private(set) var privateRange: Range<Int>?
    package private(set) var chainCodeRange: Range<Int>?

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
            case (0x82, 32): chainCodeRange = field.range
            default: return nil
            }
        }
    }
}
