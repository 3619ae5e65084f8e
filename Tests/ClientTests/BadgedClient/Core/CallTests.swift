// SPDX-License-Identifier: GPL-3.0-or-later
import BadgedClient
import TestSupport
import Testing
import Text

@Suite("Calls that ask the user nothing", .timeLimit(.minutes(5))) struct CallTests {
    struct Case: Sendable, CustomTestStringConvertible {
        /// The command with its members, without `request`.
        let command: JSON
        let answer: String
        /// Makes the call, and returns what the app gets.
        let call: @Sendable (DaemonConnection) async throws -> String

        var testDescription: String { "\(command)" }
    }

    private static let opening =
        #"{"msg":"OPENING","openingType":"motion","reader":"r","state":"connecting","token":7}"#
    private static let automatic = #"{"msg":"AUTO_OPEN","mode":"ask","openingType":"motion"}"#

    /// Answers the question for the reader `r`.
    private static func answer(_ badged: DaemonConnection, _ allow: Bool) async throws -> DoorOpeningAnswer? {
        for await event in badged.events {
            guard let question = event.message as? DoorOpeningQuestion else { continue }
            return try await badged.answerOpening(question, allow: allow)
        }
        return nil
    }

    private static let cases = [
        Case(command: #"{"cmd":"START_OPENINGS"}"#, answer: #"{"msg":"OPENINGS","watching":true}"#) {
            "\(try await $0.startOpenings().isWatching)"
        },
        Case(command: #"{"cmd":"STOP_OPENINGS"}"#, answer: #"{"msg":"OPENINGS","watching":false}"#) {
            "\(try await $0.stopOpenings().isWatching)"
        },
        Case(command: #"{"cmd":"ALLOW_OPEN","token":7,"allow":true}"#, answer: opening) {
            guard case .begun(let opening) = try await answer($0, true) else { return "not begun" }
            return "\(opening.token)"
        },
        Case(command: #"{"cmd":"ALLOW_OPEN","token":7,"allow":false}"#, answer: automatic) {
            "\(try await answer($0, false) == nil)"
        },
        Case(
            command: #"{"cmd":"SET_TIMEOUTS","fragmentMs":100,"apduMs":2000,"connectMs":3000}"#,
            answer: #"{"msg":"TIMEOUTS","fragmentMs":100,"apduMs":2000,"connectMs":3000}"#
        ) {
            let set = try await $0.setOpeningTimeouts(
                fragment: .milliseconds(100),
                apdu: .seconds(2),
                connect: .seconds(3)
            )
            return "\(set.fragment) \(set.apdu) \(set.connect)"
        },
        Case(
            command: #"{"cmd":"SET_AUTO_OPEN","mode":"ask","openingType":"motion","key":"k"}"#,
            answer: automatic
        ) { "\(try await $0.setAutomaticOpening(.ask, by: "motion", key: "k").mode)" },
        Case(command: #"{"cmd":"WALLET_UNBIND"}"#, answer: #"{"msg":"WALLET_UNBOUND","account":"bob"}"#) {
            "\(try await $0.unbindWallet().account ?? "none")"
        },
        Case(
            command: #"""
                {"cmd":"WALLET_INIT","mode":"MYKEY","appKey":"k","UUID":"u","dappName":"D","dappIcon":"i","scheme":"s"}
                """#,
            answer: #"""
                {"msg":"WALLET_READY","mode":"MYKEY","dappName":"D","chainId":"00","node":true,"account":"bob","publicKey":"p"}
                """#
        ) {
            let dapp = WalletDapp(mode: .mykey(appKey: "k", uuid: "u"), name: "D", icon: "i", scheme: "s")
            return "\(try await $0.initWallet(dapp).account ?? "none")"
        },
        Case(
            command: #"""
                {"cmd":"RUN_WALLET","workflow":"PAIR","userId":"u","tokenId":"t","reader":"r","status":false}
                """#,
            answer: #"{"msg":"FLOW_STARTED","workflowId":"1","workflowType":"PAIR","userId":"u"}"#
        ) {
            try await $0.startWallet(WalletFlow("PAIR"), userID: "u", tokenID: "t", reader: "r", status: false)
            return ""
        },
        Case(
            command: #"""
                {"cmd":"RUN_AUTH","tcTokenURL":"https://a.example","developerMode":true,"reader":"r","status":false}
                """#,
            answer: #"{"msg":"AUTH"}"#
        ) {
            try await $0.startAuthentication(
                tcTokenURL: "https://a.example",
                reader: "r",
                developerMode: true,
                status: false
            )
            return ""
        },
    ]

    private static let results = [
        "true", "false", "7", "true", "0.1 seconds 2.0 seconds 3.0 seconds", "ask", "bob", "bob", "", "",
    ]

    @Test("each call sends its command and returns the answer", arguments: zip(cases, results))
    func call(_ example: Case, _ result: String) async throws {
        let name = try #require(example.command["cmd"]?.string)
        let peer = try ScriptedPeer { peer in
            if name == "ALLOW_OPEN" {
                peer.send(#"{"msg":"ASK_OPEN","token":7,"reader":"r","openingType":"motion","expiresMs":10000}"#)
            }
            peer.answer(name, example.answer)
        }
        let badged = try await DaemonConnection.connect(to: peer.path)
        #expect(try await example.call(badged) == result)
        badged.close()
        let sent = try #require(
            await peer.received().compactMap { try? JSON($0.utf8) }.last { $0["cmd"] == .string(name) }
        )
        #expect(JSON.object(sent.members?.filter { $0.key != "request" } ?? []) == example.command)
    }

    @Test("a connection works with any operation of an account")
    func operations() throws {
        let options = WalletOperation.Options(info: "i", callbackURL: "c", orderID: "o", permission: "owner")
        let members = { (operation: WalletOperation) in JSON.object(operation.members) }
        #expect(
            members(.authorize(account: "bob", userName: "Bob", options))
                == #"{"account":"bob","userName":"Bob","info":"i","callbackUrl":"c","orderId":"o","permission":"owner"}"#
        )
        #expect(
            members(.simpleWallet("p", account: "bob", permission: "owner"))
                == #"{"param":"p","account":"bob","permission":"owner"}"#
        )
    }
}
