// SPDX-License-Identifier: GPL-3.0-or-later
import ChipAccess
import Crypto
import EID
import ISO7816
import Readers
import ReadersVirtual
import TestSupport
import Testing
import Text
import VirtualEID

@Suite("the retry counter of a virtual card", .timeLimit(.minutes(5)))
struct RetryCounterTests {
    @Test("wrong PINs decrement the counter; the last try requires the CAN, and then the PUK is required")
    func ladder() async throws {
        let card = try VirtualCard()
        let terminal = try await card.terminal()
        #expect(try await terminal.prove(.pin, "111111") == 0x63C2)
        #expect(try await terminal.prove(.pin, "111111") == 0x63C1)
        // While suspended, the card does not check the correct PIN without the CAN.
        #expect(try await terminal.prove(.pin, "123456") == 0x6985)
        #expect(await card.eidState?.retryCounter == 1)
        #expect(try await terminal.prove(.can, "500541") == 0x6300)
        #expect(try await terminal.prove(.can, "500540") == 0x9000)
        #expect(try await terminal.prove(.pin, "111111") == 0x63C0)
        await terminal.destroyChannel()
        #expect(try await terminal.readPINStatus() == PINStatus(retryCounter: 0))
        #expect(try await terminal.prove(.pin, "123456") == 0x63C0)
        #expect(try await card.status("10860000027C0000") == "6983")
        #expect(try await terminal.prove(.puk, "0000000000") == 0x6300)
        #expect(try await terminal.prove(.puk, "9876543210") == 0x9000)
        #expect(try await terminal.unblockPIN() == .ok)
        await terminal.destroyChannel()
        #expect(await card.eidState?.retryCounter == 3)
        #expect(await card.eidState?.pukCounter == 9)
        #expect(try await terminal.prove(.pin, "123456") == 0x9000)
    }

    @Test("the correct PIN resets the counter from every value", arguments: [3, 2, 1])
    func restored(from tries: Int) async throws {
        var description = VirtualEIDDescription()
        description.retryCounter = tries
        let card = try VirtualCard(description)
        let terminal = try await card.terminal()
        if tries == 1 { #expect(try await terminal.prove(.can, "500540") == 0x9000) }
        #expect(try await terminal.prove(.pin, "123456") == 0x9000)
        #expect(await card.eidState?.retryCounter == 3)
    }

    @Test("the counter is decremented before the answer to the last PACE step")
    func spentBeforeTheAnswer() async throws {
        var description = VirtualEIDDescription()
        // The identification takes five commands. MSE:Set AT and three steps follow.
        let card = try VirtualCard(description)
        let terminal = try await card.terminal()
        let before = await card.apdus
        #expect(try await terminal.prove(.pin, "123456") == 0x9000)
        let last = await card.apdus - 1
        #expect(last - before == 4)
        description.options.faults = [.init(afterAPDU: last, action: .removeAfter)]
        for (digits, left) in [("123456", 3), ("111111", 2)] {
            let torn = try VirtualCard(description)
            let terminal = try await torn.terminal()
            await #expect(throws: ChipError.card(.removed)) { try await terminal.prove(.pin, digits) }
            #expect(await torn.eidState?.retryCounter == left)
        }
    }

    @Test("a last PACE step without a token does not change the counter")
    func malformedToken() async throws {
        let card = try VirtualCard()
        let direct = VirtualCardChannel(card)
        let terminal = try await card.terminal()
        var run = PACE.Terminal(
            terminal.profile.cardAccess.pace,
            passwordKey: try PACE.passwordKey(Secret("123456".utf8), id: .pin, cipher: .aes128)
        )
        _ = try await direct.transmit(.setPACE(terminal.profile.cardAccess.pace, .pin))
        func step(_ data: [UInt8]) async throws -> [UInt8] {
            try await direct.transmit(CommandAPDU(0x10, 0x86, 0, 0, data: data, le: 256)).data
        }
        let mapping = try run.receiveNonce(try await step(PACE.Terminal.request))
        let ephemeral = try run.receiveMapping(try await step(mapping))
        _ = try run.receiveEphemeral(try await step(ephemeral))
        #expect(try await card.status("00860000047C02850000") == "6A80")
        #expect(await card.eidState?.retryCounter == 3)
    }

    @Test("the number of CAN and PUK tries is unlimited")
    func unlimited() async throws {
        let card = try VirtualCard()
        let terminal = try await card.terminal()
        for _ in 0..<12 {
            #expect(try await terminal.prove(.can, "000000") == 0x6300)
            #expect(try await terminal.prove(.puk, "0000000000") == 0x6300)
        }
        #expect(await card.eidState?.retryCounter == 3)
        #expect(await card.eidState?.pukCounter == 10)
        #expect(try await terminal.prove(.can, "500540") == 0x9000)
    }

    @Test("an exhausted PUK opens a channel but does not unblock the PIN")
    func usedUpPUK() async throws {
        var description = VirtualEIDDescription()
        (description.retryCounter, description.pukCounter) = (0, 1)
        let card = try VirtualCard(description)
        let terminal = try await card.terminal()
        #expect(try await terminal.prove(.puk, "9876543210") == 0x9000)
        #expect(try await terminal.unblockPIN() == .ok)
        #expect(try await terminal.prove(.puk, "9876543210") == 0x9000)
        #expect(try await terminal.unblockPIN() == StatusWord(0x6982))
        #expect(await card.eidState?.pukCounter == 0)
    }

    @Test("a deactivated PIN is refused in the first step and keeps its tries")
    func deactivated() async throws {
        var description = VirtualEIDDescription()
        description.deactivated = true
        let card = try VirtualCard(description)
        let terminal = try await card.terminal()
        #expect(terminal.profile.status == PINStatus(retryCounter: 0, deactivated: true))
        #expect(try await terminal.prove(.pin, "123456") == 0x6283)
        #expect(try await card.status("0022C1A412800A04007F0007020204020283010384010D") == "6283")
        #expect(try await card.status("10860000027C0000") == "6984")
        #expect(await card.eidState?.retryCounter == 3)
        #expect(try await terminal.prove(.can, "500540") == 0x9000)
    }

    @Test("a suspended PIN can be used only while the CAN channel is open")
    func channelOfTheCAN() async throws {
        var description = VirtualEIDDescription()
        description.retryCounter = 1
        let card = try VirtualCard(description)
        let terminal = try await card.terminal()
        #expect(try await terminal.prove(.can, "500540") == 0x9000)
        await terminal.destroyChannel()
        #expect(try await terminal.prove(.pin, "123456") == 0x6985)
        #expect(try await terminal.prove(.puk, "9876543210") == 0x9000)
        #expect(try await terminal.prove(.pin, "123456") == 0x6985)
        #expect(await card.eidState?.retryCounter == 1)
    }
}
