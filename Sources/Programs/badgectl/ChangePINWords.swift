// SPDX-License-Identifier: GPL-3.0-or-later
import BadgedClient

/// The sentences of `badgectl change-pin`, and those about cards and passwords of both workflows.
enum ChangePINWords {
    static let changed = "The PIN has been changed."
    static let cardLeft = "The card has left the reader."
    static let cancelling = "Cancelling."

    /// What a wait for a card means to the person, given what is known of the readers.
    /// nil: nothing, for want of permission.
    static func insertCard(wanted: String?, readers: [Reader]?) -> String {
        guard let readers else { return "Put the ID card on the reader\(wanted.map { " \($0)" } ?? "")." }
        let attached = readers.filter(\.isAttached)
        if let wanted {
            guard attached.contains(where: { $0.name == wanted }) else {
                let others = attached.map(\.name).joined(separator: ", ")
                return "There is no reader \(wanted) now; connect it."
                    + (others.isEmpty ? "" : " Readers that are there: \(others).")
            }
            return "Put the ID card on the reader \(wanted)."
        }
        return attached.isEmpty
            ? "No reader is connected: connect one, then put the ID card on it." : "Put the ID card on the reader."
    }

    /// While the card works.
    static func busy(_ kind: SecretKind) -> String {
        let work =
            switch kind {
            case .pin: "checking the PIN"
            case .can: "checking the CAN"
            case .puk: "checking the PUK and unblocking the PIN"
            case .newPIN: "changing the PIN"
            }
        return "Leave the card on the reader: \(work) ..."
    }

    static func keypad(_ kind: SecretKind, reader: String) -> String {
        "Enter the \(kind.words) on the keypad of the reader \(reader)."
    }

    /// How much care the next value needs; nil when a slip costs nothing yet.
    static func tries(_ kind: SecretKind, left: Int?) -> String? {
        switch (kind, left) {
        case (.pin, 2): "2 tries are left."
        case (.pin, 1): "This is the last try: one more wrong PIN blocks it, and then only the PUK helps."
        case (.can, 1):
            "One try is left for the PIN. Before it the card wants its CAN:"
                + " the 6 digits at the bottom right of its front."
        case (.can, _): "The service takes the CAN: the 6 digits at the bottom right of the card's front."
        case (.puk, _): "The PIN is blocked. The PUK unblocks it: 10 digits, in the letter that came with the card."
        case (.pin, _), (.newPIN, _): nil
        }
    }

    static func wrong(_ kind: SecretKind) -> String { "That \(kind.words) was wrong." }

    static func again(_ kind: SecretKind) -> String { "The card was away, so the \(kind.words) is needed again." }

    /// Why the PIN was not changed: names from the SDK's list of failure reasons, docs/protocol.md.
    static func failure(reason: String?) -> Failure {
        func failure(_ text: String, _ hint: String) -> Failure { Failure(.failed, text, hint: hint) }
        switch reason {
        case "User_Cancelled", "Establish_Pace_Channel_User_Cancelled", "Change_Pin_User_Cancelled",
            "Change_Pin_Card_User_Cancelled":
            return failure("cancelled: the PIN was not changed", "run badgectl change-pin again")
        case "Card_Removed":
            return failure("the card was taken away", "leave it on the reader until the end, and try again")
        case "Connect_Card_Connection_Failed":
            return failure("no connection to the card", "take the card off, put it back, and try again")
        case "Establish_Pace_Channel_Puk_Inoperative":
            return failure(
                "the PUK of this card is used up, it cannot be unblocked any more",
                "the office that issued the card sets a new PIN"
            )
        case "Establish_Pace_Channel_Basic_Reader_No_Pin":
            return failure("the reader got no PIN", "run badgectl change-pin again")
        case "Establish_Pace_Channel_Unknown_Password_Id", "Maintain_Card_Connection_Pace_Unrecoverable":
            return failure(
                "the card and badged could not agree on a secure channel",
                "take the card off, put it back, and try again; badgectl health looks at the reader"
            )
        case "Change_Pin_Input_Timeout":
            return failure("nothing was typed on the reader in time", "run badgectl change-pin again")
        case "Change_Pin_New_Pin_Mismatch":
            return failure("the two new PINs typed on the reader differ", "run badgectl change-pin again")
        case "Change_Pin_New_Pin_Invalid_Length":
            return failure("the new PIN typed on the reader does not have 6 digits", "run badgectl change-pin again")
        case "Change_Pin_No_SetEidPinCommand_Response", "Change_Pin_Unrecoverable",
            "Change_Pin_Unexpected_Transmit_Status":
            return failure(
                "the card did not take the new PIN",
                "the old PIN is still valid; try again, perhaps with another PIN"
            )
        case .some(let other):
            return failure("the PIN was not changed (\(other))", Failure.seeLog)
        case nil:
            return failure("the PIN was not changed", Failure.seeLog)
        }
    }
}

extension Reader {
    /// `eID card, 2 PIN tries left`
    var words: String {
        guard isAttached else { return "gone" }
        var words: [String] = []
        switch card {
        case nil: words.append(isInsertable ? "card on the shelf" : "no card")
        case .unknown: words.append("not an eID card")
        case .eid(_, _, true): words.append("eID card, PUK used up")
        case .eid(_, true, _): words.append("eID card, online function switched off")
        case .eid(let retryCounter, _, _):
            switch retryCounter {
            case 3...: words.append("eID card")
            case 2: words.append("eID card, 2 PIN tries left")
            case 1: words.append("eID card, 1 PIN try left, wants the CAN first")
            default: words.append("eID card, PIN blocked, wants the PUK")
            }
        }
        if hasKeypad { words.append("keypad") }
        if isBusy { words.append("in use by another program") }
        return words.joined(separator: ", ")
    }
}
