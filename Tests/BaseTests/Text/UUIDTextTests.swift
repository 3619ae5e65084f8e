// SPDX-License-Identifier: GPL-3.0-or-later
import Testing
import Text

@Suite("UUIDs as text", .timeLimit(.minutes(5)))
struct UUIDTextTests {
    private static let bytes: [UInt8] = [
        0x00, 0x00, 0xFF, 0xF0, 0x00, 0x00, 0x10, 0x00, 0x80, 0x00, 0x00, 0x80, 0x5F, 0x9B, 0x34, 0xFB,
    ]

    @Test(
        "the usual form and 32 digits are read, in upper and lower case",
        arguments: [
            "0000fff0-0000-1000-8000-00805f9b34fb", "0000FFF0-0000-1000-8000-00805F9B34FB",
            "0000fff000001000800000805f9b34fb",
        ]
    )
    func read(text: String) { #expect(UUIDText.decode(text) == Self.bytes) }

    @Test(
        "dashes at other places, and too few or too many of them, are refused",
        arguments: [
            "", "0000fff0-0000-1000-8000-00805f9b34f", "0000fff0-0000-1000-8000-00805f9b34fb0",
            "0000fff00-000-1000-8000-00805f9b34fb", "----0000fff000001000800000805f9b34fb",
            "0000fff000001000800000805f9b34fb----", "0000fff0-0000-1000-800000805f9b34fb",
            "-0000fff000001000800000805f9b34fb", "{000fff0-0000-1000-8000-00805f9b34f}",
            "0000fff0-0000-1000-8000-00805f9b34fg",
        ]
    )
    func refused(text: String) { #expect(UUIDText.decode(text) == nil) }

    @Test("what is written is read")
    func roundTrip() {
        #expect(UUIDText.encode(Self.bytes) == "0000fff0-0000-1000-8000-00805f9b34fb")
        let random = UUIDText.random()
        #expect(UUIDText.decode(random).map { UUIDText.encode($0) } == random)
    }
}
