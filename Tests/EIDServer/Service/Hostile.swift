// SPDX-License-Identifier: GPL-3.0-or-later

/// Documents that attack a reader of XML.
enum Hostile {
    /// A document type whose entities expand to 2^30 letters.
    static func entities(root: String) -> [UInt8] {
        var text = "<?xml version=\"1.0\"?>\n<!DOCTYPE x [<!ENTITY e0 \"a\">"
        for number in 1...30 { text += "<!ENTITY e\(number) \"&e\(number - 1);&e\(number - 1);\">" }
        return Array((text + "]>\n<\(root)>&e30;</\(root)>\n").utf8)
    }

    /// Inserts 64 MiB of space after the first line.
    static func huge(_ document: [UInt8]) -> [UInt8] {
        let end = document.firstIndex(of: 0x0A) ?? document.startIndex
        return Array(document[..<end]) + [UInt8](repeating: 0x20, count: 64 << 20) + document[end...]
    }

    /// 100 000 nested elements.
    static var deep: [UInt8] {
        let depth = 100_000
        return Array("<?xml version=\"1.0\"?>\n".utf8)
            + Array(repeating: Array("<a>".utf8), count: depth).flatMap { $0 }
            + Array(repeating: Array("</a>".utf8), count: depth).flatMap { $0 }
    }
}
