// SPDX-License-Identifier: GPL-3.0-or-later
import TestSupport
import Testing

@testable import BadgedClient
@testable import badgectl

@Suite("Long texts of services")
struct LongTextTests {
    private static let parsers: [(name: String, size: Int, parse: @Sendable (String) -> Void)] = [
        // A page has at most 1 MiB.
        ("a page", 500_000, { _ = HTMLText.text($0) }),
        ("a line of a page", 500_000, { _ = HTMLText.text("<p>\($0)<p>\($0) &amp; ") }),
        ("a tag of a page", 500_000, { _ = HTMLText.text("<\($0)>") }),
        ("a hidden element", 500_000, { _ = HTMLText.text("<script>\($0)") }),
        ("a line of pinentry", 100_000, { _ = Pinentry.escaped($0) }),
        ("the pages of pinentry", 50_000, { _ = Pinentry.pages($0) }),
        ("a notification", 100_000, { _ = Notifier.markup($0) }),
        ("a summary", 50_000, { _ = ConsentText.summary(ServiceCertificate(subjectName: $0, subjectURL: "u")) }),
        ("a line of a terminal", 100_000, { _ = $0.printableLines }),
    ]

    @Test("a text of twice the length takes at most 2.5 times as long", .serialized, arguments: parsers.indices)
    func growth(parser: Int) async { #expect(await Growth.slowAlphabets(Self.parsers[parser]) == []) }
}
