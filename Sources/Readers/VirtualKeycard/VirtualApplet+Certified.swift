// SPDX-License-Identifier: GPL-3.0-or-later
import Crypto
import HDWallet
import ISO7816
import Keycard
import Secp256k1
import Secrets

/// What only 4.0 does: the CCM channel, INIT inside it, further exports.
extension VirtualApplet {
    func runCertified(_ command: CommandAPDU) throws(Refusal) -> Reply {
        switch command.ins {
        case KeycardInstruction.openSecureChannel: return .clear(try openCertified(command))
        case KeycardInstruction.securedCommand: return .protected(try runSecured(command))
        case KeycardInstruction.factoryReset: return .clear(try factoryReset(command))
        default: throw Refusal(0x6985)
        }
    }

    private func openCertified(_ command: CommandAPDU) throws(Refusal) -> [UInt8] {
        guard let identity, command.data.count == 32 + PublicKey.uncompressedCount else { throw Refusal(0x6A80) }
        guard command.p1 == 0, command.p2 == 0 else { throw Refusal(0x6A86) }
        let salt = Array(command.data.prefix(32))
        let point = Array(command.data.dropFirst(32))
        guard point[0] == 0x04 else { throw Refusal(0x6A80) }
        let key = try crypto { () throws(CryptoError) in try sources.agreementKey() }
        guard let peer = try? PublicKey(point) else { throw Refusal(0x6A80) }
        let own = key.publicKey.uncompressed
        let signature = try crypto { () throws(CryptoError) in
            let transcript = CCMChannel.transcript(salt: salt, terminal: point, card: own)
            return try sources.sign(try DigestAlgorithm.sha256.hash(transcript), identity.key)
        }
        ccm = try crypto { () throws(CryptoError) in try CCMChannel(shared: try key.sharedX(with: peer), salt: salt) }
        return own + signature
    }

    private func runSecured(_ command: CommandAPDU) throws(Refusal) -> Secret {
        guard let ccm else { throw Refusal(0x6985) }
        guard let plain = ccm.unwrap(command), let data = plain.part(5..<plain.count) else {
            closeChannel()
            throw Refusal(0x6982)
        }
        let header = plain.withBytes { Array($0.prefix(4)) }
        let (ins, p1, p2) = (header[1], header[2], header[3])
        guard secrets != nil else {
            switch ins {
            case KeycardInstruction.initialize: try takeSecrets(data, extra: 0)
            case KeycardInstruction.getChallenge: return try challenge(p1)
            // Before INIT, 4.0 answers 9000 without data to every other command.
            default: break
            }
            return Secret([])
        }
        switch ins {
        case KeycardInstruction.getStatus, KeycardInstruction.verifyPIN, KeycardInstruction.changePIN,
            KeycardInstruction.unblockPIN, KeycardInstruction.loadKey, KeycardInstruction.generateMnemonic,
            KeycardInstruction.removeKey, KeycardInstruction.generateKey, KeycardInstruction.exportKey,
            KeycardInstruction.storeData:
            return try runInside(ins, p1, p2, data)
        case KeycardInstruction.sign: return try signCertified(p1, p2, data)
        case KeycardInstruction.getData: return Secret(try readData(p1))
        case KeycardInstruction.getChallenge: return try challenge(p1)
        case KeycardInstruction.exportBIP85: return try exportBIP85(p1, data)
        case KeycardInstruction.ecdh: return try agree(p1, p2, data)
        // No LEE key can be loaded.
        case KeycardInstruction.exportLEE: throw Refusal(0x6985)
        default: throw Refusal(0x6D00)
        }
    }

    private func challenge(_ count: UInt8) throws(Refusal) -> Secret {
        guard (1...245).contains(count) else { throw Refusal(0x6A86) }
        return try crypto { () throws(CryptoError) in try sources.random.secret(Int(count)) }
    }

    private func signCertified(_ p1: UInt8, _ p2: UInt8, _ data: borrowing Secret) throws(Refusal) -> Secret {
        guard p1 == 1 else { throw Refusal(0x6B00) }
        guard let hash = data.part(0..<32), let rest = data.part(32..<data.count) else { throw Refusal(0x6A80) }
        try requirePINAndKey()
        let path = try masterPath(rest)
        guard p2 == 0 else { throw Refusal(0x6A81) }
        return Secret(try signature(hash.withBytes { Array($0) }, path))
    }

    private func exportBIP85(_ count: UInt8, _ data: borrowing Secret) throws(Refusal) -> Secret {
        try requirePINAndKey()
        guard (1...64).contains(count) else { throw Refusal(0x6A86) }
        let path = try masterPath(data)
        let prefix: UInt32 = 83_696_968 | DerivationPath.hardened
        guard path.indexes.count >= 2, path.indexes[0] == prefix,
            path.indexes.allSatisfy({ $0 & DerivationPath.hardened != 0 })
        else { throw Refusal(0x6A80) }
        let derived = try derive(path)
        let entropy = try crypto { () throws(CryptoError) in
            try DigestAlgorithm.sha512.hmac(derived.key.scalar, key: Secret("bip-entropy-from-k".utf8))
        }
        return entropy.part(0..<Int(count)) ?? Secret([])
    }

    private func agree(_ p1: UInt8, _ p2: UInt8, _ data: borrowing Secret) throws(Refusal) -> Secret {
        guard p1 == 1, p2 == 0 else { throw Refusal(0x6B00) }
        let start = PublicKey.uncompressedCount
        guard data.count >= start + 4, let point = data.part(0..<start), let rest = data.part(start..<data.count),
            point.withBytes({ $0[0] }) == 4
        else { throw Refusal(0x6A80) }
        try requirePINAndKey()
        let path = try masterPath(rest)
        // Nostr keys have at least three levels below m/44'/1237'. NIP-44, NIP-06.
        let isNostr = path.indexes.count >= 5 && path.indexes.starts(with: [0x8000_002C, 0x8000_04D5])
        guard isNostr || isExportable(path) else { throw Refusal(0x6985) }
        guard let peer = try? PublicKey(point.withBytes { Array($0) }) else { throw Refusal(0x6A80) }
        let derived = try derive(path)
        return try crypto { () throws(CryptoError) in try derived.key.sharedX(with: peer) }
    }
}
