// SPDX-License-Identifier: GPL-3.0-or-later
import Crypto
import HDWallet
import ISO7816
import Keycard
import ReadersVirtual
import Text

/// What only 3.x does: one-shot INIT, pairing, the CBC channel.
extension VirtualApplet {
    func runBeforeInit(_ command: CommandAPDU) throws(RefusedCommand) -> [UInt8] {
        switch command.ins {
        case KeycardInstruction.initialize: return try initialize(command)
        case KeycardInstruction.identifyCard where version == .v3_1: return try identify(command.data)
        default: throw RefusedCommand(0x6D00)
        }
    }

    /// INIT: `41 | public key | IV | ciphertext`.
    private func initialize(_ command: CommandAPDU) throws(RefusedCommand) -> [UInt8] {
        let start = 1 + PublicKey.uncompressedCount
        let body = command.data
        guard let agreementKey, body.count > start + AES.blockSize, Int(body[0]) == PublicKey.uncompressedCount,
            let peer = try? PublicKey(Array(body[1..<start]))
        else { throw RefusedCommand(0x6A80) }
        let plain = try crypto(
            Padding.remove(
                from: try AES.decrypt(
                    Array(body[(start + AES.blockSize)...]),
                    key: try agreementKey.sharedX(with: peer),
                    initialVector: Array(body[start..<start + AES.blockSize])
                )
            )
        )
        guard let plain else { throw RefusedCommand(0x6F00) }
        try setSecrets(plain, extra: KeycardParameters.secretCount)
        if let secret = plain.part(18..<18 + KeycardParameters.secretCount) { pairingKeys.setSecret(secret) }
        self.agreementKey = try crypto(sources.agreementKey())
        return []
    }

    func runPaired(_ command: CommandAPDU) throws(RefusedCommand) -> Reply {
        switch command.ins {
        case KeycardInstruction.openSecureChannel: return .clear(try openPaired(command))
        case KeycardInstruction.mutuallyAuthenticate: return .protected(try authenticate(command))
        case KeycardInstruction.pair: return .clear(try pair(command))
        case KeycardInstruction.identifyCard where version == .v3_1:
            guard isAuthenticated else { return .clear(try identify(command.data)) }
            return .protected(Secret(try identify(try read(command).withBytes { Array($0) })))
        case KeycardInstruction.factoryReset where version == .v3_1: return .clear(try factoryReset(command))
        case KeycardInstruction.sign:
            // 3.x refuses an unknown P1 before it looks at the MAC.
            guard command.p1 == 1 else { throw RefusedCommand(0x6B00) }
            return .protected(try sign(try read(command)))
        case KeycardInstruction.unpair, KeycardInstruction.getStatus, KeycardInstruction.verifyPIN,
            KeycardInstruction.changePIN, KeycardInstruction.unblockPIN, KeycardInstruction.loadKey,
            KeycardInstruction.generateMnemonic, KeycardInstruction.removeKey, KeycardInstruction.exportKey:
            let plain = try read(command)
            return .protected(try runInside(command.ins, command.p1, command.p2, plain))
        default: throw RefusedCommand(0x6D00)
        }
    }

    /// Checks and decrypts a command. A wrong MAC ends the channel; other faults are answered inside.
    private func read(_ command: CommandAPDU) throws(RefusedCommand) -> Secret {
        guard isAuthenticated, let cbc else { throw RefusedCommand(0x6985) }
        do throws(KeycardError) {
            return try cbc.unwrap(command)
        } catch {
            switch error {
            case .tooShort: throw RefusedCommand(0x6F00)
            case .wrongPadding: throw RefusedCommand(0x6F05)
            default:
                closeChannel()
                throw RefusedCommand(0x6982)
            }
        }
    }

    // MARK: Pairing

    private func pair(_ command: CommandAPDU) throws(RefusedCommand) -> [UInt8] {
        guard !isAuthenticated else { throw RefusedCommand(0x6985) }
        guard command.data.count == KeycardParameters.secretCount else { throw RefusedCommand(0x6A80) }
        switch (command.p1, pairingChallenge) {
        case (0, _):
            guard pairingKeys.firstFree != nil else { throw RefusedCommand(0x6A84) }
            let proof = try hash(pairingSecretAnd: command.data)
            let challenge = try crypto(sources.random.bytes(KeycardParameters.secretCount))
            pairingChallenge = challenge
            return proof.withBytes { Array($0) } + challenge
        case (1, .some(let challenge)):
            pairingChallenge = nil
            guard ConstantTime.equal(try hash(pairingSecretAnd: challenge), Secret(command.data)) else {
                throw RefusedCommand(0x6982)
            }
            guard let slot = pairingKeys.firstFree else { throw RefusedCommand(0x6A84) }
            let salt = try crypto(sources.random.bytes(KeycardParameters.secretCount))
            pairingKeys.set(slot, try hash(pairingSecretAnd: salt))
            return [UInt8(slot)] + salt
        default: throw RefusedCommand(0x6A86)
        }
    }

    private func hash(pairingSecretAnd bytes: [UInt8]) throws(RefusedCommand) -> Secret {
        try crypto(DigestAlgorithm.sha256.hash(pairingKeys.secret, suffix: bytes))
    }

    // MARK: Channel

    private func openPaired(_ command: CommandAPDU) throws(RefusedCommand) -> [UInt8] {
        pairingChallenge = nil
        isAuthenticated = false
        // The slot is a signed byte, and the applet computes with it unchecked.
        guard command.p1 < 0x80 else { throw RefusedCommand(0x6F00) }
        guard let key = pairingKeys.key(Int(command.p1)) else { throw RefusedCommand(0x6A86) }
        guard let agreementKey, command.data.count == PublicKey.uncompressedCount,
            let peer = try? PublicKey(command.data)
        else { throw RefusedCommand(0x6A80) }
        let drawn = try crypto(sources.random.bytes(32 + AES.blockSize))
        cbc = try crypto(
            CBCChannel(
                shared: try agreementKey.sharedX(with: peer),
                pairingKey: key,
                salt: Array(drawn.prefix(32)),
                vector: Array(drawn.dropFirst(32))
            )
        )
        return drawn
    }

    private func authenticate(_ command: CommandAPDU) throws(RefusedCommand) -> Secret {
        guard cbc != nil else { throw RefusedCommand(0x6985) }
        let wasAuthenticated = isAuthenticated
        isAuthenticated = true
        let plain = try read(command)
        guard !wasAuthenticated else { throw RefusedCommand(0x6985) }
        guard plain.count == KeycardParameters.secretCount else {
            closeChannel()
            throw RefusedCommand(0x6982)
        }
        return try crypto(sources.random.secret(KeycardParameters.secretCount))
    }

    /// IDENTIFY CARD: certificate and signature over the challenge.
    private func identify(_ challenge: [UInt8]) throws(RefusedCommand) -> [UInt8] {
        guard let identity else { throw RefusedCommand(0x6985) }
        guard challenge.count == 32 else { throw RefusedCommand(0x6A80) }
        let signature = try crypto(sources.sign(challenge, identity.key))
        let content = BERTLV(0x8A, identity.certificate).encoded + signature
        return [0xA0, 0x81, UInt8(truncatingIfNeeded: content.count)] + content
    }
}
