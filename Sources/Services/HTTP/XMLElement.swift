// SPDX-License-Identifier: GPL-3.0-or-later
package import Text

/// One element of a document. Names are local names, since eID-Servers use different prefixes and namespaces.
package struct XMLElement: Sendable, Equatable {
    package let name: String
    /// The attributes by local name.
    package var attributes: [String: String] = [:]
    /// The character data of this element itself.
    package var text = ""
    package var children: [XMLElement] = []

    package init(name: String) { self.name = name }

    /// The text without white space at the start and the end.
    package var trimmed: String {
        String(Substring(text.utf8.trimmed(where: Self.isBlank)))
    }

    /// The text with one blank instead of each run of white space, and none at its ends.
    package var collapsed: String {
        text.utf8.split(whereSeparator: Self.isBlank).map { String(decoding: $0, as: UTF8.self) }.joined(separator: " ")
    }

    private static func isBlank(_ byte: UInt8) -> Bool { byte == 0x20 || (0x09...0x0D) ~= byte }

    package func all(_ name: String) -> [XMLElement] { children.filter { $0.name == name } }

    /// The child with that name; nil when there is none.
    /// - Throws: `Malformed` when there are several.
    package func only(_ name: String) throws(Malformed) -> XMLElement? {
        let found = all(name)
        guard found.count <= 1 else { throw Malformed("\(name) is repeated") }
        return found.first
    }
}
