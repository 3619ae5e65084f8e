// SPDX-License-Identifier: GPL-3.0-or-later

/// An element of a message with names in their namespaces.
struct XMLElement: Sendable {
    struct Name: Sendable, Hashable {
        /// Empty for a name without a namespace.
        let namespace: String
        let local: String
    }

    let name: Name
    /// The attributes without declarations of namespaces.
    let attributes: [Name: String]
    fileprivate(set) var children: [XMLElement] = []
    /// The character data of this element itself.
    fileprivate(set) var text = ""

    /// The children with this name.
    func children(_ namespace: PAOSNamespace, _ local: String) -> [XMLElement] {
        let wanted = Name(namespace: namespace.rawValue, local: local)
        return children.filter { $0.name == wanted }
    }

    /// The first child with this name.
    func child(_ namespace: PAOSNamespace, _ local: String) -> XMLElement? { children(namespace, local).first }

    /// The text without white space at its ends.
    var trimmed: String {
        // Bytes, since the files of cards are long and characters are slow.
        let space: (UInt8) -> Bool = { [0x20, 0x09, 0x0A, 0x0D].contains($0) }
        let bytes = Array(text.utf8)
        guard let first = bytes.firstIndex(where: { !space($0) }), let last = bytes.lastIndex(where: { !space($0) })
        else { return "" }
        return String(decoding: bytes[first...last], as: UTF8.self)
    }
}

/// A strict reader for the parts of XML 1.0 and Namespaces that PAOS uses. It refuses document types, other than the five
/// predefined entities, more than 64 levels, and more than 20 000 elements.
struct XMLReader {
    struct Malformed: Error {
        let offset: Int
        let what: String
    }

    private let bytes: [UInt8]
    private var position = 0
    private var elements = 0

    private static let maximumDepth = 64
    private static let maximumElements = 20_000
    private static let xmlNamespace = "http://www.w3.org/XML/1998/namespace"

    /// Reads the root element of a document in UTF-8.
    static func document(_ bytes: [UInt8]) throws(Malformed) -> XMLElement {
        guard String(validating: bytes, as: UTF8.self) != nil else { throw Malformed(offset: 0, what: "no UTF-8") }
        var reader = XMLReader(bytes: bytes.starts(with: [0xEF, 0xBB, 0xBF]) ? Array(bytes.dropFirst(3)) : bytes)
        try reader.skipMiscellaneous()
        let root = try reader.element([("xml", xmlNamespace)], depth: 0)
        try reader.skipMiscellaneous()
        guard reader.position == reader.bytes.count else { throw reader.malformed("something after the root") }
        return root
    }

    private init(bytes: [UInt8]) { self.bytes = bytes }

    private func malformed(_ what: String) -> Malformed { Malformed(offset: position, what: what) }

    private func isNext(_ text: StaticString) -> Bool {
        let wanted = UnsafeBufferPointer(start: text.utf8Start, count: text.utf8CodeUnitCount)
        return bytes[position...].starts(with: wanted)
    }

    private mutating func take(_ text: StaticString) throws(Malformed) {
        guard isNext(text) else { throw malformed("\(text) expected") }
        position += text.utf8CodeUnitCount
    }

    /// Takes everything up to `end`, and `end` itself.
    private mutating func take(until end: StaticString) throws(Malformed) -> ArraySlice<UInt8> {
        let start = position
        while position < bytes.count {
            if isNext(end) {
                defer { position += end.utf8CodeUnitCount }
                return bytes[start..<position]
            }
            position += 1
        }
        throw malformed("\(end) expected")
    }

    private mutating func skipSpace() {
        while position < bytes.count, [0x20, 0x09, 0x0A, 0x0D].contains(bytes[position]) { position += 1 }
    }

    private mutating func skipMiscellaneous() throws(Malformed) {
        while true {
            skipSpace()
            if isNext("<?") {
                _ = try take(until: "?>")
            } else if isNext("<!--") {
                _ = try take(until: "-->")
            } else {
                return
            }
        }
    }

    private mutating func qualifiedName() throws(Malformed) -> String {
        let start = position
        while position < bytes.count, !" \t\r\n=/><\"'".utf8.contains(bytes[position]) { position += 1 }
        guard position > start else { throw malformed("a name expected") }
        return String(decoding: bytes[start..<position], as: UTF8.self)
    }

    private mutating func attributes() throws(Malformed) -> [(String, String)] {
        var found: [(String, String)] = []
        while true {
            skipSpace()
            if isNext(">") || isNext("/>") { return found }
            let name = try qualifiedName()
            skipSpace()
            try take("=")
            skipSpace()
            let value: ArraySlice<UInt8>
            if isNext("\"") {
                try take("\"")
                value = try take(until: "\"")
            } else {
                try take("'")
                value = try take(until: "'")
            }
            guard !value.contains(UInt8(ascii: "<")), !found.contains(where: { $0.0 == name }), found.count < 64 else {
                throw malformed("attribute \(name)")
            }
            found.append((name, try characters(value)))
        }
    }

    private func resolve(
        _ name: String,
        _ scope: [(prefix: String, namespace: String)],
        isAttribute: Bool
    ) throws(Malformed) -> XMLElement.Name {
        let parts = name.split(separator: ":", omittingEmptySubsequences: false).map(String.init)
        guard parts.count <= 2, !parts.contains("") else { throw malformed("name \(name)") }
        let prefix = parts.count == 2 ? parts[0] : ""
        if prefix.isEmpty, isAttribute { return XMLElement.Name(namespace: "", local: parts[0]) }
        let namespace = scope.last { $0.prefix == prefix }?.namespace
        guard let namespace = namespace ?? (prefix.isEmpty ? "" : nil) else { throw malformed("prefix \(prefix)") }
        return XMLElement.Name(namespace: namespace, local: parts[parts.count - 1])
    }

    private mutating func element(
        _ outer: [(prefix: String, namespace: String)],
        depth: Int
    ) throws(Malformed) -> XMLElement {
        elements += 1
        guard depth < Self.maximumDepth, elements <= Self.maximumElements else { throw malformed("too much") }
        try take("<")
        let tag = try qualifiedName()
        let written = try attributes()
        var scope = outer
        for (name, value) in written {
            if name == "xmlns" { scope.append(("", value)) }
            if name.hasPrefix("xmlns:") { scope.append((String(name.dropFirst(6)), value)) }
        }
        var attributes: [XMLElement.Name: String] = [:]
        for (name, value) in written where name != "xmlns" && !name.hasPrefix("xmlns:") {
            attributes[try resolve(name, scope, isAttribute: true)] = value
        }
        var element = XMLElement(name: try resolve(tag, scope, isAttribute: false), attributes: attributes)
        if isNext("/>") {
            try take("/>")
            return element
        }
        try take(">")
        while true {
            if isNext("</") {
                try take("</")
                guard try qualifiedName() == tag else { throw malformed("another end than that of \(tag)") }
                skipSpace()
                try take(">")
                return element
            } else if isNext("<!--") {
                _ = try take(until: "-->")
            } else if isNext("<![CDATA[") {
                try take("<![CDATA[")
                element.text += String(decoding: try take(until: "]]>"), as: UTF8.self)
            } else if isNext("<?") {
                _ = try take(until: "?>")
            } else if isNext("<") {
                element.children.append(try self.element(scope, depth: depth + 1))
            } else {
                let start = position
                while position < bytes.count, bytes[position] != UInt8(ascii: "<") { position += 1 }
                guard position < bytes.count else { throw malformed("the end of \(tag) is missing") }
                element.text += try characters(bytes[start..<position])
            }
        }
    }

    /// Replaces the references in character data.
    private func characters(_ raw: ArraySlice<UInt8>) throws(Malformed) -> String {
        guard raw.contains(UInt8(ascii: "&")) else { return String(decoding: raw, as: UTF8.self) }
        var out = ""
        let parts = raw.split(separator: UInt8(ascii: "&"), omittingEmptySubsequences: false)
        out += String(decoding: parts.first ?? [], as: UTF8.self)
        for part in parts.dropFirst() {
            guard let end = part.firstIndex(of: UInt8(ascii: ";")) else { throw malformed("a reference without end") }
            let name = String(decoding: part[..<end], as: UTF8.self)
            guard let character = Self.character(name) else { throw malformed("reference \(name)") }
            out.unicodeScalars.append(character)
            out += String(decoding: part[(end + 1)...], as: UTF8.self)
        }
        return out
    }

    private static func character(_ name: String) -> UnicodeScalar? {
        switch name {
        case "amp": "&"
        case "lt": "<"
        case "gt": ">"
        case "quot": "\""
        case "apos": "'"
        case _ where name.hasPrefix("#x"): UInt32(name.dropFirst(2), radix: 16).flatMap(UnicodeScalar.init)
        case _ where name.hasPrefix("#"): UInt32(name.dropFirst(1)).flatMap(UnicodeScalar.init)
        default: nil
        }
    }
}
