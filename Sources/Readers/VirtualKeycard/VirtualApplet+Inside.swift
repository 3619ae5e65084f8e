// SPDX-License-Identifier: GPL-3.0-or-later
import Crypto
import HDWallet
import ISO7816
import Keycard
import Secp256k1
import Secrets

/// The commands inside a channel that both versions have.
extension VirtualApplet {
    func runInside(_ ins: UInt8, _ p1: UInt8, _ p2: UInt8, _ data: borrowing Secret) throws(Refusal) -> Secret {
        switch ins {
        case KeycardInstruction.getStatus: return Secret(try readStatus(p1))
        case KeycardInstruction.verifyPIN: try verifyPIN(data)
        case KeycardInstruction.changePIN: try change(p1, data)
        case KeycardInstruction.unblockPIN: try unblock(data)
        case KeycardInstruction.unpair: try unpair(p1)
        case KeycardInstruction.loadKey: return try load(p1, data)
        case KeycardInstruction.generateMnemonic: return try generateMnemonic(p1)
        case KeycardInstruction.removeKey:
            try requirePIN()
            wallet.clear()
            paths = CardPaths()
        case KeycardInstruction.generateKey: return try generateKey()
        case KeycardInstruction.exportKey: return try export(p1, p2, data)
        case KeycardInstruction.deriveKey:
            try requirePIN()
            paths.current = try sourcedPath(data, source: p1).indexes
        case KeycardInstruction.setPinlessPath:
            try requirePIN()
            guard data.count <= 4 * DerivationPath.maximumLevels else { throw Refusal(0x6A80) }
            paths.pinless = try indexes(data)
        case KeycardInstruction.storeData:
            try requirePIN()
            guard p1 <= 2 else { throw Refusal(0x6A86) }
            // The NDEF file of 3.1 takes all that fits into a command.
            let limit = p1 == 1 && version == .v3_1 ? CBCChannel.maximumCount : 127
            guard data.count <= limit else { throw Refusal(0x6A80) }
            self.data[p1] = data.withBytes { Array($0) }
        default: throw Refusal(0x6D00)
        }
        return Secret([])
    }

    // MARK: PIN and PUK

    func requirePIN() throws(Refusal) {
        guard secrets?.isValidated == true else { throw Refusal(0x6985) }
    }

    func requirePINAndKey() throws(Refusal) {
        try requirePIN()
        guard !wallet.isEmpty else { throw Refusal(0x6985) }
    }

    private func readStatus(_ p1: UInt8) throws(Refusal) -> [UInt8] {
        switch (p1, version) {
        case (0, _):
            return [
                0xA3, 0x09, 0x02, 0x01, UInt8(secrets?.pinTries ?? 0), 0x02, 0x01, UInt8(secrets?.puk.tries ?? 0),
                0x01, 0x01, wallet.isEmpty ? 0x00 : 0xFF,
            ]
        case (1, .v3_1): return DerivationPath(paths.current)?.bytes ?? []
        default: throw Refusal(0x6A86)
        }
    }

    private func verifyPIN(_ pin: borrowing Secret) throws(Refusal) {
        guard pin.count == KeycardParameters.pinCount, areDigits(pin) else { throw Refusal(0x6A80) }
        let isRight =
            version == .v3_1 ? secrets?.verifyBoth(pin) == true : secrets?.verifyDuressFirst(pin) == true
        guard isRight else { throw Refusal(0x63C0 | UInt16(secrets?.pinTries ?? 0)) }
    }

    private func change(_ p1: UInt8, _ value: borrowing Secret) throws(Refusal) {
        try requirePIN()
        switch (p1, version) {
        case (0, _):
            guard value.count == KeycardParameters.pinCount, areDigits(value) else { throw Refusal(0x6A80) }
            secrets?.change(to: value.clone())
        case (1, _):
            guard value.count == KeycardParameters.pukCount, areDigits(value) else { throw Refusal(0x6A80) }
            secrets?.puk.update(value.clone())
        case (2, .v3_1):
            guard value.count == KeycardParameters.secretCount else { throw Refusal(0x6A80) }
            pairingKeys.setSecret(value.clone())
        default: throw Refusal(0x6A86)
        }
    }

    private func unblock(_ data: borrowing Secret) throws(Refusal) {
        guard secrets?.pinTries == 0 else { throw Refusal(0x6985) }
        let count = KeycardParameters.pukCount
        guard data.count == count + KeycardParameters.pinCount, areDigits(data), let puk = data.part(0..<count),
            let pin = data.part(count..<data.count)
        else { throw Refusal(0x6A80) }
        guard secrets?.puk.check(puk) == true else { throw Refusal(0x63C0 | UInt16(secrets?.puk.tries ?? 0)) }
        secrets?.unblock(to: pin, freesBoth: version == .v3_1)
    }

    private func unpair(_ slot: UInt8) throws(Refusal) {
        try requirePIN()
        // As in OPEN SECURE CHANNEL, the slot is a signed byte.
        guard slot < 0x80 else { throw Refusal(0x6F00) }
        guard slot < PairingSlots.count else { throw Refusal(0x6A86) }
        pairingKeys.remove(Int(slot))
    }

    // MARK: Keys

    private func load(_ p1: UInt8, _ data: borrowing Secret) throws(Refusal) -> Secret {
        try requirePIN()
        switch p1 {
        case 1, 2: try loadPair(data)
        case 3: try loadSeed(data)
        default: throw Refusal(0x6A86)
        }
        paths = CardPaths()
        return Secret(wallet.keyUID ?? [])
    }

    private func loadSeed(_ seed: borrowing Secret) throws(Refusal) {
        let counts = version == .v3_1 ? 64...64 : ExtendedPrivateKey.seedCounts
        guard counts.contains(seed.count) else { throw Refusal(0x6A80) }
        wallet.load(try crypto { () throws(CryptoError) in try CardWallet(seed: seed) })
    }

    /// Takes the template A1 { 80 public key, 81 private key, 82 chain code }; the first and the last may be missing.
    private func loadPair(_ data: borrowing Secret) throws(Refusal) {
        guard let fields = KeyTemplate(data), let range = fields.privateRange, let scalar = data.part(range),
            let key = try? PrivateKey(scalar)
        else { throw Refusal(0x6A80) }
        var chainCode: Secret?
        if let range = fields.chainCodeRange { chainCode = data.part(range) }
        guard let loaded = try? CardWallet(key, chainCode: chainCode) else { throw Refusal(0x6F00) }
        wallet.load(loaded)
    }

    private func generateMnemonic(_ checksumBits: UInt8) throws(Refusal) -> Secret {
        guard (4...8).contains(checksumBits) else { throw Refusal(0x6A86) }
        let entropy = try crypto { () throws(CryptoError) in try sources.random.secret(Int(checksumBits) * 4) }
        guard let mnemonic = try? Mnemonic(entropy: entropy) else { throw Refusal(0x6F00) }
        return mnemonic.indexes.clone()
    }

    private func generateKey() throws(Refusal) -> Secret {
        try requirePIN()
        try loadSeed(try crypto { () throws(CryptoError) in try sources.random.secret(64) })
        paths = CardPaths()
        return Secret(wallet.keyUID ?? [])
    }

    // MARK: Deriving, signing, exporting

    func masterPath(_ bytes: borrowing Secret) throws(Refusal) -> DerivationPath {
        try sourcedPath(bytes, source: 0x00)
    }

    func derive(_ path: DerivationPath) throws(Refusal) -> ExtendedPrivateKey {
        let isDuress = secrets?.isDuressWallet == true
        let derived = try crypto { () throws(CryptoError) -> ExtendedPrivateKey? in
            switch wallet.content {
            case nil: nil
            case .some(let wallet): try wallet.derive(path, duress: isDuress)
            }
        }
        guard let derived else { throw Refusal(0x6985) }
        return derived
    }

    func signature(_ hash: [UInt8], _ path: DerivationPath) throws(Refusal) -> [UInt8] {
        let derived = try derive(path)
        let signature = try crypto { () throws(CryptoError) in try sources.sign(hash, derived.key) }
        let content = BERTLV(0x80, derived.key.publicKey.uncompressed).encoded + signature
        return [0xA0, 0x81, UInt8(truncatingIfNeeded: content.count)] + content
    }

    /// Whether private keys of the path may leave the card: m/43'/60'/1581' and at least two more levels. EIP-1581.
    func isExportable(_ path: DerivationPath) -> Bool {
        path.indexes.count >= 5 && path.indexes.starts(with: [0x8000_002B, 0x8000_003C, 0x8000_062D])
    }

    private func export(_ p1: UInt8, _ p2: UInt8, _ data: borrowing Secret) throws(Refusal) -> Secret {
        try requirePINAndKey()
        guard p2 <= 2 else { throw Refusal(0x6A86) }
        let path: DerivationPath
        switch (version, p1 & 0x3F) {
        case (.v4_0, _): path = try masterPath(data)
        case (.v3_1, 0): path = try sourcedPath(data, source: 0x80)
        case (.v3_1, 1), (.v3_1, 2): path = try sourcedPath(data, source: p1 & 0xC0)
        default: throw Refusal(0x6A86)
        }
        let isForbidden =
            switch p2 {
            case 0: !isExportable(path)
            case 2: isExportable(path) || version == .v4_0 && path.indexes.isEmpty
            default: false
            }
        guard !isForbidden else { throw Refusal(0x6985) }
        let derived = try derive(path)
        if version == .v3_1, p1 & 0x3F == 2 { paths.current = path.indexes }
        guard p2 != 0 else {
            return Secret([0xA1, 0x22, 0x81, 0x20]).appending(derived.key.scalar)
        }
        var content = BERTLV(0x80, derived.key.publicKey.uncompressed).encoded
        if p2 == 2 { content += [0x82, 0x20] + derived.chainCode.withBytes { Array($0) } }
        return Secret([0xA1, UInt8(truncatingIfNeeded: content.count)] + content)
    }

    // MARK: Data

    func readData(_ place: UInt8) throws(Refusal) -> [UInt8] {
        guard place <= 2 else { throw Refusal(0x6A86) }
        return data[place] ?? []
    }
}
