// SPDX-License-Identifier: GPL-3.0-or-later
import ChipAccess
import EID
import ISO7816
import Readers
import ReadersVirtual
import Testing
import Text
import VirtualEID

@Suite("PIN management on a virtual card", .timeLimit(.minutes(5)))
struct PINManagementTests {
    private let card: VirtualCard
    private let terminal: EIDCard

    init() async throws {
        card = try VirtualCard()
        terminal = try await card.terminal()
    }

    @Test("a changed PIN stays valid after resets and in new channels")
    func change() async throws {
        #expect(try await terminal.prove(.pin, "123456") == 0x9000)
        #expect(try await terminal.changePIN(to: Secret("654321".utf8)) == .ok)
        // The channel that was opened with the old PIN stays open.
        #expect(try await terminal.status("00B09C0000") == "9000")
        await terminal.destroyChannel()
        #expect(try await terminal.prove(.pin, "123456") == 0x63C2)
        await card.reset()
        #expect(try await terminal.prove(.pin, "654321") == 0x9000)
        #expect(await card.eidState?.retryCounter == 3)
    }

    @Test("the transport PIN permits only the PIN change, which ends the transport state")
    func transport() async throws {
        var description = VirtualEIDDescription()
        description.transportPIN = SecretBox(Secret("12345".utf8))
        let card = try VirtualCard(description)
        let terminal = try await card.terminal()
        #expect(try await terminal.prove(.pin, "123456") == 0x63C2)
        #expect(try await terminal.prove(.pin, "12345") == 0x9000)
        #expect(await card.eidState?.isTransport == true)
        #expect(try await terminal.changePIN(to: Secret("222222".utf8)) == .ok)
        #expect(await card.eidState?.isTransport == false)
        await terminal.destroyChannel()
        #expect(try await terminal.prove(.pin, "12345") == 0x63C2)
        #expect(try await terminal.prove(.pin, "222222") == 0x9000)
    }

    @Test(
        "a new PIN without exactly six digits is refused",
        arguments: [("12345", 0x6700), ("1234567", 0x6700), ("", 0x6700), ("12345a", 0x6A80), ("12345\n", 0x6A80)]
    )
    func badPIN(digits: String, status: UInt16) async throws {
        #expect(try await terminal.prove(.pin, "123456") == 0x9000)
        #expect(try await terminal.changePIN(to: Secret(digits.utf8)).value == status)
        await terminal.destroyChannel()
        #expect(try await terminal.prove(.pin, "123456") == 0x9000)
    }

    @Test(
        "PIN management without the required password or right is refused",
        arguments: [
            (PasswordID.can, "500540", "002C020306313131313131", "6982"),
            (.puk, "9876543210", "002C020306313131313131", "6982"),
            (.pin, "123456", "002C0303", "6982"),
            (.can, "500540", "002C0303", "6982"),
            (.pin, "123456", "00441003", "6982"),
            (.pin, "123456", "00041003", "6982"),
            (.puk, "9876543210", "002C030306313131313131", "6700"),
        ]
    )
    func refused(id: PasswordID, digits: String, command: String, status: String) async throws {
        #expect(try await terminal.prove(id, digits) == 0x9000)
        #expect(try await terminal.status(command) == status)
        #expect(await card.eidState?.pukCounter == 10)
        await terminal.destroyChannel()
        #expect(try await terminal.prove(.pin, "123456") == 0x9000)
    }

    @Test("a command without secure messaging ends the channel and all rights, and is executed")
    func clearCommand() async throws {
        #expect(try await terminal.prove(.pin, "123456") == 0x9000)
        #expect(try await card.status("00B09E0000") == "9000")
        #expect(try await terminal.status("002C020306313131313131") == "6882")
        #expect(try await card.status("002C020306313131313131") == "6982")
    }

    @Test("invalid secure messaging ends the channel with an unprotected answer")
    func brokenChannel() async throws {
        for (command, status) in [
            ("0CB09E000D97010 0 8E08 0000000000000000 00", "6988"), ("0CB09E0003 970100 00", "6987"),
        ] {
            let card = try VirtualCard()
            let terminal = try await card.terminal()
            #expect(try await terminal.prove(.pin, "123456") == 0x9000)
            #expect(try await card.send(command) == status)
            #expect(try await terminal.status("00B09E0000") == "6882")
        }
    }

    @Test("a reset ends the channel")
    func reset() async throws {
        #expect(try await terminal.prove(.pin, "123456") == 0x9000)
        await card.reset()
        #expect(try await terminal.status("00B09E0000") == "6882")
    }

    @Test("the machine-readable zone is accepted as password 1")
    func machineReadableZone() async throws {
        let terminal = try await VirtualCard().terminal()
        #expect(try await terminal.prove(.mrz, "LZ6311T47" + "6" + "8709239" + "3905313") == 0x6300)
        #expect(try await terminal.prove(.mrz, "LZ6311T47" + "5" + "8709239" + "3905313") == 0x9000)
    }
}
