// SPDX-License-Identifier: GPL-3.0-or-later
import ChipAccess
import ISO7816

/// Reads transparent files of a card by READ BINARY. ISO 7816-4, 11.3.3.
enum TransparentFile {
    /// The maximum number of bytes of one file: READ BINARY has offsets of 15 bits. All files of eID cards are much
    /// shorter.
    static let maximumLength = 0x7FFF
    /// The maximum number of commands for one file.
    static let maximumReads = 256

    /// Reads a file from its start until the card has no more bytes. `name` is for errors; `shortFileID` is 1 to 30; `le` is the maximum number
    /// of bytes of one answer, 1 to 65 536.
    ///
    /// With `hasLength` the file begins with one object, and is read until this object is complete.
    /// - Throws: `.status` when the card refused the first command; `.protocolViolation` when the file exceeds
    ///   `maximumLength` or `maximumReads`, or an answer is longer than it may be; `.card(.cancelled)` when the task was
    ///   cancelled.
    static func read(
        _ name: String,
        _ shortFileID: UInt8,
        le: Int,
        hasLength: Bool = false,
        transmit: (CommandAPDU) async throws(ChipError) -> ResponseAPDU
    ) async throws(ChipError) -> [UInt8] {
        let tooLong = ChipError.protocolViolation("\(name) is too long")
        var content: [UInt8] = []
        for _ in 0..<maximumReads {
            guard !Task.isCancelled else { throw .card(.cancelled) }
            let answer = try await transmit(
                content.isEmpty
                    ? .readBinary(shortFileID: shortFileID, le: le)
                    : .readBinary(offset: content.count, le: le)
            )
            guard answer.data.count <= le, content.count + answer.data.count <= maximumLength else { throw tooLong }
            switch answer.status.value {
            case 0x9000 where !answer.data.isEmpty:
                content += answer.data
                if hasLength, (try? BERTLV(startOf: content)) != nil { return content }
            case 0x9000, 0x6282:
                return content + answer.data
            default:
                // Cards answer 6B00 or other status words after the end of a file. A truncated file fails to parse.
                guard !content.isEmpty else { throw .status(answer.status) }
                return content
            }
        }
        throw tooLong
    }
}
