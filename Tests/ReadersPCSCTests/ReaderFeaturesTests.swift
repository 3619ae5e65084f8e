// SPDX-License-Identifier: GPL-3.0-or-later
import Readers
import TestSupport
import Testing

@testable import ReadersPCSC

@Suite("reader features")
struct ReaderFeaturesTests {
    @Test("the feature list of a basic reader holds its properties alone")
    func basic() {
        let features = ReaderFeatures(features: hex("12 04 42330012"))
        #expect(features.tlvProperties == 0x4233_0012)
        #expect(features.executePACE == nil)
        #expect(!features.description(of: ReaderName("basic")).hasKeypad)
    }

    @Test("the feature list of a keypad reader")
    func keypad() {
        let features = ReaderFeatures(
            features: hex("06 04 42000DB2 07 04 42000DB3 08 04 42000DB4 09 04 42000DB5 20 04 42000DCC")
        )
        #expect(features.executePACE == 0x4200_0DCC)
        #expect(features.modifyPINDirect == 0x4200_0DB3)
        #expect(features.description(of: ReaderName("standard")).hasKeypad)
    }

    @Test("a PIN pad without PACE is no keypad for this card")
    func pinPad() {
        let features = ReaderFeatures(features: hex("06 04 42000DB2 07 04 42000DB3"))
        #expect(features.modifyPINDirect != nil)
        #expect(!features.description(of: ReaderName("pad")).hasKeypad)
    }

    @Test(
        "a feature list that is none describes a basic reader",
        arguments: ["", "20", "20 04", "20 04 4200", "20 04 42000DCC 07", "20 02 4200", "20 FF 42000DCC"]
    )
    func malformed(list: String) {
        #expect(ReaderFeatures(features: hex(list)) == ReaderFeatures())
    }

    @Test(
        "the largest APDU decides about extended length, and silence counts as yes",
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

    @Test("the properties tell the USB identity")
    func identity() {
        var features = ReaderFeatures()
        features.add(properties: hex("01 02 0200 0B 02 6B07 0C 02 2250 0A 04 00000100"))
        #expect(features.vendor == 0x076B)
        #expect(features.product == 0x5022)
    }

    @Test("no bytes whatever trap")
    func anything() {
        var generator = SystemRandomNumberGenerator()
        for _ in 0..<20_000 {
            let bytes = (0..<Int.random(in: 0...40, using: &generator)).map { _ in
                UInt8.random(in: 0...255, using: &generator)
            }
            var features = ReaderFeatures(features: bytes)
            features.add(properties: bytes)
            // A feature must have been in the bytes.
            if features.executePACE != nil { #expect(bytes.contains(0x20)) }
        }
    }
}
