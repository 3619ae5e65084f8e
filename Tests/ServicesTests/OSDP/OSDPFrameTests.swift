// SPDX-License-Identifier: GPL-3.0-or-later
import Testing
import Text

@testable import OSDP

@Suite("Frames of OSDP")
struct OSDPFrameTests {
    /// What the control panel of libosdp sends for ID and CAP, and an answer with a card of 64 bits.
    static let foreign = [
        "53650900046100d97a", "53650900056200ba18", "53e5140006500000400084848b79fd463e32e98d",
    ]

    /// Commands of OSDP.Net, with CRC and with sum: COMSET, CAP, KEYSET, ID, ISTAT, OUT for two outputs, POLL; BUZ and
    /// PDID of a recording.
    static let commands = [
        "53000d00066e0180250000ec7b", "53000c00026e01802500008b", "53000900066200f35d", "5300080002620041",
        "53001a000675011000010203040506070001020304050607cfa3", "530019000275011000010203040506070001020304050607d4",
        "53000900066100a008", "5300080002610042", "5300080006652c9c", "5300070002653f",
        "53001000066800036400010678000b5b", "53000f00026800036400010678004e", "53000800066089cc", "53000700026044",
        "53000d00066a00020202015992", "538014000645000ee31010000074972306061b88",
    ]

    private static func bytes(_ hex: String) -> [UInt8] { Hex.decode(hex) ?? [] }

    @Test("a frame of a foreign program is read, and is the same when it is written", arguments: foreign + commands)
    func roundTrip(_ hex: String) throws {
        let frame = try #require(OSDPFrame(Self.bytes(hex)))
        #expect(frame.bytes == [0xFF] + Self.bytes(hex))
    }

    @Test(
        "CRC and sum are those of the examples in the standard",
        arguments: [
            ("537f0d00046e0080250000", "6e38", true), ("53000900046100", "c066", true),
            ("537f0c00006e0080250000", "0f", false), ("53000800006100", "44", false),
        ]
    )
    func checks(_ body: String, _ check: String, _ usesCRC: Bool) throws {
        let frame = try #require(OSDPFrame(Self.bytes(body + check)))
        #expect(frame.usesCRC == usesCRC)
        #expect(frame.bytes == [0xFF] + Self.bytes(body + check))
    }

    @Test("a frame with any bit flipped is no frame", arguments: foreign + commands)
    func flippedBits(_ hex: String) {
        let good = Self.bytes(hex)
        for index in good.indices {
            for bit in 0..<8 {
                var bad = good
                bad[index] ^= 1 << UInt8(bit)
                #expect(OSDPFrame(bad) == nil)
            }
        }
    }

    @Test("a frame that is cut or has a wrong length is no frame", arguments: foreign)
    func cuts(_ hex: String) {
        let good = Self.bytes(hex)
        for count in 0..<good.count { #expect(OSDPFrame(Array(good.prefix(count))) == nil) }
        #expect(OSDPFrame(good + [0]) == nil)
    }

    @Test(
        "a security block that does not fit is no frame",
        arguments: [[0x00, 0x11], [0x01, 0x11], [0xFF, 0x15], [0x0A, 0x15], [0x02, 0x15]] as [[UInt8]]
    )
    func wrongBlocks(_ block: [UInt8]) {
        // Length, type and code, without room for more.
        var body: [UInt8] = [0x53, 0x00, 0x00, 0x00, 0x0C] + block
        body[2] = UInt8(body.count + 2)
        let crc = OSDPFrame.checksum(body[...])
        #expect(OSDPFrame(body + [UInt8(crc & 0xFF), UInt8(crc >> 8)]) == nil)
    }

    @Test("frames are found between garbage, however the bytes arrive", arguments: [1, 2, 3, 7, 64, 4096])
    func garbage(_ piece: Int) {
        let noise: [UInt8] = [0x00, 0xFF, 0x53, 0x00, 0x01, 0x00, 0x53, 0xFF, 0x53, 0x53, 0x00, 0xFF, 0xFF]
        var stream: [UInt8] = []
        for hex in Self.foreign { stream += noise + [0xFF] + Self.bytes(hex) }
        var reader = OSDPFrameReader()
        var found: [[UInt8]] = []
        for start in stride(from: 0, to: stream.count, by: piece) {
            found += reader.read(stream[start..<min(stream.count, start + piece)], at: 0).map(\.bytes)
            #expect(reader.waiting < OSDPFrame.largest)
        }
        #expect(found == Self.foreign.map(Self.bytes))
    }

    @Test("a frame that never ends hides no frame after a silence")
    func unfinished() {
        var reader = OSDPFrameReader(gap: 20)
        // It promises 1023 bytes.
        #expect(reader.read([0x53, 0x00, 0xFF, 0x03, 0x04, 0x60] as [UInt8], at: 0).isEmpty)
        #expect(reader.read(Self.bytes(Self.foreign[0]), at: 10).isEmpty)
        let found = reader.read(Self.bytes(Self.foreign[1]), at: 200).map(\.bytes)
        #expect(found == Self.foreign.prefix(2).map(Self.bytes))
        #expect(reader.faults == 1)
    }

    @Test("a line is silent when it has brought no frame for 8 seconds, and garbage is no frame")
    func silence() {
        var reader = OSDPFrameReader(gap: 20)
        reader.begin(at: 1000)
        #expect(!reader.isSilent(at: 8999) && reader.isSilent(at: 9000))
        #expect(reader.read([0x53, 0xFF, 0x53] as [UInt8], at: 5000).isEmpty)
        #expect(reader.isSilent(at: 9000))
        #expect(reader.read(Self.bytes(Self.foreign[0]), at: 7000).count == 1)
        #expect(!reader.isSilent(at: 14_999) && reader.isSilent(at: 15_000))
    }

    @Test("what an earlier connection has begun does not spoil the first frame of the next one")
    func nextConnection() {
        var reader = OSDPFrameReader(gap: 20)
        // It promises 1023 bytes.
        #expect(reader.read([0x53, 0x00, 0xFF, 0x03, 0x04, 0x60] as [UInt8], at: 0).isEmpty)
        reader.begin(at: 5)
        #expect(reader.read(Self.bytes(Self.foreign[0]), at: 10).count == 1)
        #expect(reader.faults == 1)
    }

    @Test("whatever came before a silence, the first frame after it is found", arguments: [1, 2, 5, 200, 255])
    func afterSilence(_ count: Int) {
        var reader = OSDPFrameReader(gap: 20)
        // Each piece promises 1023 bytes.
        let noise = Array(repeating: [0x53, 0x00, 0xFF, 0x03] as [UInt8], count: count).flatMap(\.self)
        #expect(reader.read(noise, at: 0).isEmpty)
        #expect(reader.read(Self.bytes(Self.foreign[0]), at: 21).map(\.bytes) == [Self.bytes(Self.foreign[0])])
        #expect(reader.waiting == 0)
    }
}
