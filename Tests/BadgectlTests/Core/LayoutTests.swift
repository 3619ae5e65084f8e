// SPDX-License-Identifier: GPL-3.0-or-later
import Testing

@testable import BadgedClient
@testable import badgectl

/// What strangers say stays in the second column of a table, on a terminal of any width.
@Suite("badgectl: tables", .timeLimit(.minutes(5))) struct LayoutTests {
    private static func blanks(_ blank: String, _ count: Int) -> String { String(repeating: blank, count: count) }

    private static let foreign: [String] = [
        "app" + blanks("\u{A0}", 5) + "Finanzamt" + blanks("\u{A0}", 62),
        "app" + blanks("\u{3000}", 40) + "Finanzamt " + blanks("\u{2003}", 90) + "Finanzamt",
        // Blank letters that are no blanks, wide letters, and marks without number.
        blanks("\u{2800}", 79) + "Finanzamt", blanks("\u{FF38}", 200) + "Finanzamt",
        "A" + blanks("\u{301}", 300) + blanks("x", 200) + "Finanzamt", blanks("weit ", 50) + "Finanzamt",
        blanks(" ", 300) + "Finanzamt",
    ]

    private static func check(_ text: String, label: String, columns: Int) {
        let lines = text.unicodeScalars.split(separator: "\n").map { String($0) }
        for (number, line) in lines.enumerated() {
            #expect(Layout.width(of: line.unicodeScalars) <= columns, "\(line)")
            #expect(line.hasPrefix(number == 0 ? label : blanks(" ", label.count + 2)), "\(line)")
        }
        let letters = text.unicodeScalars.filter { !$0.properties.isWhitespace }
        #expect(String(String.UnicodeScalarView(letters)).hasSuffix("Finanzamt"))
    }

    @Test("foreign text begins no line in the column of the labels", arguments: foreign, [80, 76, 40, 20])
    func table(text: String, columns: Int) {
        let table = Help.columns([("text", text)])
        Self.check(table, label: "  text", columns: 80)
        // A terminal or a window with less room breaks the table once more.
        Self.check(Layout.wrapped(table, columns: columns), label: "  text", columns: columns)
    }

    @Test("nor does what an eID-Server says, in the terminal and in windows", arguments: foreign, [80, 40])
    func consent(text: String, columns: Int) {
        let certificate = ServiceCertificate(subjectName: text, subjectURL: text, purpose: text)
        let lines = Layout.wrapped(ConsentText.service(certificate, transactionInfo: text), columns: columns)
            .unicodeScalars.split(separator: "\n").map { String($0) }
        let labels = lines.filter { !$0.hasPrefix(Self.blanks(" ", 9)) }
        let names = labels.map { String($0.prefix { $0 != " " }) }
        #expect(names == ["service", "website", "purpose", "message", "valid"], "\(lines)")
        #expect(lines.allSatisfy { Layout.width(of: $0.unicodeScalars) <= columns })
        let summary = ConsentText.summary(certificate).split(separator: "\n").filter { !$0.hasPrefix("  ") }
        #expect(summary.map { $0.prefix { $0 != ":" } } == ["Service", "Website", "Purpose"])
    }

    @Test("a label that leaves no room does not move text into its column")
    func longLabel() {
        let lines = Layout.wrapped(Self.blanks("L", 100) + "  text of a row", columns: 40).split(separator: "\n")
        #expect(lines.dropFirst().allSatisfy { $0.hasPrefix(Self.blanks(" ", 20)) })
        #expect(lines.allSatisfy { $0.count <= 40 })
    }

    @Test("an address in a sentence stays whole, so that it can be copied")
    func address() {
        let address = "https://a.example/" + Self.blanks("y", 100)
        #expect(Layout.wrapped("see \(address) for more", columns: 40) == "see\n\(address)\nfor more")
    }
}
