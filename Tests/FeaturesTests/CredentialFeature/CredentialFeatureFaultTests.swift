// SPDX-License-Identifier: GPL-3.0-or-later
import Concurrency
import NFCTestSupport
import ReadersVirtual
import Taps
import TestSupport
import Testing
import Text
import VirtualTaps

@testable import Cards

/// A fault at each command of a tap. No fault leads to a wrong number, and the next tap is read.
@Suite("Faults of tapped credentials", .timeLimit(.minutes(15)))
@Loop struct FaultTests {
    private static let faults = [
        "remove", "removeAfter", "mute", "muteAfter", "truncate", "garbage", "flipBit", "replay", "sw:6F00", "sw:6985",
        "swAfter:6F00",
    ]

    /// The number of commands of one tap.
    private static func length(_ card: String, _ site: PKOCSite) async throws -> Int {
        let stage = try await CredentialStage(site)
        let client = try await stage.watcher()
        try await stage.tap(card)
        _ = try #require(await client.next("CREDENTIAL"))
        return try #require(await stage.server.readers?.card(in: "Simulator")?.apdus)
    }

    /// Checks the messages about the card with the fault, and that the good card after it is read.
    private static func check(_ client: TestClient, key: String, good: String, _ place: String) async throws {
        while let message = await client.next("CREDENTIAL") {
            guard message["verified"] == .bool(true) else {
                #expect(message["reason"]?.string != nil, "\(place)")
                #expect(message["publicKey"] == nil && message["numbers"] == nil, "\(place)")
                continue
            }
            let told = message["publicKey"]?.string
            if told == good { return }
            #expect(told == key, "\(place)")
        }
        Issue.record("the good card was not read: \(place)")
    }

    @Test(
        "virtual reader: SE V1 and SE V2, with validated mode or not",
        arguments: ["plain", "certified", "validated"]
    )
    func virtualReader(mode: String) async throws {
        let site = PKOCSite(issuers: [try Vectors.issuer()], isValidated: mode == "validated")
        let card = try mode == "plain" ? Vectors.plainCard() : Vectors.certifiedCard()
        let key = try mode == "plain" ? Vectors.text("own", "card", "public") : Vectors.text("cvc", "subject", "public")
        let good = try mode == "plain" ? Vectors.certifiedCard() : Vectors.plainCard()
        let goodKey =
            try mode == "plain" ? Vectors.text("cvc", "subject", "public") : Vectors.text("own", "card", "public")
        let count = try await Self.length(card, site)
        let stage = try await CredentialStage(site)
        let client = try await stage.watcher()
        for index in 0..<count {
            for fault in Self.faults {
                let place = "\(mode), command \(index), \(fault)"
                let before = stage.outcomes
                try await stage.tap(card + #","faults":[{"afterApdu":\#(index),"do":"\#(fault)"}]"#)
                await stage.settle(since: before)
                await stage.remove()
                if mode == "validated" {
                    // SE V1 never follows, so nothing but the certified card counts.
                    for card in [try Vectors.plainCard(), card] {
                        let before = stage.outcomes
                        try await stage.tap(card)
                        await stage.settle(since: before)
                        await stage.remove()
                    }
                    try await Self.check(client, key: key, good: key, place)
                    // Reads the other messages of this round, so that the next round does not receive them.
                    _ = await client.exchange()
                    #expect(!client.hasReceived(goodKey), "\(place)")
                } else {
                    try await stage.tap(good)
                    try await Self.check(client, key: key, good: goodKey, place)
                    await stage.remove()
                }
            }
        }
    }

    @Test(
        "emulated PN532: each exchange with a card that leaves, loses power or is disturbed",
        arguments: [false, true]
    )
    func board(isTypeB: Bool) async throws {
        let technology = isTypeB ? PICC.Technology.b : .a
        let board = try EmulatedPN532()
        let stage = try await CredentialStage(on: board)
        let client = try await stage.watcher()
        try await stage.tap(try Vectors.plainCard(), technology: technology)
        _ = try #require(await client.next("CREDENTIAL"))
        let count = board.field.exchanges
        await stage.remove()
        let (key, good) = (try Vectors.text("own", "card", "public"), try Vectors.text("cvc", "subject", "public"))
        let faults: [RadioField.Fault] = [
            .removed, .removedAfter, .powerLost, .answerDamaged, .answerRepeated, .commandLost,
        ]
        // `make test` tries each third exchange.
        for (number, index) in stride(from: 0, to: count, by: FullTables.areWanted ? 1 : 3).enumerated() {
            let fault = faults[number % faults.count]
            board.field.plan([index: fault])
            try await stage.tap(try Vectors.plainCard(), technology: technology)
            try await board.field.wait { board.field.faultsLeft == 0 }
            board.field.remove()
            await stage.wait { $0.insertion == nil }
            try await stage.tap(try Vectors.certifiedCard(), technology: technology)
            try await Self.check(client, key: key, good: good, "exchange \(index), \(fault)")
            await stage.remove()
        }
    }
}
