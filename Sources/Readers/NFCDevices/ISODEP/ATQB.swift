// SPDX-License-Identifier: GPL-3.0-or-later
package import Text

/// The answer to request (ATQB) of a card of type B, and the ATTRIB command. ISO/IEC 14443-3, 7.9 and 7.10.
package struct ATQB: Sendable, Equatable {
    /// PUPI, the pseudo-unique identifier: 4 bytes. Many cards choose a new one at each power-on.
    package var identifier: [UInt8]
    /// 4 bytes.
    package var applicationData: [UInt8]
    /// 3 bytes. The fourth byte of the extended form is not kept: it only has the guard time.
    package var protocolInfo: [UInt8]
    package var parameters: CardParameters
    /// Whether the card supports ISO/IEC 14443-4.
    package var hasBlockProtocol: Bool { protocolInfo.count > 1 && protocolInfo[1] & 0x01 != 0 }

    /// WUPB without CRC, for all applications and one time slot. Halted cards answer, too. ISO/IEC 14443-3, 7.7.
    package static let wakeUp: [UInt8] = [0x05, 0x00, 0x08]

    /// Parses an ATQB without CRC: 12 bytes, or 13 bytes in the extended form.
    package init(_ bytes: some Collection<UInt8>) throws(Malformed) {
        let bytes = Array(bytes)
        guard bytes.first == 0x50, bytes.count == 12 || bytes.count == 13 else {
            throw Malformed("ATQB: wrong form, \(bytes.count) bytes")
        }
        try self.init(identifier: bytes[1..<5], applicationData: bytes[5..<9], protocolInfo: bytes[9...])
    }

    /// Takes the fields of an ATQB that the chip has parsed.
    package init(
        identifier: some Collection<UInt8>,
        applicationData: some Collection<UInt8>,
        protocolInfo: some Collection<UInt8>
    ) throws(Malformed) {
        let info = Array(protocolInfo)
        guard identifier.count == 4, applicationData.count == 4, info.count == 3 || info.count == 4 else {
            throw Malformed("ATQB: fields of wrong length")
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

    /// ATTRIB without CRC: FSDI, 106 kbit/s in both directions, CID 0, the shortest pauses.
    package func attrib(frameSizeCode: UInt8 = FrameSize.maximumCode) -> [UInt8] {
        [0x1D] + identifier + [0x00, frameSizeCode, protocolInfo[1] & 0x0F, 0x00]
    }

    /// Parses the answer to ATTRIB: the code of the buffer length and the CID.
    /// - Returns: MBLI, the code of the buffer length.
    /// - Throws: when the answer is empty or the CID is not 0.
    package static func bufferLength(_ answer: some Collection<UInt8>) throws(Malformed) -> UInt8 {
        guard let first = answer.first, first & 0x0F == 0 else {
            throw Malformed("answer to ATTRIB: wrong form, \(answer.count) bytes")
        }
        return first >> 4
    }
}
