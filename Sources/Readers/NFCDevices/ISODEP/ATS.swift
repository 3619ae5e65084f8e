// SPDX-License-Identifier: GPL-3.0-or-later
package import Text

/// The transmission parameters of an activated card of either type.
package struct CardParameters: Sendable, Equatable {
    /// FSC: the maximum size of a frame to the card.
    package var frameSize: FrameSize
    /// FWT: the frame waiting time.
    package var waitingTime: Duration
    /// SFGT: the start-up frame guard time, a pause before the first frame.
    package var guardTime: Duration

    package init(frameSize: FrameSize, waitingTime: Duration, guardTime: Duration) {
        self.frameSize = frameSize
        self.waitingTime = waitingTime
        self.guardTime = guardTime
    }
}

/// The answer to select (ATS) of a card of type A, and the RATS command. ISO/IEC 14443-4, 5.
package struct ATS: Sendable, Equatable {
    package var parameters: CardParameters
    /// The card's description of itself. ISO/IEC 7816-4 allows 15 bytes; only the frame bounds them here.
    package var historicalBytes: [UInt8]

    /// RATS without CRC: FSDI and CID 0.
    package static func request(frameSizeCode: UInt8 = FrameSize.maximumCode) -> [UInt8] { [0xE0, frameSizeCode << 4] }

    /// Parses an ATS without CRC.
    /// - Throws: when the length byte is wrong, or interface bytes that T0 announces are missing.
    package init(_ bytes: some Collection<UInt8>) throws(Malformed) {
        let bytes = Array(bytes)
        guard let length = bytes.first, Int(length) == bytes.count else {
            throw Malformed("ATS: the length byte does not match the length, \(bytes.count)")
        }
        var remaining = bytes.dropFirst()
        // Without T0 the defaults apply: FSCI 2, FWI 4.
        let format = remaining.popFirst() ?? 0x02
        var waitingCode = FrameWaitingTime.defaultCode
        var guardCode: UInt8 = 0
        for present in [UInt8(0x10), 0x20, 0x40] where format & present != 0 {
            guard let byte = remaining.popFirst() else {
                throw Malformed("ATS: interface bytes are missing")
            }
            // TA(1) offers bit rates and TC(1) addresses. The driver uses neither.
            if present == 0x20 { (waitingCode, guardCode) = (byte >> 4, byte & 0x0F) }
        }
        parameters = CardParameters(
            frameSize: FrameSize(code: format),
            waitingTime: FrameWaitingTime.time(code: waitingCode, reserved: FrameWaitingTime.defaultCode),
            guardTime: guardCode == 0 ? .zero : FrameWaitingTime.time(code: guardCode, reserved: 0)
        )
        historicalBytes = Array(remaining)
    }
}

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
