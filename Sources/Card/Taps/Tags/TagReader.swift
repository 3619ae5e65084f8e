// SPDX-License-Identifier: GPL-3.0-or-later
package import ISO7816

/// Reads the number of a tag, and the NDEF message in it.
///
/// The commands with the class FF are for the reader, which answers them itself. PC/SC part 3, 3.2.2.
package struct TagReader: Sendable {
    private let channel: CompletingChannel
    /// The number, and the type by the answer to reset.
    package let tag: Tag

    /// The lengths of numbers that readers return.
    private static let lengths = [4, 7, 8, 10]
    /// GET DATA: the UID of the card.
    private static let getUID = CommandAPDU(0xFF, 0xCA, 0x00, 0x00, le: 256)
    /// GetVersion of DESFire and its relatives, in the form of an APDU. NXP MF3DX2_MF3DHX2 data sheet, 11.
    private static let getVersion = CommandAPDU(0x90, 0x60, 0x00, 0x00, le: 256)

    private init(_ channel: CompletingChannel, _ tag: Tag) { (self.channel, self.tag) = (channel, tag) }

    /// Asks the reader for the number of a card.
    /// - Returns: nil if the answer to reset is not of a contactless card, or if the reader reports no number.
    package static func identify(
        on channel: any CardChannel,
        answerToReset: [UInt8]
    ) async throws(CardError) -> TagReader? {
        guard let type = TagType(answerToReset: answerToReset) else { return nil }
        let answer = try await RepeatingChannel(channel).transmit(getUID)
        guard answer.status == .ok, lengths.contains(answer.data.count) else { return nil }
        return TagReader(CompletingChannel(channel), Tag(uid: answer.data, type: type))
    }

    /// The tag with the type that the card itself reports.
    package func named() async throws(CardError) -> Tag {
        guard tag.type == .iso14443Layer4 else { return tag }
        let answer = try await channel.transmit(Self.getVersion)
        // 91AF: more follows. Vendor 04 is NXP; the lower half of the next byte is the family.
        guard answer.status == StatusWord(0x91AF), answer.data.count == 7, answer.data[0] == 0x04 else { return tag }
        let type: TagType? =
            switch answer.data[1] & 0x0F {
            case 0x01, 0x08: .mifareDESFire
            case 0x02: .mifarePlus
            case 0x04: .ntag
            default: nil
            }
        return type.map { Tag(uid: tag.uid, type: $0) } ?? tag
    }

    /// Reads the NDEF message of a tag of NFC Forum type 2 or 4.
    /// - Returns: nil if the tag is of another type, or if its memory cannot be read.
    package func message() async throws(CardError) -> NDEFMessage? {
        switch tag.type {
        case .mifareUltralight, .iso14443A: try await type2Message()
        case .iso14443Layer4: try await type4Message()
        case .mifareClassic1K, .mifareClassic4K, .mifareMini, .mifarePlus, .mifareDESFire, .ntag, .iso14443B,
            .iso15693, .felica:
            nil
        }
    }

    // MARK: Type 2. NFC Forum Type 2 Tag 1.0

    private static let pageBytes = 4
    /// What one READ returns.
    private static let readBytes = 16
    private static let capabilityPage = 3

    private func type2Message() async throws(CardError) -> NDEFMessage? {
        guard let first = try await pages(from: Self.capabilityPage), first[0] == 0xE1, first[1] >> 4 == 1,
            first[3] >> 4 == 0
        else { return nil }
        let size = Int(first[2]) * 8
        var memory = Array(first.dropFirst(Self.pageBytes))
        while true {
            switch Type2Memory.find(in: memory.prefix(size)) {
            case .message(let bytes): return try? NDEFMessage(bytes)
            case .none: return NDEFMessage.empty
            case .malformed: return nil
            case .incomplete:
                guard memory.count < size,
                    let more = try await pages(from: Self.capabilityPage + 1 + memory.count / Self.pageBytes)
                else { return nil }
                memory += more
            }
        }
    }

    /// READ BINARY of four pages.
    private func pages(from page: Int) async throws(CardError) -> [UInt8]? {
        guard let page = UInt8(exactly: page) else { return nil }
        let answer = try await channel.transmit(CommandAPDU(0xFF, 0xB0, 0x00, page, le: Self.readBytes))
        return answer.status == .ok && answer.data.count == Self.readBytes ? answer.data : nil
    }

    // MARK: Type 4. NFC Forum Type 4 Tag 2.0

    private static let application: [UInt8] = [0xD2, 0x76, 0x00, 0x00, 0x85, 0x01, 0x01]
    private static let capabilityFile: [UInt8] = [0xE1, 0x03]

    private func type4Message() async throws(CardError) -> NDEFMessage? {
        let select = CommandAPDU(0x00, 0xA4, 0x04, 0x00, data: Self.application, le: 256)
        guard try await channel.transmit(select).status == .ok, try await selectFile(Self.capabilityFile),
            let capability = try await read(0, 15), capability.count == 15
        else { return nil }
        // Length, version 2 or 3, MLe, MLc, and the object 04 with the file, its size, and free reading.
        let longestRead = Int(capability[3]) << 8 | Int(capability[4])
        guard (2...3).contains(capability[2] >> 4), longestRead > 0, capability[7] == 0x04, capability[8] == 0x06,
            capability[13] == 0x00, try await selectFile(Array(capability[9..<11])), let head = try await read(0, 2),
            head.count == 2
        else { return nil }
        let count = Int(head[0]) << 8 | Int(head[1])
        guard count <= NDEFMessage.maximumBytes else { return nil }
        var bytes: [UInt8] = []
        while bytes.count < count {
            let wanted = min(count - bytes.count, longestRead, 255)
            guard let part = try await read(2 + bytes.count, wanted), !part.isEmpty, part.count <= wanted else {
                return nil
            }
            bytes += part
        }
        return try? NDEFMessage(bytes)
    }

    private func selectFile(_ file: [UInt8]) async throws(CardError) -> Bool {
        try await channel.transmit(CommandAPDU(0x00, 0xA4, 0x00, 0x0C, data: file)).status == .ok
    }

    private func read(_ offset: Int, _ count: Int) async throws(CardError) -> [UInt8]? {
        let (high, low) = (UInt8(truncatingIfNeeded: offset >> 8), UInt8(truncatingIfNeeded: offset))
        let answer = try await channel.transmit(CommandAPDU(0x00, 0xB0, high, low, le: count))
        return answer.status == .ok ? answer.data : nil
    }
}

/// The data area of a tag of NFC Forum type 2: objects with a tag, a length of one or three bytes, and a value.
package enum Type2Memory {
    package enum Search: Equatable, Sendable {
        case message([UInt8])
        /// The area has no message.
        case none
        /// The area goes on behind these bytes.
        case incomplete
        case malformed
    }

    /// Looks for the first NDEF message at the start of the area.
    package static func find(in memory: some Collection<UInt8>) -> Search {
        var rest = Array(memory)[...]
        while let tag = rest.popFirst() {
            switch tag {
            case 0x00: continue
            case 0xFE: return .none
            default: break
            }
            guard var count = rest.popFirst().map(Int.init) else { return .incomplete }
            if count == 0xFF {
                guard let high = rest.popFirst(), let low = rest.popFirst() else { return .incomplete }
                count = Int(high) << 8 | Int(low)
                guard count >= 0xFF else { return .malformed }
            }
            guard count <= NDEFMessage.maximumBytes else { return .malformed }
            guard rest.count >= count else { return .incomplete }
            if tag == 0x03 { return .message(Array(rest.prefix(count))) }
            rest = rest.dropFirst(count)
        }
        return .incomplete
    }
}

extension NDEFMessage {
    /// A message without records.
    package static let empty = NDEFMessage()

    private init() {}
}
