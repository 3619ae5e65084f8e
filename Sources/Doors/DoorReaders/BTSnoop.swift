// SPDX-License-Identifier: GPL-3.0-or-later
package import Text

/// The capture files of Bluetooth tools: a header, then records with a time and a packet. Numbers are big-endian.
/// RFC 1761 with the data links of btsnoop.
package enum BTSnoop {
    /// "btsnoop", a zero byte, version 1.
    private static let magic: [UInt8] = [0x62, 0x74, 0x73, 0x6E, 0x6F, 0x6F, 0x70, 0, 0, 0, 0, 1]
    private static let headerLength = 16
    private static let recordHeaderLength = 24
    /// Microseconds from the year 0 to 1970.
    private static let epoch: Int64 = 0x00DC_DDB3_0F2F_8000
    /// Largest packet that is accepted, in bytes; HCI packets are smaller.
    private static let longestPacket = 65_536

    package enum DataLink: UInt32, Sendable {
        /// HCI packets without a type byte; the flags have the type.
        case hci = 1001
        /// HCI packets with the type byte of the UART transport.
        case uart = 1002
        /// Packets of the Linux monitor channel; the flags contain operation and adapter.
        case monitor = 2001
    }

    private static func uint32(_ bytes: Span<UInt8>, _ start: Int) -> UInt32 {
        (0..<4).reduce(0) { $0 << 8 | UInt32(bytes[start + $1]) }
    }

    private static func int64(_ bytes: Span<UInt8>, _ start: Int) -> Int64 {
        Int64(bitPattern: UInt64(uint32(bytes, start)) << 32 | UInt64(uint32(bytes, start + 4)))
    }

    /// Calls `body` for every HCI event of the file: microseconds since 1970, adapter, and the range of the event in
    /// `file`. Other packets are skipped.
    /// - Returns: false if the last record is incomplete; the records before it were passed on.
    /// - Throws: `Malformed` if the file is no capture.
    package static func forEachEvent(
        in file: Span<UInt8>,
        _ body: (_ time: Int64, _ adapter: Int, _ event: Range<Int>) -> Void
    ) throws(Malformed) -> Bool {
        guard file.count >= headerLength else { throw Malformed(Phrase("no btsnoop file")) }
        for (index, byte) in magic.enumerated() where file[index] != byte { throw Malformed(Phrase("no btsnoop file")) }
        let number = uint32(file, 12)
        guard let link = DataLink(rawValue: number) else {
            throw Malformed(Phrase("the data link \(number) is unknown, not 1001, 1002 or 2001"))
        }
        var position = headerLength
        while position < file.count {
            guard file.count - position >= recordHeaderLength else { return false }
            let length = Int(uint32(file, position + 4))
            let flags = uint32(file, position + 8)
            let time = int64(file, position + 16)
            let start = position + recordHeaderLength
            guard length <= longestPacket, length <= file.count - start else { return false }
            position = start + length
            let (since1970, hasOverflow) = time.subtractingReportingOverflow(epoch)
            guard !hasOverflow else { continue }
            switch link {
            case .hci where flags & 3 == 3: body(since1970, 0, start..<position)
            case .uart where length > 0 && file[start] == 0x04: body(since1970, 0, start + 1..<position)
            case .monitor where flags & 0xFFFF == 3: body(since1970, Int(flags >> 16), start..<position)
            case .hci, .uart, .monitor: continue
            }
        }
        return true
    }

    /// The header of a file of HCI packets with type bytes.
    package static var header: [UInt8] { magic + bigEndian(DataLink.uart.rawValue) }

    /// A record with an HCI event from the controller. `drops` is the number of packets that the file lacks before this
    /// one.
    package static func record(event: [UInt8], microseconds: Int64, drops: Int = 0) -> [UInt8] {
        let length = bigEndian(UInt32(event.count + 1))
        // Flags 3: received, event.
        var record = length + length + bigEndian(UInt32(3)) + bigEndian(UInt32(clamping: drops))
        record += bigEndian(UInt64(bitPattern: microseconds &+ epoch))
        record.append(0x04)
        return record + event
    }

    private static func bigEndian(_ value: some FixedWidthInteger) -> [UInt8] {
        withUnsafeBytes(of: value.bigEndian) { Array($0) }
    }
}
