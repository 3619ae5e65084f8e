// SPDX-License-Identifier: GPL-3.0-or-later
import CountryAuthorities
import Crypto
import Document
import MobileDocument
import TestSupport
import Testing
import Text

/// Responses of phones, true and forged, with what a reader must say. Tests/Vectors/mdoc/README.md.
@Suite("Verdicts about mobile documents", .timeLimit(.minutes(5)))
struct MdocVerdictTests {
    struct Case: Sendable, CustomTestStringConvertible {
        let name: String
        let json: JSON
        fileprivate let file: File

        var testDescription: String { name }

        fileprivate func blob(_ number: JSON?) throws -> [UInt8] {
            let index = try #require(number?.int)
            try #require(file.blobs.indices.contains(index))
            return file.blobs[index]
        }
    }

    /// The bytes that the cases of a file share.
    fileprivate final class File: Sendable {
        let blobs: [[UInt8]]

        init(_ json: JSON) {
            blobs = (json["blobs"]?.array ?? []).map { $0.string.flatMap { Base64.standard.decode($0) } ?? [] }
        }
    }

    static let cases: [Case] = ["verdicts", "more-verdicts", "status-verdicts"].flatMap { name -> [Case] in
        guard let json = try? vectorFile("mdoc/\(name).json") else { return [] }
        let file = File(json)
        return (json["cases"]?.array ?? []).map { Case(name: $0["name"]?.string ?? "", json: $0, file: file) }
    }

    /// The document as badged sees it; `authorities` are those of the case by default.
    static func results(_ test: Case, _ authorities: MdocAuthorities? = nil) throws -> [MdocResult] {
        let engagement = try DeviceEngagement(try test.blob(test.json["engagement"]))
        var handover = MdocHandover.qr
        if let messages = test.json["handover"]?.array {
            handover = .nfc(
                select: try test.blob(messages[0]),
                request: try messages[1].int == nil ? nil : test.blob(messages[1])
            )
        }
        let key = try ECPrivateKey(Secret(try test.blob(test.json["key"])), on: try engagement.key.curve.group)
        let session = try MdocSession(engagement, handover, readerKey: key)
        let asked = (test.json["asked"]?.members ?? []).map { docType in
            DeviceRequest.Document(
                docType: docType.key,
                namespaces: (docType.value.members ?? []).map { namespace in
                    let names = (namespace.value.array ?? []).compactMap(\.string)
                    return .init(name: namespace.key, elements: names.map { .init(name: $0) })
                }
            )
        }
        let time = try #require(test.json["time"]?.int)
        let response = try DeviceResponse(Secret(try test.blob(test.json["response"])))
        let request = DeviceRequest(documents: asked)
        return MdocCheck(request, session.binding, try authorities ?? imported(test), at: time).results(of: response)
    }

    /// What a site has imported.
    private static func imported(_ test: Case) throws -> MdocAuthorities {
        var anchors = DocumentAnchors()
        for anchor in test.json["anchors"]?.array ?? [] {
            let types = anchor["docTypes"]?.array.map { Set($0.compactMap(\.string)) }
            try anchors.trust(try DocumentCertificate(try test.blob(anchor["certificate"])), for: types)
        }
        for list in test.json["crls"]?.array ?? [] {
            // Nor does one that no authority has signed.
            if let list = try? RevocationList(try test.blob(list)) { try? anchors.add(list) }
        }
        var authorities = MdocAuthorities(anchors: anchors)
        for list in test.json["lists"]?.array ?? [] {
            // A list that cannot be read adds nothing.
            if let list = try? MdocStatusList(try test.blob(list)) { authorities.add(list) }
        }
        return authorities
    }

    /// What a site has fetched, which keeps only what an authority of its folder has signed.
    private static func fetched(_ test: Case) async throws -> MdocAuthorities {
        let temporary = try TemporaryFolder()
        let time = try #require(test.json["time"]?.int)
        var files: [String: [UInt8]] = [:]
        for (number, anchor) in (test.json["anchors"]?.array ?? []).enumerated() {
            for type in anchor["docTypes"]?.array?.compactMap(\.string) ?? [nil] {
                files["\(type.map { $0 + "/" } ?? "")\(number).cer"] = try test.blob(anchor["certificate"])
            }
        }
        try AnchorWriter(folder: temporary.path + "/mdoc").write(files)
        var found: [(address: String, bytes: [UInt8])] = []
        for number in (test.json["lists"]?.array ?? []) + (test.json["crls"]?.array ?? []) {
            let bytes = try test.blob(number)
            found.append(((try? MdocStatusList(bytes).uri) ?? "https://utopia.example/\(found.count)", bytes))
        }
        let lists = PublishedListFolder(temporary.path + "/lists", addresses: Array(Set(found.map(\.address))))
        let folder = MdocAnchorFolder(temporary.path + "/mdoc", lists: lists, warn: { _ in })
        for (address, bytes) in found {
            guard let list = try? PublishedList(bytes, from: address, fetched: time), list.isCurrent(at: time),
                (try? await folder.judge(list, after: try lists.list(of: address), at: time)) != nil
            else { continue }
            try lists.save(bytes, of: address, fetched: time)
        }
        return await folder.authorities(at: time)
    }

    @Test(
        "a foreign list that was fetched counts as one that was imported, and a forged one does not",
        arguments: cases.filter { !(($0.json["lists"]?.array ?? []) + ($0.json["crls"]?.array ?? [])).isEmpty }
    )
    func fetchedList(test: Case) async throws {
        let results = try Self.results(test, try await Self.fetched(test))
        let expect = try #require(test.json["expect"])
        // Nobody knows such a certificate before the document comes.
        let isNamed = test.name == "status-list-by-a-named-certificate"
        #expect(results.map(\.verdict).min()?.rawValue == (isNamed ? "unverified" : expect["verdict"]?.string))
        let status = try #require(results.first).checks.status
        let outcome = status.result.rawValue + (status.reason.map { "/" + $0.rawValue } ?? "")
        if let wanted = expect["status"]?.string { #expect(outcome == (isNamed ? "notDone/unavailable" : wanted)) }
    }

    @Test("all cases are there")
    func count() {
        let groups = Self.cases.map { $0.json["group"]?.string ?? "" }
        #expect(groups.count { $0.hasPrefix("forged") } >= 300)
        #expect(groups.count { $0 == "good" || $0 == "quirk" } >= 80)
    }

    @Test("no forgery is genuine, and nothing odd is suspect", arguments: cases)
    func verdict(test: Case) throws {
        let results = try Self.results(test)
        let expect = try #require(test.json["expect"])
        let result = try #require(results.first)
        let checks = result.checks
        let worst = try #require(results.map(\.verdict).min())
        #expect(worst.rawValue == expect["verdict"]?.string, "\(checks)")
        if test.json["group"]?.string?.hasPrefix("forged") == true { #expect(worst != .genuine) }
        let outcomes: [(String, CheckResult, String?)] = [
            ("hashes", checks.hashes.result, checks.hashes.reason?.rawValue),
            ("signature", checks.signature.result, checks.signature.reason?.rawValue),
            ("authority", checks.authority.result, checks.authority.reason?.rawValue),
            ("device", checks.device.result, checks.device.reason?.rawValue),
            ("status", checks.status.result, checks.status.reason?.rawValue),
        ]
        for (name, outcome, reason) in outcomes {
            guard let wanted = expect[name]?.string else { continue }
            let parts = wanted.split(separator: "/").map(String.init)
            #expect(outcome.rawValue == parts[0], "\(name): \(checks)")
            if parts.count > 1 { #expect(reason == parts[1], "\(name): \(checks)") }
        }
        if let findings = expect["findings"]?.array?.compactMap(\.string) {
            #expect(checks.document.findings.map(\.rawValue) == findings)
        }
        if let withheld = expect["withheld"]?.array?.compactMap(\.string) { #expect(result.withheld == withheld) }
        for name in expect["gone"]?.array?.compactMap(\.string) ?? [] {
            #expect(!result.items.contains { $0.name == name }, "\(name) has not been proven")
        }
        for (name, value) in (expect["values"]?.members ?? []).map({ ($0.key, $0.value.string) }) {
            #expect(result.items.first { $0.name == name }?.value.text == value)
        }
        if let answer = expect["age"] { #expect(MdocCheck.answer(over: 18, in: results) == answer.bool) }
        for (element, answer) in (expect["ages"]?.members ?? []).map({ ($0.key, $0.value.string) }) {
            let age = try #require(Int(element.dropFirst(9)))
            let words = MdocCheck.answer(over: age, in: results).map { $0 ? "yes" : "no" }
            #expect(words ?? "unknown" == answer)
        }
    }

    @Test("sessions of a foreign phone are genuine", arguments: 0..<4)
    func foreignPhone(number: Int) throws {
        let session = try #require(try vectorFile("mdoc/google.json")["sessions"]?.array?[number])
        let engagement = try DeviceEngagement(try session.bytes("engagement"))
        let parts = try CBOR(try session.bytes("handover"))
        let handover: MdocHandover =
            try parts.isNull
            ? .qr : .nfc(select: try #require(parts.array?[0].bytes), request: parts.array?[1].bytes)
        let key = try ECPrivateKey(
            Secret(try session.bytes("eReaderKeyPrivate")),
            on: try engagement.key.curve.group
        )
        var reader = try MdocSession(engagement, handover, readerKey: key)
        #expect(reader.binding.transcript.encoding == (try session.bytes("sessionTranscript")))
        let received = try reader.read(try session.bytes("sessionData"))
        let plain = try #require(received.data?.withBytes { Array($0) })
        #expect(plain == (try session.bytes("deviceResponse")))
        var anchors = DocumentAnchors()
        try anchors.trust(try DocumentCertificate(try session.bytes("iaca")))
        let docType = "org.iso.18013.5.1.mDL"
        let request = DeviceRequest(
            documents: [
                .init(
                    docType: docType,
                    namespaces: [
                        .init(
                            name: "org.iso.18013.5.1",
                            elements: ["family_name", "age_over_18"].map { .init(name: $0) }
                        )
                    ]
                )
            ]
        )
        let time = try Self.time(session)
        let check = MdocCheck(request, reader.binding, MdocAuthorities(anchors: anchors), at: time)
        let results = check.results(of: try DeviceResponse(Secret(plain)))
        #expect(results.map(\.verdict) == [.genuine], "\(results.map(\.checks))")
        // Without the authority nothing is proven, and nothing is accused.
        let unknown = MdocCheck(request, reader.binding, MdocAuthorities(), at: time)
        #expect(unknown.results(of: try DeviceResponse(Secret(plain))).map(\.verdict) == [.unverified])
        #expect(MdocCheck.answer(over: 18, in: unknown.results(of: try DeviceResponse(Secret(plain)))) == nil)
    }

    /// `2026-11-28 17:47:49+00:00`.
    private static func time(_ json: JSON) throws -> Int {
        let text = try #require(json["time"]?.string).replacing(" ", with: "T")
        let item = try CBOR(CBORValue.tag(0, .text(text)).encoding)
        return try #require(MdocDate.seconds(item))
    }

    @Test("documents of foreign issuers have right hashes, signatures and authorities", arguments: 0..<2)
    func foreignIssuer(number: Int) throws {
        let document = try #require(try vectorFile("mdoc/pypi.json")["documents"]?.array?[number])
        let engagement = try DeviceEngagement(
            try DeviceEngagement.encoding(key: try ECPrivateKey(on: try Curve.secp256r1.group).publicKey, ways: [])
        )
        let session = try MdocSession(engagement, .qr)
        let issuerSigned = try CBOR(try document.bytes("issuerSigned"))
        let docType = try #require(document["docType"]?.string)
        let response: CBORValue = [
            "version": "1.0", "status": 0,
            "documents": [
                [
                    "docType": .text(docType), "issuerSigned": .encoded(issuerSigned.encoded),
                    "deviceSigned": ["nameSpaces": .embedded([:]), "deviceAuth": [:]],
                ]
            ],
        ]
        var anchors = DocumentAnchors()
        try anchors.trust(try DocumentCertificate(try document.bytes("iaca")))
        let request = DeviceRequest(documents: [.init(docType: docType, namespaces: [])])
        let time = try Self.time(document)
        let check = MdocCheck(request, session.binding, MdocAuthorities(anchors: anchors), at: time)
        let result = try #require(check.results(of: try DeviceResponse(Secret(response.encoding))).first)
        #expect(result.checks.hashes.result == .passed, "\(result.checks)")
        #expect(result.checks.signature.result == .passed, "\(result.checks)")
        #expect(result.checks.authority.result == .passed, "\(result.checks)")
        #expect(result.checks.device.result == .failed && result.checks.device.reason == .malformed)
        #expect(!result.unasked.isEmpty && result.items.isEmpty)
    }

    @Test(
        "times and days are read as issuers write them",
        arguments: [
            (.tag(0, "2026-11-28T17:47:49Z"), 1_795_888_069, "2026-11-28"),
            (.tag(0, "2026-11-28T17:47:49.250Z"), 1_795_888_069, "2026-11-28"),
            (.tag(0, "2026-11-28T18:47:49+01:00"), 1_795_888_069, "2026-11-28"),
            (.tag(0, "2026-11-28t12:17:49-05:30"), 1_795_888_069, "2026-11-28"),
            (.tag(1004, "2026-11-28"), nil, "2026-11-28"), ("2026-11-28", nil, "2026-11-28"),
            (.tag(1004, "2026-02-30"), nil, nil), (.tag(0, "2026-11-28T25:00:00Z"), nil, nil),
            (.tag(0, "2026-11-28T17:47:49"), nil, nil), (.tag(0, "x"), nil, nil), (5, nil, nil), ("", nil, nil),
            (.tag(0, "2026-11-28T17:47:49.Z"), nil, nil), (.tag(7, "2026-11-28"), nil, nil),
        ] as [(CBORValue, Int?, String?)]
    )
    func dates(value: CBORValue, seconds: Int?, day: String?) throws {
        let item = try CBOR(value.encoding)
        #expect(MdocDate.seconds(item) == seconds)
        #expect(MdocDate.day(item)?.text == day)
    }
}
