// SPDX-License-Identifier: GPL-3.0-or-later
import Cards
import Concurrency
import Glibc
import ReadersRemote
import RemoteDevices
import RemoteFeature
import TestSupport
import Testing
import Text

/// Pairings and their store, and the cards that a device holds.
@Suite(.timeLimit(.minutes(5))) @Loop struct StoredTests {
    @Test("A pairing that cannot be stored is no success, at the side whose store fails and at the other one")
    func deskFails() async throws {
        let stage = try await RemoteStage()
        let (open, client, code, fingerprint) = try await stage.openPairing()
        try stage.failWrites(desk: true)
        await stage.enterCode(code, of: fingerprint, by: client)
        let end = await open.next("OPEN_PAIRING")
        #expect(end?["success"] == .bool(false))
        #expect(end?["error"]?.string?.contains("remove the pairing at the other device, too") == true)
        let other = await client.next("PAIR_READER")
        #expect(other?["success"] == .bool(false))
        #expect(other?["error"]?.string?.contains("could not store the pairing") == true)
        #expect(try await stage.deskStore.devices(.borrower).isEmpty)
        #expect(try await stage.laptopStore.devices(.lender).isEmpty)
        let state = await open.answer(to: #"{"cmd":"GET_REMOTE"}"#)
        #expect(state?["borrowers"] == .array([]))
        await stage.stop()
    }

    @Test("PAIR_READER tells that the store fails, and nothing has changed")
    func laptopFails() async throws {
        let stage = try await RemoteStage()
        let (open, client, code, fingerprint) = try await stage.openPairing()
        try stage.failWrites(desk: false)
        await stage.enterCode(code, of: fingerprint, by: client)
        let end = await client.next("PAIR_READER")
        #expect(end?["success"] == .bool(false))
        #expect(end?["error"]?.string?.contains("remove the pairing at the device, too") == true)
        #expect(stage.lenders.devices.isEmpty)
        // The desk has stored it; a further pairing replaces it.
        #expect((await open.next("OPEN_PAIRING"))?["success"] == .bool(true))
        #expect(try await stage.laptopStore.devices(.lender).isEmpty)
        await stage.stop()
    }

    @Test("REMOVE_REMOTE tells that the store fails, and the pairing stays")
    func removalFails() async throws {
        let stage = try await RemoteStage.paired()
        let fingerprint = try await stage.deskStore.identity().fingerprint
        try stage.failWrites(desk: false)
        let client = try stage.laptop.connect()
        let answer = await client.answer(to: #"{"cmd":"REMOVE_REMOTE","fingerprint":"\#(fingerprint)"}"#)
        #expect(answer?["error"]?.string?.isEmpty == false)
        #expect(stage.lenders.devices.map(\.device.fingerprint) == [fingerprint])
        #expect(try await stage.laptopStore.devices(.lender).map(\.fingerprint) == [fingerprint])
        await stage.stop()
    }

    @Test("A workflow that waits for a lent card names the device that uses it")
    func namesBorrower() async throws {
        let (stage, raw) = try await borrowed(600_000)
        let local = try stage.desk.connect()
        await local.send(#"{"cmd":"RUN_CHANGE_PIN"}"#)
        let asked = await local.next("INSERT_CARD")
        #expect(asked?["error"]?.string?.contains("'raw' uses it over the network") == true)
        raw.link.close()
        // At its end the card is free.
        #expect(await local.next("ENTER_PIN") != nil)
        await stage.stop()
    }

    @Test("A device that holds a card and says nothing loses it after the time limit, and may ask again")
    func silentHolder() async throws {
        let (stage, raw) = try await borrowed(100)
        let local = try stage.desk.connect()
        await local.send(#"{"cmd":"RUN_CHANGE_PIN"}"#)
        #expect(await local.next("ENTER_PIN") != nil)
        let context = raw.context
        let command: [UInt8] = [0x00, 0xA4, 0x00, 0x0C, 0x02, 0x3F, 0x00]
        #expect(
            await raw.ask(.transmit(handle: raw.handle, apdu: command), context)
                == .transmitResponse(handle: raw.handle, apdu: [], .failed(.invalidSlotHandle))
        )
        #expect(
            await raw.ask(.connect(slot: "Simulator"), context)
                == .connectResponse(handle: "Simulator", .failed(.sharingViolation))
        )
        raw.link.close()
        await stage.stop()
    }

    /// A stage where a device holds the card of the desk.
    private func borrowed(_ cardTime: Int64) async throws -> (RemoteStage, RawBorrower) {
        let cable = try Cable()
        let stage = try await RemoteStage.paired(cable: cable, desk: { $0.cardTime = cardTime })
        await stage.changes.wait { stage.lenders.devices.contains { $0.isConnected } }
        try await stage.insertWithoutLaptop(cable)
        let raw = try await RawBorrower(stage, cable)
        try await raw.hold("Simulator")
        return (stage, raw)
    }
}
