// SPDX-License-Identifier: GPL-3.0-or-later
import Drivers
import Host
import ISO7816
import Readers
import TestSupport
import Testing
import Text

@Suite("Messages of badged and the programs of drivers", .timeLimit(.minutes(5)))
struct DriverMessageTests {
    @Test(
        "a request is parsed as it was written",
        arguments: [
            .look(sources: []), .look(sources: ["pn53x_usb", "pn532_uart:/dev/ttyUSB0:9600", ""]),
            .card(.connect, of: 1, id: 2),
            .card(.transmit(CommandAPDU(0, 0xC0, 1, 2, data: [1, 2, 3], le: 256)), of: .max, id: 7),
            .card(
                .transmit(CommandAPDU(0, 0xC0, 0, 0, data: [UInt8](repeating: 5, count: 65_535), le: 65_536)),
                of: 0,
                id: .max
            ),
            .card(.release(reset: true), of: 1, id: 0), .card(.release(reset: false), of: 1, id: 0),
            .card(
                .establishPACE(
                    KeypadPACERequest(
                        passwordID: 3,
                        chat: [1, 2],
                        certificateDescription: [UInt8](repeating: 7, count: 65_535)
                    )
                ),
                of: 3,
                id: 4
            ),
            .card(.destroyPACE, of: 3, id: 5), .card(.modifyPIN, of: 3, id: 6), .progress(40, of: 3), .cancel(id: 4),
            .health(id: 8), .record(reader: "pn532_uart:/dev/ttyUSB0", id: 9),
        ] as [DriverRequest]
    )
    func requests(request: DriverRequest) {
        #expect(DriverRequest(bytes: request.bytes) == request)
        #expect(request.bytes.count <= DriverMessage.maximumSize)
    }

    private static let insertion = Insertion(reader: "pn532_uart:/dev/ttyUSB0", number: 258)
    private static let established: KeypadPACEResult = {
        var result = KeypadPACEResult(outcome: .established, mseStatus: StatusWord(0x9000))
        result.cardAccess = [0x31, 0]
        result.carCurrent = Array("DECVCAeID00103".utf8)
        result.idPICC = [4, 5]
        return result
    }()
    private static let errors: [CardError] = [
        .removed, .reset, .mute, .exclusive, .cancelled, .noResources, .serviceUnavailable, .accessDenied, .tooLong,
        .other("the user has not answered"),
    ]
    private static let reports: [DriverReport] =
        [
            .hello(program: "badged-nfc", version: "0.1"),
            .event(.added(ReaderDescription(name: "Größe", hasExtendedLength: true))),
            .event(.changed(ReaderDescription(name: "", hasKeypad: true, hasExtendedLength: false))),
            .event(.removed(reader: "NFC 2")),
            .event(.inserted(insertion, answerToReset: [0x3B, 0x80])),
            .event(.withdrawn(insertion)), .event(.held(insertion)),
            .event(.health([HealthCheck("nfc", ok: true), HealthCheck("nfc x", ok: false, advice: "plug it in")])),
            .event(.health([HealthCheck("nfc x", ok: false, advice: "it failed", reader: "NFC 2")])),
            .health(id: 9, [HealthCheck("remote", ok: false, cause: "a flood", facts: [.init("datagrams", 3)])]),
            .answer(id: 3, .success(.done)), .answer(id: 3, .success(.status(StatusWord(0x6402)))),
            .answer(id: 3, .success(.response(ResponseAPDU(data: [UInt8](repeating: 1, count: 65_536), .ok)))),
            .answer(id: 3, .success(.pace(established))), .answer(id: 3, .success(.frames(Array("end".utf8)))),
            .answer(id: 3, .success(.pace(KeypadPACEResult(outcome: .wrongPassword)))),
            .answer(id: 3, .success(.pace(KeypadPACEResult(outcome: .failed(0xD000_0002))))),
        ] + errors.map { .answer(id: 66_000, .failure($0)) }

    @Test("a report is parsed as it was written", arguments: reports.indices)
    func report(index: Int) throws {
        let bytes = Self.reports[index].bytes
        let parsed = try #require(DriverReport(bytes: bytes))
        #expect("\(parsed)" == "\(Self.reports[index])")
        #expect(bytes.count <= DriverMessage.maximumSize)
    }

    @Test("health checks are cut so that they fit into a message")
    func longHealth() throws {
        let text = String(repeating: "ä", count: 5000)
        let phrase: Phrase = "\(text) and \(Phrase(verbatim: text))"
        let check = HealthCheck(text, ok: false, cause: phrase, advice: "\(text)", reader: text)
        let checks = [HealthCheck](repeating: check, count: 300)
        for bytes in [DriverReport.event(.health(checks)).bytes, DriverReport.health(id: 1, checks).bytes] {
            #expect(bytes.count <= DriverMessage.maximumSize)
            switch DriverReport(bytes: bytes) {
            case .event(.health(let parsed)), .health(_, let parsed):
                #expect(parsed.count > 12 && parsed[0].advice?.hasPrefix("ääää") == true)
            default: throw Unexpected("the message is not parsed")
            }
        }
    }

    @Test(
        "a malformed report is refused",
        arguments: [
            [], [0], [1], [46], [46, 0, 0, 0], [47],
            [33], [33, 0, 2, 0, 0], [33, 0, 1, 0, 2, 0x41], [33, 0, 1, 0, 1, 0x41, 0],
            [35, 0, 1, 0xFF], [35, 0x07, 0xD1] + [UInt8](repeating: 0x41, count: 2001),
            [36, 0, 0, 0, 0, 0, 0, 0, 1], [37, 0, 0, 0, 1], [39, 1, 0, 0], [39, 2, 0, 0, 0, 0, 0, 0, 0, 0],
            [39] + [UInt8](repeating: 0, count: 13 * 257), [40, 0, 0, 0], [40, 0, 0, 0, 1, 0], [41, 0, 0, 0, 1, 0x90],
            [42, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0, 9], [43, 0, 0, 0, 1, 0x90], [44, 0, 0, 0, 1, 10],
        ] as [[UInt8]]
    )
    func malformedReports(bytes: [UInt8]) { #expect(DriverReport(bytes: bytes) == nil) }

    @Test(
        "a malformed request is refused",
        arguments: [
            [], [0], [11], [11, 0, 0, 0, 1], [12],
            [1, 0], [1, 0, 5, 0x41], [3, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0xC0, 0],
            [4, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 1], [4, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 1, 2],
            [4, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 1, 1, 1], [2, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 1, 1],
            [5, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 1, 3, 0xFF, 0xFF, 0xFF, 0xFF], [8, 1], [9, 0], [10],
        ] as [[UInt8]]
    )
    func malformedRequests(bytes: [UInt8]) { #expect(DriverRequest(bytes: bytes) == nil) }
}
