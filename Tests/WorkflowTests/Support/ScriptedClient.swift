// SPDX-License-Identifier: GPL-3.0-or-later
import Concurrency
import Readers
import Server
import TestSupport
import Testing
import Text

@testable import Cards
@testable import EIDFeature

/// Parts of scripts.
enum Script {
    static let begun = "> RUN_CHANGE_PIN\n< CHANGE_PIN"
    /// A PIN change begins without a card.
    static let asked = "\(begun)\n< INSERT_CARD"
    /// A card with this number of tries is identified and asked for its PIN.
    static func asksPIN(_ tries: Int = 3) -> String { "< READER \(tries)\n< ENTER_PIN \(tries)" }
    /// A PIN change begins, and the card of SET_CARD is asked for its PIN.
    static let askedPIN = "\(asked)\n> SET_CARD\n\(asksPIN())"
    /// A PIN change begins with a card that is in the reader.
    static let askedPINAtOnce = "\(begun)\n< ENTER_PIN 3"
    static let rightPIN = "> SET_PIN 123456\n< ENTER_NEW_PIN 3"
    static let rightPINAfterWrong = "> SET_PIN 123456\n< READER 3\n< ENTER_NEW_PIN 3"
    static func wrongPIN(left: Int) -> String { "> SET_PIN 000000\n\(asksPIN(left))" }
    /// The CAN comes before the third PIN.
    static let threeWrongPINs = """
        \(wrongPIN(left: 2))
        > SET_PIN 000000
        < READER 1
        < ENTER_CAN 1
        > SET_CAN 500540
        < ENTER_PIN 1
        > SET_PIN 000000
        < READER 0
        < ENTER_PUK 0
        """
    /// The new PIN is the last question, and the card of SET_CARD is taken out.
    static let changed = "> SET_NEW_PIN 654321\n< READER -\n< CHANGE_PIN true"
    static let cancelled = "> CANCEL\n< READER -\n< CHANGE_PIN false User_Cancelled"
    /// The new PIN is the last question, and the card stays in the reader.
    static let changedInPlace = "> SET_NEW_PIN 654321\n< CHANGE_PIN true"
    static let unanswered = "The card gave no answer, so the value may have been right; it is needed again"
    static let cancelledInPlace = "> CANCEL\n< CHANGE_PIN false User_Cancelled"
}

/// A client at one reader, whose dialogue is a script of lines.
@Loop final class ScriptedClient {
    let server: TestServer
    let client: TestClient
    let reader: String
    private var sofar: [String] = []

    /// The error when a message differs from the script; the difference is recorded as an issue.
    struct Broken: Error {}

    init(_ server: TestServer, reader: String = "Simulator", level: Int = 3) async throws {
        (self.server, self.reader) = (server, reader)
        client = try server.connect()
        // The READER messages after the connection are not part of the script.
        _ = await client.exchange(#"{"cmd":"SET_API_LEVEL","level":\#(level)}"#)
    }

    /// Plays a script. `>` sends a line, and `<` expects the next message; READER of other readers is ignored.
    /// Adjacent lines with `<~` may come in any order. Lines with `<?` before them, or before a line with `<`, are
    /// optional.
    func play(_ script: String, sourceLocation: SourceLocation = #_sourceLocation) async throws {
        var (anyOrder, optional): ([String], [String]) = ([], [])
        for line in script.split(separator: "\n") {
            let text = line.drop { $0 == " " }
            if text.hasPrefix("<~ ") {
                anyOrder.append(String(text.dropFirst(3)))
                continue
            }
            if text.hasPrefix("<? ") {
                optional.append(String(text.dropFirst(3)))
                continue
            }
            let isAlone = anyOrder.isEmpty
            try await expect(&anyOrder, optional, sourceLocation)
            defer { optional = [] }
            if text.hasPrefix("> ") {
                sofar.append(String(text))
                await client.send(command(String(text.dropFirst(2))))
            } else if text.hasPrefix("< ") {
                var one = [String(text.dropFirst(2))]
                try await expect(&one, isAlone ? optional : [], sourceLocation)
            } else {
                Issue.record("'\(line)' is not a line of a script", sourceLocation: sourceLocation)
                throw Broken()
            }
        }
        try await expect(&anyOrder, optional, sourceLocation)
    }

    /// Checks that no unexpected message has come.
    func isQuiet(sourceLocation: SourceLocation = #_sourceLocation) async {
        let rest = await client.exchange().compactMap(render)
        #expect(rest.isEmpty, "\(sofar.joined(separator: "\n"))", sourceLocation: sourceLocation)
    }

    private func expect(
        _ lines: inout [String],
        _ optional: [String],
        _ sourceLocation: SourceLocation
    ) async throws {
        while !lines.isEmpty {
            let line = await next() ?? "silence"
            if optional.contains(line) {
                sofar.append("< " + line)
                continue
            }
            guard let index = lines.firstIndex(of: line) else {
                let history = sofar.joined(separator: "\n")
                Issue.record(
                    "expected '\(lines.joined(separator: "' or '"))', came '\(line)' after\n\(history)",
                    sourceLocation: sourceLocation
                )
                throw Broken()
            }
            lines.remove(at: index)
            sofar.append("< " + line)
        }
    }

    /// Returns the next message as text; nil at the end of the connection or at the time limit of the test.
    private func next() async -> String? {
        while let message = await client.next() {
            if let line = render(message) { return line }
        }
        return nil
    }

    // MARK: Commands

    /// Returns the JSON of `SET_PIN 123456`, `SET_CARD {card}` or `RUN_CHANGE_PIN any`; JSON stays unchanged.
    private func command(_ text: String) -> String {
        if text.hasPrefix("{") { return text }
        let words = text.split(separator: " ", maxSplits: 1).map(String.init)
        let name = words.first ?? ""
        switch (name, words.count > 1 ? words[1] : nil) {
        case ("RUN_AUTH", let extra):
            let more = extra.map { ",\($0)" } ?? ""
            return
                #"{"cmd":"RUN_AUTH","reader":"\#(reader)","status":false,"tcTokenURL":"https://dienst.example/t"\#(more)}"#
        case ("SET_ACCESS_RIGHTS", let names):
            let list = (names ?? "").split(separator: " ").map { #""\#($0)""# }.joined(separator: ",")
            return #"{"chat":[\#(list)],"cmd":"SET_ACCESS_RIGHTS"}"#
        case ("RUN_CHANGE_PIN", "any"): return #"{"cmd":"RUN_CHANGE_PIN","status":false}"#
        case ("RUN_CHANGE_PIN", _): return #"{"cmd":"RUN_CHANGE_PIN","reader":"\#(reader)","status":false}"#
        case ("SET_CARD", nil): return #"{"cmd":"SET_CARD","name":"\#(reader)"}"#
        case ("SET_CARD", let card?): return #"{"card":\#(card),"cmd":"SET_CARD","name":"\#(reader)"}"#
        case (_, nil): return #"{"cmd":"\#(name)"}"#
        case (_, let value?): return #"{"cmd":"\#(name)","value":"\#(value)"}"#
        }
    }

    // MARK: Messages

    /// Returns a short text of a message; nil for READER of other readers.
    private func render(_ message: JSON) -> String? {
        let name = message["msg"]?.string ?? "?"
        let error = message["error"]?.string
        switch name {
        case "READER":
            guard message["name"]?.string == reader else { return nil }
            return "READER \(Self.card(message))"
        case "ENTER_PIN", "ENTER_CAN", "ENTER_PUK", "ENTER_NEW_PIN":
            let state = message["reader"] ?? .null
            let other = state["name"]?.string == reader ? "" : " at \(state["name"]?.string ?? "?")"
            let unanswered = message["unanswered"]?.bool == true ? " unanswered" : ""
            return "\(name) \(Self.card(state))\(other)\(unanswered)" + (error.map { ": \($0)" } ?? "")
        case "INSERT_CARD":
            let place = message["reader"]?.string ?? reader
            guard let error else { return name }
            let known = CardObstacle.all.first { $0.text(place).description == error }
            return "INSERT_CARD \(known?.name ?? error)" + (place == reader ? "" : " at \(place)")
        case "CHANGE_PIN":
            guard let success = message["success"]?.bool else { return error.map { "\(name): \($0)" } ?? name }
            return "\(name) \(success)" + (message["reason"]?.string.map { " \($0)" } ?? "")
        case "ACCESS_RIGHTS":
            let rights = ["required", "optional", "effective"].map { key in
                (message["chat"]?[key]?.array ?? []).compactMap(\.string).joined(separator: " ")
            }
            return "ACCESS_RIGHTS \(rights.joined(separator: " | "))" + (error.map { ": \($0)" } ?? "")
        case "AUTH":
            guard let result = message["result"] else { return error.map { "\(name): \($0)" } ?? name }
            func last(_ key: String) -> String? {
                result[key]?.string.flatMap { $0.split(separator: "#").last.map(String.init) }
            }
            let words = [name, last("major"), last("minor"), result["reason"]?.string, message["url"]?.string]
            return words.compactMap { $0 }.joined(separator: " ")
        case "STATUS":
            let (workflow, state) = (message["workflow"]?.string ?? "-", message["state"]?.string ?? "-")
            return "STATUS \(workflow) \(message["progress"]?.int ?? -1) \(state)"
        case "PAUSE": return "PAUSE \(message["cause"]?.string ?? "?")"
        case "API_LEVEL": return "API_LEVEL \(message["current"]?.int ?? 0)"
        default: return "\(name)" + (error.map { " \($0)" } ?? "")
        }
    }

    /// Returns `-` for no card, `?` for an unknown card, otherwise the tries left and the flags that are set.
    private static func card(_ reader: JSON) -> String {
        guard reader["attached"]?.bool == true else { return "gone" }
        var words: [String] = []
        switch reader["card"] {
        case .object(let members) where members.isEmpty: words.append("?")
        case .object(let members):
            words.append("\(reader["card"]?["retryCounter"]?.int ?? -1)")
            for member in members where member.value == .bool(true) { words.append(member.key) }
        default: words.append("-")
        }
        if reader["busy"]?.bool == true { words.append("busy") }
        return words.joined(separator: " ")
    }
}

extension CardObstacle {
    static let all: [CardObstacle] = [
        .noEIDCard, .deactivated, .inoperative, .busy, .exclusive, .mute, .accessDenied, .noExtendedLength,
        .unacceptedType, .unknownReader, .noResources,
    ]
}
