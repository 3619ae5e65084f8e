// SPDX-License-Identifier: GPL-3.0-or-later
import ISO7816
import TestSupport
import Testing

@Suite("APDU", .timeLimit(.minutes(5)))
struct APDUTests {
    static let lengths: [(data: Int, le: Int?)] =
        [0, 1, 255, 256, 65_535].flatMap { data in
            [nil, 1, 255, 256, 257, 65_535, 65_536].map { (data, $0) }
        }

    @Test("commands of all lengths are encoded and decoded", arguments: lengths)
    func roundTrip(data: Int, le: Int?) throws {
        let command = CommandAPDU(0x00, 0xCB, 0x3F, 0xFF, data: [UInt8](repeating: 7, count: data), le: le)
        let isExtended = data > 255 || (le ?? 0) > 256
        #expect(command.isExtended == isExtended)
        let lengthBytes =
            switch (data, le, isExtended) {
            case (0, nil, _): 0
            case (0, _, false), (_, nil, false): 1
            case (_, _, false): 2
            case (0, _, true), (_, nil, true): 3
            case (_, _, true): 5
            }
        #expect(command.bytes.count == 4 + lengthBytes + data)
        #expect(CommandAPDU(bytes: command.bytes) == command)
    }

    @Test(
        "contradicting lengths are refused",
        arguments: [
            "", "00A404", "00A4040C05AABB", "00A4040C01AABBCC", "00A4040C0000", "00A4040C000002AA", "00A4040C000000AA",
        ]
    )
    func malformed(encoding: String) {
        #expect(CommandAPDU(bytes: hex(encoding)) == nil)
    }

    @Test("an answer has at least a status word")
    func answers() throws {
        #expect(ResponseAPDU(bytes: hex("63C2")) == ResponseAPDU(StatusWord(0x63C2)))
        #expect(ResponseAPDU(bytes: hex("AA9000")) == ResponseAPDU(data: [0xAA], .ok))
        #expect(ResponseAPDU(bytes: hex("90")) == nil)
        #expect(ResponseAPDU(bytes: [UInt8](repeating: 0, count: 65_539)) == nil)
        #expect(StatusWord(0x63C).description == "063C")
    }
}
