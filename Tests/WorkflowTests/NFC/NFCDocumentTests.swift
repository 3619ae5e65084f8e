// SPDX-License-Identifier: GPL-3.0-or-later
import Concurrency
import CountryAuthorities
import DocumentFeature
import Drivers
import NFCTestSupport
import ReadersNFC
import TestSupport
import Testing
import Text
import VirtualDocument

/// RUN_READ_DOCUMENT with documents of Tests/Vectors/documents on an emulated PN532 that the real libnfc drives.
@Suite("Reading a document over NFC", .timeLimit(.minutes(5)))
struct NFCDocumentTests {
    @Test(
        "a document of either type is read and proven",
        arguments: [
            ("bac-aa-rsa", PICC.Technology.a, "BAC", "jpeg"), ("pace-gm-bac", .a, "PACE", "jp2"),
            ("pace-gm-bac", .b, "PACE", "jp2"),
        ]
    )
    @Loop func read(name: String, technology: PICC.Technology, access: String, format: String) async throws {
        let board = try EmulatedPN532()
        let folder = try ReadDocumentTests.folder()
        let anchors = DocumentAnchorFolder(folder.path, requiresRevocationList: false, warn: { _ in })
        let server = try await TestServer(
            readers: 0,
            backends: [DriverBackend.nfc(devices: [board.connection], heartbeat: .patient)],
            moreFeatures: { [DocumentFeature($0, anchors, time: { ReadDocumentTests.time })] }
        )
        await server.ready(["pn532_uart:\(board.path)"])
        let client = try server.connect()
        _ = await client.exchange(#"{"cmd":"RUN_READ_DOCUMENT","groups":[1,2]}"#)
        board.field.insert(.virtual(try ReadDocumentTests.description(name).makeCard(), technology))
        #expect(await client.next("ENTER_MRZ") != nil)
        let document = await client.ask(
            #"{"cmd":"SET_MRZ","number":"L898902C3","birth":"1974-08-12","expiry":"350415"}"#,
            "DOCUMENT"
        )
        #expect(document?["verdict"] == .string("genuine"))
        #expect(document?["access"]?["protocol"] == .string(access))
        #expect(document?["document"]?["number"] == .string("L898902C3"))
        #expect(document?["portrait"]?["format"] == .string(format))
    }
}
