// SPDX-License-Identifier: GPL-3.0-or-later
import ISO7816
import TestSupport
import Testing

@Suite("BER made DER")
struct DefiniteLengthsTests {
    @Test(
        "indefinite lengths and strings in parts are resolved at any depth, and the rest stays as it was found",
        arguments: [
            ("3003020105", "3003020105"), ("3080020105 0000", "3003020105"), ("30053080 0000 00", "30053080000000"),
            ("3009 3080 020105 0000 0500", "3007 3003020105 0500"), ("2480 040101 040102 0000", "04020102"),
            ("3008 2406 040101 040102", "3004 04020102"), ("2308 03020001 03020402", "0303040102"),
            ("2C06 0C0141 0C0142", "0C024142"), ("30820003 020105", "30820003020105"), ("3080", nil),
            ("3080 0201", nil), ("0480 0000", nil), ("1F8180", nil), ("", nil), ("3003020105 FF", nil),
            ("A080 3080 3080 0500 0000 0000 0000", "A006 3004 3002 0500"),
        ] as [(String, String?)]
    )
    func resolve(found: String, expected: String?) {
        let bytes = hex(found.filter { $0 != " " })
        #expect(DefiniteLengths.resolve(bytes) == expected.map { hex($0.filter { $0 != " " }) })
    }

    @Test("lengths with too many bytes become short, in every object")
    func shortest() {
        #expect(DefiniteLengths.shortest(hex("308200058182000105")) == hex("300381010 5".filter { $0 != " " }))
        #expect(DefiniteLengths.shortest(hex("30820006308200020500")) == hex("300430020500"))
        #expect(DefiniteLengths.shortest(hex("0102")) == hex("0102"))
    }

    @Test("objects in objects, 100,000 deep, take no stack and no time")
    func deep() {
        let nested = [UInt8](repeating: 0, count: 400_000).enumerated().map {
            $0.offset.isMultiple(of: 2) ? 0x30 : 0x80
        }
        #expect(DefiniteLengths.resolve(nested.map(UInt8.init)) == nil)
    }
}
