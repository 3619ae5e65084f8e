// SPDX-License-Identifier: GPL-3.0-or-later
import BadgedClient
import Host
import Text

/// What a phone has shown, for people.
enum MdocText {
    static func lines(_ result: MdocResult) -> [String] {
        var lines: [String] = []
        func add(_ title: String, _ rows: [(String, String)]) {
            guard !rows.isEmpty else { return }
            lines += [title + ":"] + Help.columns(rows, indentation: "  ").split(separator: "\n").map(String.init)
        }
        for document in result.documents {
            add(
                document.docType,
                document.elements.map { (ResultWords.element($0.name), text($0.value)) }
                    + document.withheld.map { (ResultWords.element($0), tr("(not given)")) }
            )
            var facts: [(String, String)] = []
            if let issuer = document.issuer { facts.append((tr("issuer"), issuer)) }
            if let end = document.validUntil { facts.append((tr("valid until"), end)) }
            if !document.unasked.isEmpty {
                let names = document.unasked.map(ResultWords.element)
                facts.append((tr("not asked for"), names.joined(separator: ", ")))
            }
            add(tr("Issue"), facts)
            add(tr("Checks"), document.checks.map { (ResultWords.text($0.name), text($0)) })
        }
        lines.append(tr("Verdict: \(text(result.verdict))"))
        if let age = result.age { lines.append(tr("Over \(age.over): \(ResultWords.text(age.answer.rawValue))")) }
        return lines
    }

    private static func text(_ value: JSON) -> String {
        switch value {
        case .null: return ""
        case .bool(let bool): return bool ? tr("yes") : tr("no")
        case .number(let number): return number
        case .string(let text): return text
        case .array(let items): return items.map(text).joined(separator: "; ")
        case .object(let members):
            if let format = value["format"]?.string, value["data"] != nil { return tr("a picture (\(format))") }
            return members.map { "\($0.key) \(text($0.value))" }.joined(separator: ", ")
        }
    }

    private static func text(_ check: DocumentResult.Check) -> String {
        var parts = [ResultWords.text(check.result) + (check.reason.map { ": \(ResultWords.text($0))" } ?? "")]
        for name in ["algorithm", "method", "signer", "authority", "until", "unusableLists", "findings"] {
            guard let value = check.details[name] else { continue }
            parts.append(["method", "findings"].contains(name) ? ResultWords.list(value) : value)
        }
        if check.details["crl"] == "failed" { parts.append(tr("crl failed")) }
        return parts.joined(separator: "; ")
    }

    private static func text(_ verdict: MdocResult.Verdict?) -> String {
        switch verdict {
        case .genuine: tr("genuine")
        case .unverified: tr("unverified: nothing has failed, but not everything was proven")
        case .suspect: tr("suspect: a check has failed")
        case nil: tr("unknown")
        }
    }
}
