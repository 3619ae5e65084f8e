// SPDX-License-Identifier: GPL-3.0-or-later
import Crypto
import HDWallet
import ISO7816
import Keycard
import ReadersVirtual
import Text

/// What only 4.0 does: the CCM channel, INIT inside it.
extension VirtualApplet {
    func runCertified(_ command: CommandAPDU) throws(RefusedCommand) -> Reply {
        switch command.ins {
        case KeycardInstruction.openSecureChannel: return .clear(try openCertified(command))
        case KeycardInstruction.securedCommand: return .protected(try runSecured(command))
        case KeycardInstruction.factoryReset: return .clear(try factoryReset(command))
        default: throw RefusedCommand(0x6985)
        }
    }

    private func openCertified(_ command: CommandAPDU) throws(RefusedCommand) -> [UInt8] {
        guard let identity, command.data.count == 32 + PublicKey.uncompressedCount else { throw RefusedCommand(0x6A80) }
        guard command.p1 == 0, command.p2 == 0 else { throw RefusedCommand(0x6A86) }
        let salt = Array(command.data.prefix(32))
        let point = Array(command.data.dropFirst(32))
        guard point[0] == 0x04 else { throw RefusedCommand(0x6A80) }
        let key = try crypto(sources.agreementKey())
        guard let peer = try? PublicKey(point) else { throw RefusedCommand(0x6A80) }
        let own = key.publicKey.uncompressed
        let signature = try crypto { () throws(CryptoError) in
            let transcript = CCMChannel.transcript(salt: salt, terminal: point, card: own)
            return try sources.sign(try DigestAlgorithm.sha256.hash(transcript), identity.key)
        }
        ccm = try crypto(CCMChannel(shared: try key.sharedX(with: peer), salt: salt))
        return own + signature
    }

    private func runSecured(_ command: CommandAPDU) throws(RefusedCommand) -> Secret {
        guard let ccm else { throw RefusedCommand(0x6985) }
        guard let plain = ccm.unwrap(command), let data = plain.part(5..<plain.count) else {
            closeChannel()
            throw RefusedCommand(0x6982)
        }
        let header = plain.withBytes { Array($0.prefix(4)) }
        let (ins, p1, p2) = (header[1], header[2], header[3])
        guard secrets != nil else {
            switch ins {
            case KeycardInstruction.initialize: try setSecrets(data, extra: 0)
            // Before INIT, 4.0 answers 9000 without data to every other command.
            default: break
            }
            return Secret([])
        }
        switch ins {
        case KeycardInstruction.getStatus, KeycardInstruction.verifyPIN, KeycardInstruction.changePIN,
            KeycardInstruction.unblockPIN, KeycardInstruction.loadKey, KeycardInstruction.generateMnemonic,
            KeycardInstruction.removeKey, KeycardInstruction.exportKey:
            return try runInside(ins, p1, p2, data)
        case KeycardInstruction.sign:
            guard p1 == 1 else { throw RefusedCommand(0x6B00) }
            guard p2 == 0 else { throw RefusedCommand(0x6A81) }
            return try sign(data)
        default: throw RefusedCommand(0x6D00)
        }
    }
}
