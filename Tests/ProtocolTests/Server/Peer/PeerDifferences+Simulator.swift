// SPDX-License-Identifier: GPL-3.0-or-later
import Server
import TestSupport
import Text

/// Differences with the virtual reader.
extension PeerDifference {
    private static let simulatorNames: Set<String> = [
        "sim-clients", "sim-full", "sim-handshake", "sim-no-simulator-arg", "sim-options", "sim-request-field",
        "sim-run-auth", "sim-run-auth-slow", "sim-set-card-errors",
    ]

    static let simulator: [PeerDifference] = [
        PeerDifference(
            "READER of the Simulator is sent once",
            because: "the Simulator accepts cards from the start; the peer first reports that it does not",
            in: pcscNames.union(simulatorNames).subtracting(["sim-full"]),
            apply: { exchange, _ in
                guard exchange.isConnection, exchange.received.count == 2 else { return nil }
                return exchange.replaced(by: exchange.received[1])
            }
        ),
        PeerDifference(
            "the Simulator has a keypad only with a card that requests one",
            because: "values can be wrong only without a keypad; the replay requests a keypad in SET_CARD",
            in: pcscNames.union(simulatorNames).union(["sim-files"]),
            apply: { exchange, place in
                guard !place.simulatorHasKeypad else { return nil }
                var copy = exchange
                if exchange.putsCardIn {
                    copy.received.insert(.simulator(card: .null, keypad: true), at: 0)
                } else {
                    copy.received = exchange.received.map(\.withBasicSimulator)
                }
                return copy.received == exchange.received ? nil : [copy]
            }
        ),
    ]

    /// Invalid entries of `simulator`, with the error text of badged.
    private static let wrongEntries: [(entry: String, error: String)] = [
        (#""content":"zz""#, "files[0].content is not hexadecimal"),
        (#"[{"fileId":"0101"}]"#, "files[0].shortFileId is missing"),
        (#"[1,"x",null]"#, "files[0] is not an object"),
        (#""files":"x""#, "files is not an array"),
        (#""files":{}"#, "files is not an array"),
        (#""private":"00""#, "keys[0].content is missing"),
    ]

    /// `simulator` objects that give the peer's card no mandatory files.
    private static let partialCards = [
        #"{"files":[],"keys":[]}"#, #"{"files":[{"fileId":"0101","shortFileId":"01","content":"6104"#,
        #"{"unknown":1}"#,
    ]

    private static func wrongEntry(_ line: String) -> String? {
        wrongEntries.first { line.contains($0.entry) }.map { "Parameter 'simulator' is invalid: \($0.error)" }
    }

    static let simulatorFiles: [PeerDifference] = [
        PeerDifference(
            "a wrong simulator entry is named",
            because: "the peer ignores the entry without a message and then has no card",
            in: ["sim-files"],
            apply: { exchange, place in
                if exchange.sends("SET_CARD"), let error = exchange.sent.first.flatMap(wrongEntry) {
                    let refused = exchange.replaced(by: .insertCard(error))
                    guard exchange.putsCardIn, let line = exchange.sent.first else { return refused }
                    // 1.26.2 does not know keys. The replay sends the card without keys to follow the recording.
                    let rest = line.replacing(#","keys":[{"id":1,"private":"00"}]"#, with: "")
                    return refused + [
                        Transcript.Exchange(sent: [rest], received: exchange.received, line: exchange.line)
                    ]
                }
                // No card was inserted, so no READER reports its removal.
                guard exchange.sends("CANCEL"), let last = place.earlier.first(where: { $0.contains("SET_CARD") }),
                    wrongEntry(last) != nil, exchange.receives("READER")
                else { return nil }
                return exchange.replaced(by: #"{"msg":"CHANGE_PIN","success":false}"#)
            }
        ),
        PeerDifference(
            "a card always has its mandatory files",
            because: "as in 2.5.3, the card has a default EF.DIR, EF.CardAccess and EF.CardSecurity",
            in: ["sim-files"],
            apply: { exchange, place in
                func isPartial(_ line: String) -> Bool { partialCards.contains { line.contains($0) } }
                if exchange.sends("SET_CARD"), exchange.sent.contains(where: isPartial) {
                    let reader = JSON.simulator(card: .card(tries: 3), keypad: true)
                    return exchange.replaced(by: reader, .enter("ENTER_PIN", reader))
                }
                guard exchange.sends("GET_STATUS"), place.earlier.first(where: { _ in true }).map(isPartial) == true
                else { return nil }
                return exchange.replaced(
                    by: #"{"msg":"STATUS","progress":0,"state":"ENTER_PIN","workflow":"CHANGE_PIN"}"#
                )
            }
        ),
    ]

    /// Whether the line has an empty EF.CardAccess.
    private static func isForeign(_ line: String) -> Bool {
        line.contains(#""files":[{"fileId":"011c""#)
    }

    static let foreignCards: [PeerDifference] = [
        PeerDifference(
            "a card that is not an eID card is reported in INSERT_CARD only",
            because: "as in 2.5.3, READER omits such a card below level 3; badged reports why it waits",
            in: ["sim-files"],
            apply: { exchange, place in
                if exchange.sends("SET_CARD"), exchange.sent.contains(where: isForeign) {
                    let error =
                        "The card in reader 'Simulator' is not an eID card: put in an eID card. If it is one, take it out and put it in again"
                    return exchange.replaced(by: .insertCard(error, reader: "Simulator"))
                }
                guard exchange.sends("CANCEL"), let last = place.earlier.first(where: { $0.contains("SET_CARD") }),
                    isForeign(last)
                else { return nil }
                return exchange.replaced(by: #"{"msg":"CHANGE_PIN","success":false}"#)
            }
        )
    ]
}

extension JSON {
    /// The message with the virtual reader without a keypad, for READER and READER_LIST.
    fileprivate var withBasicSimulator: JSON {
        if let readers = self["readers"]?.array { return with("readers", .array(readers.map(\.withBasicSimulator))) }
        if let readers = self["reader"]?.array { return with("reader", .array(readers.map(\.withBasicSimulator))) }
        return self["name"] == .string("Simulator") && self["keypad"] != nil ? with("keypad", .bool(false)) : self
    }
}
