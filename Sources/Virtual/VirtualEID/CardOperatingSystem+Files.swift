// SPDX-License-Identifier: GPL-3.0-or-later
import EID
import ISO7816
import ReadersVirtual

/// SELECT, READ BINARY, UPDATE BINARY. ISO 7816-4 11.2.
///
/// Every file can be selected from every application, because short identifiers are unique on the card.
extension CardOperatingSystem {
    private static let masterFile: UInt16 = 0x3F00

    func select(_ command: CommandAPDU) throws(RefusedCommand) -> ResponseAPDU {
        guard [0x00, 0x0C].contains(command.p2) else { throw RefusedCommand(0x6A86) }
        // P2 0C asks for no response data, so Le must be absent.
        guard command.p2 == 0x00 || command.le == nil else { throw RefusedCommand(0x6700) }
        switch command.p1 {
        case 0x04:
            guard command.data == ApplicationID.eid else { throw RefusedCommand(0x6A82) }
            currentFile = nil
        case 0x00, 0x02:
            if command.data.isEmpty, command.p1 == 0x00 {
                currentFile = nil
                break
            }
            guard command.data.count == 2 else { throw RefusedCommand(0x6700) }
            let id = UInt16(command.data[0]) << 8 | UInt16(command.data[1])
            currentFile = id == Self.masterFile && command.p1 == 0x00 ? nil : files.shortID(of: id)
            guard currentFile != nil || id == Self.masterFile && command.p1 == 0x00 else {
                throw RefusedCommand(0x6A82)
            }
        default:
            throw RefusedCommand(0x6A86)
        }
        return ResponseAPDU(.ok)
    }

    func readBinary(_ command: CommandAPDU) throws(RefusedCommand) -> ResponseAPDU {
        guard let le = command.le, command.data.isEmpty else { throw RefusedCommand(0x6700) }
        let (id, offset) = try address(command)
        let content = try readable(id)
        currentFile = id
        let isMaximum = le == 256 || le == CommandAPDU.maximumLe
        guard offset < content.count else {
            // Reading an empty file at offset 0 reaches its end.
            guard content.isEmpty, offset == 0 else { throw RefusedCommand(0x6B00) }
            return ResponseAPDU(StatusWord(0x6282))
        }
        let data = Array(content[offset...].prefix(le))
        let isShort = data.count < le && (!isMaximum || offset > 0)
        return ResponseAPDU(data: data, isShort ? StatusWord(0x6282) : .ok)
    }

    /// READ BINARY with odd instruction: the file is in P1 and P2, the offset in data object 54, the answer in 53. Le
    /// counts the whole data object 53.
    func readBinaryOdd(_ command: CommandAPDU) throws(RefusedCommand) -> ResponseAPDU {
        guard let le = command.le, !command.data.isEmpty else { throw RefusedCommand(0x6700) }
        let target = UInt16(command.p1) << 8 | UInt16(command.p2)
        let id: UInt8?
        switch target {
        case 0: id = currentFile
        case 1...0x1E: id = command.p2
        default: id = files.shortID(of: target)
        }
        guard let id else { throw RefusedCommand(0x6A82) }
        let objects = try DataObjects(command.data)
        try objects.allow(only: [0x54])
        let number = try objects.value(0x54)
        guard (1...3).contains(number.count) else { throw RefusedCommand(0x6A80) }
        let offset = number.reduce(0) { $0 << 8 | Int($1) }
        let content = try readable(id)
        currentFile = id
        guard offset < content.count else { throw RefusedCommand(0x6B00) }
        let rest = content[offset...]
        // Tag and length of the answer take two to four bytes.
        let room = [(2, 0x7F), (3, 0xFF), (4, 0xFFFF)].map { min(le - $0.0, $0.1) }.max() ?? 0
        guard room > 0 else { throw RefusedCommand(0x6700) }
        let data = Array(rest.prefix(room))
        let isEnd = data.count == rest.count && offset > 0
        return ResponseAPDU(data: BERTLV(0x53, data).encoded, isEnd ? StatusWord(0x6282) : .ok)
    }

    /// UPDATE BINARY: replaces the whole content.
    func updateBinary(_ command: CommandAPDU) throws(RefusedCommand) -> ResponseAPDU {
        guard !command.data.isEmpty else { throw RefusedCommand(0x6700) }
        let (id, offset) = try address(command)
        guard files[id] != nil else { throw RefusedCommand(0x6A82) }
        guard let right = AccessRight.writing(dataGroup: id), session.allows(right) else {
            throw RefusedCommand(0x6982)
        }
        guard offset == 0 else { throw RefusedCommand(0x6B00) }
        currentFile = id
        files.replace(id, with: command.data)
        return ResponseAPDU(.ok)
    }

    /// Reads P1 and P2: a short identifier and a short offset, or a long offset in the current file.
    private func address(_ command: CommandAPDU) throws(RefusedCommand) -> (id: UInt8, offset: Int) {
        guard command.p1 & 0x80 != 0 else {
            guard let currentFile else { throw RefusedCommand(0x6A82) }
            return (currentFile, Int(command.p1) << 8 | Int(command.p2))
        }
        guard command.p1 & 0x60 == 0 else { throw RefusedCommand(0x6A86) }
        return (command.p1 & 0x1F, Int(command.p2))
    }

    /// Returns the content of a file, if the terminal may read it now. TR-03110-2 2.1, TR-03110-3 A.1.2.
    private func readable(_ id: UInt8) throws(RefusedCommand) -> [UInt8] {
        guard let content = files[id] else { throw RefusedCommand(0x6A82) }
        let isAllowed =
            if let right = AccessRight.reading(dataGroup: id) {
                session.allows(right)
            } else if id == CardFileSystem.cardSecurity {
                session.terminal != nil
            } else {
                true
            }
        guard isAllowed else { throw RefusedCommand(0x6982) }
        return content
    }
}
