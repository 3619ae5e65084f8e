// SPDX-License-Identifier: GPL-3.0-or-later
import BadgedClient
import BadgedMPin
import Concurrency
import HTTP
import TestSupport
import Testing
import Text

/// Puts the Keycard into the virtual reader, and types its PIN.
private struct Holder: CardUser {
    let connection: DaemonConnection

    func insertCard(error: String?, reader: String?) async { _ = try? await connection.setCard(in: "Simulator") }

    func answer(_ question: SecretQuestion) async -> SecretBox? { SecretBox(Secret("123456".utf8)) }
}

@Suite("BadgedMPin and badgectl mpin: a token under a Keycard", .timeLimit(.minutes(5)))
@Loop struct CardClientTests {
    @Test("the library registers with a card, logs in with it, and signs")
    func library() async throws {
        let stage = try await MPinStage.withCard("4.0")
        let connection = try await DaemonConnection.connect(to: try stage.server.listen())
        let mfa = MPinMFA(connection, cardUser: Holder(connection: connection))
        #expect(try await mfa.initSDK().isOK)
        #expect(try await mfa.setClientId("c1").isOK)
        #expect(try await mfa.setBackend(stage.servers.url).isOK)
        let user = try #require(try await mfa.makeNewUser(stage.user).user)
        #expect(try await mfa.startRegistration(user, regCode: "123456").isOK)
        #expect(try await mfa.confirmRegistration(user).isOK)
        #expect(try await mfa.finishRegistration(user, pin0: Secret("7391".utf8), card: true).isOK)
        #expect(try await mfa.listUsers().first?.keyUID?.utf8.count == 64)
        #expect(try await mfa.startAuthentication(user).isOK)
        #expect(try await mfa.finishAuthentication(user, pin0: Secret("7391".utf8)).status.isOK)

        let token = try #require(try await stage.servers.lab(.post, "permit/\(stage.user)")["token"]?.string)
        #expect(try await mfa.startRegistrationDVS(user, token: token).isOK)
        #expect(try await mfa.finishRegistrationDVS(user, pinDVS: Secret("4321".utf8)).isOK)
        let hash = [UInt8](repeating: 0x5A, count: 32)
        let signed = try await mfa.sign(user, documentHash: hash, pin0: Secret("4321".utf8), epochTime: 1_700_000_000)
        #expect(signed.signature?.strHash == hash)

        // This client has no user for questions about the card.
        let other = MPinMFA(connection)
        #expect(try await other.startAuthentication(user).isOK)
        let result = try await other.finishAuthentication(user, pin0: Secret("7391".utf8))
        #expect(result.status.status == .pinInputCanceled)
        await stage.server.stopListening()
    }

    @Test("badgectl inserts the virtual card, and asks for its PIN after that of M-Pin")
    func command() async throws {
        let stage = try await MPinStage.withCard("3.1")
        let path = try stage.server.listen()
        func run(_ command: String, input: String) async throws -> String {
            let all = ["--socket", path, "mpin"] + command.split(separator: " ").map(String.init) + ["--pin-stdin"]
            let program = try RunningProgram("badgectl", all, input: input)
            #expect(await program.exitCode == 0, "\(program.everything)")
            return program.text(.output)
        }
        let made = try await run(
            "register \(stage.user) --backend \(stage.servers.url) --card",
            input: "7391\n123456\n"
        )
        #expect(made == "\(stage.user) is registered.\n")
        #expect(try await run("users", input: "").contains("  REGISTERED  card "))
        let login = try await run("login \(stage.user)", input: "7391\n123456\n")
        #expect(try JSON(login.utf8)["userId"]?.string == stage.user)
        #expect(try await run("otp \(stage.user)", input: "7391\n123456\n").utf8.count == 7)
        await stage.server.stopListening()
    }
}
