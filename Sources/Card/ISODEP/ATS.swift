// SPDX-License-Identifier: GPL-3.0-or-later

/// What a card is activated with, of either type: how to talk to it from now on.
package struct CardParameters: Sendable, Equatable {
    /// FSC: no frame to the card may be longer.
    package var frameSize: FrameSize
    /// FWT.
    package var waitingTime: Duration
    /// SFGT: pause before the first frame.
    package var guardTime: Duration

    package init(frameSize: FrameSize, waitingTime: Duration, guardTime: Duration) {
        (self.frameSize, self.waitingTime, self.guardTime) = (frameSize, waitingTime, guardTime)
    }
}

/// An answer that is not what the standard says.
package struct MalformedAnswer: Error, Sendable, Equatable {
    /// Its name and what is wrong with it, for the log.
    package let text: String
}

/// Request for answer to select, and its answer: the activation of a card of type A. ISO/IEC 14443-4, 5.
package struct ATS: Sendable, Equatable {
    package var parameters: CardParameters
    /// Said about the card by itself; at most 15 by ISO/IEC 7816-4, not bounded here but by the frame.
    package var historicalBytes: [UInt8]

    /// RATS without CRC: FSDI, CID 0.
    package static func request(frameSizeCode: UInt8 = FrameSize.largestCode) -> [UInt8] { [0xE0, frameSizeCode << 4] }

    /// `bytes` without CRC.
    /// - Throws: when the length byte is not that of the frame, or the interface bytes that T0 announces are missing.
    package init(_ bytes: some Collection<UInt8>) throws(MalformedAnswer) {
        let bytes = Array(bytes)
        guard let length = bytes.first, Int(length) == bytes.count else {
            throw MalformedAnswer(text: "ATS: the length byte is not its length, \(bytes.count)")
        }
        var rest = bytes.dropFirst()
        // Without T0 all is default: FSCI 2, FWI 4.
        let format = rest.popFirst() ?? 0x02
        var waitingCode = FrameWaitingTime.defaultCode
        var guardCode: UInt8 = 0
        for present in [UInt8(0x10), 0x20, 0x40] where format & present != 0 {
            guard let byte = rest.popFirst() else { throw MalformedAnswer(text: "ATS: interface bytes are missing") }
            // TA(1) offers bit rates and TC(1) addresses; we use neither.
            if present == 0x20 { (waitingCode, guardCode) = (byte >> 4, byte & 0x0F) }
        }
        parameters = CardParameters(
            frameSize: FrameSize(code: format),
            waitingTime: FrameWaitingTime.time(code: waitingCode, reserved: FrameWaitingTime.defaultCode),
            guardTime: guardCode == 0 ? .zero : FrameWaitingTime.time(code: guardCode, reserved: 0)
        )
        historicalBytes = Array(rest)
    }
}
