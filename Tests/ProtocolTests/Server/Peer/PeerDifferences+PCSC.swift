// SPDX-License-Identifier: GPL-3.0-or-later
import Server
import TestSupport
import Text

/// Differences with a card reader of pcscd.
extension PeerDifference {
    static let pcsc: [PeerDifference] = [
        PeerDifference(
            "readers are known at the connection",
            because: "the peer looks for readers when a workflow starts; badged does so at all times",
            in: pcscNames,
            apply: { exchange, _ in
                guard exchange.isConnection else { return nil }
                var copy = exchange
                copy.received.append(.pcscReader(card: .null))
                return [copy]
            }
        ),
        PeerDifference(
            "a deactivated card is reported",
            because: "the peer waits without a message; badged reports the cause in INSERT_CARD",
            in: ["pcsc-deactivated"],
            apply: { exchange, _ in
                var copy = exchange
                if exchange.sends("RUN_CHANGE_PIN") {
                    copy.received.append(
                        .insertCard(
                            "The online identification function of the card in reader '\(PeerReplay.reader)' is "
                                + "deactivated: use another card, or have the authority that issued it activate the "
                                + "function",
                            reader: PeerReplay.reader
                        )
                    )
                } else if exchange.sends("GET_STATUS") {
                    copy.received[0] = copy.received[0].with("state", .string("INSERT_CARD"))
                }
                return [copy]
            }
        ),
        PeerDifference(
            "READER reports the tries as soon as they are known",
            because: "the right PIN resets the tries; the peer sends them in ENTER_NEW_PIN first, in READER at the end",
            in: ["pcsc-wrong-pin-to-can"],
            apply: { exchange, place in
                var copy = exchange
                if exchange.sends("SET_PIN"), place.tries == 1, exchange.receives("ENTER_NEW_PIN") {
                    copy.received.insert(.pcscReader(card: .card(tries: 3)), at: copy.received.count - 1)
                } else if exchange.sends("SET_NEW_PIN") {
                    copy.received.removeAll { $0.isMessage("READER") }
                }
                return copy.received == exchange.received ? nil : [copy]
            }
        ),
        PeerDifference(
            "a card whose PUK is used up is inoperative",
            because: "the card can never unblock the PIN again, whichever command it refuses",
            in: ["pcsc-puk-used-up"],
            apply: { exchange, _ in
                var copy = exchange
                let inoperative = JSON.card(tries: 0, inoperative: true)
                if exchange.sends("SET_PUK") {
                    copy.received.insert(.pcscReader(card: inoperative), at: copy.received.count - 1)
                } else if let readers = exchange.received[0]["readers"]?.array {
                    let changed = readers.map { $0["card"] == .null ? $0 : $0.with("card", inoperative) }
                    copy.received[0] = exchange.received[0].with("readers", .array(changed))
                }
                return copy.received == exchange.received ? nil : [copy]
            }
        ),
    ]
}

extension PeerDifference.Place {
    /// The tries of the card in the last message before this exchange.
    fileprivate var tries: Int? {
        let messages = transcript.exchanges[..<index].flatMap(\.received)
        return messages.last { $0["reader"] != nil }?["reader"]?["card"]?["retryCounter"]?.int
    }
}
