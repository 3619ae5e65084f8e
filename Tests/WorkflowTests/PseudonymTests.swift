// SPDX-License-Identifier: GPL-3.0-or-later
import Cards
import ISO7816
import TestSupport
import Testing
import Text

/// What a recording has in place of numbers and keys.
@Suite("Numbers in recordings", .timeLimit(.minutes(5)))
struct PseudonymTests {
    private func replaced(_ exchanges: [(String, String)]) throws -> [String] {
        let recorded = exchanges.map { CardRecording.Exchange(hex($0.0), hex($0.1)) }
        return try Pseudonyms().replacing(in: recorded).map { Hex.encode($0.answer) }
    }

    @Test(
        "a number has another value of the same length and shape",
        arguments: [
            // The number of a contactless card: the first byte is its maker.
            ("FFCA000000", "04112233445566" + "9000", "04", "9000"),
            // EF.GDO: the number of a German health card.
            ("00B0820000", "5A0A80276001011234567890" + "9000", "5a0a8027600101", "9000"),
            // An OpenPGP card: application, version and maker stay.
            (
                "00A4040006D27600012401", "6F128410D2760001240103040006123456780000" + "9000",
                "6f128410d276000124010304" + "0006", "9000"
            ),
            // A Keycard: its identifier and its public key.
            (
                "00A4040008A000000804000101",
                "A4578F10000102030405060708090A0B0C0D0E0F8041" + "04" + String(repeating: "A7B9", count: 32)
                    + "0200" + "9000", "a4578f10", "9000"
            ),
        ]
    )
    func shape(command: String, answer: String, start: String, end: String) throws {
        let new = try replaced([(command, answer)])[0]
        #expect(new.utf8.count == answer.utf8.count)
        #expect(new.hasPrefix(start) && new.hasSuffix(end))
        #expect(new != answer.lowercased())
        let again = try replaced([(command, answer)])[0]
        #expect(again != new, "each recording has other numbers")
    }

    @Test("decimal digits stay decimal, text stays text, and the start of a point stays")
    func forms() throws {
        let digits = try replaced([("00B0820000", "5A0A80276001011234567890" + "9000")])[0]
        #expect(digits.utf8.allSatisfy { (0x30...0x39).contains($0) || $0 == 0x61 }, "\(digits)")
        let text = Hex.decode(try replaced([("00A4040001AA", "710841423132616263649000")])[0]) ?? []
        #expect(text.dropFirst(2).dropLast(2).allSatisfy { (0x20...0x7E).contains($0) })
        let point = "8041" + "04" + String(repeating: "A7B9", count: 32)
        #expect(try replaced([("00A4040001AA", point + "9000")])[0].hasPrefix("804104"))
    }

    @Test("the same value becomes the same value, wherever it stands")
    func consistency() throws {
        let answers = try replaced([
            ("00A4040001AA", "8F08A1B2C3D4E5F60718" + "9000"),
            ("00A4040001BB", "A50A" + "8008A1B2C3D4E5F60718" + "9000"),
        ])
        #expect(answers[0].dropFirst(4) == answers[1].dropFirst(8))
    }

    @Test(
        "what is the same on all cards of a kind stays",
        arguments: [
            // EF.CardAccess, EF.COM, EF.DIR, identifiers, short values, what FIDO says, the end of a file, refusals.
            ("00B09C0000", "310F300D060804007F0007020202020102" + "9000"),
            ("00B09E0000", "600B5F0104303130375C0261759000"),
            ("00B09E0000", "610B4F09E80704007F000703029000"),
            ("00A4040001AA", "6F098407A00000024710019000"), ("00A4040001AA", "80020100" + "9000"),
            ("00A4040008A0000006472F0001", "5532465F56329000"), ("00B0820000", "00000000000000009000"),
            ("00B0810004", "615B5F1F9000"), ("FFCA010000", "80310000009000"), ("00A4040001AA", "6A82"),
        ]
    )
    func kept(command: String, answer: String) throws {
        #expect(try replaced([(command, answer)])[0] == answer.lowercased())
    }

    @Test("a number that comes in two parts is replaced as a whole")
    func parts() throws {
        let whole = "5A0A80276001011234567890"
        let answers = try replaced([
            ("00B0820006", String(whole.prefix(12)) + "9000"), ("00B0000606", String(whole.dropFirst(12)) + "9000"),
            ("00A4040001AA", "6102"),
        ])
        #expect(answers[0].hasPrefix("5a0a80276001") && answers[1] != whole.dropFirst(12) + "9000")
        #expect(answers[1].dropFirst(2) != "1234567890" + "9000")
        #expect(answers[2] == "6102")
    }

    @Test("answers that lie about their lengths are replaced, and never a trap", arguments: 0..<64)
    func lies(seed: Int) throws {
        var random = SplitMix64(seed: UInt64(seed))
        let answer = (0..<Int(random.next() % 80)).map { _ in UInt8(truncatingIfNeeded: random.next()) }
        let recorded = CardRecording.Exchange(hex("00A4040001AA"), answer + [0x90, 0x00])
        let new = try Pseudonyms().replacing(in: [recorded])
        #expect(new[0].answer.count == recorded.answer.count)
        #expect(new[0].answer.suffix(2) == [0x90, 0x00])
    }

    @Test("the time grows with the answers")
    func growth() throws {
        let pseudonyms = try Pseudonyms()
        let objects: [[UInt8]] = [
            [0x30, 0x80, 0x00], [0x04, 0x04, 1, 2, 3, 4], [0x30, 0x04, 0x80, 0x02, 1, 2], [0xFF],
        ]
        for object in objects {
            let isInProportion = Growth.isInProportion(from: 20_000, limit: Growth.limit * 2) { size in
                let answer: [UInt8] = (0..<size / object.count).flatMap { _ in object }
                let recorded = CardRecording.Exchange(hex("00A4040001AA"), answer + [0x90, 0x00])
                _ = pseudonyms.replacing(in: [recorded])
            }
            #expect(isInProportion, "\(object)")
        }
    }
}
