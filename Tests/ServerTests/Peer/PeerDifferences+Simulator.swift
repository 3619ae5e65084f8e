// SPDX-License-Identifier: GPL-3.0-or-later
import TestSupport
import Text
import Wire

/// The virtual reader.
extension PeerDifference {
    private static let simulatorNames: Set<String> = [
        "sim-clients", "sim-full", "sim-handshake", "sim-no-simulator-arg", "sim-options", "sim-request-field",
        "sim-run-auth", "sim-run-auth-slow", "sim-set-card-errors",
    ]

    static let simulator: [PeerDifference] = [
        PeerDifference(
            "the Simulator is told once",
            because: "it takes cards from the start; the peer first says that it does not",
            in: pcscNames.union(simulatorNames).subtracting(["sim-full"]),
            apply: { exchange, _ in
                guard exchange.isConnection, exchange.received.count == 2 else { return nil }
                return exchange.replaced(by: exchange.received[1])
            }
        ),
        PeerDifference(
            "the Simulator has a keypad only with a card that says so",
            because: "only then values can be typed wrongly; the replay asks for a keypad in SET_CARD",
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

    /// Entries of `simulator` that are wrong, and what badged says of them.
    private static let wrongEntries: [(entry: String, error: String)] = [
        (#""content":"zz""#, "files[0].content is not hexadecimal"),
        (#"[{"fileId":"0101"}]"#, "files[0].shortFileId is missing"),
        (#"[1,"x",null]"#, "files[0] is not an object"),
        (#""files":"x""#, "files is not an array"),
        (#""files":{}"#, "files is not an array"),
        (#""private":"00""#, "keys[0].content is missing"),
    ]

    /// Objects that leave the peer's card without its mandatory files.
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
            because: "the peer drops it without a word and has no card then",
            in: ["sim-files"],
            apply: { exchange, place in
                if exchange.sends("SET_CARD"), let error = exchange.sent.first.flatMap(wrongEntry) {
                    let refused = exchange.replaced(by: .insertCard(error))
                    guard exchange.putsCardIn, let line = exchange.sent.first else { return refused }
                    // 1.26.2 knows no keys. To go on as it does, the card is put in without them.
                    let rest = line.replacing(#","keys":[{"id":1,"private":"00"}]"#, with: "")
                    return refused + [
                        Transcript.Exchange(sent: [rest], received: exchange.received, line: exchange.line)
                    ]
                }
                // There is no card to give back.
                guard exchange.sends("CANCEL"), let last = place.earlier.first(where: { $0.contains("SET_CARD") }),
                    wrongEntry(last) != nil, exchange.receives("READER")
                else { return nil }
                return exchange.replaced(by: #"{"msg":"CHANGE_PIN","success":false}"#)
            }
        ),
        PeerDifference(
            "a card always has its mandatory files",
            because: "as in 2.5.3: EF.DIR, EF.CardAccess and EF.CardSecurity are there unless they are given",
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

    /// EF.CardAccess without anything in it.
    private static func isForeign(_ line: String) -> Bool {
        line.contains(#""files":[{"fileId":"011c""#)
    }

    static let foreignCards: [PeerDifference] = [
        PeerDifference(
            "a card that is no eID card is explained, not shown",
            because: "as in 2.5.3 nothing is told of such a card below level 3; badged says why it goes on waiting",
            in: ["sim-files"],
            apply: { exchange, place in
                if exchange.sends("SET_CARD"), exchange.sent.contains(where: isForeign) {
                    let error = "The card in reader 'Simulator' is not an eID card: take it out and put in an eID card"
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
    /// The virtual reader without a keypad, in READER and in READER_LIST.
    fileprivate var withBasicSimulator: JSON {
        if let readers = self["readers"]?.array { return with("readers", .array(readers.map(\.withBasicSimulator))) }
        if let readers = self["reader"]?.array { return with("reader", .array(readers.map(\.withBasicSimulator))) }
        return self["name"] == .string("Simulator") && self["keypad"] != nil ? with("keypad", .bool(false)) : self
    }
}
