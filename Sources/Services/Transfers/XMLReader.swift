// SPDX-License-Identifier: GPL-3.0-or-later
import CExpat
import Glibc
package import HTTP
package import Text

/// Reads a document with expat, which opens no file and no connection. No other file calls expat.
///
/// Size, depth, number of elements and number of attributes are bounded; a document type is refused.
package enum XMLReader {
    /// The maximum number of bytes of a name with its namespace.
    static let maximumName = 1024

    /// Reads a document of at most `maximumLength` bytes.
    /// - Returns: the root element.
    /// - Throws: `Malformed`.
    package static func read(_ bytes: [UInt8], maximumLength: Int) throws(Malformed) -> XMLElement {
        guard bytes.count <= maximumLength, let count = Int32(exactly: bytes.count) else { throw tooLarge }
        guard let parser = XML_ParserCreateNS(nil, XML_Char(bitPattern: separator)) else { throw tooLarge }
        defer { XML_ParserFree(parser) }
        let builder = Builder(parser)
        // The builder exists until the end of this function, which is longer than the parser uses it.
        XML_SetUserData(parser, Unmanaged.passUnretained(builder).toOpaque())
        XML_SetElementHandler(
            parser,
            { user, name, attributes in Builder.of(user)?.start(name, attributes) },
            { user, _ in Builder.of(user)?.end() }
        )
        XML_SetCharacterDataHandler(parser) { user, text, count in Builder.of(user)?.add(text, count) }
        XML_SetStartDoctypeDeclHandler(parser) { user, _, _, _, _ in
            Builder.of(user)?.stop(Malformed("a document type"))
        }
        let status = bytes.withUnsafeBufferPointer { buffer in
            buffer.withMemoryRebound(to: CChar.self) { XML_Parse(parser, $0.baseAddress, count, 1) }
        }
        let code = XML_GetErrorCode(parser)
        if let error = builder.error { throw error }
        guard status == XML_STATUS_OK, let root = builder.root else {
            throw Malformed(XML_ErrorString(code).map { String(cString: $0) } ?? "unknown error")
        }
        return root
    }

    /// The document is larger or deeper than any message of the protocol.
    private static let tooLarge = Malformed("too large")

    private static let incomparable = Malformed("too many combining marks in a row")

    /// Separates namespace and name; no URI and no name contains this character.
    private static let separator: UInt8 = 0x0A

    /// Builds the elements from expat's events.
    private final class Builder {
        private let parser: XML_Parser
        private var open: [XMLElement] = []
        /// The texts of the open elements, the innermost last.
        private var texts: [[UInt8]] = []
        private var count = 0
        private var attributeCount = 0
        private(set) var root: XMLElement?
        private(set) var error: Malformed?

        init(_ parser: XML_Parser) { self.parser = parser }

        static func of(_ user: UnsafeMutableRawPointer?) -> Builder? {
            user.map { Unmanaged<Builder>.fromOpaque($0).takeUnretainedValue() }
        }

        func stop(_ error: Malformed) {
            if self.error == nil { self.error = error }
            XML_StopParser(parser, XML_Bool(0))
        }

        func start(_ name: UnsafePointer<XML_Char>?, _ attributes: UnsafeMutablePointer<UnsafePointer<XML_Char>?>?) {
            guard error == nil else { return }
            count += 1
            guard count <= XMLElement.maximumElements, open.count < XMLElement.maximumDepth, let name = Self.local(name)
            else { return stop(XMLReader.tooLarge) }
            var element = XMLElement(name: name)
            // Pairs of name and value; a null pointer ends the list.
            var index = 0
            while let attributes, let key = attributes[index], let value = attributes[index + 1] {
                attributeCount += 1
                guard index / 2 < XMLElement.maximumAttributes,
                    attributeCount <= XMLElement.maximumAttributesInAll, let name = Self.local(key)
                else { return stop(XMLReader.tooLarge) }
                let text = String(cString: value)
                guard text.isComparable else { return stop(XMLReader.incomparable) }
                element.attributes[name] = text
                index += 2
            }
            open.append(element)
            texts.append([])
        }

        func add(_ text: UnsafePointer<XML_Char>?, _ count: Int32) {
            guard error == nil, let text, !texts.isEmpty else { return }
            UnsafeBufferPointer(start: text, count: Int(count)).withMemoryRebound(to: UInt8.self) {
                texts[texts.count - 1].append(contentsOf: $0)
            }
        }

        func end() {
            guard error == nil, var element = open.popLast(), let text = texts.popLast() else { return }
            element.text = String(decoding: text, as: UTF8.self)
            if open.isEmpty {
                root = element
            } else {
                open[open.count - 1].children.append(element)
            }
        }

        /// Returns the name without its namespace; nil when it is too long, or cannot be compared.
        private static func local(_ name: UnsafePointer<XML_Char>?) -> String? {
            guard let name else { return nil }
            let bytes = UnsafeBufferPointer(start: name, count: strnlen(name, XMLReader.maximumName + 1))
            guard bytes.count <= XMLReader.maximumName else { return nil }
            let start = bytes.lastIndex { UInt8(bitPattern: $0) == XMLReader.separator }.map { $0 + 1 } ?? 0
            let local = String(decoding: bytes[start...].lazy.map { UInt8(bitPattern: $0) }, as: UTF8.self)
            return local.isComparable ? local : nil
        }
    }
}
