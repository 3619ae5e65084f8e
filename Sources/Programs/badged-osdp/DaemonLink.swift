// SPDX-License-Identifier: GPL-3.0-or-later
import BadgedClient
import Concurrency
import Host
import OSDP
import Text

/// The connection to badged: taps come from there, and what panels and readers in the wall say goes there.
@Loop final class DaemonLink {
    private let socket: String?
    /// Called with each tap.
    private var tapped: @Loop (Tap) -> Void = { _ in }
    /// Called when badged begins or ends to report taps.
    private var watches: @Loop (Bool) -> Void = { _ in }
    private var connection: DaemonConnection?
    private(set) var isWatching = false
    /// Whether there is a panel that wants taps.
    var needsTaps = false {
        didSet {
            // The next connection asks for them, or does not.
            if needsTaps != oldValue { connection?.close() }
        }
    }
    /// Cards that lay on a reader when the connection began: nobody presents them now.
    private var lying: Set<String> = []
    /// The last report of each panel, for the next connection.
    private var reports: [String: [JSON.Member]] = [:]
    /// Reports that are sent one after the other.
    private var queue: [Report] = []
    /// The report that badged has not answered yet.
    private var sent: Report?
    private var isSending = false

    /// A card at a reader of badged.
    struct Tap {
        let card: PresentedCard
        let reader: String
        let number: Int
        /// Milliseconds since it was read; nil: nobody knows.
        let age: Int64?
        /// Whether the card has signed with PKOC SE V1, and can do so again.
        let canSign: Bool
    }

    private struct Report {
        let command: String
        let members: [JSON.Member]

        /// The reader in the wall whose card this is; nil: it is another report.
        var reader: String? { command == "REPORT_TAP" ? members.first?.value.string : nil }

        /// Whether it has a sound.
        var beeps: Bool { members.contains { $0.key == "beep" } }
    }

    private static let longestQueue = 256

    nonisolated init(socket: String?) { self.socket = socket }

    /// Watches until the task is cancelled.
    func watch(
        tapped: @escaping @Loop (Tap) -> Void,
        watches: @escaping @Loop (Bool) -> Void
    ) async {
        self.tapped = tapped
        self.watches = watches
        var failures = 0
        var logged: String?
        while !Task.isCancelled {
            do throws(ClientError) {
                let connection = try await DaemonConnection.connect(to: socket ?? SocketPath.standard)
                Loop.shared.preconditionIsolated()
                self.connection = connection
                try await begin(connection)
                failures = 0
                logged = nil
                Log.notice("connected to badged")
                for await event in connection.events { handle(event) }
                Loop.shared.preconditionIsolated()
                end(connection.ending?.text ?? "the connection has ended")
            } catch {
                end(logged == error.text ? nil : "\(error.text); hint: \(error.advice)")
                logged = error.text
            }
            failures += 1
            await Loop.sleep(milliseconds: min(5000, 300 << min(failures, 5)))
        }
    }

    private func begin(_ connection: DaemonConnection) async throws(ClientError) {
        if needsTaps {
            let readers = try await connection.readers()
            Loop.shared.preconditionIsolated()
            lying = Set(readers.filter { $0.card != nil }.map(\.name))
            let status = try await connection.startCredentials()
            Loop.shared.preconditionIsolated()
            setWatching(status.isWatching)
        }
        // Cards that have come meanwhile stay.
        queue.removeAll { $0.reader == nil }
        for report in reports.sorted(by: { $0.key < $1.key }) { post("REPORT_PANEL", report.value) }
    }

    private func setWatching(_ new: Bool) {
        guard new != isWatching else { return }
        isWatching = new
        watches(new)
    }

    private func end(_ reason: String?) {
        if let reason { Log.warning("badged: \(reason)") }
        connection?.close()
        connection = nil
        drop("the connection to badged has ended")
        setWatching(false)
    }

    /// The program ends: what becomes of cards of readers in the wall is in the log.
    func end() {
        if let sent { unconfirmed(sent, "badged-osdp ends") }
        drop("badged-osdp ends")
    }

    /// Reports that wait are not sent.
    private func drop(_ reason: String) {
        for reader in queue.compactMap(\.reader) {
            LineLog.write(.warning, "\(reader) dropped", "a card at '\(reader)' was dropped: \(reason)")
        }
        queue = []
    }

    /// A card that badged was told, and has not answered.
    private func unconfirmed(_ report: Report, _ reason: String) {
        guard let reader = report.reader else { return }
        let text = "a card at '\(reader)' is unconfirmed: \(reason); badged may have told it, and it is not told again"
        LineLog.write(.warning, "\(reader) unconfirmed", text)
    }

    private func handle(_ event: Event) {
        switch event.message {
        case let reader as Reader: if reader.card == nil { lying.remove(reader.name) }
        case let tap as Credential:
            guard lying.remove(tap.reader) == nil else {
                return Log.info("a card that lay on '\(tap.reader)' before is told to no panel")
            }
            let card = PresentedCard(
                protocol: tap.technology,
                point: tap.key?.point,
                isListed: tap.isListed,
                tag: tap.tag.map { ($0.uid, $0.isRandom) },
                raw: tap.raw.map { CardBits(count: $0.bits, bytes: $0.data) },
                reason: tap.reason
            )
            let age = TapAge.of(
                time: tap.time,
                uptime: tap.uptime,
                wallClock: Loop.wallClock,
                bootClock: Loop.bootClock
            )
            guard let card else { return }
            let canSign = tap.technology == "pkoc-se1" && card.isVerified
            tapped(Tap(card: card, reader: tap.reader, number: tap.number ?? 0, age: age, canSign: canSign))
        case let status as CredentialStatus: setWatching(status.isWatching)
        case let refusal as Refusal where refusal.name == "CREDENTIALS":
            Log.error("badged: \(refusal.reason.text); hint: \(refusal.reason.advice)")
            setWatching(false)
        default: break
        }
    }

    /// Has the card of a tap sign what a panel has chosen. `done` gets nil if there is no signature.
    func challenge(
        _ number: Int,
        _ transaction: [UInt8],
        _ done: @escaping @Loop ((publicKey: [UInt8], signature: [UInt8])?) -> Void
    ) {
        let members: [JSON.Member] = [
            .init("number", .number(String(number))), .init("transaction", .string(Hex.encode(transaction))),
        ]
        let connection = connection
        Task { @Loop in
            do throws(ClientError) {
                let answer = try await connection?.request("CHALLENGE_CARD", members)
                Loop.shared.preconditionIsolated()
                if let key = answer?.json["publicKey"]?.string.flatMap({ Hex.decode($0, limit: 65) }),
                    let signature = answer?.json["signature"]?.string.flatMap({ Hex.decode($0, limit: 64) })
                {
                    return done((key, signature))
                }
                let reason = answer?.message.refusal.map { "\($0.text); hint: \($0.advice)" } ?? "badged is away"
                LineLog.write(.warning, "not signed", "tap \(number): no signature for a panel: \(reason)")
            } catch {
                Loop.shared.preconditionIsolated()
                LineLog.write(.warning, "not signed", "tap \(number): no signature for a panel: \(error.text)")
            }
            done(nil)
        }
    }

    // MARK: Reports

    /// What a panel shows, or how a reader in the wall is.
    func report(_ panel: String, _ members: [JSON.Member]) {
        let old = reports[panel]
        reports[panel] = members.filter { $0.key != "beep" }
        if old != members { post("REPORT_PANEL", members) }
    }

    /// Panels and readers with other names are not there any more.
    func keep(_ names: Set<String>) {
        for panel in reports.keys.sorted() where !names.contains(panel) {
            reports[panel] = nil
            let members: [JSON.Member] = [
                .init("panel", .string(panel)), .init("link", .string("closed")), .init("gone", .bool(true)),
            ]
            post("REPORT_PANEL", members)
        }
    }

    /// A card at a reader in the wall, which was read at this time of `Loop.bootClock` or later. It is told now or
    /// never.
    func reportTap(_ reader: String, _ bits: Int, _ bytes: [UInt8], _ format: String, since: Int64) {
        guard connection != nil else {
            let text = "a card at '\(reader)' was dropped: there is no connection to badged"
            return LineLog.write(.warning, "\(reader) no connection", text)
        }
        let members: [JSON.Member] = [
            .init("reader", .string(reader)), .init("bits", .number(String(bits))),
            .init("data", .string(Hex.encode(bytes))), .init("format", .string(format)),
            .init("uptime", .number(String(since))),
        ]
        post("REPORT_TAP", members)
    }

    private func post(_ command: String, _ members: [JSON.Member]) {
        guard connection != nil else { return }
        let report = Report(command: command, members: members)
        if command == "REPORT_PANEL" {
            // Only the newest state and the newest sound count: one panel leaves room for all others.
            queue.removeAll { waiting in
                waiting.command == command && waiting.members.first == members.first
                    && (report.beeps || !waiting.beeps)
            }
        }
        guard queue.count < Self.longestQueue else {
            return LineLog.write(.warning, "lost \(command)", "badged does not answer: \(command) is lost")
        }
        queue.append(report)
        guard !isSending else { return }
        isSending = true
        Task { @Loop in await send() }
    }

    private func send() async {
        while let connection, !queue.isEmpty {
            let next = queue.removeFirst()
            sent = next
            do throws(ClientError) {
                let answer = try await connection.request(next.command, next.members)
                Loop.shared.preconditionIsolated()
                if let refusal = answer.message.refusal {
                    let text = "\(next.command): \(refusal.text); hint: \(refusal.advice)"
                    LineLog.write(.error, "refused \(next.command)", text)
                }
            } catch {
                Loop.shared.preconditionIsolated()
                unconfirmed(next, error.text)
            }
            sent = nil
        }
        isSending = false
    }
}
