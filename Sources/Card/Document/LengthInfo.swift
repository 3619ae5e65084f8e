// SPDX-License-Identifier: GPL-3.0-or-later
import ISO7816

/// What EF.ATR/INFO says of the lengths of commands and answers. ISO/IEC 7816-4, 12.7.1 and 12.8.1; ICAO 9303-10 3.11.1.
package struct LengthInfo: Sendable, Equatable {
    /// Whether the chip takes extended lengths; nil: the file does not say it.
    package private(set) var takesExtended: Bool?
    /// The most bytes of an answer APDU; nil: the file does not say it.
    package private(set) var maximumAnswer: Int?

    /// Reads what can be read; other objects, and bytes that are none, are ignored.
    package init(_ file: [UInt8]) {
        var reader = BERReader(file)
        while let object = try? reader.next() {
            switch object.tag {
            case 0x47: takesExtended = takesExtended ?? CardCapabilities.takesExtended(object.value)
            case 0x7F66:
                guard let limits = try? object.children, limits.count == 2, (1...4).contains(limits[1].value.count)
                else { continue }
                // Some chips write 65 535 in two bytes.
                takesExtended = true
                maximumAnswer = limits[1].value.reduce(0) { $0 << 8 | Int($1) }
            default: continue
            }
        }
    }
}

/// The historical bytes of an answer to reset. ISO/IEC 7816-3 8.2, ISO/IEC 7816-4 12.1.1.
package struct HistoricalBytes: Sendable, Equatable {
    /// Whether the chip takes extended lengths; nil: the bytes do not say it.
    package private(set) var takesExtended: Bool?

    /// Finds the bytes behind the interface bytes; nil for an answer that ends before them.
    package init?(answerToReset bytes: [UInt8]) {
        guard bytes.count >= 2 else { return nil }
        let count = Int(bytes[1] & 0x0F)
        var rest = bytes.dropFirst(2)
        var indicator = bytes[1]
        while true {
            rest = rest.dropFirst((indicator >> 4 & 0x07).nonzeroBitCount)
            guard indicator & 0x80 != 0 else { break }
            guard let next = rest.popFirst() else { return nil }
            indicator = next
        }
        guard rest.count >= count else { return nil }
        self.init(historicalBytes: rest.prefix(count))
    }

    private init(historicalBytes: ArraySlice<UInt8>) {
        var rest = historicalBytes
        switch rest.popFirst() {
        case 0x00: rest = rest.dropLast(3)
        case 0x80: break
        default: return
        }
        // Compact objects: the tag and the length have four bits each.
        while let header = rest.popFirst() {
            let value = rest.prefix(Int(header & 0x0F))
            rest = rest.dropFirst(value.count)
            if header >> 4 == 0x07 { takesExtended = CardCapabilities.takesExtended(Array(value)) }
        }
    }
}

private enum CardCapabilities {
    /// Reads bit 7 of the third software function table; nil if there is none. ISO/IEC 7816-4, 12.1.1.9.
    static func takesExtended(_ tables: [UInt8]) -> Bool? { tables.count == 3 ? tables[2] & 0x40 != 0 : nil }
}
