// SPDX-License-Identifier: GPL-3.0-or-later
import ChipAccess
import Crypto
import Document
import ISO7816
import TestSupport
import Testing
import Text
import VirtualDocument

/// Documents that differ from the usual ones, and are right: Tests/Vectors/documents/odd.json.
@Suite("Odd documents that are right", .timeLimit(.minutes(5)))
struct OddDocumentTests {
    @Test("each odd document has its verdict, its proofs and its data", arguments: DocumentCatalogue.odd.documents)
    func odd(entry: DocumentCatalogue.Entry) async throws {
        var anchors = DocumentAnchors()
        try anchors.trust(try DocumentCatalogue.odd.certificate("csca-2-brainpool"))
        // The zone as a person scans it.
        let lines = entry.lines
        let zone = try MachineReadableZone(scanned: lines.joined(separator: "\n").utf8)
        #expect(zone.wrongCheckDigits == [])
        var test = try TestReading(entry, key: AccessKey(zone: zone))
        try await test.run(anchors)
        let checks = test.reading.checks
        #expect(checks.verdict.rawValue == entry.expect["verdict"]?.string, "\(checks)")
        let methods = checks.chip.runs.map { run in
            [run.method.rawValue, run.result.rawValue, run.reason?.rawValue].compactMap(\.self).joined(separator: " ")
        }
        #expect(methods == (entry.expect["methods"]?.array ?? []).compactMap(\.string))
        let isUnsupported = entry.expect["findings"] == .array([.string("unsupported")])
        #expect(checks.document.findings == (isUnsupported ? [.unsupported] : []))
        if let number = entry.expect["number"]?.string { #expect(test.reading.zone?.number == number) }
        if let given = entry.expect["given"]?.string {
            #expect(test.reading.zone?.given == given)
            #expect(test.reading.zone?.surname == entry.expect["surname"]?.string)
        }
        if entry.expect["picture"] != nil {
            let images = try FaceImages(try #require(test.reading.files[.group(2)])).images
            #expect(images.map(\.format) == [.jpeg])
            #expect(images.first?.width == 120)
        }
    }

    @Test(
        "what is shown of a number can be typed, and opens the document",
        arguments: DocumentCatalogue.odd.documents.filter { $0.name.hasPrefix("number") }
    )
    func typedBack(entry: DocumentCatalogue.Entry) throws {
        let lines = entry.lines
        let zone = try MachineReadableZone(lines.joined().utf8)
        let number = try #require(MachineReadableZone.number(typed: zone.number.utf8))
        let birth = try #require(MachineReadableZone.date(typed: zone.birthDate(at: DocumentCatalogue.time).utf8))
        let expiry = try #require(MachineReadableZone.date(typed: zone.expiryDate.utf8))
        let information = MachineReadableZone.information(number: number, birth: birth, expiry: expiry)
        #expect(String(decoding: information, as: UTF8.self) == entry.card["mrzKey"]?.string)
        let hyphen = zone.number.map { $0 == " " ? "-" : String($0) }.joined()
        #expect(MachineReadableZone.number(typed: hyphen.utf8) == number)
    }

    @Test(
        "a document that is over however its expiry is read, or that has an impossible date, is told",
        arguments: [
            ("740812", "10<<<<", .expired), ("740812", "2610<<", .expired), ("740812", "000000", .expired),
            ("740812", "261131", .malformed), ("740812", "XX0101", .malformed), ("740231", "350415", .malformed),
            ("740812", "26<<<<", nil), ("740812", "<<<<<<", nil), ("74<<<<", "350415", nil),
        ] as [(String, String, ContentCheck.Finding?)]
    )
    func dates(birth: String, expiry: String, finding: ContentCheck.Finding?) async throws {
        let zone = MachineReadableZoneTests.zone(.td3, birth: birth, expiry: expiry)
        let entry = try DocumentCatalogue.shared.document("pace-gm-bac")
        var test = try TestReading(
            entry,
            groups: [1],
            key: entry.can,
            change: { $0.files["DG1"] = BERTLV(0x61, [BERTLV(0x5F1F, zone)]).encoded }
        )
        try await test.run()
        let checks = test.reading.checks
        #expect(checks.document.findings == (finding.map { [$0] } ?? []), "\(checks)")
        #expect(checks.document.result == (finding == nil ? .passed : .failed))
    }

    @Test("one broken object does not hide the others")
    func brokenObjects() throws {
        let files = try DocumentCatalogue.odd.document("broken-objects").files
        let person = try PersonalDetails(try #require(files["DG11"]))
        #expect(person.fullName == "ERIKSSON, ANNA")
        #expect(person.birthPlace == ["ZENITH", "UTOPIA"])
        let issuance = try IssuanceDetails(try #require(files["DG12"]))
        #expect(issuance.authority == "OFFICE ZENITH")
        #expect(issuance.date == nil)
        let persons = try PersonsToNotify(try #require(files["DG16"])).persons
        #expect(persons.map(\.name) == ["ERIKSSON, PETER", "ERIKSSON, EVA"])
        #expect(try CommonData(try #require(files["COM"])).groups == [1, 2, 11, 12, 16])
    }

    // MARK: What binds a proof

    @Test("the chip of another document of the country does not prove this one with its mapping")
    func foreignMapping() async throws {
        let entry = try DocumentCatalogue.shared.document("pace-cam-ca")
        let other = try DocumentCatalogue.shared.document("pace-cam")
        for hasKey in [false, true] {
            let stolen = try other.description()
            let foreign = try DocumentCatalogue.shared.document("pace-only-td1").description()
            var test = try TestReading(
                entry,
                change: {
                    $0.files["CardSecurity"] = other.files["CardSecurity"]
                    $0.keys["cam"] = stolen.keys["cam"]
                    // A clone has no key for chip authentication, or another one.
                    $0.keys["ca1"] = hasKey ? foreign.keys["ca1"] : nil
                }
            )
            try await test.run()
            #expect(test.reading.checks.verdict == .suspect, "\(test.reading.checks)")
            #expect(test.reading.checks.chip.runs.map(\.method) == [.mapping, .chipAuthentication])
            #expect(test.reading.checks.chip.runs.first?.result == .notDone)
        }
    }

    @Test("a mapping with a key that EF.SOD has not signed counts if chip authentication has passed, and not alone")
    func boundByChipAuthentication() async throws {
        var both = try TestReading(try DocumentCatalogue.shared.document("pace-cam-ca"))
        try await both.run()
        #expect(both.reading.checks.chip.runs.map(\.result) == [.passed, .passed])
        #expect(both.reading.checks.verdict == .genuine)
        var alone = try TestReading(try DocumentCatalogue.shared.document("pace-cam"))
        try await alone.run()
        #expect(alone.reading.checks.chip.runs.map(\.reason) == [.notBound])
        #expect(alone.reading.checks.verdict == .unverified)
    }

    // MARK: Lengths

    @Test(
        "the lengths that a chip takes are in EF.ATR/INFO or in its historical bytes",
        arguments: [
            ("47031000C07F6608020203E8020203E8", "3B8080010101", true, 1000),
            ("4703100080", "3B8580018073C021C0D7", false, nil), ("4703100040", "3B808001", true, nil),
            ("", "3B8580018073C021C0D7", nil, nil), ("7F6608020200FF0202FFFF", "", true, 65_535),
            ("7F66", "", nil, nil),
        ] as [(String, String, Bool?, Int?)]
    )
    func lengths(file: String, answer: String, takesExtended: Bool?, maximum: Int?) {
        let info = LengthInfo(hex(file))
        #expect(info.takesExtended == takesExtended)
        #expect(info.maximumAnswer == maximum)
        #expect(
            HistoricalBytes(answerToReset: hex(answer))?.takesExtended == (answer.contains("8073C021C0") ? true : nil)
        )
    }

    @Test("a chip that refuses extended lengths is opened once", arguments: ["bac-td3", "pace-gm-bac"])
    func refusesExtended(name: String) async throws {
        let entry = try DocumentCatalogue.shared.document(name)
        for declares in [false, true] {
            var test = try TestReading(
                entry,
                groups: [1, 2],
                extended: true,
                change: {
                    $0.quirks.hasExtendedLength = false
                    if !declares { $0.files["ATR"] = nil }
                }
            )
            try await test.run()
            #expect(test.reading.checks.verdict != .suspect)
            let log = await test.channel.log
            #expect(log.filter { $0.ins == 0x22 && $0.p1 == 0xC1 || $0.ins == 0x84 }.count == 1)
            #expect(log.filter(\.isExtended).count == 1)
        }
    }

    @Test("a chip that does not say that it takes extended lengths gets none in its channel")
    func saysNothing() async throws {
        let entry = try DocumentCatalogue.shared.document("bac-td3")
        var test = try TestReading(entry, groups: [1, 2], extended: true, change: { $0.files["ATR"] = nil })
        try await test.run()
        #expect(await test.channel.log.filter { $0.isExtended && $0.cla == 0x0C }.isEmpty)
    }

    // MARK: No access control

    @Test("a chip without access control is read, and its checks are those of its data", arguments: [nil, "aa"])
    func noAccessControl(cloned: String?) async throws {
        let entry = try DocumentCatalogue.shared.document("bac-aa-rsa")
        var test = try TestReading(entry, change: { ($0.hasBAC, $0.cloned) = (false, cloned) })
        try await test.run()
        #expect(test.reading.access?.method == .open)
        #expect(test.reading.access?.password == nil)
        #expect(test.reading.checks.document.findings == [.noAccessControl])
        #expect(test.reading.checks.verdict == (cloned == nil ? .genuine : .suspect))
        #expect(test.reading.files[.group(2)] == entry.files["DG2"])
    }

    @Test("chip authentication makes the channel of a chip without access control")
    func noAccessControlWithProof() async throws {
        let entry = try DocumentCatalogue.shared.document("bac-ca-3des")
        for cloned in [nil, "ca"] {
            var test = try TestReading(entry, change: { ($0.hasBAC, $0.cloned) = (false, cloned) })
            try await test.run()
            #expect(test.reading.checks.verdict == (cloned == nil ? .genuine : .suspect))
        }
    }

    @Test("a zone that is not that of the document is a fault, also without access control")
    func otherZone() async throws {
        let entry = try DocumentCatalogue.shared.document("bac-td3-sha1")
        let wrong = AccessKey(information: Secret(Array("X00000000470010143001019".utf8)))
        var test = try TestReading(entry, key: wrong, change: { $0.hasBAC = false })
        try await test.run()
        #expect(test.reading.checks.document.findings == [.noAccessControl, .mrzDiffers])
        #expect(test.reading.checks.verdict == .suspect)
    }

    @Test(
        "a refusal to begin BAC has its status word, and one that means no BAC does not",
        arguments: [0x6581, 0x6D00]
    )
    func challenge(status: Int) async throws {
        let entry = try DocumentCatalogue.shared.document("bac-td3-sha1")
        var test = try TestReading(
            entry,
            forge: { _, command, answer in command.ins == 0x84 ? ResponseAPDU(StatusWord(UInt16(status))) : answer }
        )
        await #expect(throws: DocumentError.basicAccessRefused(StatusWord(UInt16(status)))) { try await test.run() }
        #expect(DocumentChip.meansNoBAC(StatusWord(UInt16(status))) == (status == 0x6D00))
    }

    // MARK: The whole zone

    @Test("all lines that were scanned are compared with DG1", arguments: [10, 47, 60, 80])
    func wholeZone(position: Int) async throws {
        let entry = try DocumentCatalogue.shared.document("bac-td3-sha1")
        let lines = entry.lines
        var text = Array(lines.joined().utf8)
        text[position] = text[position] == UInt8(ascii: "A") ? UInt8(ascii: "B") : UInt8(ascii: "A")
        let key = AccessKey(zone: try MachineReadableZone(text))
        var test = try TestReading(entry, key: key)
        do {
            try await test.run()
            #expect(test.reading.checks.document.findings == [.mrzDiffers])
        } catch let error as DocumentError {
            // The number and the dates are the key of the chip.
            #expect(error == .wrongPassword(StatusWord(0x6300)) && [47, 60].contains(position))
        }
    }

    @Test(
        "guillemets of a text recognition are fillers",
        arguments: [("<<", "«"), ("<<", "»"), ("<", "‹"), ("<", "›"), ("<", "«")]
    )
    func guillemets(filler: String, guillemet: String) throws {
        let text = "P<UTOERIKSSON<<ANNA<MARIA<<<<<<<<<<<<<<<<<<<\nL898902C36UTO7408122F1204159ZE184226B<<<<<10"
        let scanned = text.split(separator: filler, omittingEmptySubsequences: false).joined(separator: guillemet)
        let zone = try MachineReadableZone(scanned: scanned.lowercased().utf8)
        #expect(zone.lines == text.split(separator: "\n").map(String.init))
    }

    @Test(
        "a date that no calendar has is none",
        arguments: [
            ("740231", nil), ("1974-02-31", nil), ("740229", nil), ("720229", "720229"), ("1972-02-29", "720229"),
            ("1974-02-29", nil), ("741301", nil), ("740432", nil), ("74<<<<", "74<<<<"), ("1974-XX-XX", "74<<<<"),
            ("740000", "740000"), ("7408122", nil), ("19740812", "740812"), ("1874-08-12", nil), ("74-08-12", nil),
            ("", nil), ("aaaaaa", nil), ("000229", "000229"), ("74-0812", nil),
        ] as [(String, String?)]
    )
    func dates(typed: String, date: String?) {
        #expect(MachineReadableZone.date(typed: typed.utf8).map { String(decoding: $0, as: UTF8.self) } == date)
    }

    @Test(
        "a number is taken as people write it",
        arguments: [
            ("l898902c3", "L898902C3"), (" AB 123456 ", "AB<123456"), ("AB-123456", "AB<123456"),
            ("AB123456<", "AB123456"),
            ("592-1234567-89", "592<1234567<89"), ("", nil), ("   ", nil), ("AB/123", nil), ("ÄB123", nil),
        ] as [(String, String?)]
    )
    func numbers(typed: String, number: String?) {
        #expect(MachineReadableZone.number(typed: typed.utf8).map { String(decoding: $0, as: UTF8.self) } == number)
        #expect(MachineReadableZone.endsWithCheckDigit(Array("L898902C36".utf8)))
        #expect(!MachineReadableZone.endsWithCheckDigit(Array("L898902C37".utf8)))
    }
}

extension DocumentCatalogue.Entry {
    /// The lines of the machine readable zone.
    fileprivate var lines: [String] { (card["mrz"] ?? expect["mrz"])?.array?.compactMap(\.string) ?? [] }
}
