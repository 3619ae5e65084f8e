// SPDX-License-Identifier: GPL-3.0-or-later
import ChipAccess
import EID
import ISO7816
import TestSupport
import Testing
import Text

/// A password as a secret.
func secret(_ digits: String) -> Secret { Secret(Array(digits.utf8)) }

@Suite("Dialogues with an eID card", .timeLimit(.minutes(5)))
struct EIDCardTests {
    /// The commands that AusweisApp2 sends to the same card; `?` is a digit that differs in each run.
    static let mseCAN = "0022C1A412800A04007F0007020204020283010284010D"
    static let msePIN = "0022C1A412800A04007F0007020204020283010384010D"
    static let msePUK = "0022C1A412800A04007F0007020204020283010484010D"
    static let pace = [
        "10860000027C0000", "10860000457C43814104" + wild(64) + "00", "10860000457C43834104" + wild(64) + "00",
        "008600000C7C0A8508" + wild(8) + "00",
    ]
    /// MSE:Set AT and PACE inside a channel.
    static let nestedPACE = [
        "0C22C1A42D872101" + wild(32) + "8E08" + wild(8) + "00",
        "1C86000020871101" + wild(16) + "9701008E08" + wild(8) + "00",
        "1C86000060875101" + wild(80) + "9701008E08" + wild(8) + "00",
        "1C86000060875101" + wild(80) + "9701008E08" + wild(8) + "00",
        "0C86000020871101" + wild(16) + "9701008E08" + wild(8) + "00",
    ]
    static let change = "0C2C02031D871101" + wild(16) + "8E08" + wild(8) + "00"
    static let unblock = "0C2C03030A8E08" + wild(8) + "00"
    static let destroy = "0022C1A4"

    private static func wild(_ bytes: Int) -> String { String(repeating: "??", count: bytes) }

    @Test("changing the PIN sends the same commands as AusweisApp2")
    func changePIN() async throws {
        let (card, eid) = try connect(TestCard())
        try await eid.select()
        #expect(try await eid.readPINStatus() == PINStatus(retryCounter: 3))
        let result = try established(await eid.establishPACE(.pin, password: secret("123456")))
        #expect(result.statusBefore == .ok)
        #expect(result.idPICC.count == 32)
        #expect(result.certificationAuthorities.current == nil)
        #expect(await eid.hasChannel)
        #expect(try await eid.changePIN(to: secret("654321")) == .ok)
        await eid.destroyChannel()
        #expect(await !eid.hasChannel)
        #expect(try await eid.readPINStatus() == PINStatus(retryCounter: 3))
        #expect(card.pin == "654321")
        expect(
            card.commands,
            like: ["00A4040C09E80704007F00070302", "00A4000C023F00", Self.msePIN, Self.msePIN] + Self.pace
                + [Self.change, Self.destroy, Self.msePIN]
        )
    }

    @Test("the result of a wrong PIN has the tries before and after")
    func wrongPIN() async throws {
        let (card, eid) = try connect(TestCard())
        let first = try await eid.establishPACE(.pin, password: secret("111111"))
        #expect(first == .wrongPassword(statusBefore: .ok, status: StatusWord(0x63C2)))
        let second = try await eid.establishPACE(.pin, password: secret("222222"))
        #expect(second == .wrongPassword(statusBefore: StatusWord(0x63C2), status: StatusWord(0x63C1)))
        #expect(await !eid.hasChannel)
        #expect(card.tries == 1)
        expect(card.commands, like: [Self.msePIN] + Self.pace + [Self.msePIN] + Self.pace)
    }

    @Test("the third try runs in the channel of the CAN, which the new channel replaces")
    func thirdTry() async throws {
        let (card, eid) = try connect(TestCard(tries: 1))
        _ = try established(await eid.establishPACE(.can, password: secret("500540")))
        let result = try established(await eid.establishPACE(.pin, password: secret("123456")))
        #expect(result.statusBefore == StatusWord(0x63C1))
        #expect(try await eid.changePIN(to: secret("654321")) == .ok)
        #expect(card.tries == 3)
        #expect(card.pin == "654321")
        expect(card.commands, like: [Self.mseCAN] + Self.pace + Self.nestedPACE + [Self.change])
    }

    @Test("a wrong third try keeps the channel of the CAN")
    func wrongThirdTry() async throws {
        let (card, eid) = try connect(TestCard(tries: 1))
        _ = try established(await eid.establishPACE(.can, password: secret("500540")))
        let outcome = try await eid.establishPACE(.pin, password: secret("333333"))
        #expect(outcome == .wrongPassword(statusBefore: StatusWord(0x63C1), status: StatusWord(0x63C0)))
        #expect(await eid.hasChannel)
        // The card refuses a new PIN in the channel of the CAN, with a protected answer.
        #expect(try await eid.changePIN(to: secret("654321")) == StatusWord(0x6982))
        #expect(card.pin == "123456")
        #expect(card.tries == 0)
        expect(card.commands, like: [Self.mseCAN] + Self.pace + Self.nestedPACE + [Self.change])
    }

    @Test("the PUK unblocks the PIN")
    func unblock() async throws {
        let (card, eid) = try connect(TestCard(tries: 0))
        #expect(try await eid.readPINStatus() == PINStatus(retryCounter: 0))
        let wrong = try await eid.establishPACE(.puk, password: secret("0000000000"))
        #expect(wrong == .wrongPassword(statusBefore: .ok, status: StatusWord(0x6300)))
        _ = try established(await eid.establishPACE(.puk, password: secret("9876543210")))
        #expect(try await eid.unblockPIN() == .ok)
        await eid.destroyChannel()
        #expect(card.tries == 3)
        expect(
            card.commands,
            like: [Self.msePIN, Self.msePUK] + Self.pace + [Self.msePUK] + Self.pace + [Self.unblock, Self.destroy]
        )
    }

    @Test("a PUK that is used up is a result without a try")
    func usedUp() async throws {
        let (card, eid) = try connect(
            TestCard(tries: 0, interfere: { _, _ in ResponseAPDU(StatusWord(0x63C0)) })
        )
        #expect(try await eid.establishPACE(.puk, password: secret("9876543210")) == .usedUp(StatusWord(0x63C0)))
        #expect(card.commands == [Self.msePUK])
    }

    @Test("a CHAT follows the other objects, and the result names the trust points")
    func chat() async throws {
        let (card, eid) = try connect(TestCard())
        let chat = hex("7F4C12060904007F0007030102025305000513FF87")
        let result = try established(await eid.establishPACE(.pin, password: secret("123456"), chat: chat))
        #expect(result.certificationAuthorities.current == Array("DETEST1".utf8))
        #expect(card.commands.first == "0022C1A427800A04007F0007020204020283010384010D" + hex(chat))
    }

    @Test("other commands use the channel when there is one")
    func transmit() async throws {
        let (card, eid) = try connect(TestCard())
        let command = CommandAPDU.readBinary(shortFileID: CardAccess.shortFileID)
        #expect(try await eid.transmit(command).data == exampleCardAccess)
        _ = try established(await eid.establishPACE(.can, password: secret("500540")))
        #expect(try await eid.transmit(command).data == exampleCardAccess)
        expect(
            card.commands,
            like: ["00B09C0000", Self.mseCAN] + Self.pace + ["0CB09C000D9701008E08" + Self.wild(8) + "00"]
        )
        #expect(card.log.last?.answer?.data.starts(with: [0x87]) == true)
    }

    @Test("without a channel no new PIN is sent")
    func noChannel() async throws {
        let (card, eid) = try connect(TestCard())
        await #expect(throws: ChipError.self) { try await eid.changePIN(to: secret("654321")) }
        await #expect(throws: ChipError.self) { try await eid.unblockPIN() }
        #expect(card.commands.isEmpty)
    }

    @Test("the channel is destroyed even without an answer")
    func destroyWithoutCard() async throws {
        let (card, eid) = try connect(TestCard(interfere: { _, _ throws(CardError) in throw .removed }))
        await eid.destroyChannel()
        #expect(card.commands == [Self.destroy])
    }

    /// The card and the dialogue with it.
    private func connect(_ card: TestCard) throws -> (TestCard, EIDCard) {
        (card, EIDCard(channel: card, profile: try exampleProfile()))
    }

    private func established(_ outcome: PACEOutcome) throws -> PACEResult {
        guard case .established(let result) = outcome else {
            Issue.record("\(outcome)")
            throw CardError.other("no channel")
        }
        return result
    }

    /// Compares digit by digit; `?` matches any digit.
    private func expect(
        _ commands: [String],
        like patterns: [String],
        sourceLocation: SourceLocation = #_sourceLocation
    ) {
        #expect(commands.count == patterns.count, sourceLocation: sourceLocation)
        for (command, pattern) in zip(commands, patterns) {
            let isLike =
                command.count == pattern.count && zip(command, pattern).allSatisfy { $0 == $1 || $1 == "?" }
            #expect(isLike, "\(command) is not like \(pattern)", sourceLocation: sourceLocation)
        }
    }
}

/// The profile of the test card.
func exampleProfile() throws -> EIDProfile {
    EIDProfile(
        applicationID: ApplicationID.eid,
        cardAccess: try #require(try CardAccess(exampleCardAccess)),
        status: PINStatus(retryCounter: 3)
    )
}
