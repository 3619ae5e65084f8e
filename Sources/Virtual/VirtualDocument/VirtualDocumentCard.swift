// SPDX-License-Identifier: GPL-3.0-or-later
import ChipAccess
import Crypto
import Document
import ISO7816
import ReadersVirtual
import Text

/// An electronic document in software: files, access and proofs of ICAO 9303-11. It is strict, so that it refuses what
/// the standard does not allow, and its quirks make it as odd as real chips.
final class VirtualDocumentCard: VirtualCardSoftware {
    let historicalBytes: [UInt8] = [0x80, 0x73, 0xC0, 0x21, 0xC0]
    let description: VirtualDocumentDescription
    let keys: [String: ChipKey]

    // State that a reset clears.
    private var channel: SecureMessaging?
    /// Replaces `channel` after the answer to the current command.
    private var nextChannel: SecureMessaging?
    private var rest: [UInt8] = []
    /// Whether PACE or BAC has opened the current channel.
    private var hasAccess = false
    private(set) var isApplicationSelected = false
    var currentFile: [UInt8]?
    var pace: PACE.Chip?
    /// The challenge of BAC.
    var challenge: [UInt8]?
    /// From MSE:Set AT for chip authentication.
    var chosenKey: (key: ChipKey, cipher: SessionCipher)?

    init(_ description: VirtualDocumentDescription, keys: [String: ChipKey]) {
        self.description = description
        self.keys = keys
        channel = nil
        nextChannel = nil
        pace = nil
    }

    var counters: [JSON.Member] { [] }

    func reset() {
        dropChannel()
        isApplicationSelected = false
        currentFile = nil
        rest = []
    }

    func dropChannel() {
        channel = nil
        nextChannel = nil
        pace = nil
        hasAccess = false
        challenge = nil
        chosenKey = nil
    }

    /// Opens a channel for the next command.
    func open(_ channel: consuming SecureMessaging) {
        nextChannel = consume channel
        hasAccess = true
    }

    var isProtected: Bool { channel != nil }

    /// Whether files and proofs are allowed now.
    var mayUseFiles: Bool { hasAccess || !description.hasAccessControl }

    // MARK: Commands

    func process(_ bytes: [UInt8]) -> [UInt8] {
        guard let command = CommandAPDU(bytes: bytes) else { return status(0x6700) }
        // GET RESPONSE carries a protected answer further, and does not end the channel. Readers in Java repeat the class
        // of the command; without data it is not protected.
        if command.ins == 0xC0, command.data.isEmpty, !rest.isEmpty { return part(rest) }
        rest = []
        guard !command.isExtended || description.quirks.hasExtendedLength else { return refuse(0x6700) }
        let answer = command.cla & 0x0C == 0 ? plain(command) : protected(command)
        if nextChannel != nil { channel = nextChannel.take() }
        return command.isExtended ? answer : part(answer)
    }

    private func plain(_ command: CommandAPDU) -> [UInt8] {
        // A command without secure messaging ends the channel. ICAO 9303-11 9.8.3.
        if isProtected { dropChannel() }
        return run(command).bytes
    }

    private func protected(_ secured: CommandAPDU) -> [UInt8] {
        guard isProtected else { return refuse(0x6882) }
        let command: CommandAPDU
        do throws(ChipError) {
            guard let plain = try channel?.unwrap(secured) else { return refuse(0x6882) }
            command = plain
        } catch {
            return refuse(error == .missingObject ? 0x6987 : 0x6988)
        }
        if let limit = description.quirks.maximumRead, command.ins & 0xFE == 0xB0, (command.le ?? 0) > limit {
            return refuse(0x6700)
        }
        let answer = run(command)
        if description.quirks.answersInPlain, command.ins & 0xFE == 0xB0 { return answer.bytes }
        if description.quirks.endsChannel.contains(answer.status.value) { return refuse(answer.status.value) }
        guard let wrapped = try? channel?.wrap(answer) else { return refuse(0x6F00) }
        return wrapped.bytes
    }

    /// The first 256 bytes of an answer; GET RESPONSE fetches the rest.
    private func part(_ answer: [UInt8]) -> [UInt8] {
        guard answer.count > 258 else {
            rest = []
            return answer
        }
        rest = Array(answer.dropFirst(256))
        let left = rest.count - 2
        return answer.prefix(256) + [0x61, left >= 256 ? 0 : UInt8(left)]
    }

    private func status(_ status: UInt16) -> [UInt8] { ResponseAPDU(StatusWord(status)).bytes }

    /// Answers without protection, and ends the channel.
    private func refuse(_ value: UInt16) -> [UInt8] {
        dropChannel()
        return status(value)
    }

    private func run(_ command: CommandAPDU) -> ResponseAPDU {
        do throws(RefusedCommand) {
            return try execute(command)
        } catch {
            return ResponseAPDU(error.status)
        }
    }

    private func execute(_ command: CommandAPDU) throws(RefusedCommand) -> ResponseAPDU {
        switch command.ins {
        case 0xA4: return try select(command)
        case 0xB0: return try readBinary(command)
        case 0xB1: return try readBinaryOdd(command)
        case 0x84: return try getChallenge(command)
        case 0x82: return try externalAuthenticate(command)
        case 0x88: return try internalAuthenticate(command)
        case 0x22: return try manageSecurityEnvironment(command)
        case 0x86: return try generalAuthenticate(command)
        default: throw .wrongInstruction
        }
    }

    // MARK: Files

    private func select(_ command: CommandAPDU) throws(RefusedCommand) -> ResponseAPDU {
        switch (command.p1, command.data) {
        case (0x04, DocumentChip.applicationID):
            guard description.pace.isEmpty || description.hasBAC || hasAccess else { throw .wrongSignature }
            isApplicationSelected = true
            currentFile = nil
        case (0x00, []), (0x00, [0x3F, 0x00]):
            if let status = description.quirks.selectMasterFile { throw RefusedCommand(status) }
            isApplicationSelected = false
            currentFile = nil
        case (0x02, _) where command.data.count == 2:
            guard command.data[0] == 0x01 else { throw .noApplication }
            currentFile = try file(command.data[1])
        default: throw .noApplication
        }
        return ResponseAPDU(.ok)
    }

    /// The file of a short identifier in the current application.
    private func file(_ id: UInt8) throws(RefusedCommand) -> [UInt8] {
        let name: String
        switch (isApplicationSelected, id) {
        case (false, 0x1C): name = "CardAccess"
        case (false, 0x1D): name = "CardSecurity"
        case (false, 0x1E): name = "DIR"
        case (false, 0x01): name = "ATR"
        case (true, 0x1D): name = "SOD"
        case (true, 0x1E): name = "COM"
        case (true, 0x01...0x10): name = "DG\(id)"
        default: throw .noApplication
        }
        let isOpen = !isApplicationSelected && name != "CardSecurity"
        guard isOpen || mayUseFiles else { throw .wrongSignature }
        if name.hasPrefix("DG"), description.lockedGroups.contains(Int(id)) { throw .wrongSignature }
        guard let content = description.files[name] else {
            throw RefusedCommand(name == "CardAccess" ? description.quirks.noCardAccess : 0x6A82)
        }
        return content
    }

    private func readBinary(_ command: CommandAPDU) throws(RefusedCommand) -> ResponseAPDU {
        guard let le = command.le else { throw .wrongLength }
        var offset = Int(command.p1 & 0x7F) << 8 | Int(command.p2)
        if command.p1 & 0x80 != 0 {
            if let status = description.quirks.noShortID { throw RefusedCommand(status) }
            currentFile = try file(command.p1 & 0x1F)
            offset = Int(command.p2)
        }
        return try read(offset, le, isMaximum: Self.isMaximum(le))
    }

    /// READ BINARY with the offset in object 54 and the data in object 53. ISO/IEC 7816-4, 11.3.3.
    private func readBinaryOdd(_ command: CommandAPDU) throws(RefusedCommand) -> ResponseAPDU {
        guard let le = command.le, le > 2, let object = try? BERTLV(command.data), object.tag == 0x54,
            (1...3).contains(object.value.count)
        else { throw .wrongLength }
        if command.p2 != 0 { currentFile = try file(command.p2 & 0x1F) }
        let offset = object.value.reduce(0) { $0 << 8 | Int($1) }
        // As many bytes as fit into Le with the header of object 53.
        let header = le < 0x80 + 2 ? 2 : le < 0x100 + 3 ? 3 : 4
        let answer = try read(offset, le - header, isMaximum: Self.isMaximum(le))
        return ResponseAPDU(data: BERTLV(0x53, answer.data).encoded, answer.status)
    }

    /// Whether Le asks for all bytes that are left, so that fewer are no end of the file. ISO/IEC 7816-4, 5.1.
    private static func isMaximum(_ le: Int) -> Bool { le == 256 || le == CommandAPDU.maximumLe }

    private func read(_ offset: Int, _ count: Int, isMaximum: Bool) throws(RefusedCommand) -> ResponseAPDU {
        guard let content = currentFile else { throw RefusedCommand(0x6986) }
        guard offset < content.count else { throw .wrongParameters }
        let data = Array(content[offset...].prefix(count))
        guard data.count < count, !isMaximum else { return ResponseAPDU(data: data, .ok) }
        if let status = description.quirks.beyondEnd { throw RefusedCommand(status) }
        return ResponseAPDU(data: data, StatusWord(0x6282))
    }
}
