// SPDX-License-Identifier: GPL-3.0-or-later
import ChipAccess
import EID
import ISO7816
import TestSupport
import Testing
import Text

/// A card, a reader or an attacker disturbs each command of each dialogue.
@Suite("Faults in dialogues with an eID card", .timeLimit(.minutes(15)))
struct EIDCardFaultTests {
    @Test(
        "only a class with secure messaging of the basic channel is passed to the card",
        arguments: UInt8.min...UInt8.max
    )
    func classes(cla: UInt8) async throws {
        let card = TestCard()
        let eid = EIDCard(channel: card, profile: try exampleProfile())
        let command = CommandAPDU(cla, 0xB0, 0x9D, 0x00, data: [0x8E, 8, 1, 2, 3, 4, 5, 6, 7, 8], le: 256)
        if [0x0C, 0x1C, 0x8C, 0x9C].contains(cla) {
            _ = try await eid.passThrough(command)
            #expect(card.commands.count == 1)
        } else {
            await #expect(throws: ChipError.unsupported("command without secure messaging")) {
                try await eid.passThrough(command)
            }
            #expect(card.commands.isEmpty)
        }
    }

    /// A fault replaces or changes the card's answer.
    enum Fault: CaseIterable {
        case removed, mute, removedAfter
        case generalError, securityNotSatisfied, smObjectsIncorrect
        case truncated, garbage, empty, unprotectedSuccess, replayed

        /// The error or answer instead of the card's; nil when the card answers.
        func before() throws(CardError) -> ResponseAPDU? {
            switch self {
            case .removed: throw .removed
            case .mute: throw .mute
            case .generalError: ResponseAPDU(StatusWord(0x6F00))
            case .securityNotSatisfied: ResponseAPDU(StatusWord(0x6982))
            case .smObjectsIncorrect: ResponseAPDU(StatusWord(0x6988))
            case .removedAfter, .truncated, .garbage, .empty, .unprotectedSuccess, .replayed: nil
            }
        }

        /// Changes the card's answer.
        func after(_ answer: ResponseAPDU, previous: ResponseAPDU?) throws(CardError) -> ResponseAPDU {
            switch self {
            case .removed, .mute, .generalError, .securityNotSatisfied, .smObjectsIncorrect: answer
            case .removedAfter: throw .removed
            case .truncated: ResponseAPDU(data: answer.data.dropLast((answer.data.count + 1) / 2), answer.status)
            case .garbage: ResponseAPDU(data: answer.data.map { $0 ^ 0xA5 }, StatusWord(answer.status.value ^ 0xA5A5))
            case .empty, .unprotectedSuccess: ResponseAPDU(.ok)
            case .replayed: previous ?? ResponseAPDU(.ok)
            }
        }
    }

    /// A dialogue that succeeds without faults.
    enum Dialogue: CaseIterable {
        case change, changeAfterCAN, unblock

        var tries: Int {
            switch self {
            case .change: 3
            case .changeAfterCAN: 1
            case .unblock: 0
            }
        }

        /// The number of commands.
        var length: Int {
            switch self {
            case .change, .unblock: 6
            case .changeAfterCAN: 11
            }
        }

        /// Runs the dialogue; true when every step succeeds.
        func run(_ eid: EIDCard) async throws(ChipError) -> Bool {
            switch self {
            case .change:
                guard case .established = try await eid.establishPACE(.pin, password: secret("123456")) else {
                    return false
                }
                return try await eid.changePIN(to: secret("654321")) == .ok
            case .changeAfterCAN:
                guard case .established = try await eid.establishPACE(.can, password: secret("500540")) else {
                    return false
                }
                return try await Self.change.run(eid)
            case .unblock:
                guard case .established = try await eid.establishPACE(.puk, password: secret("9876543210")) else {
                    return false
                }
                return try await eid.unblockPIN() == .ok
            }
        }
    }

    @Test("the dialogues succeed without faults", arguments: Dialogue.allCases)
    func undisturbed(dialogue: Dialogue) async throws {
        let card = TestCard(tries: dialogue.tries)
        let eid = EIDCard(channel: card, profile: try exampleProfile())
        #expect(try await dialogue.run(eid))
        #expect(card.commands.count == dialogue.length)
    }

    @Test(
        "a disturbed dialogue ends at once with an error, and no command is sent twice",
        arguments: Dialogue.allCases,
        Fault.allCases
    )
    func disturbed(dialogue: Dialogue, fault: Fault) async throws {
        for index in 0..<dialogue.length {
            let previous = PreviousAnswer()
            let card = TestCard(
                tries: dialogue.tries,
                interfere: { at, _ throws(CardError) in at == index ? try fault.before() : nil },
                forge: { at, answer throws(CardError) in
                    defer { previous.set(answer) }
                    return at == index ? try fault.after(answer, previous: previous.value) : answer
                }
            )
            let eid = EIDCard(channel: card, profile: try exampleProfile())
            // The answer to the first MSE:Set AT has no data that these faults could change.
            let isUnchanged = index == 0 && [.truncated, .empty, .unprotectedSuccess, .replayed].contains(fault)
            do throws(ChipError) {
                let isDone = try await dialogue.run(eid)
                #expect(isDone == isUnchanged, "command \(index)")
            } catch {
                #expect(!isUnchanged, "command \(index): \(error)")
                switch fault {
                case .removed, .removedAfter: #expect(error == .card(.removed))
                case .mute: #expect(error == .card(.mute))
                case .generalError: #expect(error == .status(StatusWord(0x6F00)))
                case .securityNotSatisfied: #expect(error == .status(StatusWord(0x6982)))
                case .smObjectsIncorrect: #expect(error == .status(StatusWord(0x6988)))
                case .truncated, .garbage, .empty, .unprotectedSuccess, .replayed: break
                }
                #expect(card.commands.count == index + 1, "command \(index)")
            }
            #expect(Set(card.commands).count == card.commands.count, "a command was sent twice")
            if index < dialogue.length - 1, !isUnchanged { #expect(card.pin == "123456") }
            if index == dialogue.length - 1 { #expect(await !eid.hasChannel) }

            // Afterwards the card can be used again.
            let before = card.commands.count
            await eid.destroyChannel()
            #expect(try await eid.readPINStatus().retryCounter == card.tries)
            #expect(card.commands.count == before + 2)
        }
    }

    @Test("a closed channel sends no command until it is destroyed")
    func closedChannel() async throws {
        let card = TestCard(forge: { at, answer in at == 5 ? ResponseAPDU(.ok) : answer })
        let eid = EIDCard(channel: card, profile: try exampleProfile())
        _ = try await eid.establishPACE(.pin, password: secret("123456"))
        await #expect(throws: ChipError.protocolViolation("secure messaging: an object is missing")) {
            try await eid.transmit(.readBinary(offset: 0))
        }
        #expect(await !eid.hasChannel)
        let count = card.commands.count
        let closed = ChipError.protocolViolation("secure messaging: the channel is closed")
        await #expect(throws: closed) { try await eid.changePIN(to: secret("654321")) }
        await #expect(throws: closed) { try await eid.readPINStatus() }
        await #expect(throws: closed) { try await eid.establishPACE(.pin, password: secret("123456")) }
        #expect(card.commands.count == count)
        await eid.destroyChannel()
        #expect(try await eid.readPINStatus() == PINStatus(retryCounter: 3))
    }

    @Test("an unprotected refusal of the token in a channel is a wrong password")
    func unprotectedRefusal() async throws {
        let card = TestCard(
            tries: 1,
            interfere: { index, _ in index == 9 ? ResponseAPDU(StatusWord(0x63C0)) : nil }
        )
        let eid = EIDCard(channel: card, profile: try exampleProfile())
        _ = try await eid.establishPACE(.can, password: secret("500540"))
        let outcome = try await eid.establishPACE(.pin, password: secret("123456"))
        #expect(outcome == .wrongPassword(statusBefore: StatusWord(0x63C1), status: StatusWord(0x63C0)))
        #expect(await !eid.hasChannel)
    }

    @Test(
        "the answer to MSE:Set AT decides whether the run continues",
        arguments: [
            (.pin, 0x9000, 5), (.pin, 0x63C2, 5), (.pin, 0x63C1, 5), (.pin, 0x63C0, 1), (.pin, 0x6283, 1),
            (.pin, 0x6A80, 1),
            (.can, 0x63C0, 1), (.puk, 0x63C9, 5), (.puk, 0x6300, 1), (.puk, 0x6983, 1),
        ] as [(PasswordID, UInt16, Int)]
    )
    func beginning(id: PasswordID, word: UInt16, commands: Int) async throws {
        let card = TestCard(forge: { at, answer in at == 0 ? ResponseAPDU(StatusWord(word)) : answer })
        let eid = EIDCard(channel: card, profile: try exampleProfile())
        let password =
            switch id {
            case .mrz, .pin: "123456"
            case .can: "500540"
            case .puk: "9876543210"
            }
        do throws(ChipError) {
            let outcome = try await eid.establishPACE(id, password: secret(password))
            guard case .established(let result) = outcome else {
                Issue.record("\(outcome)")
                return
            }
            #expect(result.statusBefore == StatusWord(word))
        } catch {
            #expect(error == .status(StatusWord(word)))
        }
        #expect(card.commands.count == commands)
    }

    @Test("an error never contains a PIN")
    func silentErrors() async throws {
        for index in 0..<6 {
            let card = TestCard(forge: { at, answer in at == index ? ResponseAPDU(data: [1, 2, 3], .ok) : answer })
            let eid = EIDCard(channel: card, profile: try exampleProfile())
            do throws(ChipError) {
                _ = try await Dialogue.change.run(eid)
            } catch {
                #expect(!"\(error)".contains("123456"))
                #expect(!"\(error)".contains("654321"))
            }
        }
    }
}
