// SPDX-License-Identifier: GPL-3.0-or-later
import ChipAccess
import Crypto
import Document
import ISO7816
import TestSupport
import Testing
import Text
import VirtualDocument

@Suite("Documents of ICAO 9303 on a virtual card", .timeLimit(.minutes(10)))
struct DocumentCatalogueTests {
    static let documents = DocumentCatalogue.shared.documents

    @Test("the whole catalogue is there")
    func count() {
        #expect(Self.documents.count == 53)
        #expect(DocumentCatalogue.more.documents.count == 44)
        #expect(DocumentCatalogue.odd.documents.count == 25)
        #expect(Set(Self.documents.map(\.name)).isSuperset(of: Self.reasons.keys))
    }

    @Test("each document of the catalogue is read, and each fault is found with its reason", arguments: documents)
    func catalogue(entry: DocumentCatalogue.Entry) async throws {
        var test = try TestReading(entry)
        try await test.run()
        let checks = test.reading.checks
        #expect(checks.hashes.result == entry.expected("hashes"), "\(checks.hashes)")
        #expect(checks.signature.result == entry.expected("signature"), "\(checks.signature)")
        #expect(checks.authority.result == entry.expected("authority"), "\(checks.authority)")
        // A key that EF.SOD has not signed proves a chip of the country, and not this document.
        let isUnbound = ["pace-cam", "pace-cam-standard"].contains(entry.name)
        #expect(checks.chip.result == (isUnbound ? .notDone : entry.expected("chip")), "\(checks.chip)")
        #expect(checks.document.result == entry.expected("document"), "\(checks.document)")
        let names = ["hashes", "signature", "authority", "chip", "document"]
        if names.contains(where: { entry.expected($0) == .failed }) { #expect(checks.verdict == .suspect) }
        if names.allSatisfy({ entry.expected($0) == .passed }) {
            #expect(checks.verdict == (isUnbound ? .unverified : .genuine))
        }
        if entry.expected("chip") == .absent, names.dropLast(2).allSatisfy({ entry.expected($0) == .passed }),
            entry.expected("document") == .passed
        {
            #expect(checks.verdict == .genuineCopyable)
        }

        let zone = try #require(test.reading.zone)
        if entry.name != "mrz-mismatch" { #expect(zone.number == entry.expect["documentNumber"]?.string) }
        #expect(zone.kind.rawValue == entry.expect["type"]?.string)
        for group in [1, 2, 7, 11, 12, 13, 14, 15, 16] {
            guard let file = entry.files["DG\(group)"], let read = test.reading.files[.group(group)] else { continue }
            #expect(read == file, "DG\(group)")
        }
        if entry.name != "oversize-dg2", let file = test.reading.files[.group(2)] {
            let images = try FaceImages(file).images
            let format = entry.expect["portrait"]?.string?.hasSuffix(".jp2") == true ? "jp2" : "jpeg"
            #expect(images.first?.format.rawValue == format)
            #expect(images.count == (entry.name == "two-faces" ? 2 : 1))
            #expect(images.allSatisfy { $0.width ?? 0 > 0 && $0.height ?? 0 > 0 })
        }
        for group in (entry.expect["unreadable"]?.array ?? []).compactMap(\.int) {
            #expect(test.reading.groups[group] == .locked)
        }
        if let hasReason = Self.reasons[entry.name] { #expect(hasReason(checks), "\(checks)") }
    }

    /// The reason that each fault must have.
    static let reasons: [String: @Sendable (DocumentChecks) -> Bool] = [
        "bad-hash-dg1": { $0.hashes == HashCheck(result: .failed, reason: .wrongHash, groups: [1]) },
        "bad-hash-dg2": { $0.hashes == HashCheck(result: .failed, reason: .wrongHash, groups: [2]) },
        "not-in-sod": { $0.hashes == HashCheck(result: .failed, reason: .notSigned, groups: [2]) },
        "bad-signature": { $0.signature.reason == .wrongSignature },
        "bad-digest": { $0.signature.reason == .wrongDigest },
        "truncated-sod": { $0.signature.reason == .malformed },
        "signer-expired": { $0.authority.reason == .signerExpired },
        "signer-old-sha1": { $0.authority.reason == .signerExpired },
        "signer-unknown": { $0.authority.reason == .unknownAuthority },
        "signer-forged": { $0.authority.reason == .unknownAuthority },
        "signer-revoked": { $0.authority.reason == .revoked },
        "mrz-check-digit": { $0.document.findings == [.checkDigit(.composite)] },
        "document-expired": { $0.document.findings == [.expired] },
        "mrz-mismatch": { $0.document.findings == [.mrzDiffers] },
        "oversize-dg2": { $0.hashes == HashCheck(result: .failed, reason: .malformed, groups: [2]) },
        "aa-wrong-key": { $0.chip.runs.map(\.reason) == [.wrongSignature] },
        "ca-wrong-key": { $0.chip.runs.map(\.reason) == [.wrongKey] },
        "cam-wrong-key": { $0.chip.runs.first?.reason == .wrongKey },
    ]

    @Test("each further fault is found in its check and with its reason", arguments: DocumentCatalogue.more.documents)
    func moreFaults(entry: DocumentCatalogue.Entry) async throws {
        var anchors = DocumentAnchors()
        let files = DocumentCatalogue.more.pki.map { (name: $0.key, content: $0.value) }
        #expect(anchors.addFiles(files, at: DocumentCatalogue.time).warnings == [])
        var test = try TestReading(entry)
        try await test.run(anchors)
        let checks = test.reading.checks
        guard let fault = entry.expect["fault"]?.array?.compactMap(\.string), fault.count == 2 else {
            let isUnbound = entry.name == "cam-only"
            #expect((isUnbound ? [.unverified] : [.genuine, .genuineCopyable]).contains(checks.verdict), "\(checks)")
            return
        }
        #expect(checks.verdict.rawValue == entry.expect["verdict"]?.string ?? "suspect")
        let reasons: [String] =
            switch fault[0] {
            case "hashes": [checks.hashes.reason?.rawValue].compactMap { $0 }
            case "signature": [checks.signature.reason?.rawValue].compactMap { $0 }
            case "authority": [checks.authority.reason?.rawValue].compactMap { $0 }
            case "chip": checks.chip.runs.compactMap(\.reason?.rawValue)
            default: checks.document.findings.map { "\($0)".split(separator: "(").first.map(String.init) ?? "" }
            }
        #expect(reasons.contains(fault[1]), "\(checks)")
    }

    @Test(
        "without authorities nothing is trusted, and nothing is said to be genuine",
        arguments: ["bac-td3", "bac-aa-rsa", "pace-gm-bac", "pace-cam-ca"]
    )
    func noAnchors(name: String) async throws {
        var test = try TestReading(try DocumentCatalogue.shared.document(name), groups: [1])
        try await test.run(DocumentAnchors())
        let checks = test.reading.checks
        #expect(checks.authority.result == .notDone)
        #expect(checks.verdict != .genuine && checks.verdict != .genuineCopyable)
    }

    @Test("the CAN opens what PACE opens, and no document with BAC alone")
    func accessNumber() async throws {
        let names = ["pace-only-td1", "pace-cam-ca", "pace-im", "pace-dh-gm"]
        for entry in Self.documents where names.contains(entry.name) {
            var test = try TestReading(entry, groups: [1], key: entry.can)
            try await test.run()
            #expect(test.reading.access?.password == .can)
            #expect(test.reading.access?.method == .pace)
            #expect(test.reading.checks.verdict == .genuine || test.reading.checks.verdict == .genuineCopyable)
        }
        let old = try DocumentCatalogue.shared.document("bac-td3")
        var test = try TestReading(old, key: old.can)
        await #expect(throws: DocumentError.accessUnsupported) { try await test.run() }
    }

    @Test("a wrong key is told apart from a broken document, and is tried once")
    func wrongKey() async throws {
        for name in ["bac-td3", "pace-only-td1", "pace-dh-im"] {
            let entry = try DocumentCatalogue.shared.document(name)
            let information = MachineReadableZone.information(
                number: Array("X00000000".utf8),
                birth: Array("700101".utf8),
                expiry: Array("300101".utf8)
            )
            var test = try TestReading(entry, key: AccessKey(information: Secret(information)))
            await #expect(throws: DocumentError.wrongPassword(StatusWord(0x6300))) { try await test.run() }
            let log = await test.channel.log
            #expect(log.filter { $0.ins == 0x82 }.count <= 1)
            #expect(log.filter { $0.ins == 0x22 }.count <= 1)
        }
    }

    @Test("a document of the catalogue is read in few commands")
    func commands() async throws {
        let entry = try DocumentCatalogue.shared.document("bac-td3")
        var short = try TestReading(entry, groups: [1, 2])
        try await short.run()
        #expect(await short.channel.log.count <= 75)
        #expect(await short.channel.log.allSatisfy { !$0.isExtended })
        var long = try TestReading(entry, groups: [1, 2], extended: true)
        try await long.run()
        // EF.ATR/INFO says that an answer has at most 1000 bytes.
        let count = await long.channel.log.count
        #expect(count <= 27)
        #expect(short.reading.files == long.reading.files)
    }

    @Test(
        "every combination of a clone, a fault of the data and one of the authority is suspect",
        arguments: ["aa-wrong-key", "ca-wrong-key", "cam-wrong-key"],
        [nil, "DG1", "DG2", "SOD", "end of SOD"]
    )
    func combinations(name: String, fault: String?) async throws {
        let entry = try DocumentCatalogue.shared.document(name)
        let anchors = try DocumentCatalogue.shared.anchors()
        var strangers = DocumentAnchors()
        try strangers.trust(try DocumentCatalogue.shared.certificate("csca-0-sha1"))
        let later = DocumentCatalogue.time + 40 * 365 * 86_400
        let now = DocumentCatalogue.time
        for (anchors, time, reason) in [
            (anchors, now, nil), (strangers, now, .unknownAuthority), (anchors, later, .signerExpired),
        ] as [(DocumentAnchors, Int, AuthorityCheck.Reason?)] {
            var test = try TestReading(
                entry,
                change: { description in
                    switch fault {
                    case "end of SOD": description.files["SOD"]?.removeLast(40)
                    case let file?: description.files[file]?[entry.files[file, default: [0]].count - 1] ^= 1
                    case nil: break
                    }
                }
            )
            try await test.run(anchors, at: time)
            let checks = test.reading.checks
            #expect(checks.verdict == .suspect)
            // Nothing is known of an EF.SOD that is cut: neither the keys of the chip nor the signer.
            if fault == "end of SOD" {
                #expect(checks.signature.reason == .malformed)
            } else {
                #expect(checks.chip.result == .failed)
                #expect(checks.authority.reason == reason)
                #expect((checks.signature.result == .failed) == (fault == "SOD"))
                #expect((checks.hashes.result == .failed) == (fault == "DG1" || fault == "DG2"))
            }
        }
    }
}
