// SPDX-License-Identifier: GPL-3.0-or-later
import Readers
import TestSupport
import Testing

@testable import ReadersPCSC

@Suite("reader features", .timeLimit(.minutes(5)))
struct ReaderFeaturesTests {
    @Test("the feature list of a basic reader holds only the reader properties")
    func basic() {
        let features = ReaderFeatures(features: hex("12 04 42330012"))
        #expect(features.tlvProperties == 0x4233_0012)
        #expect(features.executePACE == nil)
        #expect(!features.description(of: ReaderName("basic")).hasKeypad)
    }

    @Test("the feature list of a keypad reader is decoded")
    func keypad() {
        let features = ReaderFeatures(
            features: hex("06 04 42000DB2 07 04 42000DB3 08 04 42000DB4 09 04 42000DB5 20 04 42000DCC")
        )
        #expect(features.executePACE == 0x4200_0DCC)
        #expect(features.modifyPINDirect == 0x4200_0DB3)
        #expect(features.description(of: ReaderName("standard")).hasKeypad)
    }

    @Test("a PIN pad without PACE does not count as a keypad")
    func pinPad() {
        let features = ReaderFeatures(features: hex("06 04 42000DB2 07 04 42000DB3"))
        #expect(features.modifyPINDirect != nil)
        #expect(!features.description(of: ReaderName("pad")).hasKeypad)
    }

    @Test(
        "an invalid feature list describes a basic reader",
        arguments: ["", "20", "20 04", "20 04 4200", "20 04 42000DCC 07", "20 02 4200", "20 FF 42000DCC"]
    )
    func malformed(list: String) {
        #expect(ReaderFeatures(features: hex(list)) == ReaderFeatures())
    }

    @Test(
        "the maximum APDU size decides about extended length, which is the default",
        arguments: [
            ("", true), ("0A 04 00000000", false), ("0A 04 00010000", false), ("0A 04 F3010000", false),
            ("0A 04 F4010000", true), ("0A 04 00000100", true), ("0A 04 000001", true), ("0A 05 0000010000", true),
        ]
    )
    func extendedLength(properties: String, expected: Bool) {
        var features = ReaderFeatures()
        features.add(properties: hex(properties))
        #expect(features.hasExtendedLength == expected)
        #expect(features.description(of: ReaderName("any")).hasExtendedLength == expected)
    }

    @Test("the properties contain the USB vendor and product")
    func identity() {
        var features = ReaderFeatures()
        features.add(properties: hex("01 02 0200 0B 02 6B07 0C 02 2250 0A 04 00000100"))
        #expect(features.vendor == 0x076B)
        #expect(features.product == 0x5022)
    }

    @Test("arbitrary bytes never trap")
    func anything() {
        var generator = SystemRandomNumberGenerator()
        for _ in 0..<FullTables.count(20_000) {
            let bytes = (0..<Int.random(in: 0...40, using: &generator)).map { _ in
                UInt8.random(in: 0...255, using: &generator)
            }
            var features = ReaderFeatures(features: bytes)
            features.add(properties: bytes)
            // A decoded feature must occur in the input.
            if features.executePACE != nil { #expect(bytes.contains(0x20)) }
        }
    }
}
