// SPDX-License-Identifier: GPL-3.0-or-later
import Document
import ISO7816
import MobileDocument
import Testing
import Text

/// Documents that are right but for one thing, which a true issuer has signed.
@Suite("What a mobile document must not say", .timeLimit(.minutes(5)))
struct MdocRuleTests {
    struct Case: Sendable, CustomTestStringConvertible {
        let name: String
        /// A reason of `authority`, `status`, `device` or `signature`, or findings; empty: the document is genuine.
        let expected: [String]
        let change: @Sendable (inout MdocRecipe) -> Void

        var testDescription: String { name }

        init(_ name: String, _ expected: String..., change: @escaping @Sendable (inout MdocRecipe) -> Void) {
            self.name = name
            self.expected = expected
            self.change = change
        }
    }

    private func check(_ test: Case) throws {
        var recipe = MdocRecipe()
        test.change(&recipe)
        let result = try recipe.result()
        let checks = result.checks
        let reasons = [
            checks.signature.reason?.rawValue, checks.authority.reason?.rawValue, checks.device.reason?.rawValue,
            checks.status.reason?.rawValue,
        ]
        #expect(reasons.compactMap(\.self) + checks.document.findings.map(\.rawValue) == test.expected, "\(checks)")
        #expect((result.verdict == .genuine) == test.expected.isEmpty, "\(checks)")
        #expect(MdocCheck.answer(over: 18, in: [result]) == (test.expected.isEmpty ? true : nil))
    }

    // MARK: Status

    private static let place: (CBORValue, CBORValue) = ("status_list", ["idx": 5, "uri": .text(MdocRecipe.uri)])
    private static let name: (CBORValue, CBORValue) = (
        "identifier_list", ["id": .bytes([7, 7]), "uri": .text(MdocRecipe.uri)]
    )
    private static let later: (CBORValue, CBORValue) = ("later_list", ["uri": .text(MdocRecipe.uri)])

    static let ways: [Case] = [
        Case("no status") { _ in },
        Case("a list that is here") { ($0.status, $0.lists) = (.map([place]), [.init()]) },
        Case("a way that is not known", "unsupported") { $0.status = .map([later]) },
        Case("one with a number as its name", "unsupported") { $0.status = [1: ["uri": .text(MdocRecipe.uri)]] },
        Case("an empty map", "unsupported") { $0.status = [:] },
        Case("null", "unsupported") { $0.status = .null },
        Case("a text", "unsupported") { $0.status = "valid" },
        Case("false", "unsupported") { $0.status = false },
        Case("a list", "unsupported") { $0.status = [.map([place])] },
        Case("a way that is not known beside a good list", "unsupported") {
            ($0.status, $0.lists) = (.map([later, place]), [.init()])
        },
        Case("a way that is not known beside a list that revokes", "revoked") {
            ($0.status, $0.lists) = (.map([place, later]), [.init(revoked: [5])])
        },
        Case("a list that is missing", "unavailable") { $0.status = .map([place]) },
        Case("the list's certificate cannot be read", "unavailable") {
            let place: CBORValue = ["idx": 5, "uri": .text(MdocRecipe.uri), "certificate": .bytes([0x30, 0x00])]
            ($0.status, $0.lists) = (["status_list": place], [.init()])
        },
        Case("the list's certificate is a text", "malformed") {
            let place: CBORValue = ["idx": 5, "uri": .text(MdocRecipe.uri), "certificate": "x"]
            ($0.status, $0.lists) = (["status_list": place], [.init()])
        },
        Case("the place in a list is null", "malformed") { $0.status = ["status_list": .null] },
    ]

    @Test("a document that can be revoked is genuine only if a list says that it is not", arguments: ways)
    func status(test: Case) throws { try check(test) }

    private static func lists(_ name: String, _ expected: String?, _ lists: MdocRecipe.List...) -> [Case] {
        // Their order must not count.
        [lists, lists.reversed()].map { lists in
            let isOfNames = lists.contains { $0.identifiers != nil }
            let change: @Sendable (inout MdocRecipe) -> Void = {
                $0.status = .map([isOfNames ? Self.name : place])
                $0.lists = lists
            }
            return expected.map { Case(name, $0, change: change) } ?? Case(name, change: change)
        }
    }

    private static let time = MdocRecipe.time

    static let listCases: [Case] = [
        lists("one moment, one of two revokes", "revoked", .init(), .init(revoked: [5])),
        lists("the newer one says that it is valid again", nil, .init(issued: time - 7200, revoked: [5]), .init()),
        lists("the newer one revokes", "revoked", .init(issued: time - 7200), .init(revoked: [5])),
        lists(
            "the newer one is over and revokes",
            "unavailable",
            .init(issued: time - 7200),
            .init(end: time - 1, revoked: [5])
        ),
        lists("the newer one is over", "unavailable", .init(issued: time - 7200), .init(end: time - 1)),
        lists("the newer one cannot be unpacked", "unavailable", .init(issued: time - 7200), .init(cut: 20)),
        lists("a list of tomorrow does not count", nil, .init(), .init(issued: time + 60, revoked: [5])),
        lists("the only one counts from tomorrow", "unavailable", .init(claims: [(5, .integer(Int64(time + 60)))])),
        lists("one counts since yesterday", nil, .init(claims: [(5, .integer(Int64(time - 86_400)))])),
        lists("its beginning is a text", "unavailable", .init(claims: [(5, "2020-01-01")])),
        lists("the check sum is cut off", "unavailable", .init(cut: 4)),
        lists("a byte of the check sum is cut off", "unavailable", .init(cut: 1)),
        lists("identifiers without the document", nil, .init(identifiers: [.bytes([1]): [:]])),
        lists("identifiers with the document", "revoked", .init(identifiers: [.bytes([7, 7]): [:]])),
        lists("identifiers without an end", "unavailable", .init(end: nil, identifiers: [.bytes([1]): [:]])),
        lists("an identifier that is a text", "unavailable", .init(identifiers: [.bytes([1]): [:], "x": [:]])),
        lists("an identifier that is a number", "unavailable", .init(identifiers: [5: [:]])),
        lists("a critical header that is not protected", "unavailable", .init(unprotected: [(2, [99])])),
    ]
    .flatMap(\.self)

    @Test("the newest lists of the authority count, and each in its form alone", arguments: listCases)
    func list(test: Case) throws { try check(test) }

    // MARK: Elements

    private static let days = ["expiry_date", "date_of_expiry", "issue_date", "portrait_capture_date"]

    static let dates: [Case] = days.flatMap { name in
        let isEnd = name.contains("expiry")
        let good: [CBORValue] = [
            .tag(1004, "2028-02-29"), "2028-02-29", .tag(0, "2028-02-29T00:00:00Z"),
        ]
        let bad: [CBORValue] = [
            .tag(1004, "2027-02-29"), "2027-02-30", "2027-13-01", "2027-00-10", "20270101", "01.02.2027", "2027-1-1",
            "2027-01-01 ", " 2027-01-01", "2027-01-01\0", "2027-01", "never", "", .null, 20_270_101, true, .bytes([1]),
            .tag(100, 20_000), .tag(1, 1_900_000_000), .tag(0, 5), .tag(1004, .tag(1004, "2028-01-01")),
            ["2028-01-01"], ["expiry_date": "2028-01-01"], .tag(0, "2028-01-01T25:00:00Z"),
            .tag(1004, "２０２８-01-01"),
        ]
        return good.map { value in Case("\(name) \(value)") { $0.elements.append((name, value)) } }
            + bad.map { value in Case("\(name) \(value)", "malformed") { $0.elements.append((name, value)) } }
            + (isEnd ? [Case("\(name) over", "documentExpired") { $0.elements.append((name, "2026-11-27")) }] : [])
    }

    @Test("a date in another form, and one that is over, is a finding, also if nobody has asked", arguments: dates)
    func date(test: Case) throws { try check(test) }

    static let countries: [Case] =
        [Case("UT") { $0.elements.append(("issuing_country", "UT")) }]
        + ([
            "XX", "UTO", "ut", "Ut", "UT ", " UT", "UT\0", "U", "", "UТ", "Utopia", "U1", .bytes([0x55, 0x54]), ["UT"],
            5, .null, true, .tag(0, "UT"), ["country": "UT"],
        ] as [CBORValue]).map { value in
            Case("\(value)", "wrongCountry") { $0.elements.append(("issuing_country", value)) }
        }

    @Test("the country of a document is that of its signer, in the form of the standard", arguments: countries)
    func country(test: Case) throws {
        try check(test)
        var recipe = MdocRecipe()
        test.change(&recipe)
        recipe.asked.append("issuing_country")
        #expect((try recipe.result().verdict == .genuine) == test.expected.isEmpty)
    }

    // MARK: Signers

    /// NameConstraints: permittedSubtrees with the directory name C=XX.
    private static let onlyXX: BERTLV = {
        let country = [BERTLV(0x06, [0x55, 0x04, 0x06]), BERTLV(0x13, Array("XX".utf8))]
        let tags: [UInt32] = [0x31, 0x30, 0xA4, 0x30, 0xA0, 0x30]
        return tags.reduce(BERTLV(0x30, country)) { content, tag in BERTLV(tag, [content]) }
    }()

    static let signers: [Case] = [
        Case("both of one state") { ($0.authority.state, $0.signer.state) = ("Utah", "UTAH") },
        Case("of two states", "wrongCountry") { ($0.authority.state, $0.signer.state) = ("Utah", "Ohio") },
        Case("only the authority has a state", "wrongCountry") { $0.authority.state = "Utah" },
        Case("only the signer has a state", "wrongCountry") { $0.signer.state = "Utah" },
        Case("the signer has no key usage", "notASigner") { $0.signer.keyUsage = nil },
        Case("the signer has another key usage", "notASigner") { $0.signer.keyUsage = 0x40 },
        Case("signed in the next second", "signedInFuture") { $0.signed = "2026-11-28T17:47:50Z" },
        Case("signed in the next year", "signedInFuture") { $0.signed = "2027-11-28T17:47:50Z" },
        Case("signed now") { $0.signed = "2026-11-28T17:47:49Z" },
        Case("signed before its certificate", "signedOutsideCertificate") { $0.signed = "2025-12-31T23:59:59Z" },
        Case("a critical header that is not protected", "malformed") { $0.unprotected = [(2, [4711]), (4711, 1)] },
        Case("a header that is not critical") { $0.unprotected = [(4, .bytes([1]))] },
        Case("the list's signer has no key usage", "unavailable") {
            ($0.status, $0.lists, $0.listSigner.keyUsage) = (.map([place]), [.init()], nil)
        },
        Case("the list's signer is of another state", "unavailable") {
            ($0.status, $0.lists, $0.listSigner.state) = (.map([place]), [.init()], "Ohio")
        },
    ]

    @Test("a signer is of the state of its authority, for this use, and signs no later than now", arguments: signers)
    func signer(test: Case) throws { try check(test) }

    @Test("a certificate with name constraints has no rights", arguments: [true, false], [true, false])
    func nameConstraints(isCritical: Bool, isOfSigner: Bool) throws {
        var recipe = MdocRecipe()
        let rule = MdocRecipe.rule(30, isCritical: isCritical, Self.onlyXX)
        guard isOfSigner else {
            recipe.authority.rules = [rule]
            // Nobody trusts it.
            #expect(throws: DocumentAnchors.unknownRule) { try recipe.result() }
            return
        }
        recipe.signer.rules = [rule]
        #expect(try recipe.result().checks.authority.reason == .notASigner)
    }

    // MARK: Device

    static let namespaces: [Case] =
        [
            Case("a namespace") { $0.deviceNamespaces = ["org.example.device": ["mood": "good"]] },
            Case("a namespace without elements") { $0.deviceNamespaces = ["org.example.device": [:]] },
        ]
        + ([
            [], "x", .null, 5, .bytes([]), ["org.example.device"], ["org.example.device": ["mood"]],
            ["org.example.device": .null], [5: ["mood": "good"]], ["org.example.device": [5: "good"]],
        ] as [CBORValue]).map { value in Case("\(value)", "malformed") { $0.deviceNamespaces = value } }

    @Test("what the phone signs is a map of maps", arguments: namespaces)
    func deviceNamespaces(test: Case) throws { try check(test) }
}
