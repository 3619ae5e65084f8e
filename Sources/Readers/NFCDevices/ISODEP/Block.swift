// SPDX-License-Identifier: GPL-3.0-or-later

/// A block of the half-duplex protocol, without CRC, CID and NAD. ISO/IEC 14443-4, 7.1.
enum Block: Equatable {
    /// I-block: a part of a command or an answer. More parts follow when the block is chained.
    case information(ArraySlice<UInt8>, isChained: Bool, number: UInt8)
    /// R(ACK)
    case acknowledgement(number: UInt8)
    /// R(NAK)
    case refusal(number: UInt8)
    /// S(WTX): the card needs this multiple of FWT for its answer.
    case waitingTimeExtension(UInt8)
    /// S(DESELECT)
    case deselect

    /// Parses a frame. Fails for frames that no card may send to a reader without CID and NAD.
    init?(_ frame: [UInt8]) {
        guard let control = frame.first else { return nil }
        let number = control & 0x01
        switch control {
        case 0x02, 0x03, 0x12, 0x13:
            self = .information(frame.dropFirst(), isChained: control & 0x10 != 0, number: number)
        case 0xA2 where frame.count == 1, 0xA3 where frame.count == 1: self = .acknowledgement(number: number)
        case 0xB2 where frame.count == 1, 0xB3 where frame.count == 1: self = .refusal(number: number)
        case 0xC2 where frame.count == 1: self = .deselect
        case 0xF2 where frame.count == 2:
            // The upper two bits describe the power level. The multipliers 0 and 60 to 63 are reserved.
            guard case let times = frame[1] & 0x3F, (1...59).contains(times) else { return nil }
            self = .waitingTimeExtension(times)
        default: return nil
        }
    }

    /// The block as a frame.
    var bytes: [UInt8] {
        switch self {
        case .information(let content, let isChained, let number):
            [0x02 | (isChained ? 0x10 : 0) | number] + content
        case .acknowledgement(let number): [0xA2 | number]
        case .refusal(let number): [0xB2 | number]
        case .waitingTimeExtension(let times): [0xF2, times]
        case .deselect: [0xC2]
        }
    }
}
