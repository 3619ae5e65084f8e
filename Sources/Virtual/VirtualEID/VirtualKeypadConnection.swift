// SPDX-License-Identifier: GPL-3.0-or-later
import ChipAccess
import EID
import ISO7816
import Readers
import ReadersVirtual
import Synchronization
import Text

/// A connection to a virtual card in a virtual reader with a keypad. Its simulated user always types the right digits.
final class VirtualKeypadConnection: KeypadConnection {
    private let plain: any CardConnection
    private let card: VirtualCard
    /// The card as the reader sees it, with the secure channel of the reader.
    private let terminal = Mutex<EIDCard?>(nil)

    init(_ plain: any CardConnection, to card: VirtualCard) {
        self.plain = plain
        self.card = card
    }

    /// Sends a plain command through the channel of the reader, if there is one. A secured command belongs to the
    /// channel of chip authentication and is sent unchanged. TR-03119 A.2.
    func transmit(_ command: CommandAPDU) async throws(CardError) -> ResponseAPDU {
        guard command.cla & 0x0C == 0, let terminal = terminal.withLock({ $0 }), await terminal.hasChannel else {
            return try await plain.transmit(command)
        }
        do throws(ChipError) {
            return try await terminal.transmit(command)
        } catch {
            switch error {
            case .card(let error): throw error
            case .status(let status): return ResponseAPDU(status)
            case .protocolViolation(let what), .unsupported(let what): throw .other(what)
            }
        }
    }

    func disconnect(reset: Bool) async {
        await plain.disconnect(reset: reset)
    }

    func establishPACE(_ request: KeypadPACERequest) async throws(CardError) -> KeypadPACEResult {
        guard let id = PasswordID(rawValue: request.passwordID) else {
            return KeypadPACEResult(outcome: .failed(Code.unknownPassword))
        }
        guard let terminal = try await identified() else {
            return KeypadPACEResult(outcome: .failed(Code.communicationAbort))
        }
        guard let typed = await card.typed(id)?.take() else { return KeypadPACEResult(outcome: .cancelled) }
        do throws(ChipError) {
            let chat = request.chat.isEmpty ? nil : request.chat
            switch try await terminal.establishPACE(id, password: typed, chat: chat) {
            case .established(let pace):
                var result = KeypadPACEResult(outcome: .established, mseStatus: pace.statusBefore)
                result.cardAccess = terminal.profile.cardAccess.bytes
                result.carCurrent = pace.certificationAuthorities.current ?? []
                result.carPrevious = pace.certificationAuthorities.previous ?? []
                result.idPICC = pace.idPICC
                return result
            case .wrongPassword(let before, _):
                return KeypadPACEResult(outcome: .wrongPassword, mseStatus: before)
            case .usedUp(let status):
                return KeypadPACEResult(outcome: .failed(Code.card(status)), mseStatus: status)
            }
        } catch {
            switch error {
            case .card(let error): throw error
            case .status(let status): return KeypadPACEResult(outcome: .failed(Code.card(status)))
            case .protocolViolation, .unsupported:
                return KeypadPACEResult(outcome: .failed(Code.communicationAbort))
            }
        }
    }

    func destroyPACE() async throws(CardError) {
        await terminal.withLock { $0.take() }?.destroyChannel()
    }

    /// Sets the current PIN again. A transport PIN becomes 123456, since a new PIN has six digits.
    func modifyPIN() async throws(CardError) -> StatusWord {
        guard let terminal = terminal.withLock({ $0 }), await terminal.hasChannel else { return StatusWord(0x6982) }
        guard let typed = await card.typedForChange()?.take() else { return StatusWord(0x6401) }
        do throws(ChipError) {
            return try await terminal.changePIN(to: typed)
        } catch {
            switch error {
            case .card(let error): throw error
            case .status(let status): return status
            case .protocolViolation(let what), .unsupported(let what): throw .other(what)
            }
        }
    }

    /// Identifies the card once, because this would end a channel later.
    private func identified() async throws(CardError) -> EIDCard? {
        if let terminal = terminal.withLock({ $0 }) { return terminal }
        guard case .eid(let profile) = try await EIDCard.identify(on: plain) else { return nil }
        let terminal = EIDCard(channel: plain, profile: profile)
        self.terminal.withLock { $0 = terminal }
        return terminal
    }

    /// Result codes of PC/SC part 10 AMD1, 2.5.12.
    private enum Code {
        static let unknownPassword: UInt32 = 0xE000_0003
        static let communicationAbort: UInt32 = 0xF010_0001

        /// The card refused MSE:Set AT or a later command.
        static func card(_ status: StatusWord) -> UInt32 { 0xF002_0000 | UInt32(status.value) }
    }
}
