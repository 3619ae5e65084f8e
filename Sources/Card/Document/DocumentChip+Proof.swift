// SPDX-License-Identifier: GPL-3.0-or-later
import ChipAccess
import Crypto
package import ISO7816

/// The protocols that prove the chip.
extension DocumentChip {
    /// How a chip authentication ended.
    package enum ChipResult: Sendable, Equatable {
        /// The chip has answered under the new keys.
        case proven
        /// The chip's answer under the new keys is wrong, or there is none: it does not have the key.
        case wrongKey
        /// The chip refused a step.
        case refused(StatusWord)
    }

    /// Runs chip authentication with a key of DG14, and reads 8 bytes of DG14 under the new keys: only an answer under
    /// these keys proves the chip. After another result than `proven` the channel is closed. What follows opens it again:
    /// a chip may need a reset for that, which is lost time if nothing follows.
    ///
    /// - Parameters:
    ///   - choice: a key whose file has the hash of EF.SOD.
    ///   - file: DG14 as it was read.
    /// - Returns: how it ended.
    /// - Throws: when the card is lost, or cannot be opened, or gives no answer of its own under the old keys.
    package func authenticateChip(
        _ choice: ChipAuthenticationV1,
        file: [UInt8]
    ) async throws(DocumentError) -> ChipResult {
        try await reopen()
        let result = try await attempt(choice, file: file)
        if result != .proven { dropChannel() }
        return result
    }

    private func attempt(
        _ choice: ChipAuthenticationV1,
        file: [UInt8]
    ) async throws(DocumentError) -> ChipResult {
        let own = try Self.step(AgreementPrivateKey(on: choice.domain.group))
        let publicKey = own.publicKey.encoded
        let keyID = choice.keyID.map { BERTLV(0x84, Self.number($0)).encoded } ?? []
        do throws(ChipError) {
            switch choice.cipher {
            case .tripleDES:
                let data = BERTLV(0x91, publicKey).encoded + keyID
                let answer = try await protected(CommandAPDU(0x00, 0x22, 0x41, 0xA6, data: data))
                guard answer.status == .ok else { return .refused(answer.status) }
            case .aes128, .aes192, .aes256:
                let data = BERTLV(0x80, choice.protocolID).encoded + keyID
                let chosen = try await protected(CommandAPDU(0x00, 0x22, 0x41, 0xA4, data: data))
                guard chosen.status == .ok else { return .refused(chosen.status) }
                let request = PACE.wrap(BERTLV(0x80, publicKey))
                let answer = try await protected(CommandAPDU(0x00, 0x86, 0x00, 0x00, data: request, le: 256))
                guard answer.status == .ok else { return .refused(answer.status) }
            }
        } catch {
            if case .status(let status) = error { return .refused(status) }
            throw DocumentError(error)
        }
        let keys = try Self.step(ChipAuthenticationV1.agree(own, with: choice.key, cipher: choice.cipher))
        replaceChannel(keys, cipher: choice.cipher)
        do throws(ChipError) {
            if abilities.selectsFiles { _ = try await protected(Self.selection(of: .group(14))) }
            let answer = try await protected(command(.group(14), offset: 0, count: 8))
            return answer.status == .ok && answer.data == Array(file.prefix(8)) ? .proven : .wrongKey
        } catch {
            // An answer that is forged or not protected is a result; a lost card is an error.
            switch error {
            case .status, .protocolViolation: return .wrongKey
            case .card, .unsupported: throw DocumentError(error)
            }
        }
    }

    private static func number(_ value: Int) -> [UInt8] {
        let bytes = [24, 16, 8, 0].map { UInt8(truncatingIfNeeded: value >> $0) }.drop { $0 == 0 }
        return bytes.isEmpty ? [0] : Array(bytes)
    }

    /// Lets the chip sign a challenge of 8 random bytes.
    ///
    /// - Parameter length: of the signature that is expected, in bytes.
    /// - Returns: the challenge and the signature.
    /// - Throws: `.refused` with DG15 if the chip refused the command.
    package func signChallenge(length: Int) async throws(DocumentError) -> (challenge: [UInt8], answer: [UInt8]) {
        try await reopen()
        let challenge = try Self.step(Random.bytes(ActiveAuthentication.challengeLength))
        while true {
            // A protected answer of this length does not fit into 256 bytes on the wire.
            let isLong = length > 223 && abilities.isExtended
            let le = isLong ? abilities.limit(blockCipher) : 256
            let command = CommandAPDU(0x00, 0x88, 0x00, 0x00, data: challenge, le: le)
            do throws(ChipError) {
                let answer = try await protected(command)
                guard answer.status == .ok else { throw .status(answer.status) }
                return (challenge, answer.data)
            } catch {
                guard let status = Self.endOfChannel(error) else { throw DocumentError(error) }
                guard isLong else { throw .refused(.group(15), status) }
                // First, because the chip may need a reset before the next channel.
                _ = abilities.shorten(below: le)
                try await reopen()
            }
        }
    }
}
