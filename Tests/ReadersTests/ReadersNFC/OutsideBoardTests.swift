// SPDX-License-Identifier: GPL-3.0-or-later
import Drivers
import Foundation
import ISO7816
import Readers
import ReadersNFC
import TestSupport
import Testing

/// Runs with a board that is not part of this repository and a card that returns the data of INS C0. BADGED_NFC_BOARD is
/// libnfc's connection string for the board. docs/testing.md, AusweisApp2 as the judge.
@Suite(.enabled(if: ProcessInfo.processInfo.environment["BADGED_NFC_BOARD"] != nil), .timeLimit(.minutes(5)))
struct OutsideBoardTests {
    @Test("commands and answers of all lengths are carried by another NFC board")
    func lengths() async throws {
        let device = try #require(ProcessInfo.processInfo.environment["BADGED_NFC_BOARD"])
        let backend = DriverBackend.nfc(devices: [device])
        let events = Events(backend)
        while events.insertions.isEmpty { _ = try await events.next() }
        let insertion = try #require(events.insertions.values.first)
        let connection = try await backend.connect(insertion)
        for count in [1, 200, 255, 256, 263, 1000, 4000, 30_000, 65_535] {
            let start = ContinuousClock.now
            let (command, answer) = NFCFixture.echo(count)
            #expect(try await connection.transmit(command) == answer)
            print("    \(count) bytes there and back: \((ContinuousClock.now - start) / .milliseconds(1)) ms")
        }
        await connection.disconnect(reset: true)
        await backend.close()
    }
}
