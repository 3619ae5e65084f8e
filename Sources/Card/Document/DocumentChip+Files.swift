// SPDX-License-Identifier: GPL-3.0-or-later
import ChipAccess
import Crypto
import ISO7816

/// What a chip takes of READ BINARY. A chip that refuses a length is asked for less.
package struct ReadAbilities: Sendable, Equatable {
    /// The lengths with which some chips stop: 160 bytes is the least. Issue trackers name them.
    private static let short = [231, 223, 160, 112]
    /// The answer of one extended command, if the chip names no maximum. Chips return between 1000 and 65 535 bytes.
    private static let extended = 4096

    private var steps = Self.short[...]
    /// Whether each file is selected before it is read, because the chip has no short file identifiers.
    var selectsFiles = false
    /// How often EF.CardSecurity could not be read.
    var cardSecurityFailures = 0
    /// Whether it failed the last time because the chip gave no answer of its own.
    var isCardSecurityDisturbed = false
    /// Whether EF.CardSecurity is not tried again: what fails twice counts.
    var lacksCardSecurity: Bool { cardSecurityFailures > 1 }
    /// How often the chip did not answer to EF.COM, which shows whether it has access control. DG1 shows it, too.
    var commonDataFailures = 0
    /// Whether the chip has not been asked yet which lengths it takes.
    private(set) var isUntried: Bool
    private let historicalBytes: HistoricalBytes?

    /// - Parameters:
    ///   - usesExtendedLength: whether the reader can carry long answers.
    ///   - answerToReset: of the chip; it may say that the chip takes extended lengths.
    package init(usesExtendedLength: Bool = false, answerToReset: [UInt8] = []) {
        isUntried = usesExtendedLength
        historicalBytes = HistoricalBytes(answerToReset: answerToReset)
    }

    /// Learns the lengths from EF.ATR/INFO, which was asked for with extended lengths. ISO/IEC 7816-4 12.7.1, 12.8.1.
    /// - Parameter answer: of the chip; nil for none.
    mutating func learn(_ answer: ResponseAPDU?) {
        isUntried = false
        guard let answer, answer.status.value != 0x6700 else { return }
        let info = LengthInfo(answer.data)
        guard info.takesExtended ?? historicalBytes?.takesExtended ?? false else { return }
        // Cryptogram, status, checksum and their headers, in whole blocks.
        let limit = info.maximumAnswer.map { ($0 - 21) / 16 * 16 - 1 } ?? Self.extended
        if limit > 256 { steps = ([min(limit, Self.extended)] + Self.short)[...] }
    }

    /// The most that one command may ask for. With AES the blocks are longer.
    func limit(_ cipher: BlockCipher) -> Int {
        let limit = steps.first ?? 112
        return limit == 231 && cipher == .aes ? 223 : limit
    }

    /// The most that a short command may ask for.
    func shortLimit(_ cipher: BlockCipher) -> Int { min(limit(cipher), cipher == .aes ? 223 : 231) }

    var isExtended: Bool { (steps.first ?? 0) > 256 }

    /// Goes on with less; false if there is no less.
    mutating func shorten(below length: Int) -> Bool {
        let rest = steps.drop { $0 >= length }
        guard !rest.isEmpty else { return false }
        steps = rest
        return true
    }
}

extension DocumentChip {
    /// The maximum length of a file. Data groups have far less than 1 MiB.
    package static let maximumLength = 1 << 20
    /// The maximum length of a file that does not say its length. Signed files have at most 20 KiB.
    private static let maximumUnsaid = 0x8000
    /// How often such a file is read to what is certain to follow. Then whole blocks are read.
    private static let maximumShortReads = 64
    /// From this offset on READ BINARY needs the odd instruction.
    private static let oddOffset = 0x8000
    /// How often a channel that a read has ended is opened again for one file.
    private static let maximumReopenings = 4

    /// Reads a file. The chip is not asked for more than the file has, because some chips end the channel then.
    ///
    /// - Parameters:
    ///   - file: in the current application; `.cardSecurity` is in the master file.
    ///   - known: a length that the file has at least; the first command asks for as much.
    ///   - progress: gets the bytes that are read and the length of the file.
    /// - Returns: the content without what follows it in the file.
    /// - Throws: `.refused`, `.malformed` for a content that does not fit its length, and as `open`.
    package func read(
        _ file: DocumentFile,
        known: Int = 8,
        progress: @Sendable (_ read: Int, _ total: Int) -> Void = { _, _ in }
    ) async throws(DocumentError) -> [UInt8] {
        var content: [UInt8] = []
        var total: Int?
        var ending = IndefiniteLength()
        var shortReads = 0
        var reopenings = 0
        partial[file] = nil
        if !hasChannel { try await reopen(for: file) }
        if abilities.selectsFiles { try await select(file) }
        defer { if total.map({ content.count < $0 }) ?? true { partial[file] = content } }
        while total.map({ content.count < $0 }) ?? true {
            let cipher = blockCipher
            let isOdd = content.count >= Self.oddOffset
            let wanted: Int
            if let total {
                let block = abilities.limit(cipher) - (isOdd ? Self.maximumOddHeader : 0)
                let isSure = content[1] != 0x80 || shortReads < Self.maximumShortReads
                wanted = isSure ? min(total - content.count, block) : block
                if wanted < block { shortReads += 1 }
            } else {
                // The header alone tells the length.
                wanted = min(max(known, 8) - content.count, abilities.shortLimit(cipher))
                guard wanted > 0 else { throw .malformed(file) }
            }
            let answer: ResponseAPDU
            do throws(ChipError) {
                answer = try await protected(command(file, offset: content.count, count: wanted))
            } catch {
                if content.isEmpty, case .status(let status) = error, mayKnowIdentifier(status) {
                    // First, because the chip may need a reset before the next channel.
                    abilities.selectsFiles = true
                    try await reopen(for: file)
                    try await select(file)
                    continue
                }
                // The chip has ended the channel: it is opened again, and asked for less.
                // So is it after a length that the reader cannot transfer.
                guard let status = Self.endOfChannel(error), reopenings < Self.maximumReopenings else {
                    throw DocumentError(error)
                }
                guard abilities.shorten(below: wanted) else { throw .refused(file, status) }
                reopenings += 1
                try await reopen(for: file)
                if !content.isEmpty || abilities.selectsFiles { try await select(file) }
                continue
            }
            if content.isEmpty, mayKnowIdentifier(answer.status) {
                try await select(file)
                abilities.selectsFiles = true
                continue
            }
            let data = isOdd ? try Self.unwrap(answer, file) : answer.data
            switch answer.status.value {
            case 0x9000, 0x6282: break
            case 0x6700, 0x6C00...0x6CFF:
                guard data.isEmpty, abilities.shorten(below: wanted) else { throw .refused(file, answer.status) }
                continue
            default:
                if content.isEmpty { throw .refused(file, answer.status) }
                throw .malformed(file)
            }
            guard !data.isEmpty, data.count <= wanted else { throw .malformed(file) }
            content += data
            if total == nil { total = try Self.length(of: content, file) }
            // The length is not said: what is certain to follow is read, until the end is there.
            if content.count > 1, content[1] == 0x80 {
                guard let count = ending.least(of: content), count <= Self.maximumUnsaid else { throw .malformed(file) }
                total = count
            }
            if let total { progress(min(content.count, total), total) }
            if answer.status.value == 0x6282, total.map({ content.count < $0 }) ?? true { throw .malformed(file) }
        }
        return Array(content.prefix(total ?? 0))
    }

    /// The status word with which a chip has ended the channel; 6700 for a reader without extended lengths. nil for other
    /// errors.
    static func endOfChannel(_ error: ChipError) -> StatusWord? {
        switch error {
        case .status(let status): status
        case .card(.tooLong): StatusWord(0x6700)
        case .card, .protocolViolation, .unsupported: nil
        }
    }

    /// Reads the length of the whole file from its header; nil while the header is not complete.
    private static func length(of content: [UInt8], _ file: DocumentFile) throws(DocumentError) -> Int? {
        // All tags of files have one byte.
        guard let tag = content.first else { return nil }
        guard UInt32(tag) == file.tag else { throw .malformed(file) }
        guard content.count > 1 else { return nil }
        let first = Int(content[1])
        guard first != 0x80 else { return nil }
        if first < 0x80 { return 2 + first }
        let count = first & 0x7F
        guard (1...4).contains(count) else { throw .malformed(file) }
        guard content.count >= 2 + count else { return nil }
        let length = content[2..<2 + count].reduce(0) { $0 << 8 | Int($1) }
        guard length + 2 + count <= maximumLength else { throw .malformed(file) }
        return 2 + count + length
    }

    /// Whether a chip that answers so to a short file identifier may know the file by its identifier. JMRTD's passport
    /// applet takes the short identifier for an offset.
    static func deniesShortID(_ status: StatusWord) -> Bool {
        [0x6981, 0x6985, 0x6986, 0x6A81, 0x6A86, 0x6B00].contains(status.value)
    }

    /// Whether the file may be read after SELECT. vicc does not find a file (6A82) by its short identifier.
    private func mayKnowIdentifier(_ status: StatusWord) -> Bool {
        !abilities.selectsFiles && (Self.deniesShortID(status) || status.value == 0x6A82)
    }

    /// SELECT by file identifier, which makes the file current again. ICAO 9303-10 3.6.2.
    private func select(_ file: DocumentFile) async throws(DocumentError) {
        let status: StatusWord
        do throws(ChipError) {
            status = try await protected(Self.selection(of: file)).status
        } catch {
            guard case .status(let refusal) = error else { throw DocumentError(error) }
            status = refusal
        }
        guard status == .ok else { throw .refused(file, status) }
    }

    static func selection(of file: DocumentFile) -> CommandAPDU {
        // All identifiers are 01 and the short identifier.
        CommandAPDU(0x00, 0xA4, 0x02, 0x0C, data: [0x01, file.shortID])
    }

    /// The answer of the odd instruction is in an object 53, whose header has a tag and up to three bytes of length.
    private static let maximumOddHeader = 4

    func command(_ file: DocumentFile, offset: Int, count: Int) -> CommandAPDU {
        if offset == 0, !abilities.selectsFiles { return .readBinary(shortFileID: file.shortID, le: count) }
        if offset < Self.oddOffset { return .readBinary(offset: offset, le: count) }
        let number = [16, 8, 0].map { UInt8(truncatingIfNeeded: offset >> $0) }.drop { $0 == 0 }
        // A chip may fill Le: with a longer header it would send more than is wanted.
        let header = count < 0x80 ? 2 : count < 0x100 ? 3 : Self.maximumOddHeader
        return CommandAPDU(0x00, 0xB1, 0, 0, data: BERTLV(0x54, Array(number)).encoded, le: count + header)
    }

    /// The bytes of the file in an answer to the odd instruction: the object 53.
    private static func unwrap(_ answer: ResponseAPDU, _ file: DocumentFile) throws(DocumentError) -> [UInt8] {
        guard !answer.data.isEmpty else { return [] }
        guard let object = try? BERTLV(answer.data), object.tag == 0x53 else { throw .malformed(file) }
        return object.value
    }
}
