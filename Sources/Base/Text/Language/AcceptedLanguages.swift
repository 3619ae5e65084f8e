// SPDX-License-Identifier: Apache-2.0

/// The languages that a browser asks for: Accept-Language. RFC 9110, 12.5.4.
package struct AcceptedLanguages: Sendable {
    /// Languages without their regions, such as `de`, the most wanted first.
    private let languages: [Substring]

    /// The languages of a header that are looked at.
    private static let maximumCount = 20

    package init(_ header: String) {
        let entries = header.utf8.split(separator: UInt8(ascii: ",")).prefix(Self.maximumCount).map { entry in
            let parts = entry.filter { $0 != 0x20 && $0 != 0x09 }.map { (0x41...0x5A).contains($0) ? $0 | 0x20 : $0 }
                .split(separator: UInt8(ascii: ";"))
            let quality = parts.dropFirst().first { $0.starts(with: "q=".utf8) }
            let name = parts.first?.prefix { $0 != UInt8(ascii: "-") } ?? []
            return (
                name: Substring(String(decoding: name, as: UTF8.self)),
                weight: quality?.dropFirst(2).httpQuality ?? 1000
            )
        }
        // `sorted` keeps the order of equal weights.
        languages = entries.filter { $0.weight > 0 }.sorted { $0.weight > $1.weight }.map(\.name)
    }

    /// The most wanted of `translations`; nil if English is wanted more, or if there is none.
    package func first(among translations: some Collection<String>) -> String? {
        for language in languages {
            if language == "en" { return nil }
            if let found = translations.first(where: { $0 == language }) { return found }
        }
        return nil
    }
}
