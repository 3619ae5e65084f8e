// SPDX-License-Identifier: GPL-3.0-or-later

/// Answer to request of a card of type B, and its activation by ATTRIB. ISO/IEC 14443-3, 7.9 and 7.10.
package struct ATQB: Sendable, Equatable {
    /// Pseudo-unique identifier, 4 bytes; many cards choose another at each power-on.
    package var identifier: [UInt8]
    /// 4 bytes.
    package var applicationData: [UInt8]
    /// 3 bytes; a fourth, of the extended form, counts for the guard time only.
    package var protocolInfo: [UInt8]
    package var parameters: CardParameters
    /// Does the card speak ISO/IEC 14443-4?
    package var hasBlockProtocol: Bool { protocolInfo.count > 1 && protocolInfo[1] & 0x01 != 0 }

    /// WUPB without CRC: all applications, cards in state HALT too, one time slot. ISO/IEC 14443-3, 7.7.
    package static let wakeUp: [UInt8] = [0x05, 0x00, 0x08]

    /// `bytes` without CRC: 12, or 13 in the extended form.
    package init(_ bytes: some Collection<UInt8>) throws(MalformedAnswer) {
        let bytes = Array(bytes)
        guard bytes.first == 0x50, bytes.count == 12 || bytes.count == 13 else {
            throw MalformedAnswer(text: "ATQB: \(bytes.count) bytes that do not look like one")
        }
        try self.init(identifier: bytes[1..<5], applicationData: bytes[5..<9], protocolInfo: bytes[9...])
    }

    /// Its fields, as a chip gives them that has read it already.
    package init(
        identifier: some Collection<UInt8>,
        applicationData: some Collection<UInt8>,
        protocolInfo: some Collection<UInt8>
    ) throws(MalformedAnswer) {
        let info = Array(protocolInfo)
        guard identifier.count == 4, applicationData.count == 4, info.count == 3 || info.count == 4 else {
            throw MalformedAnswer(text: "ATQB: fields of wrong length")
        }
        self.identifier = Array(identifier)
        self.applicationData = Array(applicationData)
        self.protocolInfo = Array(info[..<3])
        let guardCode = info.count == 4 ? info[3] >> 4 : 0
        parameters = CardParameters(
            frameSize: FrameSize(code: info[1] >> 4),
            waitingTime: FrameWaitingTime.time(code: info[2] >> 4, reserved: FrameWaitingTime.defaultCode),
            guardTime: guardCode == 0 ? .zero : FrameWaitingTime.time(code: guardCode, reserved: 0)
        )
    }

    /// ATTRIB without CRC: FSDI, 106 kbit/s both ways, CID 0, and the least pauses.
    package func attrib(frameSizeCode: UInt8 = FrameSize.largestCode) -> [UInt8] {
        [0x1D] + identifier + [0x00, frameSizeCode, protocolInfo[1] & 0x0F, 0x00]
    }

    /// The answer to ATTRIB: the card's buffer length and our CID, then nothing, for we sent no command along.
    /// - Returns: MBLI, the code of the buffer length.
    /// - Throws: when the card has taken another address than 0.
    package static func bufferLength(_ answer: some Collection<UInt8>) throws(MalformedAnswer) -> UInt8 {
        guard let first = answer.first, first & 0x0F == 0 else {
            throw MalformedAnswer(text: "answer to ATTRIB: \(answer.count) bytes that do not look like one")
        }
        return first >> 4
    }
}
