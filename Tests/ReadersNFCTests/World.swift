// SPDX-License-Identifier: GPL-3.0-or-later
import ISO7816
import NFCTestSupport
import Readers
import ReadersNFC
import TestSupport
import Testing

/// A board on a line of its own, real libnfc, and the events of the driver.
struct World {
    let board: EmulatedPN532
    let backend: NFCBackend
    var events: Events

    var field: RadioField { board.field }
    /// As libnfc names the device.
    var reader: String { "pn532_uart:\(board.path)" }

    /// Returns when the reader is there.
    init(_ nature: EmulatedPN532.Nature = .init()) async throws {
        board = try EmulatedPN532(nature)
        backend = NFCBackend(devices: [board.connection])
        events = Events(backend)
        try await events.wait(for: "added \(reader)")
    }

    /// Puts a card in and connects to it.
    mutating func connect(_ card: PICC) async throws -> any CardConnection {
        field.insert(card)
        let insertion = try await events.insertion(in: reader)
        return try await backend.connect(insertion)
    }

    static func echo(_ count: Int) -> (command: CommandAPDU, answer: ResponseAPDU) {
        let data = (0..<count).map { UInt8(truncatingIfNeeded: $0 &* 7) }
        return (CommandAPDU(0, 0xC0, 0, 0, data: data, le: nil), ResponseAPDU(data: data, .ok))
    }
}
