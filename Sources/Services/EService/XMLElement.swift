// SPDX-License-Identifier: GPL-3.0-or-later

/// One element of a document and what it holds. Names are local: prefixes and namespaces of eID-Servers differ, the names
/// do not.
struct XMLElement: Sendable, Equatable {
    let name: String
    /// By local name.
    var attributes: [String: String] = [:]
    /// The character data of this element itself.
    var text = ""
    var children: [XMLElement] = []

    /// The text without white space around it.
    var trimmed: String {
        let head = text.utf8.drop(while: Self.isBlank)
        let count = head.reversed().drop(while: Self.isBlank).count
        return String(decoding: head.prefix(count), as: UTF8.self)
    }

    /// The text with each run of white space as one blank, none around it.
    var collapsed: String {
        text.utf8.split(whereSeparator: Self.isBlank).map { String(decoding: $0, as: UTF8.self) }.joined(separator: " ")
    }

    private static func isBlank(_ byte: UInt8) -> Bool { byte == 0x20 || (0x09...0x0D) ~= byte }

    /// The children of that name.
    func all(_ name: String) -> [XMLElement] { children.filter { $0.name == name } }

    /// The child of that name; nil without one.
    /// - Throws: `.duplicate` when there are more.
    func only(_ name: String) throws(XMLError) -> XMLElement? {
        let found = all(name)
        guard found.count <= 1 else { throw .duplicate(name) }
        return found.first
    }
}

/// What is wrong with a document.
enum XMLError: Error, Equatable {
    /// Not well-formed; the words are expat's.
    case malformed(String)
    /// A document type declaration: neither a TcToken nor PAOS has one, and entities come by no other way.
    case doctype
    /// More or deeper than any message of the protocol.
    case tooLarge
    /// An element that may be there once is there twice.
    case duplicate(String)
}
