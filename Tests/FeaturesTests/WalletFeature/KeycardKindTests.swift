// SPDX-License-Identifier: GPL-3.0-or-later
import Cards
import Foundation
import HDWallet
import ISO7816
import Keycard
import ReadersVirtual
import Store
import TestSupport
import Testing
import Text
import VirtualKeycard
import WalletFeature

/// A virtual Keycard as a channel.
private final class CardLink: CardChannel {
    let card: VirtualCard

    /// Makes the card of an object `card` in JSON.
    init(_ text: String) throws {
        let kinds = VirtualCardKinds([VirtualKeycardKind()])
        card = try kinds.describe(simulator: nil, card: try JSON(text.utf8)).makeCard()
    }

    func transmit(_ command: CommandAPDU) async throws(CardError) -> ResponseAPDU {
        try await card.answer(command)
    }
}

private struct OtherCard: CardChannel {
    let status: UInt16
    func transmit(_ command: CommandAPDU) async throws(CardError) -> ResponseAPDU { ResponseAPDU(StatusWord(status)) }
}

@Suite("READER of a Keycard")
struct KeycardKindTests {
    private let folder = NSTemporaryDirectory() + "badged-wallet-" + UUID().uuidString

    private func pairings() -> KeycardPairings {
        KeycardPairings(StateStore(folder: folder))
    }

    @Test("looking for a pairing does not create a store")
    func noStore() async throws {
        let store = StateStore(exists: { [folder] in Store.exists(in: folder) }) { [folder] () throws(Failure) in
            try Store(folder: folder)
        }
        let card = try CardLink(#"{"version":"3.1"}"#)
        #expect(try await members(card, KeycardPairings(store)).contains(#""paired":false"#))
        #expect(!FileManager.default.fileExists(atPath: folder))
        _ = try await store.required()
        #expect(try await store.existing() != nil && Store.exists(in: folder))
    }

    private func members(_ card: CardLink, _ pairings: KeycardPairings) async throws -> String {
        let authority = try VirtualKeycardDescription.authority().publicKey.compressed
        let kind = KeycardKind(pairings, trust: KeycardTrust(authorities: [authority]))
        let profile = try #require(try await kind.recognize(card, answerToReset: []))
        return JSON.object(profile.members).description
    }

    private static let words = "legal winner thank year wave sausage worth useful legal winner thank yellow"

    @Test(
        "the state of a card is known before any question",
        arguments: [
            (
                #"{"version":"3.1","initialised":false}"#,
                #"{"version":null,"initialised":false,"keyUID":null,"pinTries":null,"pukTries":null,"paired":false,"trusted":null}"#
            ),
            (
                #"{"version":"3.1"}"#,
                #"{"version":"3.1","initialised":true,"keyUID":null,"pinTries":null,"pukTries":null,"paired":false,"trusted":null,"#
                    + #""usedSlots":0,"freeSlots":5}"#
            ),
            (
                #"{"version":"4.0","initialised":false}"#,
                #"{"version":"4.0","initialised":false,"keyUID":null,"pinTries":null,"pukTries":null,"paired":null,"trusted":true}"#
            ),
            (
                #"{"version":"4.0","retryCounter":2,"pukCounter":4}"#,
                #"{"version":"4.0","initialised":true,"keyUID":null,"pinTries":2,"pukTries":4,"paired":null,"trusted":true}"#
            ),
        ]
    )
    func states(card: String, expected: String) async throws {
        #expect(try await members(try CardLink(card), pairings()) == expected)
    }

    @Test("the counters and the key of a paired 3.1 card are known, and no try is lost")
    func paired() async throws {
        defer { try? FileManager.default.removeItem(atPath: folder) }
        let card = try CardLink(#"{"version":"3.1","retryCounter":1,"words":"\#(Self.words)"}"#)
        let applet = try await KeycardApplet.select(on: card)
        let secret = try KeycardPairingSecret.derive(Secret(KeycardParameters.defaultPairingPassword.utf8))
        let uid = try #require(await applet.info.instanceUID)
        let key = Hex.encode(try #require(await applet.info.keyUID))
        do {
            let pairings = pairings()
            try await pairings.keep(try await applet.pair(secret: secret), with: uid)
        }
        let pairings = pairings()
        let expected =
            #"{"version":"3.1","initialised":true,"keyUID":"\#(key)","pinTries":1,"pukTries":5,"paired":true,"trusted":null,"#
            + #""usedSlots":1,"freeSlots":4}"#
        #expect(try await members(card, pairings) == expected)
        #expect(try await members(card, pairings) == expected)
        try await pairings.remove(uid)
        let unpaired =
            #"{"version":"3.1","initialised":true,"keyUID":"\#(key)","pinTries":null,"pukTries":null,"paired":false,"trusted":null,"#
            + #""usedSlots":1,"freeSlots":4}"#
        #expect(try await members(card, pairings) == unpaired)
    }

    @Test("a 4.0 card of a foreign authority is reported without its PUK counter")
    func foreign() async throws {
        let kind = KeycardKind(pairings(), trust: KeycardTrust())
        let profile = try #require(
            try await kind.recognize(try CardLink(#"{"version":"4.0"}"#), answerToReset: [])
        )
        let expected =
            #"{"version":"4.0","initialised":true,"keyUID":null,"pinTries":3,"pukTries":null,"paired":null,"trusted":false}"#
        #expect(JSON.object(profile.members).description == expected)
    }

    @Test("a card without the applet is of another kind", arguments: [0x6A82, 0x6985, 0x6D00, 0x9000] as [UInt16])
    func otherCard(status: UInt16) async throws {
        let kind = KeycardKind(pairings(), trust: KeycardTrust())
        let profile = try await kind.recognize(OtherCard(status: status), answerToReset: [])
        #expect(profile == nil)
    }

    @Test("a card that is removed during the recognition is no Keycard yet", arguments: 0...3)
    func removed(after count: Int) async throws {
        let card = try CardLink(#"{"version":"4.0","faults":[{"afterApdu":\#(count),"do":"remove"}]}"#)
        let kind = KeycardKind(
            pairings(),
            trust: KeycardTrust(authorities: [try VirtualKeycardDescription.authority().publicKey.compressed])
        )
        guard count < 3 else {
            #expect(try await kind.recognize(card, answerToReset: []) != nil)
            return
        }
        await #expect(throws: CardError.removed) { _ = try await kind.recognize(card, answerToReset: []) }
    }
}
