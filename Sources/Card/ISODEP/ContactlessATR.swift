// SPDX-License-Identifier: GPL-3.0-or-later

/// The ATR that a PC/SC reader builds for a contactless card, which has none of its own. PC/SC part 3, 3.1.3.2.3.1.
package enum ContactlessATR {
    /// Builds the ATR from the historical bytes of the ATS.
    package static func typeA(historicalBytes: some Collection<UInt8>) -> [UInt8] {
        // The length field has four bits.
        build(Array(historicalBytes.prefix(15)))
    }

    /// Builds the ATR from the application data and protocol info of the ATQB, and MBLI.
    package static func typeB(_ answer: ATQB, bufferLength: UInt8) -> [UInt8] {
        build(answer.applicationData + answer.protocolInfo + [(bufferLength & 0x0F) << 4])
    }

    private static func build(_ content: [UInt8]) -> [UInt8] {
        let checked = [0x80 | UInt8(truncatingIfNeeded: content.count), 0x80, 0x01] + content
        return [0x3B] + checked + [checked.reduce(0, ^)]
    }
}
