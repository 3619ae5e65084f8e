// SPDX-License-Identifier: GPL-3.0-or-later

/// How messages are put into writes and notifications. The reader decides with its first notification.
package struct PKOCFraming: Sendable {
    package enum Dialect: Sendable {
        /// One message in each write and notification.
        case whole
        /// One byte stands before each piece: 00 first, 01 middle, 02 last.
        case fragments
    }

    /// nil before the first notification.
    package private(set) var dialect: Dialect?
    private var pieces: [UInt8] = []
    /// Whether the message has begun and is not complete.
    package private(set) var isInside = false

    private static let (first, middle, last): (UInt8, UInt8, UInt8) = (0, 1, 2)

    package init() {}

    /// Takes a notification.
    /// - Returns: a complete message; nil if pieces are missing.
    /// - Throws: `.malformed` for pieces in a wrong order, and for a message that is too long.
    package mutating func receive(_ bytes: [UInt8]) throws(PKOCFailure) -> [UInt8]? {
        guard let mark = bytes.first else { throw .malformed }
        let dialect = dialect ?? Self.dialect(of: bytes)
        self.dialect = dialect
        switch dialect {
        case .whole: return bytes
        case .fragments:
            let continues = mark == Self.middle || (mark == Self.last && isInside)
            guard mark <= Self.last, mark != Self.first || !isInside, !continues || isInside,
                bytes.count > 1, pieces.count + bytes.count - 1 <= PKOCMessage.longest
            else { throw .malformed }
            pieces += bytes.dropFirst()
            isInside = mark != Self.last
            guard !isInside else { return nil }
            defer { pieces = [] }
            return pieces
        }
    }

    /// The first message begins with protocol information, or in the oldest dialect with the key of the reader, 02 21.
    private static func dialect(of bytes: [UInt8]) -> Dialect {
        switch bytes[0] {
        case first: .fragments
        case last: bytes.count > 1 && bytes[1] == 0x21 ? .whole : .fragments
        default: .whole
        }
    }

    /// Divides a message into writes.
    /// - Parameters:
    ///   - message: the whole message.
    ///   - capacity: the bytes that one write carries, which is three less than the MTU.
    /// - Returns: nil if the message does not fit one write and the reader does not support pieces.
    package func divide(_ message: [UInt8], capacity: Int) -> [[UInt8]]? {
        guard dialect == .fragments else { return message.count <= capacity ? [message] : nil }
        let size = capacity - 1
        guard size > 0 else { return nil }
        return stride(from: 0, to: message.count, by: size).map { start in
            let end = min(start + size, message.count)
            let mark = end == message.count ? Self.last : start == 0 ? Self.first : Self.middle
            return [mark] + message[start..<end]
        }
    }
}
