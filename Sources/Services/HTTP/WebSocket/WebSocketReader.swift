// SPDX-License-Identifier: GPL-3.0-or-later
package import Crypto
import Text

/// What a WebSocket connection has received. RFC 6455, 5.
package enum WebSocketEvent: Sendable, Equatable {
    case text([UInt8])
    case binary
    case ping([UInt8])
    case pong
    /// The status code; 1005 if there is none.
    case close(UInt16)
    /// The bytes violate the protocol or a limit; the status code for the other side. Nothing follows.
    case violation(UInt16)
}

/// Reads whole messages of one direction.
package struct WebSocketReader: Sendable {
    private var parser: WebSocketParser
    private var events: ArraySlice<WebSocketEvent> = []
    private var payload: [UInt8] = []
    private var isBroken = false

    /// `limit` is the largest size of a message in bytes.
    package init(isMasked: Bool, limit: Int) { parser = WebSocketParser(isMasked: isMasked, limit: limit) }

    package mutating func append(_ bytes: some Collection<UInt8>) {
        guard !isBroken else { return }
        var bytes = Array(bytes)
        var (events, payload) = (self.events, self.payload)
        do throws(WebSocketError) {
            try parse(&bytes) { part in
                switch part {
                case .message(let part, let isText, let isLast):
                    payload += part
                    guard isLast else { return }
                    events.append(isText ? .text(payload) : .binary)
                    payload = []
                case .ping(let payload): events.append(.ping(payload))
                case .pong: events.append(.pong)
                case .close(let code): events.append(.close(code))
                }
            }
        } catch {
            isBroken = true
            events.append(.violation(error.code))
        }
        self.events = events
        self.payload = payload
    }

    private mutating func parse(
        _ bytes: inout [UInt8],
        _ handle: (WebSocketParser.Part) -> Void
    ) throws(WebSocketError) {
        let result = bytes.withUnsafeMutableBytes { bytes in
            Result { () throws(WebSocketError) in try parser.parse(bytes, handle) }
        }
        try result.get()
    }

    /// Returns the next event; nil if more bytes are needed.
    package mutating func next() -> WebSocketEvent? { events.popFirst() }
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

    /// Encodes the header of a frame with a whole message, without a mask.
    package static func header(_ opcode: Opcode, count: Int, isMasked: Bool = false) -> [UInt8] {
        let bit: UInt8 = isMasked ? 0x80 : 0
        let first = 0x80 | opcode.rawValue
        switch count {
        case ...125: return [first, bit | UInt8(count)]
        case ...0xFFFF: return [first, bit | 126] + withUnsafeBytes(of: UInt16(count).bigEndian, Array.init)
        default: return [first, bit | 127] + withUnsafeBytes(of: UInt64(count).bigEndian, Array.init)
        }
    }

    /// Encodes a whole message in one frame. Throws when there are no random bytes for the mask.
    package func frame(_ opcode: Opcode, _ payload: [UInt8]) throws(CryptoError) -> [UInt8] {
        let frame = Self.header(opcode, count: payload.count, isMasked: isMasked)
        guard isMasked else { return frame + payload }
        let mask = try Random.bytes(4)
        return frame + mask + payload.enumerated().map { $1 ^ mask[$0 & 3] }
    }

    /// Encodes a close frame with a status code. RFC 6455, 5.5.1.
    package func close(_ code: UInt16) throws(CryptoError) -> [UInt8] {
        try frame(.close, withUnsafeBytes(of: code.bigEndian, Array.init))
    }
}

/// The key of a handshake, which shows that the server speaks WebSocket. RFC 6455, 1.3.
package enum WebSocketKey {
    /// The value of `Sec-WebSocket-Accept` for the base 64 of a key.
    package static func accept(_ key: String) throws(CryptoError) -> String {
        Base64.standard.encode(
            try DigestAlgorithm.sha1.hash(Array((key + "258EAFA5-E914-47DA-95CA-C5AB0DC85B11").utf8))
        )
    }
}
