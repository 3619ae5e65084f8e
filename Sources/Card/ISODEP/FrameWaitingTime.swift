// SPDX-License-Identifier: GPL-3.0-or-later

/// How long the card may take for the beginning of its answer. ISO/IEC 14443-4, 7.2.
package enum FrameWaitingTime {
    /// 256 × 16 / fc, with fc = 13.56 MHz.
    private static let unit = Duration.nanoseconds(302_065)

    /// FWT, or SFGT with the code SFGI: 0.3 ms × 2^code. Code 15 is reserved and counts as `reserved`.
    package static func time(code: UInt8, reserved: UInt8) -> Duration {
        let code = code & 0x0F
        return unit * (1 << Int(code == 15 ? reserved : code))
    }

    /// FWI when the card names none, or a reserved one: 4.8 ms.
    package static let defaultCode: UInt8 = 4

    /// The longest that an extension may stretch it to: 4.949 s, FWI 14.
    package static let longest = time(code: 14, reserved: 14)

    /// For the answer to RATS and to S(DESELECT): 65 536 / fc, 5.2 ms with what the card's clock may be off.
    package static let activation = Duration.microseconds(5_200)

    /// What the reader waits beyond FWT: 49 152 / fc.
    package static let tolerance = Duration.microseconds(3_625)
}
