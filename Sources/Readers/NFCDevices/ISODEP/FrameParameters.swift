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

/// The time in which a card must begin its answer. ISO/IEC 14443-4, 7.2.
package enum FrameWaitingTime {
    /// 256 × 16 / fc, with fc = 13.56 MHz.
    private static let unit = Duration.nanoseconds(302_065)

    /// Decodes FWI into FWT, or SFGI into SFGT: 0.3 ms × 2^code. The reserved code 15 counts as `reserved`.
    package static func time(code: UInt8, reserved: UInt8) -> Duration {
        let code = code & 0x0F
        return unit * (1 << Int(code == 15 ? reserved : code))
    }

    /// The FWI of a card that sends none or a reserved one: 4.8 ms.
    package static let defaultCode: UInt8 = 4

    /// The limit for an extended waiting time: 4.949 s, FWI 14.
    package static let maximum = time(code: 14, reserved: 14)

    /// The time for the answers to RATS and S(DESELECT): 65 536 / fc plus the tolerance of the card's clock, 5.2 ms.
    package static let activation = Duration.microseconds(5_200)

    /// The time that the reader waits beyond FWT: 49 152 / fc.
    package static let tolerance = Duration.microseconds(3_625)
}
