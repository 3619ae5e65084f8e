// SPDX-License-Identifier: GPL-3.0-or-later
import TestSupport
import Testing

@testable import Host
@testable import Text

@Suite("Texts in the language of the user", .timeLimit(.minutes(5))) struct CatalogueTests {
    /// A file as msgfmt makes it.
    private static func file(_ texts: [(String, String)], isLittle: Bool = true) -> [UInt8] {
        func word(_ number: Int) -> [UInt8] {
            let bytes = (0..<4).map { UInt8(truncatingIfNeeded: number >> ($0 * 8)) }
            return isLittle ? bytes : bytes.reversed()
        }
        let start = 28 + 16 * texts.count
        var tables: [[UInt8]] = [[], []]
        var content: [UInt8] = []
        for (index, texts) in [texts.map(\.0), texts.map(\.1)].enumerated() {
            for text in texts {
                tables[index] += word(text.utf8.count) + word(start + content.count)
                content += Array(text.utf8) + [0]
            }
        }
        let head = [0x9504_12DE, 0, texts.count, 28, 28 + 8 * texts.count, 0, 0]
        return head.flatMap(word) + tables[0] + tables[1] + content
    }

    @Test("A text is found by its English form, and its values stand where the translation has them")
    func translated() throws {
        let texts = [("", "Language: de\n"), ("{0} of {1}", "von {1} sind es {0}"), ("yes", "ja")]
        for isLittle in [true, false] {
            let catalogue = try #require(Catalogue(Self.file(texts, isLittle: isLittle)))
            #expect(catalogue.text("yes") == "ja")
            #expect(catalogue.text("\(2) of \("{0} 3")") == "von {0} 3 sind es 2")
            #expect(catalogue.text("no \("text") of it") == "no text of it")
        }
    }

    @Test(
        "A translation with other placeholders is not used",
        arguments: ["von {1}", "{0} {1} {2}", "{0} {a}", "{0} {1"]
    )
    func otherPlaceholders(translation: String) throws {
        let catalogue = try #require(Catalogue(Self.file([("{0} of {1}", translation)])))
        #expect(catalogue.text("\(2) of \(3)") == "2 of 3")
    }

    @Test("A file that is cut or changed is English or no catalogue, and never traps")
    func broken() {
        let file = Self.file([("{0} of {1}", "von {1} {0}"), ("yes", "ja")])
        for count in 0..<file.count {
            let text = Catalogue(Array(file.prefix(count)))?.text("\(2) of \(3)")
            #expect(text == nil || text == "2 of 3" || text == "von 3 2")
        }
        for index in file.indices {
            for value: UInt8 in [0, 0x7F, 0xFF] {
                var changed = file
                changed[index] = value
                _ = Catalogue(changed)?.text("\(2) of \(3)")
            }
        }
    }

    @Test(
        "The language is that of gettext's variables",
        arguments: [
            (["LANG": "de_AT.UTF-8"], ["de_AT", "de"]), (["LANG": "de_DE", "LC_ALL": "C"], []),
            (["LANG": "en_GB.UTF-8", "LANGUAGE": "de:fr"], ["de", "fr"]), (["LANGUAGE": "de"], []), ([:], []),
            (["LC_MESSAGES": "de@euro", "LANG": "fr_FR"], ["de"]),
        ] as [([String: String], [String])]
    )
    func languages(environment: [String: String], names: [String]) {
        #expect(Language.preferred { environment[$0] } == names)
    }

    @Test("A name of a language does not lead out of the folder", arguments: ["../x", "", "de/../..", "d.e"])
    func foreignNames(name: String) throws {
        let folder = try TemporaryFolder()
        let catalogue = Language.catalogue(of: [name]) { $0 == "BADGED_LOCALES" ? folder.path : nil }
        #expect(catalogue.text("yes") == "yes")
    }

    @Test(
        "A browser gets its most wanted language",
        arguments: [
            ("de", "de"), ("de-AT,de;q=0.9,en;q=0.8", "de"), ("en-GB,en;q=0.9,de;q=0.8", nil),
            ("fr,de;q=0.5,en;q=0.4", "de"),
            ("fr, *;q=0.1", nil), ("de;q=0", nil), ("DE", "de"), ("", nil), (";,;q=1,=", nil),
        ] as [(String, String?)]
    )
    func accepted(header: String, language: String?) {
        #expect(AcceptedLanguages(header).first(among: ["de"]) == language)
    }
}
