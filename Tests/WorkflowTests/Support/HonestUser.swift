// SPDX-License-Identifier: GPL-3.0-or-later
import Concurrency
import ReadersVirtual
import TestSupport
import Text
import Wire

/// A client with a person behind it, who answers every question as well as they know, puts the card back when it is
/// asked for, takes it out when it does not work, and gives up when they are asked in vain.
@Loop final class HonestUser {
    let client: TestClient
    private let server: TestServer
    private let reader: String
    /// What is typed when the old PIN is asked for, by tries left.
    private let pin: (_ triesLeft: Int) -> String
    private let newPIN: String
    /// The `card` object of a card that the client brings along.
    private var card: String?
    /// The card's true PIN; typing another one is a mistake.
    private let truePIN: String

    /// Questions so far, by their messages.
    private(set) var questions: [String] = []
    /// What the rules of the protocol do not allow.
    private(set) var violations: [String] = []
    private(set) var finals: [(success: Bool, reason: String?)] = []
    private(set) var hasGivenUp = false
    /// Tries that the card must have after what the user typed and what it has judged.
    private(set) var triesDue: Int
    private var pukUses = 0
    private var judged = 0
    /// Typed, and not known to be judged.
    private var typed: String?

    /// More questions than any one fault can be the reason for: the person gives up.
    static let patience = 12

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

    /// Changes the PIN; returns after the final message and after the server had the chance to say more.
    func changePIN() async {
        if card == nil, let card = await server.cardState(reader) {
            (judged, pukUses) = (card.judgedPINs, 10 - card.pukCounter)
        }
        await client.send(#"{"cmd":"RUN_CHANGE_PIN","reader":"\#(reader)"}"#)
        while finals.isEmpty {
            guard let message = await client.next() else {
                let said = client.transcript.filter { $0["msg"] != .string("READER") }
                violations.append("the server fell silent after \(said)")
                return
            }
            await handle(message)
        }
        await account()
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
            if giveUpIfInVain() { return await cancel() }
            // What is said of a card that is there: take it out, and put it in again.
            if error != nil { await server.withdraw(from: reader) }
            let card = card.take().map { #""card":\#($0),"# } ?? ""
            await client.send(#"{\#(card)"cmd":"SET_CARD","name":"\#(reader)"}"#)
        case "ENTER_PIN", "ENTER_CAN", "ENTER_PUK", "ENTER_NEW_PIN":
            await account()
            if let error { violations.append("\(name) with error \(error)") }
            questions.append(name)
            if giveUpIfInVain() { return await cancel() }
            await answer(name, triesLeft: message["reader"]?["card"]?["retryCounter"]?.int ?? -1)
        case "PAUSE":
            questions.append(name)
            await client.send(#"{"cmd":"CONTINUE"}"#)
        case "BAD_STATE" where error == "SET_CARD":
            // Asked twice for a card that was lost twice; the first one put back was found before the second came.
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

    /// Compares what was typed with what the card has judged since.
    private func account() async {
        guard let card = await server.cardState(reader) else { return }
        if 10 - card.pukCounter > pukUses {
            pukUses = 10 - card.pukCounter
            triesDue = 3
        }
        let new = card.judgedPINs - judged
        judged = card.judgedPINs
        if new > 0 {
            if new > 1 || typed == nil { violations.append("the card was given a PIN that was not typed for it") }
            triesDue = typed == truePIN ? 3 : max(0, triesDue - 1)
        }
        typed = nil
        if card.retryCounter != triesDue {
            violations.append("the card has \(card.retryCounter) tries left instead of \(triesDue)")
            triesDue = card.retryCounter
        }
    }

    private func giveUpIfInVain() -> Bool {
        guard questions.count > Self.patience else { return false }
        hasGivenUp = true
        return true
    }

    private func cancel() async {
        if finals.isEmpty { await client.send(#"{"cmd":"CANCEL"}"#) }
    }
}
