// SPDX-License-Identifier: Apache-2.0

/// The answer to one command of the Assuan protocol, read line by line. Assuan manual, Server responses.
///
/// pinentry uses this protocol. The size is bounded: an endless answer is an error.
package struct AssuanReply: ~Copyable {
    package enum Result: Sendable {
        /// OK, with the data that came before it; nil: there were none.
        case done(SecretBox?)
        /// ERR: the code of libgpg-error, without its source.
        case error(Int)
    }

    /// The longest line in bytes, without its end.
    package static let longestLine = 1000
    /// The maximum number of lines of one answer. Status lines and comments count.
    package static let maximumLines = 1000
    /// The maximum number of bytes of data, after decoding.
    package static let maximumData = 4096

    private static let tooLong = Malformed("too long")

    private var lines = 0
    private var data: Secret?

    package init() {}

    /// Takes the next line. Returns the result when the line ends the answer.
    package mutating func receive(_ line: UnsafeRawBufferPointer) throws(Malformed) -> Result? {
        lines += 1
        guard lines <= Self.maximumLines, line.count <= Self.longestLine else { throw Self.tooLong }
        let end = line.firstIndex(of: UInt8(ascii: " ")) ?? line.count
        let word = line[..<end]
        let text = UnsafeRawBufferPointer(rebasing: line[min(end + 1, line.count)...])
        if word.isEmpty || line.first == UInt8(ascii: "#") || word.elementsEqual("S".utf8) { return nil }
        if word.elementsEqual("D".utf8) {
            try add(Self.decoded(text))
            return nil
        }
        if word.elementsEqual("OK".utf8) {
            guard let data = data.take() else { return .done(nil) }
            return .done(SecretBox(data))
        }
        guard word.elementsEqual("ERR".utf8) else { throw Malformed("an unknown line") }
        let code = String(decoding: text.prefix { $0 != UInt8(ascii: " ") }, as: UTF8.self)
        return .error(Int(UInt32(code) ?? 0) & 0xFFFF)
    }

    private mutating func add(_ more: consuming Secret) throws(Malformed) {
        guard let earlier = data.take() else {
            data = consume more
            return
        }
        guard earlier.count + more.count <= Self.maximumData else { throw Self.tooLong }
        data = earlier.appending(more)
    }

    /// Decodes the text of a data line: `%XX` is a byte.
    package static func decoded(_ text: UnsafeRawBufferPointer) -> Secret {
        func each(_ body: (UInt8) -> Void) {
            var index = 0
            while index < text.count {
                if text[index] == UInt8(ascii: "%"), index + 2 < text.count, let high = Hex.value(text[index + 1]),
                    let low = Hex.value(text[index + 2])
                {
                    body(high << 4 | low)
                    index += 3
                } else {
                    body(text[index])
                    index += 1
                }
            }
        }
        var count = 0
        each { _ in count += 1 }
        return Secret(count: count) { bytes in
            var place = 0
            each { byte in
                bytes[place] = byte
                place += 1
            }
        }
    }
}
