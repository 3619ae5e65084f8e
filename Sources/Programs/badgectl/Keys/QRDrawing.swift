// SPDX-License-Identifier: GPL-3.0-or-later
import CQREncode

/// Draws a QR code with characters: two modules in a character, one above the other. ISO/IEC 18004.
enum QRDrawing {
    /// The light modules around the code that readers need.
    private static let border = 4

    /// The lines of the drawing; nil if the text is too long for a code. The C function is QRcode_encodeString8bit.
    ///
    /// The light modules are drawn, because a terminal is usually dark; a code in the other colours is read, too.
    static func lines(_ text: String, isPlain: Bool = Layout.isPlain) -> [String]? {
        guard let code = QRcode_encodeString8bit(text, 0, QR_ECLEVEL_M) else { return nil }
        defer { QRcode_free(code) }
        let width = Int(code.pointee.width)
        guard let data = code.pointee.data, width > 0 else { return nil }
        func isDark(_ row: Int, _ column: Int) -> Bool {
            guard (0..<width).contains(row), (0..<width).contains(column) else { return false }
            // The lowest bit of a module is its colour.
            return data[row * width + column] & 1 == 1
        }
        let places = -border..<width + border
        guard !isPlain else {
            return places.map { row in places.map { isDark(row, $0) ? "  " : "##" }.joined() }
        }
        return stride(from: places.lowerBound, to: places.upperBound, by: 2).map { row in
            places.map { column in
                switch (isDark(row, column), isDark(row + 1, column)) {
                case (false, false): "█"
                case (false, true): "▀"
                case (true, false): "▄"
                case (true, true): " "
                }
            }.joined()
        }
    }
}
