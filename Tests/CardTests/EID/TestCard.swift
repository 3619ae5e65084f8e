// SPDX-License-Identifier: GPL-3.0-or-later
import ChipAccess
import Crypto
import EID
import ISO7816
import Synchronization
import TestSupport
import Text

/// A minimal eID card: EF.DIR, EF.CardAccess, PACE with PIN, CAN and PUK, secure messaging, RESET RETRY COUNTER. It
/// records every command, and a test may replace or change its answers.
final class TestCard: CardChannel {
    /// A command and its answer; nil when there was no answer.
    struct Exchange: Sendable, Equatable {
        let command: CommandAPDU
        let answer: ResponseAPDU?
    }

    /// Answers command number `index`, counted from 0, instead of the card; nil leaves the command to the card.
    typealias Interference = @Sendable (_ index: Int, _ command: CommandAPDU) throws(CardError) -> ResponseAPDU?

    /// Changes the card's answer.
    typealias Forgery = @Sendable (_ index: Int, _ answer: ResponseAPDU) throws(CardError) -> ResponseAPDU

    private struct State: ~Copyable {
        var log: [Exchange] = []
        var pin = Array("123456".utf8)
        var tries: Int
        var pukUses = 10
        var canProved = false
        var selected: PasswordID?
        var chip: PACE.Chip?
        var messaging: SecureMessaging?
        /// The password of the open channel.
        var proved: PasswordID?
    }

    static let parameters = PACEParameters(curve: .brainpoolP256r1, cipher: .aes128)
    static let directory = hex("610B4F09E80704007F0007030261094F07A0000002471001610C4F0AA000000167455349474E")

    private let state: Mutex<State>
    private let interfere: Interference
    private let forge: Forgery

    init(
        tries: Int = 3,
        interfere: @escaping Interference = { _, _ in nil },
        forge: @escaping Forgery = { _, answer in answer }
    ) {
        state = Mutex(State(tries: tries))
        self.interfere = interfere
        self.forge = forge
    }

    var log: [Exchange] { state.withLock { $0.log } }
    /// The commands in upper-case hexadecimal digits.
    var commands: [String] { log.map { hex($0.command.bytes) } }
    var pin: String { state.withLock { String(decoding: $0.pin, as: UTF8.self) } }
    var tries: Int { state.withLock { $0.tries } }

    func transmit(_ command: CommandAPDU) async throws(CardError) -> ResponseAPDU {
        try state.withLock { state throws(CardError) in
            let index = state.log.count
            do throws(CardError) {
                let own = try interfere(index, command)
                let answer = try forge(index, own ?? answer(command, &state))
                state.log.append(Exchange(command: command, answer: answer))
                return answer
            } catch {
                state.log.append(Exchange(command: command, answer: nil))
                throw error
            }
        }
    }

    private func answer(_ command: CommandAPDU, _ state: inout State) -> ResponseAPDU {
        guard command.cla & 0x0C != 0 else {
            state.messaging = nil
            state.proved = nil
            if command.ins != 0x86 && !(command.ins == 0x22 && !command.data.isEmpty) { state.canProved = false }
            return execute(command, &state)
        }
        guard var messaging = state.messaging.take() else { return ResponseAPDU(StatusWord(0x6882)) }
        guard let plain = try? messaging.unwrap(command) else { return ResponseAPDU(StatusWord(0x6988)) }
        let before = state.proved
        let answer = execute(plain, &state)
        guard let wrapped = try? messaging.wrap(answer) else { return ResponseAPDU(StatusWord(0x6F00)) }
        // A new channel is used from the next command on.
        if state.messaging == nil {
            state.messaging = consume messaging
            state.proved = before
        }
        return wrapped
    }

    private func execute(_ command: CommandAPDU, _ state: inout State) -> ResponseAPDU {
        switch (command.ins, command.p1, command.p2) {
        case (0xA4, _, _): ResponseAPDU(.ok)
        case (0xB0, 0x9E, 0): ResponseAPDU(data: Self.directory, .ok)
        case (0xB0, 0x9C, 0): ResponseAPDU(data: exampleCardAccess, .ok)
        case (0xB0, _, _): ResponseAPDU(StatusWord(0x6B00))
        case (0x22, 0xC1, 0xA4): setPACE(command.data, &state)
        case (0x86, 0, 0): authenticate(command, &state)
        case (0x2C, 0x02, 0x03): changePIN(command.data, &state)
        case (0x2C, 0x03, 0x03): unblock(&state)
        default: ResponseAPDU(StatusWord(0x6D00))
        }
    }

    private func setPACE(_ data: [UInt8], _ state: inout State) -> ResponseAPDU {
        guard let objects = try? BERTLV.sequence(data), let id = objects.first(where: { $0.tag == 0x83 })?.value.first,
            let password = PasswordID(rawValue: id)
        else { return ResponseAPDU(StatusWord(0x6A80)) }
        let value: [UInt8] =
            switch password {
            case .mrz: []
            case .can: Array("500540".utf8)
            case .pin: state.pin
            case .puk: Array("9876543210".utf8)
            }
        guard let key = try? PACE.passwordKey(Secret(value), id: password, cipher: .aes128) else {
            return ResponseAPDU(StatusWord(0x6F00))
        }
        let hasCHAT = objects.contains { $0.tag == 0x7F4C }
        state.selected = password
        state.chip = PACE.Chip(
            Self.parameters,
            passwordKey: key,
            certificationAuthorities: PACE.CertificationAuthorities(current: hasCHAT ? Array("DETEST1".utf8) : nil)
        )
        switch password {
        case .pin where state.tries < 3: return ResponseAPDU(StatusWord(0x63C0 | UInt16(state.tries)))
        case .puk where state.pukUses == 0: return ResponseAPDU(StatusWord(0x63C0))
        default: return ResponseAPDU(.ok)
        }
    }

    private func authenticate(_ command: CommandAPDU, _ state: inout State) -> ResponseAPDU {
        guard var chip = state.chip.take(), let selected = state.selected else {
            return ResponseAPDU(StatusWord(0x6985))
        }
        if selected == .pin, state.tries == 0 || state.tries == 1 && !state.canProved {
            return ResponseAPDU(StatusWord(0x6982))
        }
        guard command.isChained == (chip.step != .token) else { return ResponseAPDU(StatusWord(0x6883)) }
        do throws(ChipError) {
            let answer = try chip.answer(command.data)
            if let outcome = chip.takeOutcome() {
                state.messaging = outcome.secureMessaging()
                state.proved = selected
                if selected == .can { state.canProved = true }
                if selected == .pin { state.tries = 3 }
            } else {
                state.chip = consume chip
            }
            return ResponseAPDU(data: answer, .ok)
        } catch ChipError.wrongToken {
            guard selected == .pin else { return ResponseAPDU(StatusWord(0x6300)) }
            state.tries -= 1
            return ResponseAPDU(StatusWord(0x63C0 | UInt16(state.tries)))
        } catch {
            return ResponseAPDU(StatusWord(0x6A80))
        }
    }

    private func changePIN(_ data: [UInt8], _ state: inout State) -> ResponseAPDU {
        guard state.proved == .pin else { return ResponseAPDU(StatusWord(0x6982)) }
        guard data.count == 6 else { return ResponseAPDU(StatusWord(0x6A80)) }
        state.pin = data
        return ResponseAPDU(.ok)
    }

    private func unblock(_ state: inout State) -> ResponseAPDU {
        guard state.proved == .puk, state.pukUses > 0 else { return ResponseAPDU(StatusWord(0x6982)) }
        state.pukUses -= 1
        state.tries = 3
        return ResponseAPDU(.ok)
    }
}

/// The last answer that went by.
final class PreviousAnswer: Sendable {
    private let content = Mutex<ResponseAPDU?>(nil)

    var value: ResponseAPDU? { content.withLock { $0 } }

    func set(_ answer: ResponseAPDU) { content.withLock { $0 = answer } }
}
