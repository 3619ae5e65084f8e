// SPDX-License-Identifier: GPL-3.0-or-later

/// The maximum size of a frame in bytes, with PCB and CRC: FSD of the reader, FSC of the card.
/// ISO/IEC 14443-4, 5.1 and 5.2.3.
package struct FrameSize: Sendable, Equatable {
    package let bytes: Int

    private static let table = [16, 24, 32, 40, 48, 64, 96, 128, 256]

    /// Decodes FSDI or FSCI. Higher codes than 8 count as 8: they are reserved, or longer than libnfc's chips can carry.
    package init(code: UInt8) { bytes = Self.table[min(Int(code & 0x0F), 8)] }

    /// 256 bytes, the size that this driver accepts.
    package static let maximum = FrameSize(code: 8)
    /// The FSDI of `maximum`.
    package static let maximumCode: UInt8 = 8

    /// The bytes of PCB and CRC in a frame. CID and NAD are never used.
    static let overhead = 3

    /// The maximum size of the INF field.
    package var information: Int { bytes - Self.overhead }
}
