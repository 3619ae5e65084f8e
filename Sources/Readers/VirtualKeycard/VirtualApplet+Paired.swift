// SPDX-License-Identifier: GPL-3.0-or-later
import Crypto
import HDWallet
import ISO7816
import Keycard
import Secp256k1
import Secrets

/// What only 3.1 does: one-shot INIT, pairing, the CBC channel.
extension VirtualApplet {
    func runBeforeInit(_ command: CommandAPDU) throws(Refusal) -> [UInt8] {
        switch command.ins {
        case KeycardInstruction.initialize: return try initialize(command)
        case KeycardInstruction.identifyCard: return try identify(command.data)
        default: throw Refusal(0x6D00)
        }
    }

    /// INIT: `41 | public key | IV | ciphertext`.
    private func initialize(_ command: CommandAPDU) throws(Refusal) -> [UInt8] {
        let start = 1 + PublicKey.uncompressedCount
        let body = command.data
        guard let agreementKey, body.count > start + AES.blockSize, Int(body[0]) == PublicKey.uncompressedCount,
            let peer = try? PublicKey(Array(body[1..<start]))
        else { throw Refusal(0x6A80) }
        let plain = try crypto { () throws(CryptoError) in
            Padding.remove(
                from: try AES.decrypt(
                    Array(body[(start + AES.blockSize)...]),
                    key: try agreementKey.sharedX(with: peer),
                    initialVector: Array(body[start..<start + AES.blockSize])
                )
            )
        }
        guard let plain else { throw Refusal(0x6F00) }
        try takeSecrets(plain, extra: KeycardParameters.secretCount)
        if let secret = plain.part(18..<18 + KeycardParameters.secretCount) { pairingKeys.setSecret(secret) }
        self.agreementKey = try crypto { () throws(CryptoError) in try sources.agreementKey() }
        return []
    }

    func runPaired(_ command: CommandAPDU) throws(Refusal) -> Reply {
        switch command.ins {
        case KeycardInstruction.openSecureChannel: return .clear(try openPaired(command))
        case KeycardInstruction.mutuallyAuthenticate: return .protected(try authenticate(command))
        case KeycardInstruction.pair: return .clear(try pair(command))
        case KeycardInstruction.identifyCard:
            guard isAuthenticated else { return .clear(try identify(command.data)) }
            return .protected(Secret(try identify(try read(command).withBytes { Array($0) })))
        case KeycardInstruction.factoryReset: return .clear(try factoryReset(command))
        case KeycardInstruction.sign: return .protected(try signPaired(command))
        case KeycardInstruction.getData:
            if isAuthenticated { _ = try read(command) }
            return .protected(Secret(try readData(command.p1)))
        case KeycardInstruction.unpair, KeycardInstruction.getStatus, KeycardInstruction.verifyPIN,
            KeycardInstruction.changePIN, KeycardInstruction.unblockPIN, KeycardInstruction.loadKey,
            KeycardInstruction.deriveKey, KeycardInstruction.generateMnemonic, KeycardInstruction.removeKey,
            KeycardInstruction.generateKey, KeycardInstruction.setPinlessPath, KeycardInstruction.exportKey,
            KeycardInstruction.storeData:
            let plain = try read(command)
            return .protected(try runInside(command.ins, command.p1, command.p2, plain))
        default: throw Refusal(0x6D00)
        }
    }

    /// Checks and decrypts a command. A wrong MAC ends the channel; other faults are answered inside.
    private func read(_ command: CommandAPDU) throws(Refusal) -> Secret {
        guard isAuthenticated, let cbc else { throw Refusal(0x6985) }
        do throws(CBCChannel.CommandFault) {
            return try cbc.unwrap(command)
        } catch {
            switch error {
            case .tooShort: throw Refusal(0x6F00)
            case .wrongPadding: throw Refusal(0x6F05)
            case .wrongMAC:
                closeChannel()
                throw Refusal(0x6982)
            }
        }
    }

    // MARK: Pairing

    private func pair(_ command: CommandAPDU) throws(Refusal) -> [UInt8] {
        guard !isAuthenticated else { throw Refusal(0x6985) }
        guard command.data.count == KeycardParameters.secretCount else { throw Refusal(0x6A80) }
        switch (command.p1, pairingChallenge) {
        case (0, _):
            guard pairingKeys.firstFree != nil else { throw Refusal(0x6A84) }
            let proof = try hash(pairingSecretAnd: command.data)
            let challenge = try crypto { () throws(CryptoError) in
                try sources.random.bytes(KeycardParameters.secretCount)
            }
            pairingChallenge = challenge
            return proof.withBytes { Array($0) } + challenge
        case (1, .some(let challenge)):
            pairingChallenge = nil
            guard ConstantTime.equal(try hash(pairingSecretAnd: challenge), Secret(command.data)) else {
                throw Refusal(0x6982)
            }
            guard let slot = pairingKeys.firstFree else { throw Refusal(0x6A84) }
            let salt = try crypto { () throws(CryptoError) in try sources.random.bytes(KeycardParameters.secretCount) }
            pairingKeys.set(slot, try hash(pairingSecretAnd: salt))
            return [UInt8(slot)] + salt
        default: throw Refusal(0x6A86)
        }
    }

    private func hash(pairingSecretAnd bytes: [UInt8]) throws(Refusal) -> Secret {
        try crypto { () throws(CryptoError) in try DigestAlgorithm.sha256.hash(pairingKeys.secret, suffix: bytes) }
    }

    // MARK: Channel

    private func openPaired(_ command: CommandAPDU) throws(Refusal) -> [UInt8] {
        pairingChallenge = nil
        isAuthenticated = false
        // The slot is a signed byte, and the applet computes with it unchecked.
        guard command.p1 < 0x80 else { throw Refusal(0x6F00) }
        guard let key = pairingKeys.key(Int(command.p1)) else { throw Refusal(0x6A86) }
        guard let agreementKey, command.data.count == PublicKey.uncompressedCount,
            let peer = try? PublicKey(command.data)
        else { throw Refusal(0x6A80) }
        let drawn = try crypto { () throws(CryptoError) in try sources.random.bytes(32 + AES.blockSize) }
        cbc = try crypto { () throws(CryptoError) in
            try CBCChannel(
                shared: try agreementKey.sharedX(with: peer),
                pairingKey: key,
                salt: Array(drawn.prefix(32)),
                vector: Array(drawn.dropFirst(32))
            )
        }
        return drawn
    }

    private func authenticate(_ command: CommandAPDU) throws(Refusal) -> Secret {
        guard cbc != nil else { throw Refusal(0x6985) }
        let wasAuthenticated = isAuthenticated
        isAuthenticated = true
        let plain = try read(command)
        guard !wasAuthenticated else { throw Refusal(0x6985) }
        guard plain.count == KeycardParameters.secretCount else {
            closeChannel()
            throw Refusal(0x6982)
        }
        return try crypto { () throws(CryptoError) in try sources.random.secret(KeycardParameters.secretCount) }
    }

    /// IDENTIFY CARD: certificate and signature over the challenge.
    private func identify(_ challenge: [UInt8]) throws(Refusal) -> [UInt8] {
        guard let identity else { throw Refusal(0x6985) }
        guard challenge.count == 32 else { throw Refusal(0x6A80) }
        let signature = try crypto { () throws(CryptoError) in try sources.sign(challenge, identity.key) }
        let content = BERTLV(0x8A, identity.certificate).encoded + signature
        return [0xA0, 0x81, UInt8(truncatingIfNeeded: content.count)] + content
    }

    // MARK: SIGN

    /// 3.1 refuses an unknown P1 before it looks at the MAC.
    private func signPaired(_ command: CommandAPDU) throws(Refusal) -> Secret {
        let mode = command.p1 & 0x3F
        guard mode <= 3 else { throw Refusal(0x6B00) }
        let isPinless = mode == 3
        let plain = isPinless && !isAuthenticated ? Secret(command.data) : try read(command)
        if isPinless, paths.pinless.isEmpty { throw Refusal(0x6A88) }
        guard let hash = plain.part(0..<32), let rest = plain.part(32..<plain.count) else { throw Refusal(0x6A80) }
        let source: UInt8 = isPinless ? 0xC0 : mode == 0 ? 0x80 : command.p1 & 0xC0
        let path = try sourcedPath(rest, source: source)
        let needsNoPIN = isPinless || !paths.pinless.isEmpty && paths.current == paths.pinless
        guard secrets?.isValidated == true || needsNoPIN, !wallet.isEmpty else { throw Refusal(0x6985) }
        let answer = try signature(hash.withBytes { Array($0) }, path)
        if mode == 2 { paths.current = path.indexes }
        return Secret(answer)
    }

    // MARK: Paths

    /// Reads a path. The upper bits of P1 name its source: master, parent of the current key, current key, or key
    /// without a PIN.
    func sourcedPath(_ bytes: borrowing Secret, source: UInt8) throws(Refusal) -> DerivationPath {
        guard try isExtended() else {
            guard bytes.count == 0, let path = DerivationPath([]) else { throw Refusal(0x6985) }
            return path
        }
        let base: [UInt32]
        switch source {
        case 0x00: base = []
        case 0x40:
            guard !paths.current.isEmpty else { throw Refusal(0x6B00) }
            base = paths.current.dropLast()
        case 0x80: base = paths.current
        case 0xC0:
            guard bytes.count == 0 else { throw Refusal(0x6A80) }
            base = paths.pinless
        default: throw Refusal(0x6A86)
        }
        guard let path = DerivationPath(base + (try indexes(bytes))) else { throw Refusal(0x6A80) }
        return path
    }

    func isExtended() throws(Refusal) -> Bool {
        switch wallet.content {
        case nil: false
        case .some(let wallet): wallet.isExtended
        }
    }

    func indexes(_ bytes: borrowing Secret) throws(Refusal) -> [UInt32] {
        guard bytes.count.isMultiple(of: 4) else { throw Refusal(0x6A80) }
        let plain = bytes.withBytes { Array($0) }
        return stride(from: 0, to: plain.count, by: 4).map { start in
            plain[start..<start + 4].reduce(UInt32(0)) { $0 << 8 | UInt32($1) }
        }
    }
}
