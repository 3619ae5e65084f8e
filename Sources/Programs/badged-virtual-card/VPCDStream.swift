// SPDX-License-Identifier: GPL-3.0-or-later

/// Parses and frames the messages between vpcd and its card.
///
/// In both directions a message is a length of two bytes, big-endian, and as many bytes. A message of one byte controls
/// the power; every other message is a command APDU.
struct VPCDStream {
    enum Message: Equatable {
        case powerOff
        case powerOn
        case reset
        /// Requests the answer to reset. The three cases above have no answer.
        case answerToReset
        case command([UInt8])
        case unknown
    }

    /// What has arrived. A slice, because a message in front of thousands is taken in no time.
    private var bytes: ArraySlice<UInt8> = []

    mutating func append(_ more: [UInt8]) { bytes += more }

    /// The payload of the next message, if the message is complete.
    private var payload: ArraySlice<UInt8>? {
        let head = bytes.prefix(2)
        let length = head.reduce(0) { $0 << 8 | Int($1) }
        guard head.count == 2, bytes.count >= 2 + length else { return nil }
        return bytes.dropFirst(2).prefix(length)
    }

    var hasMessage: Bool { payload != nil }

    /// Returns the next complete message.
    mutating func next() -> Message? {
        guard let payload else { return nil }
        bytes = bytes[payload.endIndex...]
        switch payload {
        case []: return .unknown
        case [0]: return .powerOff
        case [1]: return .powerOn
        case [2]: return .reset
        case [4]: return .answerToReset
        case _ where payload.count == 1: return .unknown
        default: return .command(Array(payload))
        }
    }

    /// Returns the frame of a payload.
    ///
    /// An answer of the largest size with its status word does not fit into the length. Status word 6700, wrong length,
    /// replaces it.
    static func frame(_ payload: [UInt8]) -> [UInt8] {
        guard let length = UInt16(exactly: payload.count) else { return frame([0x67, 0x00]) }
        return [UInt8(length >> 8), UInt8(length & 0xFF)] + payload
    }
}
