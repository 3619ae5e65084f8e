// SPDX-License-Identifier: GPL-3.0-or-later
import Host
import ISO7816
import Readers
import TestSupport
import Testing
import Text

@testable import ReadersNFC

@Suite("Messages of badged and badged-nfc", .timeLimit(.minutes(5)))
struct NFCMessageTests {
    @Test(
        "a request is parsed as it was written",
        arguments: [
            .scan(devices: []), .scan(devices: ["pn53x_usb", "pn532_uart:/dev/ttyUSB0:9600", ""]),
            .transmit(id: 7, insertion: .max, command: CommandAPDU(0, 0xC0, 1, 2, data: [1, 2, 3], le: 256)),
            .transmit(
                id: .max,
                insertion: 0,
                command: CommandAPDU(0, 0xC0, 0, 0, data: [UInt8](repeating: 5, count: 65_535), le: 65_536)
            ),
            .release(id: 0, insertion: 1, reset: true), .release(id: 0, insertion: 1, reset: false),
        ] as [NFCRequest]
    )
    func requests(request: NFCRequest) {
        #expect(NFCRequest(bytes: request.bytes) == request)
        #expect(request.bytes.count <= NFCMessage.maximumSize)
    }

    private static let insertion = Insertion(reader: "pn532_uart:/dev/ttyUSB0", number: 258)
    private static let reports: [NFCReport] = [
        .event(.added(ReaderDescription(name: "Größe", hasExtendedLength: true))),
        .event(.changed(ReaderDescription(name: "", hasExtendedLength: false))),
        .event(.removed(reader: "NFC 2")),
        .event(.inserted(insertion, answerToReset: [0x3B, 0x80])),
        .event(.withdrawn(insertion)), .event(.held(insertion)),
        .event(.health([HealthCheck("nfc", ok: true), HealthCheck("nfc x", ok: false, advice: "plug it in")])),
        .event(.health([HealthCheck("nfc x", ok: false, advice: "it failed", reader: "NFC 2")])),
        .answer(id: 3, .success(ResponseAPDU(data: [UInt8](repeating: 1, count: 65_536), .ok))),
        .answer(id: 3, .failure(.removed)), .answer(id: 3, .failure(.mute)), .answer(id: 3, .failure(.tooLong)),
        .answer(id: 3, .failure(.serviceUnavailable)), .released(id: 66_000),
    ]

    @Test("a report is parsed as it was written", arguments: reports.indices)
    func report(index: Int) throws {
        let bytes = Self.reports[index].bytes
        let parsed = try #require(NFCReport(bytes: bytes))
        #expect("\(parsed)" == "\(Self.reports[index])")
        #expect(bytes.count <= NFCMessage.maximumSize)
    }

    @Test("health checks are cut so that they fit into a message")
    func longHealth() throws {
        let text = String(repeating: "ä", count: 5000)
        let check = HealthCheck(text, ok: false, advice: text, reader: text)
        let checks = [HealthCheck](repeating: check, count: 100)
        let bytes = NFCReport.event(.health(checks)).bytes
        #expect(bytes.count <= NFCMessage.maximumSize)
        guard case .event(.health(let parsed)) = NFCReport(bytes: bytes) else {
            throw Unexpected("the message is not parsed")
        }
        #expect(parsed.count == 32 && parsed[0].advice?.hasPrefix("ääää") == true)
    }

    @Test(
        "a malformed report is refused",
        arguments: [
            [], [0], [10], [1], [1, 2, 0, 0], [1, 1, 0, 2, 0x41], [1, 1, 0, 1, 0x41, 0], [3, 0, 1, 0xFF],
            [3, 0x07, 0xD1] + [UInt8](repeating: 0x41, count: 2001), [4, 0, 0, 0, 0, 0, 0, 0, 1], [5, 0, 0, 0, 1],
            [6, 1, 0, 0], [6, 1, 0, 0, 0, 0], [6] + [UInt8](repeating: 0, count: 7 * 33), [7, 0, 0, 0, 1, 0x90],
            [8, 0, 0, 0, 1, 5],
            [9, 0, 0, 0], [9, 0, 0, 0, 1, 0],
        ] as [[UInt8]]
    )
    func malformedReports(bytes: [UInt8]) { #expect(NFCReport(bytes: bytes) == nil) }

    @Test(
        "a malformed request is refused",
        arguments: [
            [], [0], [4], [1, 0], [1, 0, 5, 0x41], [2, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0xC0, 0],
            [3, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 1], [3, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 1, 2],
            [3, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 1, 1, 1],
        ] as [[UInt8]]
    )
    func malformedRequests(bytes: [UInt8]) { #expect(NFCRequest(bytes: bytes) == nil) }
}
