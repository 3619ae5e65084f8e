// SPDX-License-Identifier: GPL-3.0-or-later
import Concurrency
import EIDServer
import TestSupport
import Testing
import Text

/// The dialogues of one user with a web server that sends texts to keep badged busy, beside the dialogue of another user.
@Suite("Shares of users", .timeLimit(.minutes(15)))
@Loop struct UserShareTests {
    private static let eidServer = Result { try EIDServer() }

    /// Clients that read a description again and again until they are stopped.
    @Loop private final class Flood {
        /// The descriptions that were read.
        private(set) var count = 0
        private var isStopped = false
        private var tasks: [Task<Void, Never>] = []
        private let changes = Changes()

        init(_ clients: [TestClient], _ url: String) {
            for client in clients { tasks.append(Task { @Loop in await self.run(client, url) }) }
        }

        private func run(_ client: TestClient, _ url: String) async {
            while !isStopped {
                await client.send(#"{"cmd":"RUN_AUTH","tcTokenURL":"\#(url)"}"#)
                while let message = await client.next("AUTH", "ACCESS_RIGHTS") {
                    if message["msg"]?.string == "ACCESS_RIGHTS" {
                        count += 1
                        changes.notify()
                        await client.send(#"{"cmd":"CANCEL"}"#)
                    }
                    if message["result"] != nil { break }
                }
            }
        }

        func begin() async { await changes.wait { self.count > 0 } }

        func stop() async {
            isStopped = true
            for task in tasks { await task.value }
        }
    }

    @Test(
        "25 dialogues of one user with descriptions of 188 KB do not delay the PIN change and the CANCEL of another user",
        arguments: ["\u{1F1E6}", "\u{323}\u{301}a", " \n"]
    )
    func descriptions(sign: String) async throws {
        let eidServer = try Self.eidServer.get()
        let server = try await TestServer.online(eidServer)
        let url = try eidServer.tcTokenURL(["terms": sign, "termsbytes": "188000"])
        let hostile = try (0..<25).map { _ in try server.connect(uid: 1001) }
        let flood = Flood(hostile, url)
        await flood.begin()
        let before = flood.count

        let other = try server.connect(uid: 1002)
        _ = await other.ask(#"{"cmd":"RUN_CHANGE_PIN"}"#, "INSERT_CARD")
        _ = await other.ask(#"{"cmd":"SET_CARD","name":"Simulator"}"#, "ENTER_PIN")
        _ = await other.ask(#"{"cmd":"SET_PIN","value":"123456"}"#, "ENTER_NEW_PIN")
        let end = await other.ask(#"{"cmd":"SET_NEW_PIN","value":"654321"}"#, "CHANGE_PIN")
        #expect(end == #"{"msg":"CHANGE_PIN","success":true}"#)
        _ = await other.ask(#"{"cmd":"RUN_CHANGE_PIN"}"#, "INSERT_CARD")
        #expect(await other.ask(#"{"cmd":"CANCEL"}"#, "CHANGE_PIN") != nil)

        // Each of the other user's steps would wait for all 25, if the work were not shared.
        let meanwhile = flood.count - before
        #expect(meanwhile <= 100, "\(meanwhile) descriptions came first")
        await flood.stop()
    }
}
