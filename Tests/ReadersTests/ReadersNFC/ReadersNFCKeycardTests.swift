// SPDX-License-Identifier: GPL-3.0-or-later
import Concurrency
import Drivers
import HDWallet
import ISO7816
import Keycard
import NFCTestSupport
import Readers
import ReadersNFC
import ReadersVirtual
import TestSupport
import Testing
import Text
import VirtualKeycard

/// Tests a virtual Keycard on an emulated PN532, through real libnfc.
@Suite("Keycards on an NFC board", .timeLimit(.minutes(5)))
struct KeycardTests {
    private static func card(_ version: String) throws -> VirtualCard {
        let kinds = VirtualCardKinds([VirtualKeycardKind()])
        let text = #"{"kind":"keycard","initialised":false,"version":"\#(version)"}"#
        return try kinds.describe(simulator: nil, card: try JSON(text.utf8)).makeCard()
    }

    @Test(
        "a new card is set up, used, and reset",
        arguments: ["3.1", "4.0"],
        [PICC.Technology.a, .b]
    )
    @Loop func life(version: String, technology: PICC.Technology) async throws {
        let authority = try VirtualKeycardDescription.authority().publicKey.compressed
        let life = KeycardLife(trust: KeycardTrust(authorities: [authority]))
        let card = try Self.card(version)
        let nfc = try await NFCFixture()
        // A virtual card runs on the threads of the language, so no such thread may wait for it.
        nfc.field.insert(.virtual(card, technology))
        let first = try await nfc.backend.connect(nfc.events.insertion(in: nfc.reader))
        let (uid, pairing) = try await life.begin(on: first)
        await first.disconnect(reset: true)
        nfc.field.remove()
        try await nfc.events.wait(for: "withdrawn \(nfc.reader)")
        nfc.field.insert(.virtual(card, technology))
        let second = try await nfc.backend.connect(nfc.events.insertion(in: nfc.reader))
        try await life.end(on: second, keyUID: uid, pairing: pairing)
        await second.disconnect(reset: true)
        await nfc.backend.close()
    }
}
