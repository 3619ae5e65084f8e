// SPDX-License-Identifier: GPL-3.0-or-later
import Document
import TestSupport
import Testing
import Text

@Suite("Machine readable zone", .timeLimit(.minutes(5)))
struct MachineReadableZoneTests {
    static let zones = NinetyThreeOhThree.examples?.zones ?? []

    @Test("the password of the examples of ICAO 9303-11 D.2 is found, also with a long number")
    func information() throws {
        #expect(Self.zones.count == 4)
        for zone in Self.zones {
            let read = try MachineReadableZone(zone.lines.joined(separator: "\n").utf8)
            #expect(read.information == Array(zone.information.utf8))
            #expect(read.wrongCheckDigits.map(\.rawValue) == zone.wrongCheckDigits)
            #expect(read.lines == zone.lines)
        }
    }

    @Test("the fields of a passport are read")
    func passport() throws {
        // ICAO 9303-4, appendix A.
        let zone = try MachineReadableZone(
            """
            P<UTOERIKSSON<<ANNA<MARIA<<<<<<<<<<<<<<<<<<<
            L898902C36UTO7408122F1204159ZE184226B<<<<<10
            """.utf8
        )
        #expect(zone.kind == .td3)
        #expect(zone.code == "P")
        #expect(zone.issuer == "UTO")
        #expect(zone.number == "L898902C3")
        #expect(zone.surname == "ERIKSSON")
        #expect(zone.given == "ANNA MARIA")
        #expect(zone.nationality == "UTO")
        #expect(zone.birth == "740812")
        #expect(zone.sex == "F")
        #expect(zone.expiry == "120415")
        #expect(zone.optional == "ZE184226B")
        #expect(zone.wrongCheckDigits == [])
    }

    @Test("the fields of a card with a long number are read")
    func card() throws {
        let zone = try MachineReadableZone(Self.zones[2].lines.joined().utf8)
        #expect(zone.kind == .td1)
        #expect(zone.number == "D23145890734")
        #expect(zone.optional == "")
        #expect(zone.surname == "STEVENSON")
        #expect(zone.given == "PETER JOHN")
        #expect(zone.nationality == "UTO")
    }

    @Test("each wrong check digit is named", arguments: MachineReadableZone.Field.allCases)
    func checkDigits(field: MachineReadableZone.Field) throws {
        var text = Array(
            "P<UTOERIKSSON<<ANNA<MARIA<<<<<<<<<<<<<<<<<<<L898902C36UTO7408122F1204159ZE184226B<<<<<10".utf8
        )
        let column: [MachineReadableZone.Field: Int] = [
            .number: 9, .birth: 19, .expiry: 27, .optional: 42, .composite: 43,
        ]
        let index = 44 + (try #require(column[field]))
        text[index] = text[index] == UInt8(ascii: "9") ? UInt8(ascii: "0") : text[index] + 1
        let wrong = try MachineReadableZone(text).wrongCheckDigits
        // The composite digit covers the other digits.
        #expect(wrong == (field == .composite ? [.composite] : [field, .composite]))
    }

    @Test("a text of another length, or with a character that no zone has, is refused with its place")
    func faults() {
        func length(_ count: Int) -> Malformed {
            Malformed("The machine readable zone has \(count) characters instead of 2 lines of 44 or 36, or 3 of 30")
        }
        func character(_ position: Int) -> Malformed {
            Malformed("Character \(position) of the machine readable zone is not A to Z, 0 to 9 or <")
        }
        #expect(throws: length(3)) { try MachineReadableZone("P<U".utf8) }
        #expect(throws: length(0)) { try MachineReadableZone("".utf8) }
        let small = [UInt8](repeating: UInt8(ascii: "a"), count: 88)
        #expect(throws: character(1)) { try MachineReadableZone(small) }
        var late = [UInt8](repeating: UInt8(ascii: "<"), count: 90)
        late[89] = 0xC3
        #expect(throws: character(90)) { try MachineReadableZone(late) }
        let empty = [UInt8](repeating: UInt8(ascii: "<"), count: 72)
        #expect(throws: Never.self) { try MachineReadableZone(empty) }
    }

    @Test(
        "a document is over after the last day that its expiry may be; a date that no calendar has is none",
        arguments: MachineReadableZone.Kind.allCases,
        [
            ("261128", "2026-11-28"), ("10<<<<", "2010-12-31"), ("2610<<", "2026-10-31"), ("2602<<", "2026-02-28"),
            ("2802<<", "2028-02-29"), ("26<<<<", "2026-12-31"), ("26<<15", "2026-12-15"), ("26<<31", "2026-12-31"),
            ("<<<<<<", "2099-12-31"), ("<<0230", nil), ("<<0229", "2096-02-29"), ("1<<<<<", "2019-12-31"),
            ("261<<<", "2026-12-31"), ("26112<", "2026-11-29"), ("261<31", "2026-12-31"), ("260000", "2026-12-31"),
            ("000000", "2000-12-31"), ("261100", "2026-11-30"), ("261131", nil), ("250229", nil), ("261301", nil),
            ("26113<", "2026-11-30"), ("264<01", nil), ("26114<", nil), ("XX0101", nil), ("26NOV1", nil),
            ("2611<A", nil),
        ] as [(String, String?)]
    )
    func expiry(kind: MachineReadableZone.Kind, expected: (expiry: String, day: String?)) throws {
        let zone = try MachineReadableZone(Self.zone(kind, birth: "740812", expiry: expected.expiry))
        #expect(zone.kind == kind && zone.wrongCheckDigits == [] && zone.expiry == expected.expiry)
        #expect(zone.lastSecond.map { CalendarDay(of: $0).text } == expected.day)
        if let end = zone.lastSecond { #expect((end + 1) % 86_400 == 0) }
    }

    @Test(
        "a birth that no calendar has is told, in every size",
        arguments: MachineReadableZone.Kind.allCases,
        [
            ("740812", true), ("74<<<<", true), ("<<<<<<", true), ("740000", true), ("000229", true), ("741301", false),
            ("740230", false), ("250229", false), ("7408AA", false),
        ]
    )
    func birth(kind: MachineReadableZone.Kind, expected: (birth: String, isPossible: Bool)) throws {
        let zone = try MachineReadableZone(Self.zone(kind, birth: expected.birth, expiry: "350415"))
        #expect(zone.wrongCheckDigits == [])
        #expect(zone.impossibleDates == (expected.isPossible ? [] : [.birth]))
    }

    /// A zone with right check digits.
    static func zone(_ kind: MachineReadableZone.Kind, birth: String, expiry: String) -> [UInt8] {
        func digit(_ text: String) -> String {
            String(decoding: [MachineReadableZone.checkDigit(Array(text.utf8))], as: UTF8.self)
        }
        func filled(_ text: String, _ count: Int) -> String { text + String(repeating: "<", count: count - text.count) }
        let dates = (birth + digit(birth), expiry + digit(expiry))
        let number = "L898902C3" + digit("L898902C3")
        let names = "ERIKSSON<<ANNA<MARIA"
        if kind == .td1 {
            let first = filled("I<UTO" + number, 30)
            let optional = filled("", 11)
            let composite = digit(first.dropFirst(5) + dates.0 + dates.1 + optional)
            return Array((first + dates.0 + "F" + dates.1 + "UTO" + optional + composite + filled(names, 30)).utf8)
        }
        let length = kind == .td2 ? 36 : 44
        let optional = filled("", length - 29)
        let composite = digit(number + dates.0 + dates.1 + optional)
        let first = filled((kind == .td2 ? "I<UTO" : "P<UTO") + names, length)
        return Array((first + number + "UTO" + dates.0 + "F" + dates.1 + optional + composite).utf8)
    }

    @Test("a short number is filled, and an unknown date keeps its fillers")
    func shortNumber() {
        let information = MachineReadableZone.information(
            number: Array("AB1234".utf8),
            birth: Array("74<<<<".utf8),
            expiry: Array("350415".utf8)
        )
        #expect(String(decoding: information, as: UTF8.self).hasPrefix("AB1234<<<"))
        #expect(String(decoding: information.dropFirst(10).prefix(6), as: UTF8.self) == "74<<<<")
        #expect(information.count == 24)
    }
}
