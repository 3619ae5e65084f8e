// SPDX-License-Identifier: GPL-3.0-or-later
import Concurrency
import Drivers
import ISO7816
import NFCTestSupport
import Readers
import ReadersNFC
import TestSupport
import Testing

/// The driver with one emulated board, through real libnfc, and the driver's events.
struct NFCFixture {
    let board: EmulatedPN532
    let backend: DriverBackend
    let events: Events

    var field: RadioField { board.field }
    /// The name that libnfc gives the device.
    var reader: String { "pn532_uart:\(board.path)" }

    /// Returns when the reader has been added. `heartbeat` says when a program that does not answer is ended; on a busy
    /// machine a program that lives may be late, too.
    init(_ options: EmulatedPN532.Options = .init(), heartbeat: Heartbeat.Times = .patient) async throws {
        board = try EmulatedPN532(options)
        backend = DriverBackend(NFCDriver(devices: [board.connection]), heartbeat: heartbeat)
        events = Events(backend)
        try await events.wait(for: "added \(reader)")
    }

    /// Inserts a card and connects to it.
    func connect(_ card: PICC) async throws -> any CardConnection {
        field.insert(card)
        let insertion = try await events.insertion(in: reader)
        return try await backend.connect(insertion)
    }

    /// A command with this number of bytes for a card with `PICC.echo`, and its answer.
    static func echo(_ count: Int) -> (command: CommandAPDU, answer: ResponseAPDU) {
        let data = (0..<count).map { UInt8(truncatingIfNeeded: $0 &* 7) }
        return (CommandAPDU(0, 0xC0, 0, 0, data: data, le: nil), ResponseAPDU(data: data, .ok))
    }
}
