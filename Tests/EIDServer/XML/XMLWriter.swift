// SPDX-License-Identifier: GPL-3.0-or-later
import Text

/// A well-formed piece of XML.
struct XML: Sendable {
    let text: String

    private init(raw text: String) { self.text = text }

    /// Escapes character data.
    static func escaped(_ text: String) -> XML {
        var out = ""
        for character in text.unicodeScalars {
            switch character {
            case "&": out += "&amp;"
            case "<": out += "&lt;"
            case ">": out += "&gt;"
            case "\"": out += "&quot;"
            default: out.unicodeScalars.append(character)
            }
        }
        return XML(raw: out)
    }

    /// Makes an element with children.
    static func element(_ name: String, _ attributes: [(String, String)] = [], _ children: [XML] = []) -> XML {
        let written = attributes.map { " \($0)=\"\(escaped($1).text)\"" }.joined()
        return XML(raw: "<\(name)\(written)>\(children.map(\.text).joined())</\(name)>")
    }

    /// Makes an element with text.
    static func element(_ name: String, _ attributes: [(String, String)] = [], text: String) -> XML {
        element(name, attributes, [escaped(text)])
    }

    /// Makes an element with the hexadecimal digits of bytes.
    static func element(_ name: String, bytes: [UInt8]) -> XML { element(name, text: Hex.encode(bytes)) }

    /// The piece as a document.
    var document: [UInt8] { Array("<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n\(text)\n".utf8) }
}
