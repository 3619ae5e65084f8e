// SPDX-License-Identifier: GPL-3.0-or-later

/// A piece of XML that is well formed by itself.
struct XML: Sendable {
    let text: String

    private init(raw text: String) { self.text = text }

    /// Character data.
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

    /// An element with elements in it.
    static func element(_ name: String, _ attributes: [(String, String)] = [], _ children: [XML] = []) -> XML {
        let written = attributes.map { " \($0)=\"\(escaped($1).text)\"" }.joined()
        return XML(raw: "<\(name)\(written)>\(children.map(\.text).joined())</\(name)>")
    }

    /// An element with text in it.
    static func element(_ name: String, _ attributes: [(String, String)] = [], text: String) -> XML {
        element(name, attributes, [escaped(text)])
    }

    /// An element with the hexadecimal digits of bytes in it.
    static func element(_ name: String, bytes: [UInt8]) -> XML { element(name, text: Hex.encode(bytes)) }

    /// As a document.
    var document: [UInt8] { Array("<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n\(text)\n".utf8) }
}

/// Hexadecimal digits, as xsd:hexBinary has them.
enum Hex {
    static func encode(_ bytes: [UInt8]) -> String {
        var out = ""
        out.reserveCapacity(bytes.count * 2)
        for byte in bytes {
            if byte < 16 { out += "0" }
            out += String(byte, radix: 16)
        }
        return out
    }

    /// nil when there is anything but pairs of digits.
    static func decode(_ text: String) -> [UInt8]? {
        let digits = text.utf8.map { $0.hexValue }
        guard digits.count % 2 == 0, !digits.contains(nil) else { return nil }
        let values = digits.compactMap { $0 }
        return stride(from: 0, to: values.count, by: 2).map { values[$0] << 4 | values[$0 + 1] }
    }
}

extension UInt8 {
    fileprivate var hexValue: UInt8? {
        switch self {
        case 0x30...0x39: self - 0x30
        case 0x41...0x46: self - 0x41 + 10
        case 0x61...0x66: self - 0x61 + 10
        default: nil
        }
    }
}
