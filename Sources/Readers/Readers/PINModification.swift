// SPDX-License-Identifier: GPL-3.0-or-later

/// The PIN_MODIFY block of feature MODIFY_PIN_DIRECT. PC/SC part 10, 2.6.3; USB CCID, 6.1.12.
///
/// The reader does not ask for the current PIN, because PACE has proven it. RESET RETRY COUNTER (TR-03110-3 B.11.6)
/// takes the new PIN.
package struct PINModification: Sendable, Equatable {
    /// The time limit for each key in seconds.
    package var seconds: UInt8 = 90
    package var minimumDigits: UInt8 = 6
    package var maximumDigits: UInt8 = 6

    package init() {}

    /// The command that the reader completes with the new PIN: RESET RETRY COUNTER with new data.
    package static let template: [UInt8] = [0x00, 0x2C, 0x02, 0x03]

    package var bytes: [UInt8] {
        var bytes: [UInt8] = [seconds, seconds]
        bytes += [
            0x82,  // bmFormatString: ASCII, left justified, system unit byte
            0x00,  // bmPINBlockString: no length, no fixed size
            0x00,  // bmPINLengthFormat
            0x00,  // bInsertionOffsetOld
            0x00,  // bInsertionOffsetNew
            maximumDigits, minimumDigits,  // wPINMaxExtraDigit, little-endian
            0x01,  // bConfirmPIN: ask twice for the new PIN, and not for the current one
            0x02,  // bEntryValidationCondition: by the validation key
            0x02,  // bNumberMessage
            0x07, 0x04,  // wLangId: German, little-endian
            // bMsgIndex1 to 3. Two messages are announced, but Reiner SCT readers require the third index.
            0x00, 0x01, 0x02,
            0x00, 0x00, 0x00,  // bTeoPrologue
        ]
        let length = UInt32(Self.template.count)
        bytes += (0..<4).map { UInt8(truncatingIfNeeded: length >> ($0 * 8)) }
        return bytes + Self.template
    }
}
