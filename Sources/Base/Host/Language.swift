// SPDX-License-Identifier: GPL-3.0-or-later
package import Text

/// The language of the user, by LANGUAGE, LC_ALL, LC_MESSAGES and LANG, as in gettext. The texts are in po/.
package enum Language {
    /// The catalogue of the user who has started this program.
    package static let current = catalogue(of: preferred(systemEnvironment))

    /// The names of languages in the order of the user's wishes, such as `de_AT` and `de`; empty for English.
    static func preferred(_ environment: Environment) -> [String] {
        func value(_ name: String) -> String? { environment(name).flatMap { $0.isEmpty ? nil : $0 } }
        let locale = value("LC_ALL") ?? value("LC_MESSAGES") ?? value("LANG") ?? "C"
        guard locale != "C", locale != "POSIX", !locale.hasPrefix("C.") else { return [] }
        let names = value("LANGUAGE").map { $0.split(separator: ":").map(String.init) } ?? [locale]
        return names.flatMap { name in
            let short = name.prefix { $0 != "." && $0 != "@" }
            let language = short.prefix { $0 != "_" }
            return short == language ? [String(short)] : [String(short), String(language)]
        }
    }

    /// The first catalogue of the languages that there is; English needs none.
    package static func catalogue(of languages: [String], _ environment: Environment = systemEnvironment) -> Catalogue {
        installed(languages, environment) ?? .english
    }

    private static func installed(_ languages: [String], _ environment: Environment) -> Catalogue? {
        for name in languages {
            if name == "en" || name.hasPrefix("en_") { break }
            // A name must not lead out of the folder.
            guard !name.isEmpty, name.utf8.allSatisfy({ $0 == UInt8(ascii: "_") || isLetter($0) }) else { continue }
            let folder = environment("BADGED_LOCALES") ?? folder
            let path = "\(folder)/\(name)/LC_MESSAGES/badged.mo"
            guard case .bytes(let bytes) = PlainFile.read(path, limit: Catalogue.maximumBytes) else { continue }
            if let catalogue = Catalogue(bytes) { return catalogue }
        }
        return nil
    }

    /// The catalogues that are installed, by the names of their languages.
    package static func translations() -> [String: Catalogue] {
        ["de": installed(["de"], systemEnvironment)].compactMapValues(\.self)
    }

    private static let folder = "/usr/share/locale"

    private static func isLetter(_ byte: UInt8) -> Bool {
        (UInt8(ascii: "a")...UInt8(ascii: "z")).contains(byte) || (UInt8(ascii: "A")...UInt8(ascii: "Z")).contains(byte)
    }
}

/// A text for people in the language of the user. po/update finds these texts by the name of the function.
package func tr(_ phrase: Phrase) -> String { Language.current.text(phrase) }
