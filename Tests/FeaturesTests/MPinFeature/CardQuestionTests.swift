// SPDX-License-Identifier: GPL-3.0-or-later
import BadgedClient
import BadgedMPin
import Synchronization
import TestSupport
import Testing
import Text

extension ScriptedPeer.Connection {
    /// Answers a command that is no workflow, or ends a workflow.
    @discardableResult
    fileprivate func succeed(_ command: String, _ members: String = "") -> JSON? {
        answer(command, #"{"msg":"MPIN_RESULT","operation":"\#(command)",\#(Self.ok)\#(members)}"#)
    }

    private static let ok = #""status":0,"statusCodeAsString":"OK","errorMessage":"""#

    fileprivate static let user =
        #"{"userId":"alice","state":"STARTED_REGISTRATION","backend":"http://b","rpsPrefix":"rps","pinLength":4}"#

    /// Plays the end of a registration under a card, whose PIN is wrong once.
    fileprivate func finishUnderCard(_ insertCard: () -> Void) {
        command("MPIN_FINISH_REGISTRATION")
        send(#"{"msg":"MPIN_STARTED","operation":"MPIN_FINISH_REGISTRATION"}"#)
        insertCard()
        enterCardPIN(1, left: 3)
        send(#"{"msg":"INVALID_PIN","userId":"","retryCounter":2}"#)
        enterCardPIN(2, left: 2)
        send(#"{"msg":"PIN_VALIDATED","userId":""}"#)
        send(
            #"{"msg":"ENTER_NEW_PIN","userId":"alice","backend":"http://b","factor":0,"pinLength":4,"question":3}"#
        )
        command("SET_NEW_PIN")
        send(#"{"msg":"MPIN_RESULT","operation":"MPIN_FINISH_REGISTRATION",\#(Self.ok)}"#)
    }

    private func enterCardPIN(_ question: Int, left: Int) {
        let reader =
            #"{"name":"R","attached":true,"insertable":false,"keypad":false,"card":{"kind":"keycard","initialised":true}}"#
        send(
            #"{"msg":"ENTER_PIN","userId":"","retryCounter":\#(left),"reader":\#(reader),"question":\#(question)}"#
        )
        command("SET_PIN")
    }
}

/// The commands of the workflow with their values, in order.
private func answers(_ peer: ScriptedPeer) async -> [String] {
    await peer.received().compactMap { line in
        guard let json = try? JSON(line.utf8), let name = json["cmd"]?.string, name.hasPrefix("SET_"),
            let value = json["value"]?.string
        else { return nil }
        return "\(name) \(value) \(json["question"]?.int ?? 0)"
    }
}

/// Types 111111 first and 123456 then.
private final class Owner: CardUser {
    let seen = Mutex<[String]>([])
    let isAutomatic: Bool

    init(isAutomatic: Bool = false) { self.isAutomatic = isAutomatic }

    func answer(_ question: SecretQuestion) async -> SecretBox? {
        let isFirst = question.last == nil
        seen.withLock { $0.append("\(question.kind) \(question.triesLeft ?? -1) \(isFirst)") }
        return SecretBox(Secret((isFirst ? "111111" : "123456").utf8))
    }

    func insertCard(error: String?, reader: String?) async { seen.withLock { $0.append(error ?? "insert") } }
}

/// The questions about a Keycard under which a token is kept, with a scripted badged.
@Suite("BadgedMPin and badgectl mpin: questions about a card", .timeLimit(.minutes(5)))
struct CardQuestionTests {
    private let user = IUser(identity: "alice", state: .activated, backend: Backend(url: "http://b"))

    @Test("the app answers the questions about the card, and the PIN of the call the one of M-Pin")
    func library() async throws {
        let peer = try ScriptedPeer { peer in
            peer.finishUnderCard { peer.send(#"{"msg":"INSERT_CARD","error":"Another card."}"#) }
        }
        let owner = Owner()
        let connection = try await DaemonConnection.connect(to: peer.path)
        let mpin = MPin(connection, cardUser: owner)
        let status = try await mpin.finishRegistration(user, pin: Secret("7391".utf8), card: true, reader: "R")
        #expect(status.isOK)
        connection.close()
        #expect(await answers(peer) == ["SET_PIN 111111 1", "SET_PIN 123456 2", "SET_NEW_PIN 7391 3"])
        #expect(owner.seen.withLock(\.self) == ["Another card.", "pin 3 true", "pin 2 false"])
        let command = await peer.received().compactMap { try? JSON($0.utf8) }.first {
            $0["cmd"]?.string == "MPIN_FINISH_REGISTRATION"
        }
        #expect(command?["card"] == .bool(true))
        #expect(command?["reader"]?.string == "R")
    }

    @Test("a user who is no person gives the PIN of the card as an automatic answer")
    func automatic() async throws {
        let peer = try ScriptedPeer { $0.finishUnderCard {} }
        let connection = try await DaemonConnection.connect(to: peer.path)
        let mpin = MPin(connection, cardUser: Owner(isAutomatic: true))
        #expect(try await mpin.finishRegistration(user, pin: Secret("7391".utf8), card: true, reader: "R").isOK)
        connection.close()
        let values = await peer.received().compactMap { try? JSON($0.utf8) }.filter { $0["cmd"]?.string == "SET_PIN" }
        #expect(values.count == 2)
        #expect(values.allSatisfy { $0["automatic"] == .bool(true) })
    }

    @Test("without a user for the card the call is cancelled")
    func nobody() async throws {
        let peer = try ScriptedPeer { peer in
            peer.command("MPIN_FINISH_AUTHENTICATION")
            peer.send(#"{"msg":"MPIN_STARTED","operation":"MPIN_FINISH_AUTHENTICATION"}"#)
            peer.send(#"{"msg":"INSERT_CARD"}"#)
            peer.command("CANCEL")
            peer.send(
                #"{"msg":"MPIN_RESULT","operation":"MPIN_FINISH_AUTHENTICATION","status":1,"#
                    + #""statusCodeAsString":"PIN_INPUT_CANCELED","errorMessage":"the operation was cancelled"}"#
            )
        }
        let mpin = MPin(try await DaemonConnection.connect(to: peer.path))
        let result = try await mpin.finishAuthentication(user, pin: Secret("7391".utf8))
        #expect(result.status.status == .pinInputCanceled)
    }

    @Test("badgectl asks for the card and its PIN")
    func badgectl() async throws {
        let peer = try ScriptedPeer { peer in
            peer.succeed("MPIN_INIT")
            peer.succeed("MPIN_SET_BACKEND")
            peer.succeed("MPIN_USERS", #","users":[\#(ScriptedPeer.Connection.user)]"#)
            peer.succeed("MPIN_CONFIRM_REGISTRATION")
            peer.finishUnderCard {
                peer.send(#"{"msg":"INSERT_CARD"}"#)
                peer.answer("GET_READER_LIST", #"{"msg":"READER_LIST","readers":[]}"#)
            }
        }
        let program = try RunningProgram(
            "badgectl",
            ["--socket", peer.path, "mpin", "register", "alice", "--backend", "http://b", "--card"],
            hasTerminal: true
        )
        #expect(await program.prints("New PIN: ", typing: "7391\n"))
        #expect(await program.prints("Repeat the new PIN: ", typing: "7391\n"))
        for pin in ["111111", "123456"] { #expect(await program.prints("\nPIN: ", typing: pin + "\n")) }
        #expect(await program.exitCode == 0, "\(program.everything)")
        #expect(program.text(.output) == "alice is registered.\n")
        #expect(program.dialogue.contains("No reader is connected. Connect one, then put the Keycard on it.\n"))
        #expect(program.dialogue.contains("That PIN was wrong.\n2 tries are left.\n"))
        #expect(await answers(peer) == ["SET_PIN 111111 1", "SET_PIN 123456 2", "SET_NEW_PIN 7391 3"])
    }
}
