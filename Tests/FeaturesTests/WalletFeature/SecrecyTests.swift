// SPDX-License-Identifier: GPL-3.0-or-later
import Concurrency
import HDWallet
import Keycard
import TestSupport
import Testing
import Text
import VirtualKeycard

@Suite("The secrets of wallets", .timeLimit(.minutes(5)), .serialized)
@Loop struct SecrecyTests {
    @Test(
        "words, passphrase, PUK, PINs and session key are in no log and in no message of another client",
        arguments: generations
    )
    func others(version: String) async throws {
        let bench = try await WalletBench()
        let other = try bench.server.connect()
        let user = try await bench.user(with: #"{"kind":"keycard","version":"\#(version)","initialised":false}"#)
        let choices = #""generatePUK":true,"passphrase":true\#(version == "3.0" ? "" : #","duressPin":true"#)"#
        _ = try await user.run(#"{"cmd":"RUN_WALLET","workflow":"SETUP_DEVICE",\#(choices)}"#)
        let puk = try #require(user.last("SHOW_PUK")?["puk"]?.string)
        try await bench.insertAgain()
        user.answers["ENTER_PIN"] = [#"{"cmd":"SET_PIN","value":"\#(WalletUser.newPIN)"}"#]
        let command = #"{"cmd":"RUN_WALLET","workflow":"ADD_SESSION","spendingLimit":"1","expirationTime":2}"#
        let end = try await user.run(command)
        #expect(end["msg"] == .string("FLOW_COMPLETE"))
        let key = try #require(user.last("SHOW_SESSION_KEY")?["privateKey"]?.string)

        // The other client has seen the reader, but nothing of the dialogue.
        _ = await other.exchange(#"{"cmd":"GET_READER_LIST"}"#, #"{"cmd":"GET_STATUS"}"#)
        #expect(other.hasReceived(#""kind":"keycard""#))
        // One word alone may be part of another one, such as "able" of "insertable".
        let pairs = zip(user.words, user.words.dropFirst())
        let words = pairs.flatMap { ["\($0) \($1)", "\"\($0)\",\"\($1)\""] }
        #expect(words.count == 22 && user.client.hasReceived(words[1]))
        let secrets = words + [puk, key, WalletUser.newPIN, WalletUser.duressPIN, WalletUser.passphrase]
        for secret in secrets {
            #expect(!other.hasReceived(secret), "another client")
            #expect(!bench.server.logged.contains { $0.contains(secret) }, "the log")
        }
        // What another client sends does not answer the questions of the workflow.
        let answer = await other.ask(#"{"cmd":"SET_WORDS","value":"a b c"}"#, "BAD_STATE")
        #expect(answer?["error"] == .string("SET_WORDS"))
    }

    @Test(
        "after a workflow the memory of the daemon has neither words, passphrase, PUK and duress PIN nor session key",
        .enabled(if: DaemonProcess.canReadMemory)
    )
    func memory() async throws {
        let authority = Hex.encode(try VirtualKeycardDescription.authority().publicKey.compressed)
        let folder = try TemporaryFolder()
        let daemon = try await DaemonProcess(
            configuration: "[wallet]\ncard_authorities = \(authority)\n",
            environment: ["STATE_DIRECTORY": folder.path]
        )
        let user = try WalletUser(daemon.connect())
        user.answers["INSERT_CARD"] = [
            #"{"cmd":"SET_CARD","name":"Simulator","card":{"kind":"keycard","version":"4.0","initialised":false}}"#
        ]
        let duressPIN = "740931"
        let passphrase = "kept in no memory \(duressPIN)"
        user.answers["ENTER_DURESS_PIN"] = [#"{"cmd":"SET_DURESS_PIN","value":"\#(duressPIN)"}"#]
        user.answers["ENTER_PASSPHRASE"] = [#"{"cmd":"SET_PASSPHRASE","value":"\#(passphrase)"}"#]
        let setup = try await user.run(
            #"{"cmd":"RUN_WALLET","workflow":"SETUP_DEVICE","generatePUK":true,"duressPin":true,"passphrase":true}"#
        )
        #expect(setup["msg"] == .string("FLOW_COMPLETE"), "\(setup)")
        let puk = try #require(user.last("SHOW_PUK")?["puk"]?.string)
        user.answers["INSERT_CARD"] = [#"{"cmd":"SET_CARD","name":"Simulator"}"#]
        user.answers["ENTER_PIN"] = [#"{"cmd":"SET_PIN","value":"\#(WalletUser.newPIN)"}"#]
        let command = #"{"cmd":"RUN_WALLET","workflow":"ADD_SESSION","spendingLimit":"1","expirationTime":2}"#
        #expect(try await user.run(command)["msg"] == .string("FLOW_COMPLETE"))
        let key = try #require(user.last("SHOW_SESSION_KEY")?["privateKey"]?.string)
        let typed = try #require(user.typedCheck)
        user.client.close()
        let witness = try daemon.connect()
        _ = await witness.exchange(#"{"cmd":"GET_STATUS"}"#)

        let shown = user.words.prefix(3).map { "\"\($0)\"" }.joined(separator: ",")
        for secret in [shown, typed, key, #""puk":"\#(puk)""#, #""value":"\#(duressPIN)""#, passphrase] {
            #expect(try daemon.occurrences(of: Array(secret.utf8)) == 0, "\(secret)")
        }
        // The search itself works.
        #expect(try daemon.occurrences(of: Array("GET_STATUS".utf8)) > 0)
    }
}
