// SPDX-License-Identifier: GPL-3.0-or-later
import Document
import ISO7816
import TestSupport
import Testing
import Text

@Suite("Data groups", .timeLimit(.minutes(5)))
struct DataGroupTests {
    private func file(_ group: Int) throws -> [UInt8] {
        try #require(try DocumentCatalogue.shared.document("pace-gm-bac").files["DG\(group)"])
    }

    @Test("the details of the holder are read")
    func person() throws {
        let person = try PersonalDetails(file(11))
        #expect(person.fullName == "ERIKSSON, ANNA MARIA")
        #expect(person.otherNames == ["ANNA MARIA SMITH"])
        #expect(person.personalNumber == "5121013-1234")
        #expect(person.birthDate == "1974-08-12")
        #expect(person.birthPlace == ["ZENITH", "UTOPIA"])
        #expect(person.address == ["ÅSGATAN 1", "ZENITH", "UTOPIA"])
        #expect(person.telephone == "+000-555-0100")
        #expect(person.profession == "ENGINEER")
    }

    @Test("the details of the document are read")
    func issuance() throws {
        let issuance = try IssuanceDetails(file(12))
        #expect(issuance.authority == "PASSPORT OFFICE ZENITH")
        #expect(issuance.date == "2026-01-15")
        #expect(issuance.endorsements == "NONE")
    }

    @Test("the persons to notify are read")
    func persons() throws {
        let persons = try PersonsToNotify(file(16)).persons
        #expect(persons.count == 1)
        #expect(persons.first?.name == "ERIKSSON, PETER")
        #expect(persons.first?.address == ["STREET 2", "ZENITH"])
        #expect(persons.first?.date == "2026-01-15")
    }

    @Test("the signature is a picture as it is")
    func signature() throws {
        let images = try SignatureImages(file(7)).images
        #expect(images.map(\.format) == [.jpeg])
        #expect(images[0].data.count == 2455)
    }

    @Test("EF.COM and EF.SOD name the groups")
    func lists() throws {
        let entry = try DocumentCatalogue.shared.document("pace-gm-bac")
        #expect(
            try CommonData(try #require(entry.files["COM"])).groups.sorted() == [1, 2, 3, 7, 11, 12, 13, 14, 15, 16]
        )
        let signed = try SecurityObject.signedData(try #require(entry.files["SOD"]))
        #expect(try SecurityObject(signed.content).hashes.keys.sorted() == [1, 2, 3, 7, 11, 12, 13, 14, 15, 16])
    }

    @Test("Latin-1 is read where a text is not UTF-8")
    func latin() {
        #expect(DocumentField.decode([0x4D, 0xFC, 0x6C, 0x6C, 0x65, 0x72]) == "Müller")
        #expect(DocumentField.decode(Array("Müller".utf8)) == "Müller")
        #expect(DocumentField.decode([0x41, 0x00, 0x0A, 0x42]) == "A  B")
        let marks = DocumentField.decode(String(repeating: "\u{323}\u{301}", count: 1000).utf8)
        #expect(marks.unicodeScalars.count == 4000 && marks.isComparable)
    }

    @Test(
        "a name is divided at its fillers",
        arguments: [
            ("ERIKSSON<<ANNA<MARIA", "ERIKSSON, ANNA MARIA"), ("ERIKSSON", "ERIKSSON"), ("<<ANNA<<", "ANNA"),
            ("VAN<DER<MÜLLER<<A<<B", "VAN DER MÜLLER, A, B"), ("A<<<B", "A, B"), ("<", ""), ("", ""),
        ]
    )
    func names(field: String, name: String) { #expect(DocumentField.name(Array(field.utf8)) == name) }

    @Test("dates are read in both forms, and nothing else is a date")
    func dates() {
        #expect(DocumentField.date([0x19, 0x74, 0x08, 0x12]) == "1974-08-12")
        #expect(DocumentField.date(Array("20260115".utf8)) == "2026-01-15")
        #expect(DocumentField.date(Array("2026011X".utf8)) == nil)
        #expect(DocumentField.date([0x1F, 0x74, 0x08, 0x12]) == nil)
        #expect(DocumentField.date([]) == nil)
        for date in ["20260229", "20261301", "20260132", "20261131", "00000230", "20260032"] {
            #expect(DocumentField.date(Array(date.utf8)) == nil, "\(date)")
        }
        for date in ["2024-02-29", "1974-00-00", "1974-08-00", "0000-00-00", "0000-02-29", "1974-00-31"] {
            #expect(DocumentField.date(Array(date.utf8.filter { $0 != UInt8(ascii: "-") })) == date)
        }
    }

    /// A facial record with one face; the lengths may lie.
    private func faces(length: UInt32, block: UInt32, count: UInt16, points: UInt16 = 0, image: [UInt8]) -> [UInt8] {
        func bytes(_ value: some FixedWidthInteger) -> [UInt8] { withUnsafeBytes(of: value.bigEndian) { Array($0) } }
        let record =
            Array("FAC\0010\0".utf8) + bytes(length) + bytes(count) + bytes(block) + bytes(points)
            + [UInt8](repeating: 0, count: 14 + 8 * min(Int(points), 4)) + [1, 0] + bytes(UInt16(360))
            + bytes(UInt16(480)) + [UInt8](repeating: 0, count: 6) + image
        let group = BERTLV(0x7F60, [BERTLV(0xA1, [UInt8]()), BERTLV(0x5F2E, record)])
        return BERTLV(0x75, [BERTLV(0x7F61, [BERTLV(0x02, [1]), group])]).encoded
    }

    @Test("wrong lengths of a facial record are bounded by its object")
    func lengths() throws {
        let image: [UInt8] = [0xFF, 0xD8, 0xFF, 0xE0] + [UInt8](repeating: 7, count: 100)
        for (length, block) in [(0, 0), (1, 1), (UInt32.max, UInt32.max), (46 + 104, 32 + 104), (0, 40)] {
            let images = try FaceImages(faces(length: UInt32(length), block: UInt32(block), count: 1, image: image))
                .images
            #expect(images.map(\.data) == [image])
            #expect(images.first?.width == 360)
        }
        #expect(try FaceImages(faces(length: 0, block: 0, count: 0xFFFF, image: image)).images.count >= 1)
        #expect(throws: Malformed.self) {
            try FaceImages(faces(length: 0, block: 0, count: 1, points: 0xFFFF, image: image))
        }
        #expect(throws: Malformed.self) { try FaceImages(faces(length: 0, block: 0, count: 1, image: [])) }
    }

    @Test(
        "the first bytes tell the format",
        arguments: [
            ([0xFF, 0xD8, 0xFF, 0xE1], DocumentImage.Format.jpeg), ([0, 0, 0, 0x0C, 0x6A, 0x50, 0x20, 0x20], .jp2),
            ([0xFF, 0x4F, 0xFF, 0x51], .jpeg2000), ([0x89, 0x50, 0x4E, 0x47], .unknown),
        ] as [([UInt8], DocumentImage.Format)]
    )
    func formats(bytes: [UInt8], format: DocumentImage.Format) throws {
        let images = try FaceImages(faces(length: 0, block: 0, count: 1, image: bytes + [0, 0])).images
        #expect(images.map(\.format) == [format])
    }

    @Test("a record of ISO 39794-5 gives the octets that begin as a picture")
    func encodedRecord() throws {
        let image: [UInt8] = [0xFF, 0xD8, 0xFF, 0xDB, 1, 2, 3]
        let record = BERTLV(
            0x7F2E,
            [BERTLV(0xA1, [BERTLV(0xA0, [BERTLV(0x80, [1])]), BERTLV(0xA1, [BERTLV(0x81, image)])])]
        )
        let file = BERTLV(0x75, [BERTLV(0x7F61, [BERTLV(0x02, [1]), BERTLV(0x7F60, [record])])]).encoded
        #expect(try FaceImages(file).images.map(\.data) == [image])
    }

    @Test("cut files are errors, and never a trap", arguments: [1, 2, 7, 11, 12, 16])
    func cut(group: Int) throws {
        let file = try file(group)
        for count in 0..<min(file.count, 300) {
            let part = Array(file.prefix(count))
            switch group {
            case 1: #expect(MachineReadableZone(group: part) == nil)
            case 2: #expect(throws: Malformed.self) { try FaceImages(part) }
            case 7: #expect(throws: Malformed.self) { try SignatureImages(part) }
            case 11: #expect(throws: Malformed.self) { try PersonalDetails(part) }
            case 12: #expect(throws: Malformed.self) { try IssuanceDetails(part) }
            default: #expect(throws: Malformed.self) { try PersonsToNotify(part) }
            }
        }
    }
}
