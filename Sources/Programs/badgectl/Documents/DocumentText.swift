// SPDX-License-Identifier: GPL-3.0-or-later
import BadgedClient
import Host
import Text

/// What was read of a document, for people.
enum DocumentText {
    static func lines(_ result: DocumentResult) -> [String] {
        var lines: [String] = []
        func add(_ title: String, _ rows: [(String, String)]) {
            guard !rows.isEmpty else { return }
            lines += [title + ":"] + Help.columns(rows, indentation: "  ").split(separator: "\n").map(String.init)
        }
        add(tr("Document"), rows(result.document.filter { $0.name != "mrz" }))
        add(tr("Holder"), rows(result.person))
        add(tr("Issue"), rows(result.issuance))
        add(tr("Groups"), result.groups.map { ("DG\($0.number)", text($0)) })
        add(tr("Opened with"), rows(result.access))
        add(tr("Checks"), result.checks.map { (ResultWords.text($0.name), text($0)) })
        return lines + [tr("Verdict: \(text(result.verdict))")]
    }

    private static func rows(_ fields: [DocumentResult.Field]) -> [(String, String)] {
        fields.map { (ResultWords.text($0.name), $0.value) }
    }

    private static func text(_ group: DocumentResult.DataGroup) -> String {
        group.length.map { tr("\(ResultWords.text(group.state)), \($0) bytes") } ?? ResultWords.text(group.state)
    }

    private static func text(_ check: DocumentResult.Check) -> String {
        var parts = [ResultWords.text(check.result) + (check.reason.map { ": \(ResultWords.text($0))" } ?? "")]
        let names = [
            "groups", "algorithm", "methods", "signer", "authority", "until", "crl", "defects", "unusableLists",
            "findings",
        ]
        for name in names {
            if let value = check.details[name] {
                switch name {
                case "crl": parts.append(tr("crl \(ResultWords.text(value))"))
                case "methods": parts.append(ResultWords.methods(value))
                case "findings": parts.append(ResultWords.list(value))
                default: parts.append(value)
                }
            }
        }
        return parts.joined(separator: "; ")
    }

    private static func text(_ verdict: DocumentResult.Verdict?) -> String {
        switch verdict {
        case .genuine: tr("genuine")
        case .genuineCopyable: tr("genuine data, but nothing proves the chip: a copy would look the same")
        case .unverified: tr("unverified: nothing has failed, but not everything was checked")
        case .suspect: tr("suspect: a check has failed")
        case nil: tr("unknown")
        }
    }
}
