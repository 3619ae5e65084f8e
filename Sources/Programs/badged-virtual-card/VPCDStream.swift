// SPDX-License-Identifier: GPL-3.0-or-later

/// The protocol between vpcd and its card: a length of two bytes, big-endian, and as many bytes, in both directions.
/// What is one byte long is about power, all else is a command APDU.
struct VPCDStream {
    enum Message: Equatable {
        case powerOff
        case powerOn
        case reset
        /// Wants the answer to reset as answer; the three above want none.
        case answerToReset
        case command([UInt8])
        case unknown
    }

    private var bytes: [UInt8] = []

    mutating func append(_ more: [UInt8]) { bytes += more }

    /// The next whole message.
    mutating func next() -> Message? {
        guard bytes.count >= 2 else { return nil }
        let length = Int(bytes[0]) << 8 | Int(bytes[1])
        guard bytes.count >= 2 + length else { return nil }
        let payload = Array(bytes[2..<2 + length])
        bytes.removeFirst(2 + length)
        switch payload {
        case []: return .unknown
        case [0]: return .powerOff
        case [1]: return .powerOn
        case [2]: return .reset
        case [4]: return .answerToReset
        case _ where payload.count == 1: return .unknown
        default: return .command(payload)
        }
    }

    /// A payload as it is sent. One that no length can tell, an answer of the largest size with its status word, is
    /// answered with "wrong length" in its place.
    static func frame(_ payload: [UInt8]) -> [UInt8] {
        guard let length = UInt16(exactly: payload.count) else { return frame([0x67, 0x00]) }
        return [UInt8(length >> 8), UInt8(length & 0xFF)] + payload
    }
}
