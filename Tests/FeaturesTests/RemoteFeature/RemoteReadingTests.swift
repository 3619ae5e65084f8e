// SPDX-License-Identifier: GPL-3.0-or-later
import Concurrency
import CredentialFeature
import EID
import ReadersRemote
import ReadersVirtual
import RemoteFeature
import Taps
import TestSupport
import Testing
import Text
import VirtualTaps

@testable import Cards

@Suite("Readings of phones at a borrowed reader", .timeLimit(.minutes(5)))
@Loop struct RemoteReadingTests {
    @Test(
        "a reading that no client wants any more ends, and the next client gets the credential",
        arguments: ["STOP_CREDENTIALS", "close"],
        [nil, 0, 1, 2]
    )
    func ended(ending: String, command: Int?) async throws {
        let description = try JSON(#"{"kind":"pkoc","phone":true}"#.utf8)
        let kinds = VirtualCardKinds([VirtualPKOCKind()])
        let reader = HeldReader(try kinds.describe(simulator: nil, card: description).makeCard())
        let stage = try await RemoteStage(
            isPaired: true,
            backends: [reader.backend],
            laptopFeatures: {
                [CredentialFeature($0, PKOCSite(), [PKOCTapReader(PKOCSite(), today: { .earliest })])]
            },
            desk: { $0.readers = [HeldReader.name] }
        )
        reader.insert()
        let watcher = try stage.laptop.connect()
        while let seen = await watcher.next("READER"), seen["card"]?["kind"] != .string("pkoc") {}

        let client = try stage.laptop.connect()
        if let command { reader.holdCommand(command) } else { reader.hold() }
        _ = await client.ask(#"{"cmd":"START_CREDENTIALS"}"#, "CREDENTIALS")
        if command == nil {
            let registry = stage.laptop.registry
            while !registry.readers.contains(where: \.isHindered) { await registry.nextChange() }
        } else {
            await reader.arrival()
        }
        if ending == "close" {
            client.close()
            // The holder and the watcher stay.
            await stage.laptop.clients(2)
        } else {
            _ = await client.ask(#"{"cmd":"STOP_CREDENTIALS"}"#, "CREDENTIALS")
        }
        reader.openGate()
        reader.letGo()
        let next = try stage.laptop.connect()
        await next.send(#"{"cmd":"START_CREDENTIALS"}"#)
        #expect(await next.next("CREDENTIAL")?["verified"] == .bool(true))
        #expect(!client.hasReceived(#""CREDENTIAL""#))
        await stage.stop()
    }
}
