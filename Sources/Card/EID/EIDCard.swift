// SPDX-License-Identifier: GPL-3.0-or-later
package import ChipAccess
import Crypto
package import ISO7816
package import Text

/// The terminal's side of one eID card on one connection: PACE, PIN management, commands in the secure channel.
///
/// Calls must not overlap. No command is sent again after a lost or wrong answer, because the card may have counted a try
/// or changed the PIN already. An error inside a channel closes it; `destroyChannel` makes the card usable again.
package actor EIDCard {
    package nonisolated let profile: EIDProfile
    private let base: any CardChannel
    private var channel: SecureChannel?

    package init(channel: any CardChannel, profile: EIDProfile) {
        base = CompletingChannel(channel)
        self.profile = profile
    }

    /// Whether there is a channel that accepts commands.
    package var hasChannel: Bool { channel.map { !$0.isClosed } ?? false }

    /// Selects the application, then the master file. Needed at the start of a workflow, since other programs may have
    /// used the card.
    package func select() async throws(ChipError) {
        _ = try await transmit(.select(application: profile.applicationID))
        let answer = try await transmit(.selectMasterFile)
        guard answer.status == .ok else { throw .status(answer.status) }
    }

    /// Reads the remaining tries of the PIN without using one.
    /// - Throws: `.status` when the status word contains no state of the PIN.
    package func readPINStatus() async throws(ChipError) -> PINStatus {
        let answer = try await transmit(.setPACE(profile.cardAccess.pace, .pin))
        guard let status = PINStatus(answer.status) else { throw .status(answer.status) }
        return status
    }

    /// Runs PACE. After success, commands go through the new channel. If a channel is open, the run goes through it. A
    /// wrong password leaves it open, unless the card refuses the password without secure messaging.
    ///
    /// - Parameters:
    ///   - id: the kind of password.
    ///   - password: ASCII digits, or the characters that `PACE.passwordKey` expects; wiped before the first command.
    ///   - chat: the object 7F4C when terminal authentication follows; nil for PIN management.
    /// - Returns: how the run ended.
    /// - Throws: `.status` for a refusal other than those of `PACEOutcome`, `.protocolViolation`, `.card`.
    package func establishPACE(
        _ id: PasswordID,
        password: consuming Secret,
        chat: [UInt8]? = nil
    ) async throws(ChipError) -> PACEOutcome {
        let parameters = profile.cardAccess.pace
        var terminal = try PACE.Terminal(parameters, password: password, id: id)

        let before = try await transmit(.setPACE(parameters, id, chat: chat)).status
        switch (before.value, id) {
        case (0x9000, _), (0x63C1...0x63CF, _): break
        case (0x63C0, .puk): return .usedUp(before)
        default: throw .status(before)
        }

        let nonce = try await authenticate(PACE.Terminal.request)
        let mapping = try await authenticate(try terminal.receiveNonce(nonce))
        let ephemeral = try await authenticate(try terminal.receiveMapping(mapping))
        let token = try terminal.receiveEphemeral(ephemeral)

        let answer: ResponseAPDU
        do throws(ChipError) {
            answer = try await transmit(CommandAPDU(0x00, 0x86, 0x00, 0x00, data: token, le: 256))
        } catch {
            // A card may refuse a wrong password without secure messaging, which closes the older channel.
            guard case .status(let status) = error, status.sw1 == 0x63 else { throw error }
            answer = ResponseAPDU(status)
        }
        guard answer.status.sw1 != 0x63 else {
            return .wrongPassword(statusBefore: before, status: answer.status)
        }
        guard answer.status == .ok else { throw .status(answer.status) }

        let outcome = try terminal.receiveToken(answer.data)
        let result = PACEResult(
            statusBefore: before,
            idPICC: outcome.idPICC,
            certificationAuthorities: outcome.certificationAuthorities
        )
        channel = SecureChannel(outcome.secureMessaging(), over: base)
        return .established(result)
    }

    /// Sets a new PIN in the channel of the PIN. TR-03110-3 B.11.6.
    /// - Parameter pin: ASCII digits; encrypted in wiped memory, and wiped before the command is sent.
    /// - Returns: the authenticated status word. The PIN is changed if it is 9000, and only then.
    /// - Throws: `.card` when the answer is lost; then it is unknown whether the PIN is changed. Otherwise as
    ///   `transmit`.
    package func changePIN(to pin: consuming Secret) async throws(ChipError) -> StatusWord {
        guard let channel else { throw .protocolViolation("no channel for the new PIN") }
        return try await channel.exchange(CommandAPDU(0x00, 0x2C, 0x02, 0x03), data: pin).status
    }

    /// Resets the retry counter of the PIN in the channel of the PUK. TR-03110-3 B.11.6.
    /// - Returns: the authenticated status word: 9000, or 6982 when the PUK is used up.
    package func unblockPIN() async throws(ChipError) -> StatusWord {
        guard let channel else { throw .protocolViolation("no channel to unblock the PIN") }
        return try await channel.exchange(CommandAPDU(0x00, 0x2C, 0x03, 0x03)).status
    }

    /// Sends a command, through the channel if there is one. Throws `.status` for an unprotected error status inside a
    /// channel; `.protocolViolation` for a forged answer, and in a closed channel.
    package func transmit(_ command: CommandAPDU) async throws(ChipError) -> ResponseAPDU {
        if let channel { return try await channel.exchange(command) }
        return try await base.exchange(command)
    }

    /// Discards the channel after chip authentication, which has replaced it with the channel of the server.
    func forgetChannel() { channel = nil }

    /// Ends the channel on both sides: on the card by an unprotected command that it refuses. The answer does not matter.
    package func destroyChannel() async {
        channel = nil
        _ = try? await base.transmit(CommandAPDU(0x00, 0x22, 0xC1, 0xA4))
    }

    /// Sends GENERAL AUTHENTICATE with command chaining. TR-03110-3 B.1.
    private func authenticate(_ data: [UInt8]) async throws(ChipError) -> [UInt8] {
        let answer = try await transmit(CommandAPDU(0x10, 0x86, 0x00, 0x00, data: data, le: 256))
        guard answer.status == .ok else { throw .status(answer.status) }
        return answer.data
    }
}

/// How a complete PACE run ended.
package enum PACEOutcome: Sendable, Equatable {
    case established(PACEResult)
    /// The card refused the token. `statusBefore` is that of MSE:Set AT, with the tries before this one.
    case wrongPassword(statusBefore: StatusWord, status: StatusWord)
    /// The PUK is used up: MSE:Set AT answered 63C0. No try was made.
    case usedUp(StatusWord)
}

/// The result of a PACE run that terminal and chip authentication need.
package struct PACEResult: Sendable, Equatable {
    /// The status word of MSE:Set AT.
    package let statusBefore: StatusWord
    /// Comp() of the chip's ephemeral key, which is part of the signature of terminal authentication.
    package let idPICC: [UInt8]
    package let certificationAuthorities: PACE.CertificationAuthorities

    package init(
        statusBefore: StatusWord,
        idPICC: [UInt8],
        certificationAuthorities: PACE.CertificationAuthorities
    ) {
        self.statusBefore = statusBefore
        self.idPICC = idPICC
        self.certificationAuthorities = certificationAuthorities
    }
}

extension PACE.Terminal {
    /// Derives the key from the password, which is wiped.
    fileprivate init(_ parameters: PACEParameters, password: consuming Secret, id: PasswordID) throws(ChipError) {
        let key = try cryptoStep(PACE.passwordKey(password, id: id, cipher: parameters.cipher))
        self.init(parameters, passwordKey: key)
    }
}
