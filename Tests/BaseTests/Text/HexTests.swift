// SPDX-License-Identifier: GPL-3.0-or-later
import Testing
import Text

@Suite("Hexadecimal digits", .timeLimit(.minutes(5)))
struct HexTests {
    @Test(
        "only pairs of hexadecimal digits are decoded",
        arguments: [
            ("", []), ("00fF", [0x00, 0xFF]), ("0", nil), ("0g", nil), ("0x00", nil), ("00 11", nil), ("+1", nil),
            ("é0", nil), ("０0", nil), ("@A", nil), ("`a", nil), ("/0", nil), (":0", nil),
        ] as [(String, [UInt8]?)]
    )
    func decode(text: String, bytes: [UInt8]?) {
        #expect(Hex.decode(text) == bytes)
        if let bytes { #expect(Hex.encode(bytes) == text.lowercased()) }
    }

    @Test("every byte value survives encoding and decoding, in upper and lower case")
    func roundTrip() {
        let all = Array(UInt8.min...UInt8.max)
        #expect(Hex.decode(Hex.encode(all)) == all)
        #expect(Hex.decode(Hex.encode(all).uppercased()) == all)
    }

    @Test("more bytes than the limit are refused")
    func limit() {
        #expect(Hex.decode("0102", limit: 2) == [1, 2])
        #expect(Hex.decode("010203", limit: 2) == nil)
    }

    @Test("numbers are formatted with leading zeros")
    func numbers() {
        #expect(Hex.encode(UInt8(1)) == "01")
        #expect(Hex.encode(UInt16(0xABC)) == "0abc")
        #expect(Hex.encode(UInt32(0x8010_0002)) == "80100002")
    }
}
