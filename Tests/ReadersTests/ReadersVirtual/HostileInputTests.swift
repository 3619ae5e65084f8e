// SPDX-License-Identifier: GPL-3.0-or-later
import ChipAccess
import EID
import ISO7816
import Readers
import ReadersVirtual
import TestSupport
import Testing
import Text
import VirtualEID

@Suite("a virtual card under hostile input", .timeLimit(.minutes(5)))
struct HostileInputTests {
    /// The result of a sequence of commands.
    fileprivate struct Tally {
        var answers = 0
        var statuses: Set<UInt16> = []

        mutating func add(_ reply: VirtualCard.Reply) throws {
            guard case .answer(let bytes) = reply, let answer = ResponseAPDU(bytes: bytes) else {
                throw Unexpected("no answer")
            }
            answers += 1
            statuses.insert(answer.status.value)
        }
    }

    private static let instructions: [UInt8] = [
        0x04, 0x20, 0x22, 0x2A, 0x2C, 0x44, 0x82, 0x84, 0x86, 0xA4, 0xB0, 0xB1, 0xD6,
    ]

    @Test("arbitrary bytes are answered with a status word and do not change the retry counter")
    func randomBytes() async throws {
        let card = try VirtualCard()
        var generator = SplitMix64(seed: 1)
        let times = FullTables.count(100_000)
        let tally = try await card.exchange(times: times) { _ in
            let count = Int(generator.next(upperBound: UInt8(40)))
            var command = (0..<count).map { _ in UInt8(truncatingIfNeeded: generator.next()) }
            // Half of the inputs resemble supported commands.
            if count > 5, Bool.random(using: &generator) {
                command[0] = [0x00, 0x10, 0x80, 0x0C, 0x1C].randomElement(using: &generator) ?? 0
                command[1] = Self.instructions.randomElement(using: &generator) ?? 0
                if count < 40 { command[4] = UInt8(count - 5) }
            }
            return command
        }
        #expect(tally.answers == times)
        #expect(tally.statuses.count > 5)
        #expect(await card.eidState?.retryCounter == 3)
        let terminal = try await card.terminal()
        #expect(try await terminal.prove(.pin, "123456") == 0x9000)
    }

    @Test("damaged commands of a real dialogue are answered in every state")
    func damagedDialogue() async throws {
        let commands = [
            "0022C1A412800A04007F0007020204020283010384010D",
            "0022C1A427800A04007F0007020204020283010384010D7F4C12060904007F000703010202530500000000FF",
            "10860000027C0000", "00A4040C09E80704007F00070302", "00B09C0000", "00B1001E0354010000",
            "802080000B060904007F000703010401", "002C020306313233343536", "0084000008",
            "1086000045 7C438141" + "0454" + String(repeating: "A5", count: 63) + "00",
            "00860000 0C 7C0A8508 0102030405060708 00",
        ].map { hex($0) }
        let certificate = try TestPKI.file("terminal.cvcert")
        let card = try VirtualCard()
        var generator = SplitMix64(seed: 2)
        let times = FullTables.count(20_000)
        let tally = try await card.exchange(times: times) { round in
            var command = commands[round % commands.count]
            if round % 7 == 0 {
                command = [0x00, 0x2A, 0x00, 0xBE, 0, 0x01, 0x6C] + certificate.dropFirst(4)
            }
            for _ in 0..<Int.random(in: 0...2, using: &generator) where !command.isEmpty {
                let index = Int.random(in: command.indices, using: &generator)
                switch UInt8.random(in: 0...3, using: &generator) {
                case 0: command[index] = UInt8.random(in: 0...255, using: &generator)
                case 1: command.remove(at: index)
                case 2: command.insert(UInt8.random(in: 0...255, using: &generator), at: index)
                default: command[index] ^= 0x80
                }
            }
            return command
        }
        #expect(tally.answers == times)
        #expect(tally.statuses.contains(0x9000))
    }

    @Test("damaged commands inside a channel are answered, and the first one ends the channel")
    func damagedChannel() async throws {
        for round in 0..<200 {
            let card = try VirtualCard(.card { $0.random = .seeded([UInt8(round)]) })
            let terminal = try await card.terminal()
            #expect(try await terminal.prove(.can, "500540") == 0x9000)
            var command: [UInt8] = hex("0CB09C000D9701008E08000000000000000000")
            command[5 + round % 13] ^= UInt8(1 + round % 255)
            let answer = try await card.send(hex(command))
            #expect(["6987", "6988"].contains(answer))
            #expect(try await card.send("0CB09C000D9701008E08000000000000000000") == "6882")
        }
    }
}

extension VirtualCard {
    /// Runs the given number of commands in sequence without a thread switch.
    fileprivate func exchange(
        times count: Int,
        _ command: sending (Int) -> [UInt8]
    ) async throws -> HostileInputTests.Tally {
        var tally = HostileInputTests.Tally()
        for round in 0..<count { try tally.add(await exchange(command(round))) }
        return tally
    }
}
