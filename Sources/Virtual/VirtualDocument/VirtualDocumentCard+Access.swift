// SPDX-License-Identifier: GPL-3.0-or-later
import ChipAccess
import Crypto
import Document
import ISO7816
import ReadersVirtual
import Text

/// Access and proofs.
extension VirtualDocumentCard {
    private var wrongPassword: RefusedCommand { RefusedCommand(description.quirks.wrongPassword ?? 0x6300) }

    // MARK: BAC. ICAO 9303-11 4.3

    func getChallenge(_ command: CommandAPDU) throws(RefusedCommand) -> ResponseAPDU {
        guard description.hasAccessControl else { throw .wrongInstruction }
        guard description.hasBAC, isApplicationSelected else { throw .wrongState }
        guard command.le == BasicAccessControl.randomLength else { throw .wrongLength }
        let random = try crypto(Random.bytes(BasicAccessControl.randomLength))
        challenge = random
        return ResponseAPDU(data: random, .ok)
    }

    func externalAuthenticate(_ command: CommandAPDU) throws(RefusedCommand) -> ResponseAPDU {
        guard let chipRandom = challenge else { throw .wrongState }
        challenge = nil
        guard description.quirks.externalLe == nil || command.le == description.quirks.externalLe else {
            throw .wrongLength
        }
        let information = Secret(description.information)
        let keys = try crypto(BasicAccessControl.keys(information: information))
        let ownKey = try crypto(Random.secret(BasicAccessControl.keyLength))
        do throws(ChipError) {
            guard let message = try BasicAccessControl.open(command.data, keys),
                let terminalKey = message.part(16..<32)
            else { throw .protocolViolation("the MAC is wrong") }
            let plain = message.withBytes { Array($0.prefix(16)) }
            guard Array(plain.suffix(8)) == chipRandom else { throw .protocolViolation("another challenge") }
            let terminalRandom = Array(plain.prefix(8))
            let answer = try cryptoStep(
                BasicAccessControl.seal(Secret(chipRandom + terminalRandom).appending(ownKey), keys)
            )
            open(
                try BasicAccessControl.session(
                    terminalKey,
                    ownKey,
                    chipRandom: chipRandom,
                    terminalRandom: terminalRandom
                )
            )
            return ResponseAPDU(data: answer, .ok)
        } catch {
            throw wrongPassword
        }
    }

    // MARK: PACE. ICAO 9303-11 4.4

    func manageSecurityEnvironment(_ command: CommandAPDU) throws(RefusedCommand) -> ResponseAPDU {
        guard let objects = try? BERTLV.sequence(command.data) else { throw RefusedCommand(0x6A80) }
        func value(_ tag: UInt32) -> [UInt8]? { objects.first { $0.tag == tag }?.value }
        switch (command.p1, command.p2) {
        case (0xC1, 0xA4): return try setPACE(value(0x80), value(0x83), value(0x84))
        case (0x41, 0xA6): return try setKeyAgreement(value(0x91), value(0x84))
        case (0x41, 0xA4): return try setChipAuthentication(value(0x80), value(0x84))
        default: throw RefusedCommand(0x6A86)
        }
    }

    private func setPACE(
        _ protocolID: [UInt8]?,
        _ password: [UInt8]?,
        _ parameterID: [UInt8]?
    ) throws(RefusedCommand) -> ResponseAPDU {
        pace = nil
        let known = description.pace.filter { $0.protocolID == protocolID }
        guard let parameters = known.first(where: { parameterID == nil || [$0.parameterID] == parameterID }),
            let id = password?.first.flatMap(PasswordID.init(rawValue:))
        else { throw RefusedCommand(0x6A80) }
        let characters: [UInt8] =
            switch id {
            case .mrz: description.information
            case .can: description.can
            case .pin, .puk: []
            }
        guard !characters.isEmpty else { throw RefusedCommand(0x6A88) }
        let secret = Secret(characters)
        let key = try crypto(PACE.passwordKey(secret, id: id, cipher: parameters.cipher))
        pace = PACE.Chip(parameters, passwordKey: key, staticKey: try staticKey(for: parameters))
        return ResponseAPDU(.ok)
    }

    /// The key that the chip authentication mapping proves.
    private func staticKey(for parameters: PACEParameters) throws(RefusedCommand) -> ECPrivateKey? {
        guard parameters.mapping == .chipAuthentication, let key = keys["cam"] else { return nil }
        switch key.content {
        case .elliptic(let key): return try crypto(key.copy())
        case .rsa: return nil
        }
    }

    func generalAuthenticate(_ command: CommandAPDU) throws(RefusedCommand) -> ResponseAPDU {
        if chosenKey != nil { return try authenticateChip(command.data) }
        guard pace != nil else { throw .wrongState }
        do throws(ChipError) {
            guard let answer = try pace?.answer(command.data) else { throw .outOfOrder }
            if let outcome = pace?.takeOutcome() {
                pace = nil
                open(outcome.secureMessaging())
            }
            return ResponseAPDU(data: answer, .ok)
        } catch {
            pace = nil
            throw error == .wrongToken ? wrongPassword : RefusedCommand(0x6A80)
        }
    }

    // MARK: Chip authentication. ICAO 9303-11 6.2

    /// The key of a number; the only one without a number.
    private func chipKey(_ keyID: [UInt8]?) throws(RefusedCommand) -> (ChipKey, SessionCipher) {
        let number = keyID?.last.map(Int.init) ?? 1
        guard isProtected || !description.hasAccessControl, let key = keys["ca\(number)"],
            description.chipCiphers.indices.contains(number - 1),
            keyID != nil || description.chipCiphers.count == 1
        else { throw .noData }
        return (key, description.chipCiphers[number - 1])
    }

    private func setKeyAgreement(_ publicKey: [UInt8]?, _ keyID: [UInt8]?) throws(RefusedCommand) -> ResponseAPDU {
        let (key, cipher) = try chipKey(keyID)
        guard cipher == .tripleDES, let publicKey else { throw RefusedCommand(0x6A80) }
        try agree(key, cipher, with: publicKey)
        return ResponseAPDU(.ok)
    }

    private func setChipAuthentication(_ protocolID: [UInt8]?, _ keyID: [UInt8]?) throws(RefusedCommand) -> ResponseAPDU
    {
        let (key, cipher) = try chipKey(keyID)
        guard protocolID == OID.chipAuthentication + [2, cipher.rawValue], cipher != .tripleDES else {
            throw RefusedCommand(0x6A80)
        }
        chosenKey = (key, cipher)
        return ResponseAPDU(.ok)
    }

    private func authenticateChip(_ data: [UInt8]) throws(RefusedCommand) -> ResponseAPDU {
        guard let (key, cipher) = chosenKey, let publicKey = try? PACE.only(0x80, in: data) else {
            throw RefusedCommand(0x6A80)
        }
        chosenKey = nil
        try agree(key, cipher, with: publicKey)
        return ResponseAPDU(data: [0x7C, 0x00], .ok)
    }

    private func agree(_ key: ChipKey, _ cipher: SessionCipher, with publicKey: [UInt8]) throws(RefusedCommand) {
        switch key.content {
        case .rsa: throw .failure
        case .elliptic(let own):
            let keys = try crypto { () throws(CryptoError) in
                let peer = try ECPublicKey(publicKey, on: own.group.curve)
                return try SessionKeys(sharedSecret: try own.sharedSecret(with: peer), cipher: cipher)
            }
            open(SecureMessaging(keys))
        }
    }

    // MARK: Active authentication. ICAO 9303-11 6.1

    func internalAuthenticate(_ command: CommandAPDU) throws(RefusedCommand) -> ResponseAPDU {
        guard isProtected || !description.hasAccessControl, isApplicationSelected, let key = keys["aa"] else {
            throw .wrongState
        }
        guard command.data.count == ActiveAuthentication.challengeLength else { throw .wrongLength }
        let digest = description.signatureDigest ?? .sha1
        let challenge = command.data
        switch key.content {
        case .elliptic(let key):
            let signature = try crypto(ECDSA.sign(challenge, with: key, digest: digest))
            return ResponseAPDU(data: signature, .ok)
        case .rsa(let key):
            return ResponseAPDU(data: try sign(challenge, key, digest), .ok)
        }
    }

    /// ISO/IEC 9796-2, scheme 1 with partial recovery.
    private func sign(
        _ challenge: [UInt8],
        _ key: borrowing RSAPrivateNumbers,
        _ digest: DigestAlgorithm
    ) throws(RefusedCommand) -> [UInt8] {
        let trailer: [UInt8] =
            switch digest {
            case .sha1: [0xBC]
            case .sha224: [0x38, 0xCC]
            case .sha256: [0x34, 0xCC]
            case .sha384: [0x36, 0xCC]
            case .sha512: [0x35, 0xCC]
            }
        let length = key.length - 1 - digest.count - trailer.count
        guard length > 0 else { throw .failure }
        let complements = description.quirks.signsComplement
        return try crypto { () throws(CryptoError) in
            let part = try Random.bytes(length)
            let hash = try digest.hash(part + challenge)
            let signature = try key.sign([0x6A] + part + hash + trailer)
            guard complements else { return signature }
            let publicKey = try RSAPublicKey(modulus: key.modulus, exponent: [3], bits: 512...8192)
            return try publicKey.complement(signature)
        }
    }
}
