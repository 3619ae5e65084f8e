// SPDX-License-Identifier: GPL-3.0-or-later
import ISO7816
import Readers
import TestSupport
import Testing

@testable import ReadersPCSC

@Suite("keypad readers", .timeLimit(.minutes(5)))
struct KeypadTests {
    // MARK: EstablishPACEChannel

    @Test("a request without CHAT and certificate description is encoded")
    func smallest() {
        #expect(PACEChannel.establish(KeypadPACERequest(passwordID: 3)) == hex("02 0500 03 00 00 0000"))
    }

    @Test("a request with CHAT and certificate description is encoded")
    func full() {
        let request = KeypadPACERequest(
            passwordID: 2,
            chat: hex("7F4C0A 0102"),
            certificateDescription: [UInt8](repeating: 0x30, count: 258)
        )
        let expected = hex("02 0C01 02 05 7F4C0A0102 00 0201") + [UInt8](repeating: 0x30, count: 258)
        #expect(PACEChannel.establish(request) == expected)
    }

    @Test(
        "data that exceeds its length field is refused",
        arguments: [(256, 0), (0, 65_536), (0, 65_531), (255, 65_530)]
    )
    func tooLong(chat: Int, description: Int) {
        let request = KeypadPACERequest(
            passwordID: 3,
            chat: [UInt8](repeating: 1, count: chat),
            certificateDescription: [UInt8](repeating: 1, count: description)
        )
        #expect(PACEChannel.establish(request) == nil)
    }

    @Test("the largest request that fits is encoded")
    func largest() {
        let request = KeypadPACERequest(
            passwordID: 3,
            certificateDescription: [UInt8](repeating: 1, count: 65_530)
        )
        #expect(PACEChannel.establish(request)?.count == 3 + 65_535)
    }

    @Test(
        "each result code is mapped to an outcome",
        arguments: [
            ("00000000", KeypadPACEResult.Outcome.established),
            ("010000D0", .failed(0xD000_0001)), ("020000D0", .failed(0xD000_0002)), ("030000D0", .failed(0xD000_0003)),
            ("010000E0", .failed(0xE000_0001)), ("020000E0", .failed(0xE000_0002)), ("030000E0", .failed(0xE000_0003)),
            ("060000E0", .failed(0xE000_0006)), ("070000E0", .failed(0xE000_0007)), ("080000E0", .failed(0xE000_0008)),
            ("090000E0", .failed(0xE000_0009)), ("A00000E0", .failed(0xE000_00A0)),
            ("C26306F0", .wrongPassword), ("C16306F0", .wrongPassword), ("C06306F0", .wrongPassword),
            ("006306F0", .wrongPassword), ("006303F0", .wrongPassword),
            ("806A02F0", .failed(0xF002_6A80)), ("006302F0", .failed(0xF002_6300)), ("806A06F0", .failed(0xF006_6A80)),
            ("006307F0", .failed(0xF007_6300)),
            ("010010F0", .failed(0xF010_0001)), ("020010F0", .noCard),
            ("010020F0", .cancelled), ("020020F0", .timeout), ("030020F0", .failed(0xF020_0003)),
        ]
    )
    func outcome(code: String, expected: KeypadPACEResult.Outcome) {
        let result = PACEChannel.established(hex(code) + [0, 0])
        #expect(result == KeypadPACEResult(outcome: expected))
    }

    @Test("an answer with all members is decoded")
    func all() throws {
        let result = try #require(
            PACEChannel.established(hex("00000000 1600 9000 0300 310131 04 44453031 05 4445303030 0200 A1B2"))
        )
        #expect(result.outcome == .established)
        #expect(result.mseStatus == .ok)
        #expect(result.cardAccess == hex("310131"))
        #expect(result.carCurrent == Array("DE01".utf8))
        #expect(result.carPrevious == Array("DE000".utf8))
        #expect(result.idPICC == hex("A1B2"))
    }

    @Test(
        "the last members of an answer are optional",
        arguments: [
            "00000000", "00000000 0000", "00000000 0200 63C2", "00000000 0500 9000 0100 31",
            "00000000 0600 9000 0100 31 00", "00000000 0700 9000 0100 31 00 00",
            "00000000 0900 9000 0100 31 00 00 0000",
            // Padding from the driver follows the announced length.
            "00000000 0200 9000 00000000",
        ]
    )
    func missing(answer: String) throws {
        #expect(try #require(PACEChannel.established(hex(answer))).outcome == .established)
    }

    @Test(
        "a success code in a truncated or inconsistent answer is not a success",
        arguments: [
            "", "00", "000000", "00000000 00", "00000000 0100", "00000000 0200 90", "00000000 0100 90",
            "00000000 0300 9000 01", "00000000 0400 9000 0500", "00000000 0500 9000 0200 31",
            "00000000 0600 9000 0100 31 01", "00000000 0800 9000 0100 31 00 00 01",
            "00000000 0900 9000 0100 31 00 00 0100", "00000000 0A00 9000 0100 31 00 00 0000 FF",
        ]
    )
    func cut(answer: String) {
        #expect(PACEChannel.established(hex(answer)) == nil)
    }

    @Test(
        "a failure code needs no further data",
        arguments: [
            ("C26306F0 0000", KeypadPACEResult.Outcome.wrongPassword), ("C26306F0", .wrongPassword),
            ("C26306F0 05", .wrongPassword), ("020020F0 0500 9000", .timeout), ("010020F0 FFFF", .cancelled),
        ]
    )
    func cutFailure(answer: String, expected: KeypadPACEResult.Outcome) throws {
        #expect(try #require(PACEChannel.established(hex(answer))).outcome == expected)
    }

    @Test("the status of MSE:Set AT is kept after a failure")
    func statusOfFailure() throws {
        let result = try #require(PACEChannel.established(hex("C16306F0 0200 63C2")))
        #expect(result.mseStatus == StatusWord(0x63C2))
        #expect(result.outcome == .wrongPassword)
    }

    @Test("arbitrary answers never trap, and success requires result code zero")
    func anything() {
        var generator = SystemRandomNumberGenerator()
        for _ in 0..<FullTables.count(20_000) {
            var bytes = (0..<Int.random(in: 0...60, using: &generator)).map { _ in
                UInt8.random(in: 0...12, using: &generator)
            }
            if Bool.random(using: &generator) { bytes.replaceSubrange(0..<min(4, bytes.count), with: [0, 0, 0, 0]) }
            let result = PACEChannel.established(bytes)
            if result?.outcome == .established { #expect(bytes.prefix(4) == [0, 0, 0, 0]) }
            if bytes.count < 4 { #expect(result == nil) }
        }
    }

    // MARK: DestroyPACEChannel

    @Test("the request to destroy a channel is encoded")
    func destroy() {
        #expect(PACEChannel.destroy == hex("03 0000"))
        #expect(PACEChannel.destroyed(hex("00000000 0000")) == 0)
        #expect(PACEChannel.destroyed(hex("010000D0 0000")) == 0xD000_0001)
        #expect(PACEChannel.destroyed(hex("000000")) == nil)
    }

    // MARK: MODIFY_PIN_DIRECT

    @Test("the PIN modification block is encoded")
    func modify() {
        let expected = "5A5A 82 00 00 00 00 0606 01 02 02 0704 00 01 02 000000 04000000 002C0203"
        #expect(PINModification().bytes == hex(expected))
    }

    @Test("timeout and PIN lengths are encoded at their offsets")
    func modifyValues() {
        var block = PINModification()
        (block.seconds, block.minimumDigits, block.maximumDigits) = (5, 6, 9)
        #expect(block.bytes.prefix(9) == hex("0505 82 00 00 00 00 0906")[...])
    }
}
