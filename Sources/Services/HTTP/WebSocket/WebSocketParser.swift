// SPDX-License-Identifier: GPL-3.0-or-later

/// Bytes that violate RFC 6455 or a limit. The connection has to be closed.
package struct WebSocketError: Error, Equatable {
    /// The status code for the other side.
    package let code: UInt16

    static let violation = WebSocketError(code: 1002)
    static let notUTF8 = WebSocketError(code: 1007)
    static let tooBig = WebSocketError(code: 1009)
}

/// Parses the frames of one direction as their bytes arrive. RFC 6455, 5.
///
/// The parser keeps no payload of messages, because a message may hold a secret: it passes each part on at once.
package struct WebSocketParser: Sendable {
    package enum Part {
        /// A part of a message, unmasked in place and valid only during the call. `isLast` ends the message.
        case message(UnsafeRawBufferPointer, isText: Bool, isLast: Bool)
        case ping([UInt8])
        case pong
        /// The status code; 1005 if there is none.
        case close(UInt16)
    }

    /// Whether frames have to be masked: those of a client must be, those of a server must not. RFC 6455, 5.1.
    private let isMasked: Bool
    /// The largest size of a message in bytes.
    private let limit: Int
    /// The first bytes of a frame, until its header is complete.
    private var header: [UInt8] = []
    private var frame: Frame?
    /// The message whose fragments arrive: its opcode, and its bytes so far.
    private var message: (opcode: UInt8, count: Int)?

    private struct Frame {
        let isFinal: Bool
        let opcode: UInt8
        /// Empty if the frame is not masked.
        let mask: [UInt8]
        /// The number of payload bytes that have arrived, and that are missing.
        var (position, remaining): (Int, Int)
        /// The payload of a control frame.
        var control: [UInt8] = []

        var isControl: Bool { opcode & 8 != 0 }
    }

    package init(isMasked: Bool, limit: Int) { (self.isMasked, self.limit) = (isMasked, limit) }

    /// Parses bytes, and passes each part of a message and each control frame to `handle`.
    package mutating func parse(
        _ bytes: UnsafeMutableRawBufferPointer,
        _ handle: (Part) -> Void
    ) throws(WebSocketError) {
        var start = 0
        while start < bytes.count || frame?.remaining == 0 {
            if frame == nil {
                header.append(bytes[start])
                start += 1
                frame = try readHeader()
                continue
            }
            let count = min(frame?.remaining ?? 0, bytes.count - start)
            let part = UnsafeMutableRawBufferPointer(rebasing: bytes[start..<start + count])
            start += count
            try add(part, handle)
        }
    }

    /// Reads a header; nil if bytes of it are missing.
    private mutating func readHeader() throws(WebSocketError) -> Frame? {
        guard header.count >= 2 else { return nil }
        let (first, second) = (header[0], header[1])
        // Extensions are never agreed on, so the reserved bits are 0.
        guard first & 0x70 == 0, (second & 0x80 != 0) == isMasked else { throw .violation }
        let (opcode, isFinal) = (first & 0x0F, first & 0x80 != 0)
        switch opcode {
        case 0: guard message != nil else { throw .violation }
        case 1, 2: guard message == nil else { throw .violation }
        case 8, 9, 10: guard isFinal, second & 0x7F <= 125 else { throw .violation }
        default: throw .violation
        }
        let sizeCount = [126: 2, 127: 8][second & 0x7F] ?? 0
        guard header.count == 2 + sizeCount + (isMasked ? 4 : 0) else { return nil }
        let size = header[2..<2 + sizeCount].reduce(UInt64(0)) { $0 << 8 | UInt64($1) }
        let length = sizeCount == 0 ? UInt64(second & 0x7F) : size
        // Only the shortest form is allowed.
        let least: UInt64 = sizeCount == 8 ? 0x1_0000 : sizeCount == 2 ? 126 : 0
        guard length >= least else { throw .violation }
        guard opcode & 8 != 0 || length <= UInt64(limit - (message?.count ?? 0)) else { throw .tooBig }
        let mask = Array(header[(2 + sizeCount)...])
        header = []
        return Frame(isFinal: isFinal, opcode: opcode, mask: mask, position: 0, remaining: Int(length))
    }

    /// Takes payload bytes of the frame, up to its end.
    private mutating func add(
        _ part: UnsafeMutableRawBufferPointer,
        _ handle: (Part) -> Void
    ) throws(WebSocketError) {
        guard var current = frame else { return }
        if !current.mask.isEmpty {
            for index in part.indices { part[index] ^= current.mask[(current.position + index) & 3] }
        }
        current.position += part.count
        current.remaining -= part.count
        let isLast = current.remaining == 0
        if current.isControl {
            current.control += part
            frame = isLast ? nil : current
            if isLast { handle(try Self.controlPart(current.opcode, current.control)) }
            return
        }
        frame = isLast ? nil : current
        let opcode = message?.opcode ?? current.opcode
        let isEnd = isLast && current.isFinal
        message = isEnd ? nil : (opcode, (message?.count ?? 0) + part.count)
        handle(.message(UnsafeRawBufferPointer(part), isText: opcode == 1, isLast: isEnd))
    }

    private static func controlPart(_ opcode: UInt8, _ payload: [UInt8]) throws(WebSocketError) -> Part {
        switch opcode {
        case 9: return .ping(payload)
        case 10: return .pong
        default:
            guard !payload.isEmpty else { return .close(1005) }
            guard payload.count >= 2 else { throw .violation }
            let code = UInt16(payload[0]) << 8 | UInt16(payload[1])
            guard isSent(code) else { throw .violation }
            guard String(validating: payload[2...], as: UTF8.self) != nil else { throw .notUTF8 }
            return .close(code)
        }
    }

    /// Whether the other side may send this status code: 1004 to 1006 and 1015 are never sent. RFC 6455, 7.4.
    private static func isSent(_ code: UInt16) -> Bool {
        (1000...1003).contains(code) || (1007...1014).contains(code) || (3000...4999).contains(code)
    }
}
