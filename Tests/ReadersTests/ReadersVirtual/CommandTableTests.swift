// SPDX-License-Identifier: GPL-3.0-or-later
import ChipAccess
import EID
import Readers
import ReadersVirtual
import Testing
import VirtualEID

/// Commands to a fresh card in sequence, and the status word of the last command.
struct Row: Sendable, CustomTestStringConvertible {
    let what: String
    let commands: [String]
    let status: String

    init(_ what: String, _ commands: String..., answers status: String) {
        (self.what, self.commands, self.status) = (what, commands, status)
    }

    var testDescription: String { what }
}

private let pace = "0022C1A412800A04007F0007020204020283010384010D"

@Suite("a fresh virtual card without secure messaging", .timeLimit(.minutes(5)))
struct CommandTableTests {
    static let rows = [
        Row("SELECT master file", "00A4000C023F00", answers: "9000"),
        Row("SELECT master file without an identifier", "00A4000C", answers: "9000"),
        Row("SELECT another dedicated file", "00A4000C023F01", answers: "6A82"),
        Row("SELECT the eID application", "00A4040C09E80704007F00070302", answers: "9000"),
        Row("SELECT the passport application", "00A4040C07A0000002471001", answers: "6A82"),
        Row("SELECT without answer data but with Le", "00A4040C09E80704007F0007030200", answers: "6700"),
        Row("SELECT EF.CardAccess", "00A4020C02011C", answers: "9000"),
        Row("SELECT a data group", "00A4020C020101", answers: "9000"),
        // AusweisApp's simulator returns 6A80. ISO/IEC 7816-4 specifies 6A82, file not found.
        Row("SELECT of a missing file", "00A4020C020110", answers: "6A82"),
        Row("SELECT with an unsupported mode", "00A4080C023F00", answers: "6A86"),
        Row("SELECT with a truncated identifier", "00A4020C0101", answers: "6700"),
        Row("READ BINARY EF.DIR by short identifier", "00B09E0000", answers: "9000"),
        Row("READ BINARY of the current file", "00B09E0000", "00B0000104", answers: "9000"),
        Row("READ BINARY at the end", "00B09E0000", "00B0005A00", answers: "6B00"),
        Row("READ BINARY with fewer bytes left than Le", "00B09E0000", "00B0005000", answers: "6282"),
        Row("READ BINARY with an Le beyond the end", "00B09E00FF", answers: "6282"),
        Row("READ BINARY with an extended Le", "00B09C00000000", answers: "9000"),
        Row("READ BINARY without Le", "00B09E00", answers: "6700"),
        Row("READ BINARY without a current file", "00B0000000", answers: "6A82"),
        // AusweisApp's simulator returns 6A80.
        Row("READ BINARY of a missing file", "00B0990000", answers: "6A82"),
        Row("READ BINARY with reserved bits", "00B0FE0000", answers: "6A86"),
        // AusweisApp's simulator has no read protection.
        Row("READ BINARY of a data group", "00B0840000", answers: "6982"),
        Row("READ BINARY of EF.CardSecurity", "00B09D0000", answers: "6982"),
        Row("READ BINARY with an odd code", "00B1001E0354010000", answers: "9000"),
        Row("READ BINARY with an odd code, by identifier", "00B12F000354015000", answers: "6282"),
        Row("READ BINARY with an odd code beyond the end", "00B1001E0354015A00", answers: "6B00"),
        Row("READ BINARY with an odd code without offset", "00B1001E02530000", answers: "6A80"),
        Row("UPDATE BINARY of the address", "00D69100020400", answers: "6982"),
        Row("UPDATE BINARY of EF.DIR", "00D69E00020400", answers: "6982"),
        Row("UPDATE BINARY without data", "00D69100", answers: "6700"),
        Row("GET CHALLENGE", "0084000008", answers: "9000"),
        Row("GET CHALLENGE with any Le", "0084000000", answers: "9000"),
        Row("GET CHALLENGE without Le", "00840000", answers: "6700"),
        Row("MSE:Set AT for the PIN", pace, answers: "9000"),
        Row("MSE:Set AT without a parameter id", "0022C1A40F800A04007F00070202040202830103", answers: "9000"),
        Row("MSE:Set AT with unsupported parameters", pace.dropLast(2) + "0C", answers: "6A88"),
        Row("MSE:Set AT without a password", "0022C1A40F800A04007F0007020204020284010D", answers: "6A80"),
        Row("MSE:Set AT with an unknown password", "0022C1A40F800A04007F00070202040202830105", answers: "6A88"),
        // AusweisApp's simulator returns 6A88.
        Row("MSE:Set AT for another protocol", "0022C1A40F800A04007F00070202030202830103", answers: "6A80"),
        Row("MSE:Set AT without data", "0022C1A4", answers: "6700"),
        Row("MSE:Set AT with a truncated object", "0022C1A402800A", answers: "6A80"),
        Row("MSE:Set AT for chip authentication", "0022 41A4 0C 800A04007F00070202030202", answers: "6982"),
        Row("MSE:Set AT for terminal authentication", "002281A4038001AA", answers: "6982"),
        Row("MSE:Set DST", "002281B60383014B", answers: "6982"),
        Row("MSE with other parameters", "0022F1A40383014B", answers: "6A86"),
        Row("PSO:VERIFY CERTIFICATE", "002A00BE027F4E", answers: "6982"),
        Row("PSO with other parameters", "002A9E9A027F4E", answers: "6A86"),
        Row("EXTERNAL AUTHENTICATE", "008200000102", answers: "6982"),
        Row("GENERAL AUTHENTICATE without data", "10860000", answers: "6700"),
        // AusweisApp's simulator returns 6300.
        Row("GENERAL AUTHENTICATE without a protocol", "10860000027C0000", answers: "6884"),
        Row("GENERAL AUTHENTICATE, not chained, without a protocol", "00860000027C0000", answers: "6985"),
        Row("GENERAL AUTHENTICATE requests the nonce", pace, "10860000027C0000", answers: "9000"),
        Row("GENERAL AUTHENTICATE requests the nonce outside a chain", pace, "00860000027C0000", answers: "6E00"),
        Row("GENERAL AUTHENTICATE with a mapping key first", pace, "1086000003 7C0181 00", answers: "6A80"),
        Row(
            "GENERAL AUTHENTICATE with an invalid point",
            pace,
            "10860000027C0000",
            "10860000057C0381010400",
            answers: "6A80"
        ),
        Row("GENERAL AUTHENTICATE with other parameters", pace, "10860001027C0000", answers: "6A86"),
        Row(
            "PACE interrupted by another command",
            pace,
            "10860000027C0000",
            "00B09E0000",
            "10860000057C0381010400",
            answers: "6884"
        ),
        Row("VERIFY of auxiliary data", "802080000B060904007F000703010401", answers: "6982"),
        Row("VERIFY in the wrong class", "002080000B060904007F000703010401", answers: "6E00"),
        // AusweisApp's simulator returns 9000 to all four commands and changes nothing.
        Row("ACTIVATE", "00441003", answers: "6982"),
        Row("DEACTIVATE", "00041003", answers: "6982"),
        Row("change of the PIN", "002C020306313233343536", answers: "6982"),
        Row("unblocking", "002C0303", answers: "6982"),
        Row("ACTIVATE with another reference", "00441002", answers: "6A86"),
        Row("RESET RETRY COUNTER with another reference", "002C020406313233343536", answers: "6A86"),
        Row("RESET RETRY COUNTER of the CAN", "002C020206313233343536", answers: "6982"),
        Row("an unknown instruction", "00C00000", answers: "6D00"),
        Row("an unknown class", "A0A40000", answers: "6E00"),
        Row("a command to the reader", "FF9A010100", answers: "6E00"),
        Row("secure messaging without a channel", "0CB09E000D9701008E08000000000000000000", answers: "6882"),
        Row("inconsistent lengths", "00A4040C09E807", answers: "6700"),
        Row("less than a header", "00A4", answers: "6700"),
    ]

    @Test("each command has the status word that its standard specifies", arguments: rows)
    func answers(row: Row) async throws {
        let card = try VirtualCard()
        var last = ""
        for command in row.commands { last = try await card.status(command) }
        #expect(last == row.status)
    }

    @Test("the card is identified as an eID card with three tries")
    func identity() async throws {
        let terminal = try await VirtualCard().terminal()
        #expect(terminal.profile.status == PINStatus(retryCounter: 3))
        #expect(terminal.profile.cardAccess.securityInfos.chipAuthentication.first?.keyID == 41)
    }

    @Test(
        "MSE:Set AT returns the PIN state",
        arguments: [(3, false, "9000"), (2, false, "63C2"), (1, false, "63C1"), (0, false, "63C0"), (3, true, "6283")]
    )
    func pinStatus(retryCounter: Int, deactivated: Bool, expected: String) async throws {
        var description = VirtualEIDDescription()
        (description.retryCounter, description.deactivated) = (retryCounter, deactivated)
        let card = try VirtualCard(description)
        #expect(try await card.status(pace) == expected)
        #expect(try await card.status(pace.replacing("830103", with: "830102")) == "9000")
        #expect(try await card.status(pace.replacing("830103", with: "830104")) == "9000")
    }
}
