// SPDX-License-Identifier: GPL-3.0-or-later

/// Largest frame that one side takes, in bytes, PCB and CRC included: FSD of the reader, FSC of the card.
/// ISO/IEC 14443-4, 5.1 and 5.2.3.
package struct FrameSize: Sendable, Equatable {
    package let bytes: Int

    private static let table = [16, 24, 32, 40, 48, 64, 96, 128, 256]

    /// From FSDI or FSCI. Codes above 8 stand for frames longer than the chips behind libnfc can carry, or for nothing;
    /// they count as 8.
    package init(code: UInt8) { bytes = Self.table[min(Int(code & 0x0F), 8)] }

    /// 256 bytes, FSDI 8: what we take.
    package static let largest = FrameSize(code: 8)
    /// FSDI of `largest`.
    package static let largestCode: UInt8 = 8

    /// Bytes of a frame beside the INF field: PCB and CRC. CID and NAD are never used.
    static let overhead = 3

    /// Longest INF field.
    package var information: Int { bytes - Self.overhead }
}
