// SPDX-License-Identifier: GPL-3.0-or-later
import ChipAccess
import Crypto
import EID
import ISO7816
import ReadersVirtual
import Text

/// A PACE run between MSE:Set AT and its last step.
struct PACERun: ~Copyable {
    let password: PasswordID
    let chat: CHAT?
    var chip: PACE.Chip

    var hasBegun: Bool {
        switch chip.step {
        case .nonce: false
        case .mapping, .agreement, .token, .established, .over: true
        }
    }
}

/// PACE. TR-03110-3 B.1, B.11.1, B.11.5.
extension CardOperatingSystem {
    /// MSE:Set AT for PACE. The status word reports the state of the password; terminals use the command to read this
    /// state, so it is accepted even for a password that is blocked. TR-03110-3 B.11.1.
    func setPACE(_ objects: DataObjects) throws(RefusedCommand) -> ResponseAPDU {
        pace = nil
        session.chosen = nil
        try objects.allow(only: [0x80, 0x83, 0x84, 0x7F4C])
        let protocolID = try objects.value(0x80)
        let known = algorithms.pace.filter { $0.protocolID == protocolID }
        guard !known.isEmpty, let number = try objects.byte(0x83) else { throw RefusedCommand(0x6A80) }
        let parameterID = try objects.byte(0x84)
        guard let password = PasswordID(rawValue: number),
            let parameters = known.first(where: { parameterID == nil || $0.parameterID == parameterID })
        else { throw RefusedCommand(0x6A88) }
        let chat = try objects[0x7F4C].map(template)
        let key = try crypto(PACE.passwordKey(passwords.secret(password), id: password, cipher: parameters.cipher))
        let newest = trustPoints.first?.certificate.holderReference
        let previous = trustPoints.dropFirst().first?.certificate.holderReference
        let authorities = PACE.CertificationAuthorities(current: newest, previous: previous)
        let nonce = try crypto(random.secret(AES.blockSize))
        let chip = PACE.Chip(
            parameters,
            passwordKey: key,
            certificationAuthorities: chat == nil ? PACE.CertificationAuthorities() : authorities,
            fixedKeys: try fixedKeys(on: parameters.curve),
            nonce: nonce
        )
        pace = PACERun(password: password, chat: chat, chip: chip)
        return ResponseAPDU(status(of: password))
    }

    /// The keys of a card with seeded random numbers; nil lets the run draw keys.
    private func fixedKeys(on curve: Curve?) throws(RefusedCommand) -> PACE.FixedKeys? {
        guard let curve else { return nil }
        return try crypto { () throws(CryptoError) in
            guard let mapping = try random.scalar(on: curve), let agreement = try random.scalar(on: curve) else {
                return nil
            }
            return PACE.FixedKeys(mapping: mapping, ephemeral: agreement)
        }
    }

    private func template(_ object: BERTLV) throws(RefusedCommand) -> CHAT {
        guard let chat = try? CHAT(object) else { throw RefusedCommand(0x6A80) }
        return chat
    }

    private func status(of password: PasswordID) -> StatusWord {
        switch password {
        case .mrz, .can, .puk: return .ok
        case .pin:
            if passwords.isDeactivated { return StatusWord(0x6283) }
            return passwords.retryCounter == CardPasswords.tries ? .ok : tries
        }
    }

    /// 63Cx, where x is the retry counter.
    private var tries: StatusWord { StatusWord(0x63C0 | UInt16(truncatingIfNeeded: passwords.retryCounter)) }

    /// Runs one of the four steps. The first three commands are chained, the last ends the chain.
    func continuePACE(_ command: CommandAPDU) throws(RefusedCommand) -> ResponseAPDU {
        guard let step = pace?.chip.step, let password = pace?.password else { throw RefusedCommand(0x6985) }
        do throws(RefusedCommand) {
            switch step {
            case .nonce, .mapping, .agreement: guard command.isChained else { throw RefusedCommand(0x6E00) }
            case .token: guard !command.isChained else { throw RefusedCommand(0x6883) }
            case .established, .over: throw RefusedCommand(0x6985)
            }
            if password == .pin { try checkPINIsUsable() }
            if step == .token {
                // Only a command that can hold a token costs a try.
                guard command.data.starts(with: [0x7C, 0x0A, 0x85, 0x08]), command.data.count == 12 else {
                    throw RefusedCommand(0x6A80)
                }
                if password == .pin { passwords.spendTry() }
            }
            let answer = try answer(command.data, password)
            if step == .token { try finishPACE(password) }
            return ResponseAPDU(data: answer, .ok)
        } catch {
            pace = nil
            throw error
        }
    }

    private func answer(_ data: [UInt8], _ password: PasswordID) throws(RefusedCommand) -> [UInt8] {
        do throws(ChipError) {
            guard let answer = try pace?.chip.answer(data) else { throw .outOfOrder }
            return answer
        } catch {
            switch error {
            case .wrongToken: throw RefusedCommand(password == .pin ? tries.value : 0x6300)
            case .outOfOrder: throw RefusedCommand(0x6985)
            case .protocolViolation: throw RefusedCommand(0x6A80)
            case .card, .status, .unsupported: throw RefusedCommand(0x6F00)
            }
        }
    }

    /// Refuses a suspended PIN (6985), a blocked PIN (6983) and a deactivated PIN (6984).
    ///
    /// A PIN with one try left is suspended: it can be used only in a channel of the CAN. So the PIN cannot be blocked
    /// without the printed CAN. MSE:Set AT is not refused. TR-03110-2 3.3, TR-03110-3 B.11.5.
    private func checkPINIsUsable() throws(RefusedCommand) {
        if passwords.isDeactivated { throw RefusedCommand(0x6984) }
        switch passwords.retryCounter {
        case ...0: throw RefusedCommand(0x6983)
        case 1: guard isProtected, session.password == .can else { throw RefusedCommand(0x6985) }
        default: return
        }
    }

    private func finishPACE(_ password: PasswordID) throws(RefusedCommand) {
        guard let outcome = pace?.chip.takeOutcome() else { throw RefusedCommand(0x6F00) }
        if password == .pin { passwords.restoreTries() }
        session = CardSession(password: password, chat: pace?.chat, idPICC: outcome.idPICC)
        pace = nil
        open(outcome.secureMessaging())
    }
}
