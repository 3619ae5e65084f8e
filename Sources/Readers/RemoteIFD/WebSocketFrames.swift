// SPDX-License-Identifier: GPL-3.0-or-later
package import Crypto

/// What a WebSocket connection has received. RFC 6455, 5.
package enum WebSocketEvent: Sendable, Equatable {
    case text([UInt8])
    case binary
    case ping([UInt8])
    case pong
    /// The status code; 1005 if there is none.
    case close(UInt16)
}

/// Bytes that violate RFC 6455 or a limit. The connection has to be closed.
package struct WebSocketError: Error, Equatable {
    /// The status code for the other side.
    package let code: UInt16

    static let violation = WebSocketError(code: 1002)
    static let tooBig = WebSocketError(code: 1009)
}

/// Reads frames of one direction.
package struct WebSocketReader: Sendable {
    /// Whether frames have to be masked: those of a client must be, those of a server must not. RFC 6455, 5.1.
    private let isMasked: Bool
    private let limit: Int
    private var buffer: [UInt8] = []
    /// The opcode and the payload of a message that comes in fragments.
    private var message: (opcode: UInt8, payload: [UInt8])?

    /// `limit` is the largest size of a message in bytes.
    package init(isMasked: Bool, limit: Int) { (self.isMasked, self.limit) = (isMasked, limit) }

    package mutating func append(_ bytes: some Collection<UInt8>) { buffer += bytes }

    /// Returns the next event; nil if more bytes are needed.
    package mutating func next() throws(WebSocketError) -> WebSocketEvent? {
        while let frame = try nextFrame() {
            if let event = try handle(frame) { return event }
        }
        return nil
    }

    private struct Frame {
        let isFinal: Bool
        let opcode: UInt8
        let payload: [UInt8]
    }

    private mutating func nextFrame() throws(WebSocketError) -> Frame? {
        guard buffer.count >= 2 else { return nil }
        let (first, second) = (buffer[0], buffer[1])
        // Extensions are never agreed on, so the reserved bits are 0.
        guard first & 0x70 == 0, (second & 0x80 != 0) == isMasked else { throw .violation }
        let (opcode, isFinal) = (first & 0x0F, first & 0x80 != 0)
        var (count, start) = (Int(second & 0x7F), 2)
        if opcode & 8 != 0, !isFinal || count > 125 { throw .violation }
        if count >= 126 {
            let size = count == 126 ? 2 : 8
            guard buffer.count >= 2 + size else { return nil }
            let length = buffer[2..<2 + size].reduce(UInt64(0)) { $0 << 8 | UInt64($1) }
            guard length <= UInt64(limit) else { throw .tooBig }
            (count, start) = (Int(length), 2 + size)
        }
        guard count + (message?.payload.count ?? 0) <= limit else { throw .tooBig }
        let maskCount = isMasked ? 4 : 0
        guard buffer.count >= start + maskCount + count else { return nil }
        let mask = Array(buffer[start..<start + maskCount])
        start += maskCount
        var payload = Array(buffer[start..<start + count])
        if isMasked {
            for index in payload.indices { payload[index] ^= mask[index & 3] }
        }
        buffer.removeFirst(start + count)
        return Frame(isFinal: isFinal, opcode: opcode, payload: payload)
    }

    private mutating func handle(_ frame: Frame) throws(WebSocketError) -> WebSocketEvent? {
        switch frame.opcode {
        case 0:
            guard let begun = message else { throw .violation }
            message = (begun.opcode, begun.payload + frame.payload)
        case 1, 2:
            guard message == nil else { throw .violation }
            message = (frame.opcode, frame.payload)
        case 8:
            guard frame.payload.count != 1 else { throw .violation }
            guard frame.payload.count >= 2 else { return .close(1005) }
            return .close(UInt16(frame.payload[0]) << 8 | UInt16(frame.payload[1]))
        case 9: return .ping(frame.payload)
        case 10: return .pong
        default: throw .violation
        }
        guard frame.isFinal, let whole = message else { return nil }
        message = nil
        return whole.opcode == 1 ? .text(whole.payload) : .binary
    }
}

/// Writes frames of one direction.
package struct WebSocketWriter: Sendable {
    /// A client masks its frames.
    private let isMasked: Bool

    package init(isMasked: Bool) { self.isMasked = isMasked }

    package enum Opcode: UInt8, Sendable {
        case text = 1
        case close = 8
        case ping = 9
        case pong = 10
    }

    /// Encodes a whole message in one frame. Throws when there are no random bytes for the mask.
    package func frame(_ opcode: Opcode, _ payload: [UInt8]) throws(CryptoError) -> [UInt8] {
        let bit: UInt8 = isMasked ? 0x80 : 0
        var frame: [UInt8] = [0x80 | opcode.rawValue]
        switch payload.count {
        case ...125: frame.append(bit | UInt8(payload.count))
        case ...0xFFFF:
            frame.append(bit | 126)
            frame += withUnsafeBytes(of: UInt16(payload.count).bigEndian, Array.init)
        default:
            frame.append(bit | 127)
            frame += withUnsafeBytes(of: UInt64(payload.count).bigEndian, Array.init)
        }
        guard isMasked else { return frame + payload }
        let mask = try Random.bytes(4)
        return frame + mask + payload.enumerated().map { $1 ^ mask[$0 & 3] }
    }

    /// Encodes a close frame with a status code. RFC 6455, 5.5.1.
    package func close(_ code: UInt16) throws(CryptoError) -> [UInt8] {
        try frame(.close, withUnsafeBytes(of: code.bigEndian, Array.init))
    }
}
