// SPDX-License-Identifier: GPL-3.0-or-later
import BadgedOSTWallet
import Dispatch
import TestSupport
import Testing
import Text

@Suite("BadgedOSTWallet with a scripted badged", .timeLimit(.minutes(5))) struct OstWorkflowTests {
    private typealias Played = PlayedWallet

    private func workflows(_ peer: ScriptedPeer) -> OstWorkflows {
        OstWorkflows(socketPath: peer.path, callbackQueue: DispatchQueue(label: "callbacks"))
    }

    @Test("An app with the nine functions sets up no new card: it cannot show the PUK, nor ask the words back")
    func setup() async throws {
        let words = Array(repeating: #""able""#, count: 12).joined(separator: ",")
        let questions = [
            Played.enter("NEW_PIN", 1), #"{"msg":"SHOW_PUK","userId":"u","puk":"123456789012","question":1}"#,
            #"{"msg":"SHOW_PAPER_WALLET","userId":"u","mnemonics":[\#(words)],"question":1}"#,
            #"{"msg":"ENTER_WORDS","userId":"u","positions":[1,2,3],"question":1}"#,
        ]
        for question in questions {
            let peer = try ScriptedPeer { $0.playCancelled("SETUP_DEVICE", at: question) }
            let app = OstApp(["123456"])
            workflows(peer).setupDevice(userId: "u", tokenId: "t", delegate: app)
            let end = await app.end()
            #expect(end.hasPrefix("flowInterrupted setupDevice unsupportedWorkflow: "), "\(question): \(end)")
            #expect(app.lines.all == [end])
        }
    }

    @Test("A PIN that the app has given is sent once; after a wrong one invalidPin asks")
    func invalidPin() async throws {
        let peer = try ScriptedPeer { peer in
            peer.command("RUN_WALLET")
            peer.send(Played.started("RESET_PIN"))
            peer.prompt(Played.enter("PIN", 1, left: 3), "SET_PIN")
            peer.send(Played.invalid("PIN", left: 2))
            peer.prompt(Played.enter("PIN", 2, left: 2), "SET_PIN")
            peer.send(Played.validated)
            peer.prompt(Played.enter("NEW_PIN", 3), "SET_NEW_PIN")
            peer.send(Played.complete("RESET_PIN", Played.card))
        }
        let app = OstApp(["222222"])
        workflows(peer).resetPin(
            userId: "u",
            passPhrasePrefix: "p",
            oldUserPin: "111111",
            newUserPin: "333333",
            delegate: app
        )
        #expect(await app.end() == "flowComplete resetPin card true")
        #expect(app.lines.all.dropLast() == ["invalidPin u", "pinValidated u"])
        #expect(
            await peer.commandsWithValues() == ["RUN_WALLET", "SET_PIN 111111", "SET_PIN 222222", "SET_NEW_PIN 333333"]
        )
    }

    @Test("verifyData shows what is signed; without consent the workflow is cancelled", arguments: [true, false])
    func verify(agrees: Bool) async throws {
        let peer = try ScriptedPeer { peer in
            peer.command("RUN_WALLET")
            peer.send(Played.started("REVOKE_DEVICE"))
            if agrees {
                peer.prompt(Played.verifyData(1), "DATA_VERIFIED")
                peer.send(Played.complete("REVOKE_DEVICE"))
            } else {
                peer.prompt(Played.verifyData(1), "CANCEL")
                peer.send(Played.interrupted("REVOKE_DEVICE", "USER_CANCELED"))
            }
        }
        let app = OstApp(agrees: agrees)
        workflows(peer).revokeDevice(userId: "u", deviceAddressToRevoke: "0x2", delegate: app)
        let end = await app.end()
        #expect(end.hasPrefix(agrees ? "flowComplete revokeDevice" : "flowInterrupted revokeDevice userCanceled"))
        #expect(app.lines.all.first == "verifyData revokeDevice device revoke 0x2")
        let start = try JSON(Array(try #require(await peer.received().first).utf8))
        #expect(start["workflow"] == .string("REVOKE_DEVICE"))
        #expect(start["payload"] == start["message"])
    }

    @Test("The error with which an app cancels is the error of flowInterrupted")
    func cancelFlow() async throws {
        let peer = try ScriptedPeer { peer in
            peer.command("RUN_WALLET")
            peer.send(Played.started("RESET_PIN"))
            peer.prompt(Played.enter("PIN", 1, left: 3), "CANCEL")
            peer.send(Played.interrupted("RESET_PIN", "USER_CANCELED"))
        }
        let app = OstApp()
        workflows(peer).performQRAction(userId: "u", payload: "p", delegate: app)
        #expect(await app.end() == "flowInterrupted resetPin userCanceled: no PIN")
    }

    @Test("A delegate that is released without an answer cancels the workflow")
    func released() async throws {
        final class Forgetful: OstApp {
            override func getPin(_ userId: String, delegate: any OstPinAcceptDelegate) { lines.add("getPin") }
        }
        let peer = try ScriptedPeer { $0.playCancelled("REVOKE_DEVICE", at: Played.enter("PIN", 1, left: 3)) }
        let app = Forgetful()
        workflows(peer).revokeDevice(userId: "u", deviceAddressToRevoke: "0x2", delegate: app)
        #expect(await app.end() == "flowInterrupted revokeDevice userCanceled: the app has not answered")
    }

    @Test("What an app with the nine functions cannot answer ends the workflow with the reason")
    func unanswerable() async throws {
        let questions = [
            (Played.enter("PUK", 1, left: 5), "maxUserValidatedCountReached: the PIN is blocked"),
            (Played.enter("PAIRING_PASSWORD", 1), "notPaired: the card has a pairing password"),
            (
                #"{"msg":"SHOW_SESSION_KEY","userId":"u","address":"0x1","privateKey":"00","question":1}"#,
                "unsupportedWorkflow: the app does not keep keys"
            ),
            (Played.enter("NEW_PIN", 1), "pinValidationFailed: "),
            (Played.registerDevice(1, error: "Invalid apiResponse"), "invalidAPIResponse: Invalid apiResponse"),
        ]
        for (question, reason) in questions {
            let peer = try ScriptedPeer { $0.playCancelled("REVOKE_DEVICE", at: question) }
            let app = OstApp()
            workflows(peer).revokeDevice(userId: "u", deviceAddressToRevoke: "0x2", delegate: app)
            let end = await app.end()
            #expect(end.hasPrefix("flowInterrupted revokeDevice \(reason)"), "\(end)")
        }
    }

    @Test("What is known before the PIN is refused before badged is asked: no key is kept, or the new PIN is none")
    func refusedBefore() async throws {
        // Nobody listens there: a workflow that was started would end with sdkError.
        let workflows = OstWorkflows(
            socketPath: "/nowhere/badged.sock",
            callbackQueue: DispatchQueue(label: "callbacks")
        )
        let app = OstApp(["123456"])
        workflows.addSession(userId: "u", spendingLimit: "1", expireAfterInSecs: 60, delegate: app)
        let session = await app.end()
        #expect(session.hasPrefix("flowInterrupted addSession unsupportedWorkflow: the app does not keep keys"))
        for pin in ["", "12345", "1234567", "12345a", "１２３４５６"] {
            workflows.resetPin(
                userId: "u",
                passPhrasePrefix: "",
                oldUserPin: "123456",
                newUserPin: pin,
                delegate: app
            )
            let end = await app.end()
            #expect(end == "flowInterrupted resetPin pinValidationFailed: the new PIN must have 6 digits", "\(pin)")
        }
        #expect(app.lines.all.count == 6)
        // An app with the questions of a card can be asked for another new PIN.
        let card = SetupApp()
        workflows.resetPin(userId: "u", passPhrasePrefix: "", oldUserPin: "1", newUserPin: "2", delegate: card)
        #expect(await card.end().hasPrefix("flowInterrupted resetPin sdkError: "))
    }

    @Test("An app that sets up new cards only leaves the questions of other cards to the library")
    func questionsOfOtherCards() async throws {
        let words = #"{"msg":"ENTER_WORDS","userId":"u","count":12,"question":1}"#
        for (question, reason) in [
            (Played.enter("PAIRING_PASSWORD", 1), "notPaired: NOT_PAIRED"),
            (words, "invalidMnemonics: INVALID_MNEMONICS"),
        ] {
            let peer = try ScriptedPeer { $0.playCancelled("ADD_SESSION", at: question) }
            let app = SetupApp()
            workflows(peer).addSession(userId: "u", spendingLimit: "1", expireAfterInSecs: 60, delegate: app)
            #expect(await app.end() == "flowInterrupted addSession \(reason)")
        }
    }

    /// An app with the questions of `OstCardDelegate` that have no answer of the library.
    private final class SetupApp: OstApp, OstCardDelegate {
        func getNewPin(_ userId: String, error: String?, delegate: any OstPinAcceptDelegate) { answer(delegate) }
        func getPuk(_ userId: String, retryCounter: Int?, delegate: any OstPinAcceptDelegate) { answer(delegate) }
        func showPuk(_ puk: String, delegate: any OstValidateDataDelegate) { delegate.dataVerified() }
        func verifyMnemonics(positions: [Int], error: String?, delegate: any OstMnemonicsAcceptDelegate) {
            delegate.mnemonicsEntered([])
        }
    }

    @Test("An error has the code of badged as text, and is never one of the platform of OST")
    func errorCode() {
        let error = OstError(internalCode: "SIGN", errorCode: .cardBlocked)
        #expect(error.errorCode == "CARD_BLOCKED" && error.getMessageTextCode() == "CARD_BLOCKED")
        #expect(!error.isApiError)
    }

    @Test("Errors of badged have the names of the SDK, and a missing badged is one, too")
    func errors() async throws {
        let peer = try ScriptedPeer { peer in
            peer.answer("RUN_WALLET", Played.interrupted("GET_DEVICE_MNEMONICS", "MNEMONICS_NOT_STORED"))
        }
        let app = OstApp()
        workflows(peer).getDeviceMnemonics(userId: "u", delegate: app)
        #expect(await app.end() == "flowInterrupted getDeviceMnemonics mnemonicsNotStored: It failed.")
        let alone = OstApp()
        OstWorkflows(socketPath: "/nowhere/badged.sock", callbackQueue: DispatchQueue(label: "callbacks"))
            .logoutAllSessions(userId: "u", delegate: alone)
        let end = await alone.end()
        #expect(end.hasPrefix("flowInterrupted logoutAllSessions sdkError: badged is not running"), "\(end)")
        #expect(OstErrorCodes.OstErrorCode.invalidQRCode.text == "INVALID_Q_R_CODE")
        let texts = OstErrorCodes.OstErrorCode.allCases.map(\.text)
        #expect(Set(texts).count == texts.count)
    }

    @Test("Every value that JSON has crosses as a value of Swift")
    func values() async throws {
        let peer = try ScriptedPeer { peer in
            peer.command("RUN_WALLET")
            peer.prompt(Played.registerDevice(1), "DEVICE_REGISTERED")
            peer.send(Played.complete("SETUP_DEVICE"))
        }
        let app = OstApp { parameters in
            [
                "address": parameters["address"] ?? "", "number": 3, "fraction": 1.5, "flag": true, "list": [1, "a"],
                "nested": ["x": ["y": false]], "unsigned": UInt8(7), "nothing": Int?.none as Any,
            ]
        }
        workflows(peer).setupDevice(userId: "u", tokenId: "t", delegate: app)
        #expect(await app.end().hasPrefix("flowComplete"))
        let line = try #require(await peer.received().last)
        let response = try JSON(Array(line.utf8))["apiResponse"]
        let text =
            #"{"address":"\#(Played.address)","number":3,"fraction":1.5,"flag":true,"list":[1,"a"],"#
            + #""nested":{"x":{"y":false}},"unsigned":7,"nothing":null}"#
        let expected = try JSON(Array(text.utf8))
        #expect(response == expected)
    }
}
