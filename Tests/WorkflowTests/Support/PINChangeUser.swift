// SPDX-License-Identifier: GPL-3.0-or-later
import Concurrency
import Server
import TestSupport
import Text
import VirtualEID

@testable import EIDFeature

/// A client that changes the PIN like a careful user. It answers every question, inserts the card when it is requested,
/// removes a card that does not work, and cancels after too many questions.
@Loop final class PINChangeUser {
    let client: TestClient
    private let server: TestServer
    private let reader: String
    /// Returns the old PIN to type for a number of tries left.
    private let pin: (_ triesLeft: Int) -> String
    private let newPIN: String
    /// The `card` object for the first SET_CARD.
    private var card: String?
    /// The card's real PIN.
    private let truePIN: String

    /// The names of the questions.
    private(set) var questions: [String] = []
    /// The violations of the protocol.
    private(set) var violations: [String] = []
    private(set) var finals: [(success: Bool, reason: String?)] = []
    private(set) var hasGivenUp = false
    /// The tries that the card must have after the values that it has verified.
    private(set) var triesDue: Int
    private var pukUses = 0
    private var judged = 0
    /// The typed PIN that the card may not have verified yet.
    private var typed: String?

    /// The number of questions after which the user cancels; a single fault causes fewer questions.
    static let maximumQuestions = 12

    init(
        _ server: TestServer,
        _ reader: String,
        triesAtStart: Int,
        truePIN: String,
        newPIN: String,
        card: String? = nil,
        pin: @escaping (_ triesLeft: Int) -> String
    ) throws {
        (self.server, self.reader, self.truePIN, self.newPIN) = (server, reader, truePIN, newPIN)
        (self.pin, self.card) = (pin, card)
        triesDue = triesAtStart
        client = try server.connect()
    }

    /// Changes the PIN. Returns after the final message and after one more exchange, which would show late messages.
    func changePIN() async {
        if card == nil, let card = await server.cardState(reader) {
            (judged, pukUses) = (card.judgedPINs, 10 - card.pukCounter)
        }
        await client.send(#"{"cmd":"RUN_CHANGE_PIN","reader":"\#(reader)"}"#)
        while finals.isEmpty {
            guard let message = await client.next() else {
                let said = client.transcript.filter { $0["msg"] != .string("READER") }
                violations.append("the connection ended after \(said)")
                return
            }
            await handle(message)
        }
        await checkTries()
        for message in await client.exchange() { await handle(message) }
    }

    private func handle(_ message: JSON) async {
        let name = message["msg"]?.string ?? "?"
        let error = message["error"]?.string
        switch name {
        case "READER", "STATUS":
            return
        case "CHANGE_PIN":
            if let success = message["success"]?.bool { finals.append((success, message["reason"]?.string)) }
        case "INSERT_CARD":
            questions.append(error == nil ? name : "INSERT_CARD with error")
            if giveUpAfterTooManyQuestions() { return await cancel() }
            // An error means that the inserted card cannot be used; remove it and insert it again.
            if error != nil { await server.withdraw(from: reader) }
            let card = card.take().map { #""card":\#($0),"# } ?? ""
            await client.send(#"{\#(card)"cmd":"SET_CARD","name":"\#(reader)"}"#)
        case "ENTER_PIN", "ENTER_CAN", "ENTER_PUK", "ENTER_NEW_PIN":
            await checkTries()
            let isUnanswered = questions.last == name && message["unanswered"]?.bool == true
            if let error, !isUnanswered { violations.append("\(name) with error \(error)") }
            questions.append(name)
            if giveUpAfterTooManyQuestions() { return await cancel() }
            await answer(name, triesLeft: message["reader"]?["card"]?["retryCounter"]?.int ?? -1)
        case "PAUSE":
            questions.append(name)
            await client.send(#"{"cmd":"CONTINUE"}"#)
        case "BAD_STATE" where error == "SET_CARD":
            // A card that is lost twice is requested twice; the first SET_CARD may insert it before the second one.
            return
        default:
            violations.append("\(message)")
            await cancel()
        }
    }

    private func answer(_ question: String, triesLeft: Int) async {
        let value: String
        switch question {
        case "ENTER_CAN": value = Dialogue.can
        case "ENTER_PUK": value = Dialogue.puk
        case "ENTER_NEW_PIN": value = newPIN
        default:
            value = pin(triesLeft)
            typed = value
        }
        let command = question.replacing("ENTER_", with: "SET_")
        await client.send(#"{"cmd":"\#(command)","value":"\#(value)"}"#)
    }

    /// Compares the typed PIN with the PINs that the card has verified since the last call.
    private func checkTries() async {
        guard let card = await server.cardState(reader) else { return }
        if 10 - card.pukCounter > pukUses {
            pukUses = 10 - card.pukCounter
            triesDue = 3
        }
        let new = card.judgedPINs - judged
        judged = card.judgedPINs
        if new > 0 {
            if new > 1 || typed == nil { violations.append("the card received a PIN that was not typed for it") }
            triesDue = typed == truePIN ? 3 : max(0, triesDue - 1)
        }
        typed = nil
        if card.retryCounter != triesDue {
            violations.append("the card has \(card.retryCounter) tries left instead of \(triesDue)")
            triesDue = card.retryCounter
        }
    }

    private func giveUpAfterTooManyQuestions() -> Bool {
        guard questions.count > Self.maximumQuestions else { return false }
        hasGivenUp = true
        return true
    }

    private func cancel() async {
        if finals.isEmpty { await client.send(#"{"cmd":"CANCEL"}"#) }
    }
}
