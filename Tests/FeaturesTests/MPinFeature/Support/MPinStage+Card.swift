// SPDX-License-Identifier: GPL-3.0-or-later
import Cards
import Concurrency
import HDWallet
import Keycard
import Readers
import ReadersVirtual
import TestSupport
import Testing
import Text

@testable import VirtualKeycard

/// The versions of the Keycard applet.
let channels = ["3.1", "4.0"]

extension MPinStage {
    static let words = Array(repeating: "abandon", count: 11).joined(separator: " ") + " about"
    static let otherWords = Array(repeating: "zoo", count: 11).joined(separator: " ") + " wrong"

    /// Makes a server with one reader and a Keycard in it.
    static func withCard(
        _ version: String,
        name: String = "alice",
        after earlier: MPinStage? = nil
    ) async throws -> MPinStage {
        let stage = try await MPinStage(name, after: earlier, readers: FaultyReaders(kinds: [VirtualKeycardKind()]))
        try await stage.insert(version)
        return stage
    }

    /// Inserts a new Keycard, and waits until it is recognised.
    func insert(_ version: String, words: String = MPinStage.words, _ more: String = "") async throws {
        let (readers, reader) = (try #require(readers), try #require(server.registry["Simulator"]))
        let card = #"{"kind":"keycard","version":"\#(version)","words":"\#(words)"\#(more)}"#
        #expect(
            try await server.registry.insert(
                try readers.describe(simulator: nil, card: try JSON(card.utf8)),
                into: reader
            )
        )
        try await waitForCard()
    }

    /// Waits until the card in the reader is recognised.
    func waitForCard() async throws {
        let witness = try server.connect()
        while let seen = await witness.next("READER"), seen["card"]?["kind"] == nil {}
        witness.close()
    }

    /// Inserts the card of the reader again, if it is away.
    func insertIfAway() async {
        guard let reader = server.registry["Simulator"] else { return }
        await #expect(throws: Never.self) { _ = try await server.registry.insert(nil, into: reader) }
    }

    /// The counters inside the card.
    struct CardTries: Equatable {
        let pin: Int
        let puk: Int
        /// How often the card has compared a PIN or a PUK.
        let checks: Int
    }

    func tries() async throws -> CardTries {
        let found = await readers?.base.card(in: "Simulator")
        let card = try #require(found)
        return try await card.tries()
    }

    /// Registers the user, whose token is sealed under the card in the reader.
    func registerWithCard(at url: String? = nil) async {
        await confirm(at: url)
        #expect(await status("MPIN_FINISH_REGISTRATION", #"\#(who),"card":true"#) == "OK", "\(heard)")
    }

    /// Begins the registration of the user, up to the question for the PIN.
    func confirm(at url: String? = nil) async {
        #expect(await setBackend(url) == "OK")
        await succeed("MPIN_MAKE_USER", "MPIN_START_REGISTRATION", "MPIN_CONFIRM_REGISTRATION")
    }
}

extension VirtualCard {
    func tries() throws -> MPinStage.CardTries {
        let applet = try #require(software as? VirtualApplet)
        let checks = (applet.secrets?.main.checks ?? 0) + (applet.secrets?.puk.checks ?? 0)
        return MPinStage.CardTries(
            pin: applet.secrets?.main.tries ?? 0,
            puk: applet.secrets?.puk.tries ?? 0,
            checks: checks
        )
    }
}

/// The keys that a card derives from its words.
enum KeycardKeys {
    /// The private key under which the card seals tokens.
    static func token(of words: String) throws -> [UInt8] {
        let master = try ExtendedPrivateKey(seed: try Mnemonic(words: Secret(words.utf8)).seed())
        return try master.derive(.mpinTokens).key.scalar.withBytes { Array($0) }
    }
}
