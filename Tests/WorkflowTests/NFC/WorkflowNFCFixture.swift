// SPDX-License-Identifier: GPL-3.0-or-later
import Concurrency
import Drivers
import NFCTestSupport
import Readers
import ReadersNFC
import ReadersVirtual
import TestSupport
import Text
import VirtualEID

/// A server with one reader of the NFC driver: real libnfc, an emulated PN532, and a virtual eID card that speaks
/// ISO/IEC 14443-4.
@Loop final class NFCFixture {
    let board: EmulatedPN532
    let server: TestServer
    let card: VirtualCard
    let technology: PICC.Technology

    var field: RadioField { board.field }
    var reader: String { "pn532_uart:\(board.path)" }

    init(_ technology: PICC.Technology = .a, _ description: VirtualEIDDescription = .init()) async throws {
        self.technology = technology
        card = try VirtualCard(description)
        board = try EmulatedPN532()
        let backend = DriverBackend.nfc(devices: [board.connection], heartbeat: .patient)
        server = try await TestServer(readers: 0, backends: [backend])
        await server.ready([reader])
    }

    /// Puts the card on the reader.
    func insert() { field.insert(.virtual(card, technology)) }

    /// Puts the card on the reader and waits until the server has identified the card.
    func insertAndWait() async throws {
        let watcher = try server.connect()
        insert()
        await watcher.waitForCard(in: reader)
        watcher.close()
    }

    /// Inserts the card, and connects a client after the card is recognised.
    func userWithCard() async throws -> ScriptedClient {
        try await insertAndWait()
        return try await ScriptedClient(server, reader: reader)
    }

    func hasPIN(_ pin: String) async -> Bool { await card.hasPIN(Secret(pin.utf8)) }
}
