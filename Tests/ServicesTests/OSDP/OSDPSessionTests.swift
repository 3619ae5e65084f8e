// SPDX-License-Identifier: GPL-3.0-or-later
import Testing
import Text

@testable import OSDP

@Suite("The secure channel of OSDP")
struct OSDPSessionTests {
    private static func bytes(_ hex: String) -> [UInt8] { Hex.decode(hex) ?? [] }

    /// The example of Annex E with SCBK-D.
    private static func session() throws -> OSDPSession {
        try OSDPSession(.installation, panel: bytes("b0b1b2b3b4b5b6b7"), peripheral: bytes("a0a1a2a3a4a5a6a7"))
    }

    @Test("cryptograms and the first MAC are those of the example in the standard")
    func example() throws {
        let session = try Self.session()
        #expect(Hex.encode(session.serverCryptogram) == "26d3356e07762d262801fc8e6665a891")
        #expect(Hex.encode(session.clientCryptogram) == "fde5d2f428ec16312471ea3c02bd7796")
        #expect(Hex.encode(session.initialMAC) == "b2a30057eb98ba2229ec1f875662b524")
    }

    @Test("data of any length arrive, and no frame is accepted twice, changed, or in the other direction")
    func frames() throws {
        let (panel, peripheral) = (try Self.session(), try Self.session())
        for count in [0, 1, 15, 16, 17, 255] {
            let data = (0..<count).map { UInt8($0 & 0xFF) }
            let command = OSDPFrame(address: 1, isReply: false, sequence: 1, code: 0x6B, data: data)
            let sealed = try panel.seal(command)
            var changed = sealed
            changed.mac[0] ^= 1
            #expect(try peripheral.open(changed) == nil)
            var reply = sealed
            reply.isReply = true
            #expect(try peripheral.open(reply) == nil)
            #expect(try peripheral.open(sealed) == data)
            let answer = OSDPFrame(address: 1, isReply: true, sequence: 1, code: 0x50, data: data)
            #expect(try panel.open(try peripheral.seal(answer)) == data)
            #expect(try peripheral.open(sealed) == nil)
        }
    }

    @Test(
        "a key is 16 bytes, or 32 hexadecimal digits with a line feed",
        arguments: [
            ("000102030405060708090a0b0c0d0e0f", true), ("000102030405060708090A0B0C0D0E0F\n", true),
            ("0123456789abcdef", true), ("000102030405060708090a0b0c0d0e0", false), ("", false),
            ("000102030405060708090a0b0c0d0e0g", false), ("000102030405060708090a0b0c0d0e0f\n\n", false),
        ]
    )
    func keys(_ text: String, _ isKey: Bool) {
        let key = OSDPKey(file: Secret(Array(text.utf8)))
        #expect((key != nil) == isKey)
    }

    @Test("the key that everybody knows is recognised")
    func defaultKey() {
        let (known, own) = (OSDPKey(Secret(0x30...0x3F)), OSDPKey(Secret(0x31...0x40)))
        #expect(known?.isDefault == true)
        #expect(own?.isDefault == false)
    }
}
