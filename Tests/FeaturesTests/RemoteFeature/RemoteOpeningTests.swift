// SPDX-License-Identifier: GPL-3.0-or-later
import Concurrency
import ReadersRemote
import ReadersVirtual
import RemoteFeature
import TestSupport
import Testing
import Text
import VirtualEID

@Suite("Workflows that end while a borrowed card is opened", .timeLimit(.minutes(5)))
@Loop struct RemoteOpeningTests {
    @Test(
        "the next client gets its question, READER shows the card, and no try is spent",
        arguments: ["CANCEL", "close"],
        ["in one write", "while a program at the lender holds the card", "during a command"]
    )
    func ended(ending: String, place: String) async throws {
        let card = try VirtualCard()
        let reader = HeldReader(card)
        let stage = try await RemoteStage(
            isPaired: true,
            backends: [reader.backend],
            desk: { $0.readers = [HeldReader.name] }
        )
        reader.insert()
        let watcher = try stage.laptop.connect()
        while let seen = await watcher.next("READER"), seen["card"]?["kind"] == nil {}

        let client = try stage.laptop.connect()
        let run = #"{"cmd":"RUN_CHANGE_PIN"}"#
        let cancel = #"{"cmd":"CANCEL"}"#
        switch place {
        case "in one write": await client.send(ending == "CANCEL" ? [run, cancel] : [run])
        case "during a command":
            reader.holdCommand(1)
            await client.send(run)
            await reader.arrival()
        default:
            reader.hold()
            await client.send(run)
            while let told = await client.next("INSERT_CARD"), told["reader"] == nil {}
        }
        if ending == "close" { client.close() } else if place != "in one write" { await client.send(cancel) }
        reader.openGate()
        if ending == "close" {
            // The holder and the watcher stay.
            await stage.laptop.clients(2)
        } else {
            while let message = await client.next("CHANGE_PIN"), message["success"] == nil {}
        }

        // The program still holds the card when the next client comes.
        let next = try stage.laptop.connect()
        let isHeld = place.hasPrefix("while")
        await next.send(run)
        if isHeld {
            while let told = await next.next("INSERT_CARD"), told["reader"] == nil {}
            reader.letGo()
        }
        let asked = await next.next("ENTER_PIN")
        #expect(asked?["reader"]?["card"]?["retryCounter"] == .number("3"))
        #expect(await card.eidState?.judgedPINs == 0)
        await stage.stop()
    }
}
