// SPDX-License-Identifier: GPL-3.0-or-later

/// The PIN_MODIFY block of feature MODIFY_PIN_DIRECT. PC/SC part 10, 2.6.3; USB CCID, 6.1.12.
///
/// The current PIN is not asked for: PACE has proven it, and RESET RETRY COUNTER (TR-03110-3 B.11.6) takes the new one.
struct PINModification: Sendable, Equatable {
    /// Seconds for the first key, and for each further one.
    var seconds: UInt8 = 90
    /// Least and most digits.
    var minimumDigits: UInt8 = 6
    var maximumDigits: UInt8 = 6

    init() {}

    /// The command that the reader completes with the new PIN: RESET RETRY COUNTER with new data.
    static let template: [UInt8] = [0x00, 0x2C, 0x02, 0x03]

    var bytes: [UInt8] {
        var bytes: [UInt8] = [seconds, seconds]
        bytes += [
            0x82,  // bmFormatString: ASCII, left justified, system unit byte
            0x00,  // bmPINBlockString: no length, no fixed size
            0x00,  // bmPINLengthFormat
            0x00,  // bInsertionOffsetOld
            0x00,  // bInsertionOffsetNew
            maximumDigits, minimumDigits,  // wPINMaxExtraDigit, little-endian
            0x01,  // bConfirmPIN: the new PIN twice, the current one not
            0x02,  // bEntryValidationCondition: by the validation key
            0x02,  // bNumberMessage
            0x07, 0x04,  // wLangId: German, little-endian
            // bMsgIndex1 to 3. Two messages are announced, but the third place belongs to the structure all the same,
            // and Reiner SCT readers insist on its number.
            0x00, 0x01, 0x02,
            0x00, 0x00, 0x00,  // bTeoPrologue
        ]
        let length = UInt32(Self.template.count)
        bytes += (0..<4).map { UInt8(truncatingIfNeeded: length >> ($0 * 8)) }
        return bytes + Self.template
    }
}
