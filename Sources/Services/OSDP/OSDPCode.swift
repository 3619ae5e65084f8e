// SPDX-License-Identifier: GPL-3.0-or-later

/// The commands of a panel. IEC 60839-11-5, Annex A.
enum OSDPCommand {
    static let poll: UInt8 = 0x60
    static let identify: UInt8 = 0x61
    static let capabilities: UInt8 = 0x62
    static let localStatus: UInt8 = 0x64
    static let inputStatus: UInt8 = 0x65
    static let outputStatus: UInt8 = 0x66
    static let readerStatus: UInt8 = 0x67
    static let output: UInt8 = 0x68
    static let led: UInt8 = 0x69
    static let buzzer: UInt8 = 0x6A
    static let text: UInt8 = 0x6B
    static let setCommunication: UInt8 = 0x6E
    static let setKey: UInt8 = 0x75
    static let challenge: UInt8 = 0x76
    static let serverCryptogram: UInt8 = 0x77
    static let receiveSize: UInt8 = 0x7B
    static let manufacturer: UInt8 = 0x80
    static let abort: UInt8 = 0xA2
    static let keepActive: UInt8 = 0xA7
}

/// The answers of a peripheral.
enum OSDPReply {
    static let acknowledged: UInt8 = 0x40
    static let refused: UInt8 = 0x41
    static let identification: UInt8 = 0x45
    static let capabilities: UInt8 = 0x46
    static let localStatus: UInt8 = 0x48
    static let inputStatus: UInt8 = 0x49
    static let outputStatus: UInt8 = 0x4A
    static let readerStatus: UInt8 = 0x4B
    static let raw: UInt8 = 0x50
    static let formatted: UInt8 = 0x51
    static let keypad: UInt8 = 0x53
    static let communication: UInt8 = 0x54
    static let clientCryptogram: UInt8 = 0x76
    static let initialMAC: UInt8 = 0x78
    static let busy: UInt8 = 0x79
    static let manufacturer: UInt8 = 0x90
}

/// Why a command is refused: the byte of NAK.
package enum OSDPRefusal: UInt8, Sendable {
    case wrongLength = 2
    case unknownCommand = 3
    case wrongSequence = 4
    case unsupportedSecurity = 5
    case needsSecurity = 6
    case cannotBeDone = 9
}
