// SPDX-License-Identifier: GPL-3.0-or-later
import Concurrency
import TestSupport
import Testing
import Text

/// Each fault at each command to the card; without `FullTables.areWanted`, with one of the two generations of cards.
@Suite("Faults of the Keycard that seals a token", .timeLimit(.minutes(15)))
@Loop struct CardFaultTests {
    private struct Cell: Sendable {
        let index: Int
        let fault: CardFault
    }

    private static func cells(_ count: Int, _ version: String) -> [Cell] {
        let cells = (0..<count).flatMap { index in CardFault.allCases.map { Cell(index: index, fault: $0) } }
        return FullTables.part(channels.firstIndex(of: version) ?? 0, of: channels.count, cells)
    }

    private static func text(_ cell: Cell?) -> Comment {
        "\(cell.map { "\($0.fault) at \($0.index)" } ?? "no fault")"
    }

    @Test("no fault at a login costs a try of the card or of the server", arguments: channels)
    func logins(version: String) async throws {
        let stage = try await MPinStage.withCard(version)
        await stage.registerWithCard()
        #expect(await stage.status("MPIN_START_AUTHENTICATION", stage.who) == "OK")
        stage.cancelsLogin = true
        let count = try await logIn(stage, nil)
        #expect(count >= 5)
        for cell in Self.cells(count, version) { _ = try await logIn(stage, cell) }
        stage.cancelsLogin = false
        // The server has counted no wrong PIN: the third one would block the user.
        for _ in 0..<2 { #expect(await stage.logIn(pin: "0000").status == "INCORRECT_PIN") }
        #expect(await stage.logIn().status == "OK")
    }

    /// Opens the token with a fault, and again without one if it was in the way. The question for the PIN of M-Pin says that
    /// the token is open.
    /// - Returns: the number of commands to the card.
    private func logIn(_ stage: MPinStage, _ cell: Cell?) async throws -> Int {
        let readers = try #require(stage.readers)
        try await watch(stage, cell) { await stage.run("MPIN_FINISH_AUTHENTICATION", stage.who) }
        let count = readers.count
        readers.arm(nil)
        if !Self.isThrough(stage) {
            await stage.server.withdraw()
            _ = await stage.run("MPIN_FINISH_AUTHENTICATION", stage.who)
            #expect(Self.isThrough(stage), "\(Self.text(cell)): \(stage.heard)")
        }
        return count
    }

    private static func isThrough(_ stage: MPinStage) -> Bool {
        stage.heard.last?.status == "OK" || stage.heard.contains { $0["factor"]?.int == 0 }
    }

    @Test("no fault at a registration costs a try, and the registration can be finished", arguments: channels)
    func registrations(version: String) async throws {
        let stage = try await MPinStage.withCard(version)
        #expect(await stage.setBackend() == "OK")
        let count = try await register(stage, version, nil)
        #expect(count >= 5)
        for cell in Self.cells(count, version) { _ = try await register(stage, version, cell) }
        _ = try await register(stage, version, nil)
    }

    /// Finishes a registration with a fault and a new card. A registration that has failed is the next one's.
    /// - Returns: the number of commands to the card.
    private func register(_ stage: MPinStage, _ version: String, _ cell: Cell?) async throws -> Int {
        if await stage.state() == nil {
            await stage.succeed("MPIN_MAKE_USER", "MPIN_START_REGISTRATION", "MPIN_CONFIRM_REGISTRATION")
        }
        await stage.server.withdraw()
        try await stage.insert(version)
        try await watch(stage, cell) { await stage.run("MPIN_FINISH_REGISTRATION", #"\#(stage.who),"card":true"#) }
        let count = try #require(stage.readers).count
        stage.readers?.arm(nil)
        if stage.heard.last?.status == "OK" {
            await stage.succeed("MPIN_DELETE_USER")
        } else {
            #expect(stage.heard.last?["user"]?["state"]?.string == "ACTIVATED")
        }
        return count
    }

    /// Runs a command with a fault, and compares what the card has counted with what the user has typed.
    private func watch(_ stage: MPinStage, _ cell: Cell?, _ body: () async -> JSON) async throws {
        await stage.insertIfAway()
        try await stage.waitForCard()
        let before = try await stage.tries()
        stage.readers?.arm(cell.map { ($0.index, $0.fault) })
        let end = await body()
        let isThrough = Self.isThrough(stage)
        let after = try await stage.tries()
        let place: Comment = "\(Self.text(cell)): \(stage.heard)"
        #expect(isThrough || end.status == "STORAGE_ERROR", place)
        #expect(cell != nil || isThrough, place)
        #expect((after.pin, after.puk) == (3, 5), place)
        let typed = stage.heard.count { $0["msg"]?.string == "ENTER_PIN" && $0["reader"] != nil }
        #expect(after.checks - before.checks <= typed, place)
        #expect(!stage.server.isLent(), place)
    }
}
