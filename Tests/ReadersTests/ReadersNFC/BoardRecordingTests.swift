// SPDX-License-Identifier: GPL-3.0-or-later
import Concurrency
import Drivers
import Foundation
import ISO7816
import NFCTestSupport
import Readers
import ReadersNFC
import TestSupport
import Testing
import Text

/// What badged-nfc and a board say to each other, recorded through real libnfc, and played again.
@Suite("Recordings of NFC boards", .timeLimit(.minutes(5)))
struct BoardRecordingTests {
    private static func record(_ fixture: NFCFixture) async throws -> BoardRecording {
        try BoardRecording(try await fixture.backend.record(fixture.reader))
    }

    private static func commands(_ recording: BoardRecording) -> [[UInt8]] {
        recording.transfers.filter { !$0.isFromBoard }.flatMap { transfer in
            BoardRecording.bodies(in: transfer.bytes).map { Array(transfer.bytes[$0].dropFirst()) }
        }
    }

    @Test("a board is recorded up to the activation of a card, without its number; then it works as before")
    func recorded() async throws {
        let fixture = try await NFCFixture()
        fixture.field.insert(PICC(application: PICC.echo))
        _ = try await fixture.events.insertion(in: fixture.reader)
        let text = try await fixture.backend.record(fixture.reader)
        // What libnfc does is said for a person.
        #expect(String(decoding: text, as: UTF8.self).contains("# InListPassiveTarget\n> "))
        let recording = try BoardRecording(text)
        #expect(recording.driver == "pn532_uart" && recording.answerToReset?.first == 0x3B)
        let commands = Self.commands(recording)
        // GetFirmwareVersion, InListPassiveTarget for both types, RATS, R(NAK), InAutoPoll.
        for start in ["02", "4a0100", "4a0103", "42e080", "42b2", "6001"] {
            #expect(commands.contains { $0.starts(with: hex(start)) }, "\(start) in \(recording.text)")
        }
        // No command of a client: no I-block.
        #expect(!commands.contains { $0.first == 0x42 && $0.count > 1 && $0[1] & 0xC0 == 0x00 })
        let number: [UInt8] = [0x08, 0x12, 0x34, 0x56]
        #expect(!recording.contains([number]))
        #expect(recording.numbers.count == 1 && recording.numbers.first?.first == 0x08)
        // Every frame is whole: 00 FF, and no ACK.
        for transfer in recording.transfers where transfer.isFromBoard {
            #expect(BoardRecording.bodies(in: transfer.bytes).count == 1, "\(Hex.encode(transfer.bytes))")
        }
        let insertion = try await fixture.events.insertion(in: fixture.reader)
        let connection = try await fixture.backend.connect(insertion)
        #expect(try await connection.transmit(NFCFixture.echo(5).command) == NFCFixture.echo(5).answer)
    }

    @Test("the PUPI of a card of type B is replaced wherever it occurs, and the recording is the same after it is read")
    func typeB() async throws {
        let fixture = try await NFCFixture()
        let card = PICC(.b, application: PICC.echo)
        fixture.field.insert(card)
        _ = try await fixture.events.insertion(in: fixture.reader)
        let recording = try await Self.record(fixture)
        // ATTRIB of badged-nfc has the number of the card.
        let attrib = try #require(Self.commands(recording).first { $0.starts(with: [0x42, 0x1D]) })
        #expect(recording.numbers.contains(Array(attrib[2..<6])), "\(recording.text)")
        #expect(!recording.contains([Array(card.identifier.prefix(4))]))
        var again = recording
        for index in again.transfers.indices { again.transfers[index].note = nil }
        #expect(try BoardRecording(recording.text.utf8) == again)
    }

    @Test("a board without a card is recorded, and a reader that is not there is not")
    func others() async throws {
        let fixture = try await NFCFixture()
        let recording = try await Self.record(fixture)
        #expect(recording.answerToReset == nil && recording.numbers.isEmpty && !recording.transfers.isEmpty)
        try await fixture.events.wait(for: "added \(fixture.reader)")
        await #expect(throws: CardError.serviceUnavailable) { try await fixture.backend.record("NFC") }
    }

    @Test("the recording of a board that says nothing has what it was asked; the board is used when it answers again")
    func silent() async throws {
        let fixture = try await NFCFixture()
        // Without a time limit, libnfc waits for a board that has not even acknowledged a command.
        try await fixture.field.wait { fixture.board.search != nil }
        fixture.board.stopAnswering()
        let recording = try await Self.record(fixture)
        #expect(!recording.transfers.isEmpty && recording.answerToReset == nil && recording.numbers.isEmpty)
        #expect(recording.transfers.allSatisfy { !$0.isFromBoard }, "\(recording.text)")
        fixture.board.startAnswering()
        try await fixture.events.wait(for: "added \(fixture.reader)")
        let connection = try await fixture.connect(PICC(application: PICC.echo))
        #expect(try await connection.transmit(NFCFixture.echo(5).command) == NFCFixture.echo(5).answer)
        await connection.disconnect(reset: true)
    }

    private static let folder = testsFolder.appending(path: "Recordings/boards")
    static let names: [String] = {
        let files = try? FileManager.default.contentsOfDirectory(atPath: folder.path)
        return (files ?? []).filter { $0.hasSuffix(".txt") }.sorted()
    }()

    @Test("badged-nfc finds the card of a recorded board when the recording is played", arguments: names)
    func played(name: String) async throws {
        var options = EmulatedPN532.Options()
        let recording = try BoardRecording(Data(contentsOf: Self.folder.appending(path: name)))
        options.recording = recording
        let fixture = try await NFCFixture(options)
        _ = try await fixture.events.insertion(in: fixture.reader)
        #expect(fixture.events.answersToReset[fixture.reader] == recording.answerToReset)
        // Recorded once more, the board gets the same commands; those with the number of the card have another one.
        let second = try await Self.record(fixture)
        #expect(Self.commands(second).map { $0.prefix(2) } == Self.commands(recording).map { $0.prefix(2) })
    }

    @Test("there are recordings of boards")
    func some() { #expect(!Self.names.isEmpty) }

    private static let start = "badged-frames 1\ndriver pn532_uart\n"

    @Test(
        "a recording of a board that lies is refused with its line and the reason",
        arguments: [
            ("", "has no line badged-frames 1"), ("badged-frames 2\n", "line 1: only badged-frames 1 is known"),
            ("badged-frames 1\nend\n", "has no line driver"),
            ("badged-frames 1\n> 00\n", "line 2: bytes before the driver"),
            ("badged-frames 1\ndriver PN532\n", "line 2: is no driver"),
            (start + "driver pn532_uart\n", "line 3: a second driver"),
            (start + "atr 3b8001\natr 3b8001\n", "line 4: a second answer to reset"),
            (start + "atr 4b8001\n", "line 3: is no answer to reset"),
            (start + "atr\n", "line 3: is no answer to reset"),
            (start + "> 0\n", "line 3: is not hexadecimal"), (start + ">\n", "line 3: has not 1 to 4096 bytes"),
            (start + "< 00\n", "line 3: an answer of the board to nothing"),
            (start + "> 00\n< 00\n< 00\n", "line 5: an answer of the board to nothing"),
            (start + "kind eid\n", "line 3: begins with none of"),
            (start + "\u{0}\u{7F}é\n", "line 3: begins with none of"),
            (start + "> " + String(repeating: "00", count: 4097), "line 3: has not 1 to 4096 bytes"),
            (start + String(repeating: "> 00\n", count: 4097), "line 4099: more than 4096 lines of bytes"),
            (start + "> 00\n", "has no line end"),
        ]
    )
    func lies(text: String, reason: String) {
        let error = #expect(throws: Malformed.self) { try BoardRecording(text.utf8) }
        #expect(error?.text.hasPrefix(reason) == true, "\(error?.text ?? "")")
    }

    @Test(
        "only frames whose lengths and checksum are right count",
        arguments: [
            ("0000ff02fed4022a00", ["d402"]), ("0000ff00ff000000ff06fad50332010607e800", ["d50332010607"]),
            ("0000ff02fed4022b00", []), ("0000ff02fdd4022a00", []), ("0000ff02fed402", []), ("00ff", []), ("", []),
            ("00ffffff0002fed4022a00", ["d402"]), ("00ffffff0002ffd4022a00", []), ("00ffffffffff02d402", []),
        ]
    )
    func frames(bytes: String, bodies: [String]) {
        let bytes = hex(bytes)
        #expect(BoardRecording.bodies(in: bytes).map { Hex.encode(bytes[$0]) } == bodies)
    }

    @Test("the number of a card in a message of an ACR122 is replaced, too")
    func ccid() {
        var recording = BoardRecording(
            driver: "acr122_usb",
            answerToReset: nil,
            transfers: [
                .init(isFromBoard: false, hex("6f090000000000000000ff00000004d44a0100")),
                .init(isFromBoard: true, hex("800e0000000000000000d54b010100082004041122339000")),
            ]
        )
        recording.replaceNumbers()
        #expect(!recording.contains([hex("04112233")]))
        #expect(recording.transfers[1].bytes.suffix(2) == [0x90, 0x00] && recording.transfers[1].bytes[18] == 0x04)
    }
}
