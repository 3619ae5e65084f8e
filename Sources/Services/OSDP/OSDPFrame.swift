// SPDX-License-Identifier: GPL-3.0-or-later

/// One frame of OSDP (IEC 60839-11-5, 5): a command of a panel, or the answer of a peripheral.
package struct OSDPFrame: Sendable, Equatable {
    /// 0 to 126, or `broadcast`.
    package var address: UInt8
    package var isReply: Bool
    /// 0 at the start of a connection, then 1, 2, 3, 1, ...
    package var sequence: UInt8
    /// Whether the frame ends with a CRC of two bytes; otherwise with a sum of one byte.
    package var usesCRC: Bool
    /// Type and data of the security block; empty: there is none.
    package var securityBlock: [UInt8] = []
    /// The command or reply.
    package var code: UInt8
    /// What follows the code: encrypted in the blocks 17 and 18.
    package var data: [UInt8] = []
    /// Four bytes in frames with the security blocks 15 to 18, otherwise none.
    package var mac: [UInt8] = []

    /// The address that every peripheral accepts.
    package static let broadcast: UInt8 = 0x7F
    /// The largest frame that is read and written, which `PDCAP` says.
    package static let largest = 1024

    static let mark: UInt8 = 0xFF
    static let start: UInt8 = 0x53
    static let headerCount = 5

    package init(
        address: UInt8,
        isReply: Bool,
        sequence: UInt8,
        usesCRC: Bool = true,
        securityBlock: [UInt8] = [],
        code: UInt8,
        data: [UInt8] = []
    ) {
        self.address = address
        self.isReply = isReply
        self.sequence = sequence
        self.usesCRC = usesCRC
        self.securityBlock = securityBlock
        self.code = code
        self.data = data
    }

    /// Reads a whole frame, from 53 to the check; nil if anything in it is wrong.
    package init?(_ bytes: [UInt8]) {
        guard bytes.count > Self.headerCount + 1, bytes.count <= Self.largest, bytes[0] == Self.start else {
            return nil
        }
        let control = bytes[4]
        let checkCount = control & 4 == 0 ? 1 : 2
        var end = bytes.count - checkCount
        guard Int(bytes[2]) | Int(bytes[3]) << 8 == bytes.count,
            Self.check(bytes[..<end], control) == Array(bytes[end...])
        else { return nil }
        address = bytes[1] & 0x7F
        isReply = bytes[1] & 0x80 != 0
        sequence = control & 3
        usesCRC = control & 4 != 0
        var position = Self.headerCount
        if control & 8 != 0 {
            let count = Int(bytes[position])
            guard count >= 2, position + count < end else { return nil }
            securityBlock = Array(bytes[position + 1..<position + count])
            position += count
        }
        if Self.hasMAC(securityBlock) {
            guard end - 4 > position else { return nil }
            mac = Array(bytes[end - 4..<end])
            end -= 4
        }
        guard position < end else { return nil }
        code = bytes[position]
        data = Array(bytes[position + 1..<end])
    }

    /// The first byte of the security block, 11 to 18 in hexadecimal; nil without a block.
    var blockType: UInt8? { securityBlock.first }

    private static func hasMAC(_ block: [UInt8]) -> Bool { block.first.map { (0x15...0x18).contains($0) } ?? false }

    /// The bytes that the MAC protects, with the length of the whole frame in them.
    var authenticated: [UInt8] {
        let block = securityBlock.isEmpty ? 0 : securityBlock.count + 1
        let count = Self.headerCount + block + 1 + data.count + (Self.hasMAC(securityBlock) ? 4 : 0) + (usesCRC ? 2 : 1)
        let control = sequence & 3 | (usesCRC ? 4 : 0) | (block == 0 ? 0 : 8)
        var bytes: [UInt8] = []
        bytes.reserveCapacity(count + 1)
        bytes.append(Self.start)
        bytes.append(address | (isReply ? 0x80 : 0))
        bytes.append(UInt8(truncatingIfNeeded: count))
        bytes.append(UInt8(truncatingIfNeeded: count >> 8))
        bytes.append(control)
        if block > 0 {
            bytes.append(UInt8(truncatingIfNeeded: block))
            bytes += securityBlock
        }
        bytes.append(code)
        bytes += data
        return bytes
    }

    /// The frame as it goes on the line, after the mark FF.
    package var bytes: [UInt8] {
        var bytes = authenticated
        bytes += mac
        bytes += Self.check(bytes[...], usesCRC ? 4 : 0)
        bytes.insert(Self.mark, at: 0)
        return bytes
    }

    /// The CRC, low byte first, or the sum.
    private static func check(_ body: ArraySlice<UInt8>, _ control: UInt8) -> [UInt8] {
        guard control & 4 != 0 else { return [0 &- body.reduce(0, &+)] }
        let crc = checksum(body)
        return [UInt8(truncatingIfNeeded: crc), UInt8(truncatingIfNeeded: crc >> 8)]
    }

    /// CRC with the polynomial 1021, which begins with 1D0F.
    static func checksum(_ bytes: ArraySlice<UInt8>) -> UInt16 {
        bytes.reduce(0x1D0F) { $0 << 8 ^ table[Int(UInt8(truncatingIfNeeded: $0 >> 8) ^ $1)] }
    }

    private static let table: [UInt16] = (0..<256).map { index in
        (0..<8).reduce(UInt16(index) << 8) { value, _ in value & 0x8000 == 0 ? value << 1 : value << 1 ^ 0x1021 }
    }
}

/// Finds the frames in the bytes of a line. Whatever is between frames is skipped.
package struct OSDPFrameReader: Sendable {
    private var buffer: [UInt8] = []
    private var lastByte: Int64 = 0
    /// The time of the last frame, or that at which the line was opened.
    private var lastFrame: Int64 = 0
    /// After a silence of this many milliseconds the rest of an unfinished frame does not come any more.
    private let gap: Int64
    /// Frames whose check was wrong, and unfinished ones.
    package private(set) var faults = 0

    package init(gap: Int64 = 20) { self.gap = gap }

    /// The bytes that wait for the rest of their frame: fewer than `OSDPFrame.largest`.
    package var waiting: Int { buffer.count }

    /// The line was opened, perhaps again: the rest of an unfinished frame does not come any more.
    package mutating func begin(at now: Int64) {
        if !buffer.isEmpty { faults += 1 }
        buffer = []
        lastFrame = now
    }

    /// Whether the line has brought no frame for so long that the other side counts as off-line.
    package func isSilent(at now: Int64) -> Bool { now - lastFrame >= OSDPPeripheral.silence }

    /// Returns the frames that are complete with these bytes, each with its bytes. `now` is in milliseconds.
    package mutating func read(_ bytes: some Collection<UInt8>, at now: Int64) -> [(frame: OSDPFrame, bytes: [UInt8])] {
        var found: [(frame: OSDPFrame, bytes: [UInt8])] = []
        if !buffer.isEmpty, now - lastByte > gap {
            faults += 1
            takeFrames(&found, isOver: true)
            buffer = []
        }
        lastByte = now
        buffer += bytes
        takeFrames(&found, isOver: false)
        if !found.isEmpty { lastFrame = now }
        return found
    }

    /// Takes the frames out of the buffer. `isOver`: no bytes follow, so an unfinished frame is none.
    private mutating func takeFrames(_ found: inout [(frame: OSDPFrame, bytes: [UInt8])], isOver: Bool) {
        var position = 0
        while let start = buffer[position...].firstIndex(of: OSDPFrame.start) {
            position = start
            guard buffer.count - start >= OSDPFrame.headerCount else { break }
            let count = Int(buffer[start + 2]) | Int(buffer[start + 3]) << 8
            guard count > OSDPFrame.headerCount + 1, count <= OSDPFrame.largest else {
                position += 1
                continue
            }
            guard buffer.count - start >= count else {
                guard isOver else { break }
                position += 1
                continue
            }
            let whole = Array(buffer[start..<start + count])
            if let frame = OSDPFrame(whole) {
                found.append((frame, whole))
                position += count
            } else {
                faults += 1
                position += 1
            }
        }
        if buffer[position...].firstIndex(of: OSDPFrame.start) == nil { position = buffer.count }
        buffer.removeFirst(position)
    }
}
