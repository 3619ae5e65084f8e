// SPDX-License-Identifier: GPL-3.0-or-later
package import Text

/// The lines of a recording: a header, lines of a name and a value, and an end. docs/recordings.md.
package enum RecordingLines {
    /// A recording that is longer, in bytes of text, is refused.
    package static let maximumLength = 1 << 20
    private static let longestName = 6

    /// Reads the lines between the header and the end, without comments and empty lines. What is before the header is no
    /// part of the recording, such as the rest of a report.
    /// - Parameters:
    ///   - text: the bytes of the file.
    ///   - header: the line before the others, with a version of one digit.
    ///   - handle: gets the name and the value of each line.
    /// - Returns: whether there was an end.
    /// - Throws: `Malformed` with the number of the line and what is wrong with it.
    package static func read(
        _ text: some Collection<UInt8>,
        header: String,
        _ handle: (_ name: String, _ value: String) throws(Malformed) -> Void
    ) throws(Malformed) -> Bool {
        guard text.count <= maximumLength else { throw Malformed("is longer than \(maximumLength) bytes") }
        var hasHeader = false
        for (index, line) in Array(text).split(separator: 0x0A, omittingEmptySubsequences: false).enumerated() {
            do throws(Malformed) {
                let line = line.last == 0x0D ? line.dropLast() : line
                guard hasHeader else {
                    hasHeader = try isHeader(line, header)
                    continue
                }
                if line.isEmpty || line.first == UInt8(ascii: "#") { continue }
                if line.elementsEqual("end".utf8) { return true }
                // A longer word is no name, and is not compared as text.
                let name = line.prefix(longestName + 1).prefix { $0 != UInt8(ascii: " ") }
                let value = String(decoding: line.dropFirst(name.count + 1), as: UTF8.self)
                try handle(String(decoding: name, as: UTF8.self), value)
            } catch {
                throw Malformed("line \(index + 1): \(error.text)")
            }
        }
        guard hasHeader else { throw Malformed("has no line \(header)") }
        return false
    }

    /// Whether a line is the header. Another version of it is refused.
    private static func isHeader(_ line: ArraySlice<UInt8>, _ header: String) throws(Malformed) -> Bool {
        let version = header.utf8.count - 1
        guard line.starts(with: header.utf8.prefix(version)) else { return false }
        guard line.elementsEqual(header.utf8) else { throw Malformed("only \(header) is known") }
        return true
    }

    /// The bytes of a value.
    package static func bytes(_ digits: String) throws(Malformed) -> [UInt8] {
        guard let bytes = Hex.decode(digits) else { throw Malformed("is not hexadecimal") }
        return bytes
    }
}
