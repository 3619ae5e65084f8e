// SPDX-License-Identifier: GPL-3.0-or-later
import Crypto
import HDWallet
import Secp256k1
import Secrets

/// The master key of a card, with its two chain codes.
struct CardWallet: ~Copyable {
    private let key: PrivateKey
    /// nil for a key without a chain code.
    private let chainCode: Secret?
    let keyUID: [UInt8]

    init(_ key: consuming PrivateKey, chainCode: consuming Secret?) throws(CryptoError) {
        keyUID = try DigestAlgorithm.sha256.hash(key.publicKey.uncompressed)
        self.key = key
        self.chainCode = chainCode
    }

    init(seed: borrowing Secret) throws(CryptoError) {
        let master = try ExtendedPrivateKey(seed: seed)
        try self.init(try master.key.clone(), chainCode: master.chainCode.clone())
    }

    var isExtended: Bool {
        switch chainCode {
        case nil: false
        case .some: true
        }
    }

    /// Derives a key and its chain code.
    ///
    /// In the duress wallet the master chain code is replaced by its SHA-256.
    /// - Returns: nil for a path from a key without a chain code.
    func derive(_ path: DerivationPath, duress: Bool) throws(CryptoError) -> ExtendedPrivateKey? {
        switch chainCode {
        case nil:
            guard path.indexes.isEmpty else { return nil }
            return try ExtendedPrivateKey(try key.clone(), chainCode: Secret([UInt8](repeating: 0, count: 32)))
        case .some(let code):
            let used = duress ? try DigestAlgorithm.sha256.hash(code) : code.clone()
            return try ExtendedPrivateKey(try key.clone(), chainCode: used).derive(path)
        }
    }
}
