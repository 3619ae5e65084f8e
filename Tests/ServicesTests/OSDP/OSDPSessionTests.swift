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

    /// Commands that OSDP.Net (src/OSDP.Net.Tests, CommandOutgoingMessageTest) seals with keys and MACs of zeros: COMSET,
    /// CAP, KEYSET, FILETRANSFER, PIVDATA, ID, ISTAT, LSTAT, MFG, OUT, OSTAT and POLL.
    private static let foreign = [
        ("6e", "0180250000", "53001e000e02176eaca3c2ffe4d9e599cd771b8ef3d13f23faab634e0895"),
        ("62", "00", "53001e000e021762d14eb7ad982cc5f9aa25318a7eaed6260f6a2aa73870"),
        (
            "75", "011000010203040506070001020304050607",
            "53002e000e021775f0ddec9a0ed8ce4c80baf5d55c18436f9189fd66c9f223dc041486d83357df986c1d4bc2b2f2"
        ),
        (
            "7c", "03e80300000a0000000500" + "0102030405",
            "53002e000e02177c927138dde009a3475367f82a2c9429700d2348a877b95509" + "6d8a24dd7188ac3c9a98d6c54aee"
        ),
        ("a3", "5fc10200" + "0000", "53001e000e0217a3bb89c6e0f9eb82adfcbc16c4eecf42b051fcbf8395b2"),
        ("61", "00", "53001e000e021761d14eb7ad982cc5f9aa25318a7eaed6269ae995731983"),
        ("65", "", "53000e000e021565460e3d4e2a6a"), ("64", "", "53000e000e0215646f63246fd050"),
        ("80", "0102030a0b0c", "53001e000e021780c8670fcb60c025ba48154192a42bb8f3b978ffac1a91"),
        ("68", "0003640001067800", "53001e000e021768f7efa0d4764a4e29267596f216d8a9e8c5887608b908"),
        ("66", "", "53000e000e02156662de0516124b"), ("60", "", "53000e000e0215604b32767773b6"),
    ]

    @Test(
        "a frame that OSDP.Net has sealed is opened, is the same when it is sealed, and no bit of it may change",
        arguments: foreign
    )
    func foreignFrames(_ code: String, _ data: String, _ hex: String) throws {
        func session() throws -> OSDPSession {
            func zeros() -> Secret { Secret([UInt8](repeating: 0, count: 16)) }
            return try OSDPSession(encryption: zeros(), mac1: zeros(), mac2: zeros())
        }
        let frame = try #require(OSDPFrame(Self.bytes(hex)))
        #expect([frame.code] == Self.bytes(code) && frame.sequence == 2)
        #expect(try session().open(frame) == Self.bytes(data))
        let clear = OSDPFrame(address: 0, isReply: false, sequence: 2, code: frame.code, data: Self.bytes(data))
        #expect(Hex.encode(Array(try session().seal(clear).bytes.dropFirst())) == hex)
        for index in frame.data.indices {
            var changed = frame
            changed.data[index] ^= 1
            #expect(try session().open(changed) == nil)
        }
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

    @Test("the same key is recognised, and another one is not")
    func sameKeys() {
        let (one, same, other) = (OSDPKey(Secret(1...16)), OSDPKey(Secret(1...16)), OSDPKey(Secret(2...17)))
        #expect(OSDPKey.areSame(one, same) && OSDPKey.areSame(nil, nil))
        #expect(!OSDPKey.areSame(one, other) && !OSDPKey.areSame(one, nil) && !OSDPKey.areSame(nil, one))
    }

    @Test("the key that everybody knows is recognised")
    func defaultKey() {
        let (known, own) = (OSDPKey(Secret(0x30...0x3F)), OSDPKey(Secret(0x31...0x40)))
        #expect(known?.isDefault == true)
        #expect(own?.isDefault == false)
    }
}
