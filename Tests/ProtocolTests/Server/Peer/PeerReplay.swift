// SPDX-License-Identifier: GPL-3.0-or-later
import Concurrency
import EService
import Glibc
import Host
import ISO7816
import Readers
import Server
import Synchronization
import TestSupport
import Testing
import Text
import VirtualEID

/// Sends the client's lines of a recording to badged, at API level 2, and compares the answers.
@Loop struct PeerReplay {
    /// The readers of pcscd in the recordings.
    nonisolated static let reader = "Virtual PCD 00 00"
    nonisolated static let emptyReader = "Virtual PCD 00 01"

    /// Lines that a recording mentions only in a remark.
    struct Unlisted {
        let transcript: String
        let remark: String
        /// The number of messages that belong to the exchange before.
        var after = 0
        let lines: [String]
    }

    let transcript: Transcript
    let differences: [PeerDifference]
    private let readers: RecordingReaders?
    private let server: TestServer
    private let client: TestClient
    /// The browser port, which serves as long as this reference exists.
    private let browserPort: TestBrowserPort?
    private let silent: SilentServer
    /// The card that is inserted when the workflow waits for one.
    private let card: VirtualEIDDescription?

    private(set) var compared = 0
    /// The differences that have changed an exchange.
    private var used: Set<String> = []

    init(
        _ name: String,
        _ differences: [PeerDifference],
        _ unlisted: [Unlisted],
        readers names: [String],
        card: VirtualEIDDescription?,
        throughWebSocket: Bool = false
    ) async throws {
        var transcript = try Transcript(name)
        transcript.write(unlisted.filter { $0.transcript == name })
        transcript.normalise()
        self.transcript = transcript
        self.differences = differences.filter { $0.transcripts.contains(name) }
        self.card = card
        readers = names.isEmpty ? nil : try RecordingReaders(names, plugged: [Self.reader])
        let silent = try SilentServer()
        self.silent = silent
        server = try await TestServer(
            readers: 0,
            backends: readers.map { [$0] } ?? [],
            service: { url, isDeveloperMode in
                // The real eID service client: the URLs of the recordings refuse connections or never answer.
                var configuration = EServiceConfiguration(userAgent: .init(name: "badged", version: (0, 0, 0)))
                let (address, hasLongTimeout) = silent.address(for: url)
                configuration.limits.connect = hasLongTimeout ? .seconds(600) : .milliseconds(100)
                return EServiceSession(tcTokenURL: address, isDeveloperMode: isDeveloperMode, configuration)
            }
        )
        if !names.isEmpty { await server.ready(names) }
        browserPort = throughWebSocket ? try TestBrowserPort(server, permissions: .all) : nil
        client = if let browserPort { try await browserPort.connect() } else { try server.connect() }
    }

    /// The command APDUs that were sent to the card in the recording's reader.
    var commands: [CommandAPDU] {
        (readers?.recorded ?? []).filter { $0.reader == Self.reader }.map(\.command)
    }

    mutating func run() async {
        await connect()
        for index in transcript.exchanges.indices where !transcript.exchanges[index].isConnection {
            for exchange in expected(at: index) {
                guard await play(exchange) else { return }
                compared += 1
            }
        }
        #expect(await client.exchange() == [], "at the end of \(transcript.name)")
        for difference in differences where !used.contains(difference.name) {
            Issue.record("the difference '\(difference.name)' does not occur in \(transcript.name)")
        }
    }

    private mutating func connect() async {
        let pushed = await client.exchange(#"{"cmd":"SET_API_LEVEL","level":2}"#).dropLast().map(\.withoutAdditions)
        // Some recordings do not contain the connection.
        guard let first = transcript.exchanges.first, first.isConnection else { return }
        let expectation = expected(at: 0).flatMap(\.received).map(\.withoutAdditions)
        #expect(pushed == expectation, "at the connection of \(transcript.name)")
        compared += 1
    }

    /// Returns an exchange of the recording with the differences applied.
    private mutating func expected(at index: Int) -> [Transcript.Exchange] {
        let place = PeerDifference.Place(transcript: transcript, index: index)
        var exchanges = [transcript.exchanges[index]]
        for difference in differences {
            exchanges = exchanges.flatMap { exchange in
                guard let changed = difference.apply(exchange, place) else { return [exchange] }
                // A difference that changes nothing is not counted; otherwise obsolete differences would go unnoticed.
                let isSame = changed.count == 1 && changed[0].received == exchange.received
                if isSame, changed[0].sent == exchange.sent { return [exchange] }
                used.insert(difference.name)
                return changed
            }
        }
        return exchanges
    }

    /// Plays one exchange; returns false when the replay cannot continue.
    private func play(_ exchange: Transcript.Exchange) async -> Bool {
        // The cards are held until all direct answers have come, so that the order is always the same.
        let gate = readers?.gate()
        var received = await client.exchange(exchange.sent.flatMap(Self.lines)).map(\.withoutAdditions)
        gate?.open()
        if let card, exchange.sends("RUN_CHANGE_PIN"), received.contains(where: { $0.isMessage("INSERT_CARD") }) {
            do {
                try await server.insert(card, into: Self.reader)
            } catch {
                Issue.record("no card: \(error)")
            }
        }
        // After a difference no more messages are awaited.
        let expected = exchange.received.map(\.withoutAdditions)
        while received.count < expected.count, expected.starts(with: received),
            let message = await client.next()
        { received.append(message.withoutAdditions) }
        #expect(received == expected, "line \(exchange.line) of \(transcript.name)")
        return received == expected
    }

    /// Splits a frame of the recording into lines. A line feed at the end of the frame gives no empty line.
    private static func lines(_ frame: String) -> [String] {
        var lines = frame.split(separator: #"}\n"#, omittingEmptySubsequences: false).map(String.init)
        for index in lines.indices.dropLast() { lines[index] += "}" }
        if lines.count > 1, lines.last == "" { lines.removeLast() }
        return lines.map(withKeypad)
    }

    /// Adds a keypad to the card of SET_CARD, because the peer's virtual reader always has one.
    private static func withKeypad(_ line: String) -> String {
        guard line.hasPrefix(#"{"cmd":"SET_CARD","name":"Simulator""#) else { return line }
        return line.dropLast() + #","card":{"keypad":true}}"#
    }
}

extension JSON {
    /// The message without badged's additions: the numbers of ENTER messages, the types of cards, the drivers, and the
    /// templates of texts.
    var withoutAdditions: JSON {
        switch self {
        case .object(let members):
            .object(
                members.filter { !["question", "kind", "driver", "errorWords"].contains($0.key) }
                    .map { Member($0.key, $0.value.withoutAdditions) }
            )
        case .array(let items): .array(items.map(\.withoutAdditions))
        case .null, .bool, .number, .string: self
        }
    }
}

/// The server of `sim-run-auth-slow`, which accepts connections and never answers. In the recording the first
/// authentication is cancelled and the second ends by its timeout. The timeout is short here, because only the messages
/// after it are compared.
private final class SilentServer: Sendable {
    private let socket: Int32
    private let port: UInt16
    private let calls = Mutex(0)

    init() throws {
        (socket, port) = try LoopbackSocket.listen()
    }

    deinit { close(socket) }

    /// Maps a URL of the recordings to this server, and chooses the timeout of the connection.
    func address(for url: String) -> (String, hasLongTimeout: Bool) {
        let recorded = "https://127.0.0.1:54747/"
        guard url.hasPrefix(recorded) else { return (url, true) }
        let call = calls.withLock { calls in
            calls += 1
            return calls
        }
        return ("https://127.0.0.1:\(port)/" + url.dropFirst(recorded.count), call == 1)
    }
}

extension Transcript {
    /// Inserts the lines that the recording mentions only in remarks.
    fileprivate mutating func write(_ unlisted: [PeerReplay.Unlisted]) {
        for write in unlisted {
            guard let index = exchanges.firstIndex(where: { $0.remark.hasPrefix(write.remark) }) else {
                Issue.record("no remark '\(write.remark)' in \(name)")
                continue
            }
            if write.after == 0 {
                exchanges[index].sent = write.lines
            } else {
                let received = Array(exchanges[index].received.dropFirst(write.after))
                exchanges[index].received = Array(exchanges[index].received.prefix(write.after))
                let line = exchanges[index].line + write.after + 1
                exchanges.insert(Exchange(sent: write.lines, received: received, line: line), at: index + 1)
            }
        }
    }

    /// Removes what depends on the circumstances of the recording.
    fileprivate mutating func normalise() {
        for index in exchanges.indices {
            exchanges[index].received = Self.withoutEmptyReader(exchanges[index].received)
            exchanges[index].received = Self.withFinalMessageLast(exchanges[index].received)
        }
    }

    /// Named normalisation "one PC/SC reader": pcscd had a second one without a card.
    private static func withoutEmptyReader(_ messages: [JSON]) -> [JSON] {
        messages.filter { $0["name"] != .string(PeerReplay.emptyReader) }.map { message in
            guard let readers = message["readers"]?.array else { return message }
            return message.with("readers", .array(readers.filter { $0["name"] != .string(PeerReplay.emptyReader) }))
        }
    }

    /// Named normalisation "final message last": the peer's READER after a workflow races with the
    /// final message; the recordings contain both orders.
    private static func withFinalMessageLast(_ messages: [JSON]) -> [JSON] {
        guard let final = messages.lastIndex(where: { $0["success"] != nil }) else { return messages }
        let (before, after) = (messages[..<final], messages[(final + 1)...])
        guard after.allSatisfy({ $0.isMessage("READER") }) else { return messages }
        return before + after + [messages[final]]
    }
}
