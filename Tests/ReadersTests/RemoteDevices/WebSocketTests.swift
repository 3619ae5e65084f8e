// SPDX-License-Identifier: GPL-3.0-or-later
import HTTP
import RemoteDevices
import Testing

@Suite(.timeLimit(.minutes(5))) struct WebSocketTests {
    @Test(
        "Frames of each length are read when they are complete, masked or not",
        arguments: [0, 125, 126, 65_535, 65_536],
        [false, true]
    )
    func lengths(_ count: Int, _ isMasked: Bool) throws {
        let payload = (0..<count).map { UInt8(truncatingIfNeeded: $0) }
        let bytes = try WebSocketWriter(isMasked: isMasked).frame(.text, payload)
        var reader = WebSocketReader(isMasked: isMasked, limit: 100_000)
        // The last byte completes the frame, and no earlier one does.
        reader.append(bytes.dropLast())
        #expect(reader.next() == nil)
        reader.append(bytes.suffix(1))
        #expect(reader.next() == .text(payload))
        #expect(reader.next() == nil)
    }

    @Test("A message in fragments is one message, with a ping between")
    func fragments() {
        var reader = WebSocketReader(isMasked: false, limit: 100)
        reader.append([0x01, 1, 0x61, 0x89, 0, 0x80, 1, 0x62, 0x88, 2, 0x03, 0xE8])
        #expect(reader.next() == .ping([]))
        #expect(reader.next() == .text([0x61, 0x62]))
        #expect(reader.next() == .close(1000))
    }

    @Test(
        "Frames that violate RFC 6455 or the limit are refused",
        arguments: [
            ([0x81, 0x80, 0, 0, 0, 0], 1002), ([0xC1, 0], 1002), ([0x83, 0], 1002), ([0x09, 0], 1002),
            ([0x89, 126, 0, 126], 1002), ([0x80, 0], 1002), ([0x01, 0, 0x01, 0], 1002), ([0x88, 1, 0], 1002),
            ([0x81, 127, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF], 1009), ([0x81, 126, 0, 200], 1009),
            ([0x81, 126, 0, 125], 1002), ([0x82, 127, 0, 0, 0, 0, 0, 0, 0, 9], 1002), ([0x88, 2, 0x03, 0xE7], 1002),
            ([0x88, 2, 0x03, 0xED], 1002), ([0x88, 3, 0x03, 0xE8, 0xFF], 1007),
        ] as [([UInt8], UInt16)]
    )
    func violations(_ bytes: [UInt8], _ code: UInt16) {
        var reader = WebSocketReader(isMasked: false, limit: 150)
        reader.append(bytes)
        var last: WebSocketEvent?
        while let event = reader.next() { last = event }
        #expect(last == .violation(code))
        reader.append([0x81, 1, 0x61])
        #expect(reader.next() == nil)
    }

    @Test("The HTTP exchange has the values of RFC 6455, 1.3")
    func handshake() {
        let request = """
            GET / HTTP/1.1\r\nHost: x\r\nupgrade: WebSocket\r\nConnection: Upgrade\r
            Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\nSec-WebSocket-Version: 13\r\n\r\n
            """
        let answer = WebSocketHandshake.answer(to: Array(request.utf8))
        let text = String(decoding: answer ?? [], as: UTF8.self)
        #expect(text.contains("Sec-WebSocket-Accept: s3pPLMBiTxaQ9kYGzzhZRbK+xOo=\r\n"))
        #expect(WebSocketHandshake.isAccepted(answer ?? [], key: "dGhlIHNhbXBsZSBub25jZQ=="))
        #expect(!WebSocketHandshake.isAccepted(answer ?? [], key: "eGhlIHNhbXBsZSBub25jZQ=="))
        #expect(WebSocketHandshake.answer(to: Array("GET / HTTP/1.1\r\n\r\n".utf8)) == nil)
    }
}
