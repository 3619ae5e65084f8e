// SPDX-License-Identifier: GPL-3.0-or-later
import Crypto
import HDWallet
import ISO7816
import Keycard
import ReadersVirtual
import Text

/// The commands inside a channel that both versions have.
extension VirtualApplet {
    func runInside(_ ins: UInt8, _ p1: UInt8, _ p2: UInt8, _ data: borrowing Secret) throws(RefusedCommand) -> Secret {
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
        case KeycardInstruction.exportKey: return try export(p1, p2, data)
        default: throw RefusedCommand(0x6D00)
        }
        return Secret([])
    }

    // MARK: PIN and PUK

    private func requirePIN() throws(RefusedCommand) {
        guard secrets?.isValidated == true else { throw RefusedCommand(0x6985) }
    }

    private func requirePINAndKey() throws(RefusedCommand) {
        try requirePIN()
        guard !wallet.isEmpty else { throw RefusedCommand(0x6985) }
    }

    private func readStatus(_ p1: UInt8) throws(RefusedCommand) -> [UInt8] {
        switch (p1, version) {
        case (0, _):
            return [
                0xA3, 0x09, 0x02, 0x01, UInt8(secrets?.pinTries ?? 0), 0x02, 0x01, UInt8(secrets?.puk.tries ?? 0),
                0x01, 0x01, wallet.isEmpty ? 0x00 : 0xFF,
            ]
        // The current path, which no command that is supported here changes.
        case (1, .v3_0), (1, .v3_1): return []
        default: throw RefusedCommand(0x6A86)
        }
    }

    private func verifyPIN(_ pin: borrowing Secret) throws(RefusedCommand) {
        guard pin.count == KeycardParameters.pinCount, areDigits(pin) else { throw RefusedCommand(0x6A80) }
        let isRight =
            switch version {
            case .v3_0: secrets?.main.check(pin) == true
            case .v3_1: secrets?.verifyBoth(pin) == true
            case .v4_0: secrets?.verifyDuressFirst(pin) == true
            }
        guard isRight else { throw RefusedCommand(0x63C0 | UInt16(secrets?.pinTries ?? 0)) }
    }

    private func change(_ p1: UInt8, _ value: borrowing Secret) throws(RefusedCommand) {
        try requirePIN()
        switch (p1, version) {
        case (0, _):
            guard value.count == KeycardParameters.pinCount, areDigits(value) else { throw RefusedCommand(0x6A80) }
            secrets?.change(to: value.clone())
        case (1, _):
            guard value.count == KeycardParameters.pukCount, areDigits(value) else { throw RefusedCommand(0x6A80) }
            secrets?.puk.update(value.clone())
        case (2, .v3_0), (2, .v3_1):
            guard value.count == KeycardParameters.secretCount else { throw RefusedCommand(0x6A80) }
            pairingKeys.setSecret(value.clone())
        default: throw RefusedCommand(0x6A86)
        }
    }

    private func unblock(_ data: borrowing Secret) throws(RefusedCommand) {
        guard secrets?.pinTries == 0 else { throw RefusedCommand(0x6985) }
        let count = KeycardParameters.pukCount
        guard data.count == count + KeycardParameters.pinCount, areDigits(data), let puk = data.part(0..<count),
            let pin = data.part(count..<data.count)
        else { throw RefusedCommand(0x6A80) }
        guard secrets?.puk.check(puk) == true else { throw RefusedCommand(0x63C0 | UInt16(secrets?.puk.tries ?? 0)) }
        secrets?.unblock(to: pin, freesBoth: version != .v4_0)
    }

    private func unpair(_ slot: UInt8) throws(RefusedCommand) {
        try requirePIN()
        // As in OPEN SECURE CHANNEL, the slot is a signed byte.
        guard slot < 0x80 else { throw RefusedCommand(0x6F00) }
        guard slot < PairingSlots.count else { throw RefusedCommand(0x6A86) }
        pairingKeys.remove(Int(slot))
    }

    // MARK: Keys

    private func load(_ p1: UInt8, _ data: borrowing Secret) throws(RefusedCommand) -> Secret {
        try requirePIN()
        guard p1 == 3 else { throw RefusedCommand(0x6A86) }
        let counts = version == .v4_0 ? ExtendedPrivateKey.seedCounts : 64...64
        guard counts.contains(data.count) else { throw RefusedCommand(0x6A80) }
        wallet.load(try crypto(CardWallet(seed: data)))
        return Secret(wallet.keyUID ?? [])
    }

    private func generateMnemonic(_ checksumBits: UInt8) throws(RefusedCommand) -> Secret {
        guard (4...8).contains(checksumBits) else { throw RefusedCommand(0x6A86) }
        let entropy = try crypto(sources.random.secret(Int(checksumBits) * 4))
        guard let mnemonic = try? Mnemonic(entropy: entropy) else { throw RefusedCommand(0x6F00) }
        return mnemonic.indexes.clone()
    }

    // MARK: Deriving, signing, exporting

    /// Reads a path from the master key.
    private func path(_ bytes: borrowing Secret) throws(RefusedCommand) -> DerivationPath {
        let plain = bytes.withBytes { Array($0) }
        let indexes = stride(from: 0, to: plain.count / 4 * 4, by: 4).map { start in
            plain[start..<start + 4].reduce(UInt32(0)) { $0 << 8 | UInt32($1) }
        }
        guard plain.count.isMultiple(of: 4), let path = DerivationPath(indexes) else { throw RefusedCommand(0x6A80) }
        return path
    }

    private func derive(_ path: DerivationPath) throws(RefusedCommand) -> ExtendedPrivateKey {
        let isDuress = secrets?.isDuressWallet == true
        let derived = try crypto { () throws(CryptoError) -> ExtendedPrivateKey? in
            switch wallet.content {
            case nil: nil
            case .some(let wallet): try wallet.derive(path, duress: isDuress)
            }
        }
        guard let derived else { throw RefusedCommand(0x6985) }
        return derived
    }

    /// SIGN: a hash of 32 bytes, and a path from the master key.
    func sign(_ data: borrowing Secret) throws(RefusedCommand) -> Secret {
        guard let hash = data.part(0..<32), let rest = data.part(32..<data.count) else { throw RefusedCommand(0x6A80) }
        try requirePINAndKey()
        let derived = try derive(try path(rest))
        let signature = try crypto(sources.sign(hash.withBytes { Array($0) }, derived.key))
        let content = BERTLV(0x80, derived.key.publicKey.uncompressed).encoded + signature
        return Secret([0xA0, 0x81, UInt8(truncatingIfNeeded: content.count)] + content)
    }

    /// Whether private keys of the path may leave the card: m/43'/60'/1581' and at least two more levels. EIP-1581.
    private func isExportable(_ path: [UInt32]) -> Bool {
        path.count >= 5 && path.starts(with: [0x8000_002B, 0x8000_003C, 0x8000_062D])
    }

    /// EXPORT KEY: the public key (P2 = 1) or the private key (P2 = 0) at a path from the master key.
    private func export(_ p1: UInt8, _ p2: UInt8, _ data: borrowing Secret) throws(RefusedCommand) -> Secret {
        try requirePINAndKey()
        guard p1 == 1, p2 <= 1 else { throw RefusedCommand(0x6A86) }
        let path = try path(data)
        guard p2 == 1 || isExportable(path.indexes) else { throw RefusedCommand(0x6985) }
        let derived = try derive(path)
        guard p2 == 1 else { return Secret([0xA1, 0x22, 0x81, 0x20]).appending(derived.key.scalar) }
        let content = BERTLV(0x80, derived.key.publicKey.uncompressed).encoded
        return Secret([0xA1, UInt8(truncatingIfNeeded: content.count)] + content)
    }
}
