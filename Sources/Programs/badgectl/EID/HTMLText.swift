// SPDX-License-Identifier: GPL-3.0-or-later
import Text

/// Turns an HTML page into lines of text, for a terminal. It reads any bytes, and never fails.
enum HTMLText {
    /// Elements whose content is not shown.
    private static let hidden: Set<String> = ["script", "style", "template", "svg", "noscript", "title"]
    /// Elements that stay within their line.
    private static let inline: Set<String> = [
        "a", "abbr", "b", "bdi", "bdo", "cite", "code", "data", "dfn", "em", "font", "i", "img", "kbd", "label", "mark",
        "q", "s", "samp", "small", "span", "strong", "sub", "sup", "time", "u", "var", "wbr",
    ]

    static func text(_ page: String) -> String {
        let scalars = Array(page.unicodeScalars)
        var out: [Unicode.Scalar] = []
        var position = 0
        while position < scalars.count {
            switch scalars[position] {
            case "<":
                let (name, isEnd, next) = tag(scalars, position)
                position = next
                guard let name else { continue }
                if !inline.contains(name) { breakLine(&out) }
                if !isEnd, hidden.contains(name) { position = end(of: name, scalars, position) }
            case "&":
                let (scalar, next) = reference(scalars, position)
                out.append(scalar)
                position = next
            case let scalar where scalar.properties.isWhitespace:
                if out.last?.properties.isWhitespace == false { out.append(" ") }
                position += 1
            case let scalar:
                out.append(scalar)
                position += 1
            }
        }
        let lines = out.split(separator: "\n").map { $0.trimmedEnd { $0 == " " } }.filter { !$0.isEmpty }
        return String(String.UnicodeScalarView(lines.joined(separator: ["\n"])))
    }

    private static func breakLine(_ out: inout [Unicode.Scalar]) {
        if !out.isEmpty, out.last != "\n" { out.append("\n") }
    }

    /// Reads a tag or a comment at `position`. The name is nil for a comment, a declaration, and a lone `<`.
    private static func tag(_ text: [Unicode.Scalar], _ position: Int) -> (name: String?, isEnd: Bool, next: Int) {
        if text[position...].starts(with: "<!--".unicodeScalars) {
            var next = position + 4
            while next < text.count, !text[next...].starts(with: "-->".unicodeScalars) { next += 1 }
            return (nil, false, min(next + 3, text.count))
        }
        var next = position + 1
        let isEnd = next < text.count && text[next] == "/"
        if isEnd { next += 1 }
        var name = ""
        while next < text.count, text[next].isASCII, text[next].properties.isAlphabetic || "0"..."9" ~= text[next] {
            name.unicodeScalars.append(text[next])
            next += 1
        }
        // A value in quotation marks may have the sign that ends the tag.
        var quote: Unicode.Scalar?
        while next < text.count {
            let scalar = text[next]
            next += 1
            if let open = quote {
                if scalar == open { quote = nil }
            } else if scalar == ">" {
                break
            } else if scalar == "\"" || scalar == "'" {
                quote = scalar
            }
        }
        return (name.isEmpty ? nil : name.lowercased(), isEnd, next)
    }

    /// The place of the end tag of a hidden element; the end of the page without one.
    private static func end(of name: String, _ text: [Unicode.Scalar], _ position: Int) -> Int {
        let wanted = Array("</\(name)".unicodeScalars)
        var next = position
        while next < text.count {
            if text[next] == "<",
                text[next...].prefix(wanted.count).map(\.properties.lowercaseMapping).joined()
                    .unicodeScalars.elementsEqual(wanted)
            {
                return next
            }
            next += 1
        }
        return next
    }

    private static let names: [String: Unicode.Scalar] = [
        "amp": "&", "lt": "<", "gt": ">", "quot": "\"", "apos": "'", "nbsp": " ", "auml": "ä", "ouml": "ö",
        "uuml": "ü", "Auml": "Ä", "Ouml": "Ö", "Uuml": "Ü", "szlig": "ß", "ndash": "–", "mdash": "—", "hellip": "…",
    ]

    /// Reads a character reference at `position`; `&` itself when there is none.
    private static func reference(_ text: [Unicode.Scalar], _ position: Int) -> (scalar: Unicode.Scalar, next: Int) {
        let end = text[(position + 1)...].prefix(10).firstIndex(of: ";")
        guard let end else { return ("&", position + 1) }
        var word = ""
        word.unicodeScalars.append(contentsOf: text[(position + 1)..<end])
        if let scalar = names[word] { return (scalar, end + 1) }
        guard word.hasPrefix("#") else { return ("&", position + 1) }
        let digits = word.dropFirst()
        let number =
            digits.hasPrefix("x") || digits.hasPrefix("X") ? UInt32(digits.dropFirst(), radix: 16) : UInt32(digits)
        guard let number, let scalar = Unicode.Scalar(number) else { return ("&", position + 1) }
        return (scalar, end + 1)
    }
}
