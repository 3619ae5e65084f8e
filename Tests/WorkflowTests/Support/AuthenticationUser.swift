// SPDX-License-Identifier: GPL-3.0-or-later
import Concurrency
import Server
import TestSupport
import Text

/// A client that authenticates like a careful user. It consents, enters correct values, inserts the card when it is
/// requested, removes a card that does not work, and cancels after too many questions.
@Loop final class AuthenticationUser {
    let client: TestClient
    private let server: TestServer
    private let reader: String

    private(set) var questions: [String] = []
    /// The violations of the protocol.
    private(set) var violations: [String] = []
    private(set) var finals: [JSON] = []
    private(set) var typedPINs = 0

    init(_ server: TestServer, _ reader: String) throws {
        (self.server, self.reader) = (server, reader)
        client = try server.connect()
    }

    /// Authenticates. Returns after the final message and after one more exchange, which would show late messages.
    func authenticate(_ path: String = "") async {
        await client.send(#"{"cmd":"RUN_AUTH","reader":"\#(reader)","tcTokenURL":"https://dienst.example/\#(path)"}"#)
        while finals.isEmpty {
            guard let message = await client.next() else {
                violations.append("the connection ended after \(client.transcript.suffix(3))")
                return
            }
            await handle(message)
        }
        for message in await client.exchange() { await handle(message) }
    }

    private func handle(_ message: JSON) async {
        let name = message["msg"]?.string ?? "?"
        let error = message["error"]?.string
        switch name {
        case "READER", "STATUS": return
        case "AUTH":
            if message["result"] != nil { finals.append(message) }
            return
        // A card that is lost twice is requested twice; the first SET_CARD may insert it before the second one.
        case "BAD_STATE" where error == "SET_CARD": return
        default: break
        }
        questions.append(name)
        guard questions.count < PINChangeUser.maximumQuestions else {
            if finals.isEmpty { await client.send(#"{"cmd":"CANCEL"}"#) }
            return
        }
        switch name {
        case "ACCESS_RIGHTS": await client.send(#"{"cmd":"ACCEPT"}"#)
        case "INSERT_CARD":
            if error != nil { await server.withdraw(from: reader) }
            await client.send(#"{"cmd":"SET_CARD","name":"\#(reader)"}"#)
        case "ENTER_PIN":
            typedPINs += 1
            await client.send(#"{"cmd":"SET_PIN","value":"\#(Dialogue.pin)"}"#)
        case "ENTER_CAN": await client.send(#"{"cmd":"SET_CAN","value":"\#(Dialogue.can)"}"#)
        case "ENTER_PUK": await client.send(#"{"cmd":"SET_PUK","value":"\#(Dialogue.puk)"}"#)
        case "PAUSE": await client.send(#"{"cmd":"CONTINUE"}"#)
        default: violations.append("\(message)")
        }
    }
}
