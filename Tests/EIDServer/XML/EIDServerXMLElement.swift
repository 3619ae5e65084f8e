// SPDX-License-Identifier: GPL-3.0-or-later
import CExpat

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

/// Reads documents with expat. Unlike badged, the server compares namespaces.
enum XMLReader {
    struct Malformed: Error {
        let what: String
    }

    /// Separates namespace and name; no URI and no name contains this character.
    private static let separator: UInt8 = 0x0A

    /// Reads the root element of a document in UTF-8.
    static func document(_ bytes: [UInt8]) throws(Malformed) -> XMLElement {
        let parser = XML_ParserCreateNS("UTF-8", XML_Char(bitPattern: separator))
        defer { XML_ParserFree(parser) }
        let builder = Builder()
        // The builder exists until the end of this function, which is longer than the parser uses it.
        XML_SetUserData(parser, Unmanaged.passUnretained(builder).toOpaque())
        XML_SetElementHandler(
            parser,
            { user, name, attributes in Builder.of(user)?.start(name, attributes) },
            { user, _ in Builder.of(user)?.end() }
        )
        XML_SetCharacterDataHandler(parser) { user, text, count in Builder.of(user)?.add(text, count) }
        let status = bytes.withUnsafeBufferPointer { buffer in
            buffer.withMemoryRebound(to: CChar.self) { XML_Parse(parser, $0.baseAddress, Int32($0.count), 1) }
        }
        guard status == XML_STATUS_OK, let root = builder.root else {
            throw Malformed(what: XML_ErrorString(XML_GetErrorCode(parser)).map { String(cString: $0) } ?? "no element")
        }
        return root
    }

    /// Builds the elements from expat's events.
    private final class Builder {
        private var open: [XMLElement] = []
        /// The texts of the open elements, the innermost last.
        private var texts: [[UInt8]] = []
        private(set) var root: XMLElement?

        static func of(_ user: UnsafeMutableRawPointer?) -> Builder? {
            user.map { Unmanaged<Builder>.fromOpaque($0).takeUnretainedValue() }
        }

        func start(_ name: UnsafePointer<XML_Char>?, _ attributes: UnsafeMutablePointer<UnsafePointer<XML_Char>?>?) {
            guard let name else { return }
            var found: [XMLElement.Name: String] = [:]
            // Pairs of name and value; a null pointer ends the list.
            var index = 0
            while let attributes, let key = attributes[index], let value = attributes[index + 1] {
                found[Self.name(key)] = String(cString: value)
                index += 2
            }
            open.append(XMLElement(name: Self.name(name), attributes: found))
            texts.append([])
        }

        func add(_ text: UnsafePointer<XML_Char>?, _ count: Int32) {
            guard !texts.isEmpty else { return }
            UnsafeBufferPointer(start: text, count: Int(count)).withMemoryRebound(to: UInt8.self) {
                texts[texts.count - 1].append(contentsOf: $0)
            }
        }

        func end() {
            guard var element = open.popLast(), let text = texts.popLast() else { return }
            element.text = String(decoding: text, as: UTF8.self)
            if open.isEmpty {
                root = element
            } else {
                open[open.count - 1].children.append(element)
            }
        }

        private static func name(_ text: UnsafePointer<XML_Char>) -> XMLElement.Name {
            let parts = String(cString: text).split(separator: Character(UnicodeScalar(XMLReader.separator)))
            return XMLElement.Name(
                namespace: parts.dropLast().first.map(String.init) ?? "",
                local: parts.last.map(String.init) ?? ""
            )
        }
    }
}
