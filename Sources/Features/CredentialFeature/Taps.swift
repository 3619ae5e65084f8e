// SPDX-License-Identifier: GPL-3.0-or-later
import Cards
import Concurrency
import Crypto
import Host
import ISO7816
import Readers
import Server
import Taps
import Text

/// Reads cards for the clients that watch: once for each card that is put on a reader, and once more for a client that
/// begins to watch while the card is in the field.
///
/// Without a client that watches, a card is only recognised: no key is read and nothing is signed.
@Loop final class Taps: CardReading {
    private let registry: ReaderRegistry
    private let tapReaders: [any TapReader]
    /// Called with each report and the clients that receive it.
    var observer: @Loop (TapReport, _ reader: String, _ number: Int, [Session]) -> Void = { _, _, _, _ in }
    private var watchers: [ObjectIdentifier: Session] = [:]
    /// The clients that want the NDEF messages of tags.
    private var ndefWatchers: Set<ObjectIdentifier> = []
    private var readings: [Insertion: Reading] = [:]
    /// The number of taps that were reported since badged started.
    private var count = 0
    /// The last tap of each reader. A card that is read again for a client that came later keeps its number, so that no
    /// other client finds a gap.
    private var lastTaps: [String: (insertion: Insertion, number: Int)] = [:]
    /// The readers at which a door panel may choose what cards sign.
    private let panelReaders: Set<String>
    /// For how long after the tap, in milliseconds.
    private let questionTime: Int64
    /// The last tap at each of them whose card a panel may ask.
    private var questions: [String: Question] = [:]

    /// The reading of one card.
    @Loop private final class Reading {
        /// The clients that receive the result. Without one the reading is cancelled.
        var clients: Set<ObjectIdentifier>
        /// Whether the NDEF message of a tag is read. Clients that joined later and want it get a reading of their own.
        var readsNDEF = false
        var task: Task<Void, Never>?

        init(_ clients: Set<ObjectIdentifier>) { self.clients = clients }
    }

    init(
        _ registry: ReaderRegistry,
        _ tapReaders: [any TapReader],
        _ panelReaders: Set<String>,
        _ questionTime: Int64
    ) {
        self.registry = registry
        self.tapReaders = tapReaders
        self.panelReaders = panelReaders
        self.questionTime = questionTime
        registry.reading = self
    }

    // MARK: Clients

    func isWatching(_ session: Session) -> Bool { watchers[ObjectIdentifier(session)] != nil }

    /// Reports taps to a client from now on, beginning with the cards that are on readers already.
    func watch(_ session: Session, readsNDEF: Bool) {
        watchers[ObjectIdentifier(session)] = session
        if readsNDEF {
            ndefWatchers.insert(ObjectIdentifier(session))
        } else {
            ndefWatchers.remove(ObjectIdentifier(session))
        }
        for tapReader in tapReaders { Task { await tapReader.prepare() } }
        for reader in registry.readers { read(reader, for: [ObjectIdentifier(session)]) }
    }

    /// Ends what `watch` began; false: the client does not watch.
    @discardableResult
    func unwatch(_ session: Session) -> Bool {
        let id = ObjectIdentifier(session)
        guard watchers.removeValue(forKey: id) != nil else { return false }
        ndefWatchers.remove(id)
        for question in questions.values where question.asker === session { question.task?.cancel() }
        for (insertion, reading) in readings where reading.clients.remove(id) != nil && reading.clients.isEmpty {
            reading.task?.cancel()
            // For a later client the card is read anew, after the end of this reading.
            readings[insertion] = nil
        }
        return true
    }

    // MARK: Cards

    func wants(_ profile: any CardProfile) -> Bool {
        !watchers.isEmpty && !readers(for: profile).isEmpty && !(profile.mayBePhone && registry.isPhoneAwaited)
    }

    func cardRecognized(in reader: Reader, _ lease: CardLease?) {
        if !watchers.isEmpty {
            read(reader, for: Set(watchers.keys), lease)
        } else if let lease {
            // The last client has gone since the card was wanted.
            Task { await lease.release(removingVirtualCard: false) }
        }
    }

    private func readers(for profile: any CardProfile) -> [any TapReader] {
        tapReaders.filter { $0.kinds.contains(profile.kind) }
    }

    /// Reads a card for clients, unless it is being read, which is then for them as well.
    private func read(_ reader: Reader, for clients: Set<ObjectIdentifier>, _ lease: CardLease? = nil) {
        guard let insertion = reader.insertion, case .known(let profile) = reader.card else { return }
        if let reading = readings[insertion] { return reading.clients.formUnion(clients) }
        let tapReaders = readers(for: profile)
        guard !tapReaders.isEmpty else { return }
        let reading = Reading(clients)
        readings[insertion] = reading
        reading.task = Task { @Loop in
            let lent = if let lease { lease } else { await registry.lendForReading(reader, insertion) }
            reading.readsNDEF = !reading.clients.isDisjoint(with: ndefWatchers)
            let report = if let lent { await report(of: lent, tapReaders, reading) } else { TapReport?.none }
            if readings[insertion] === reading { readings[insertion] = nil }
            guard let report else { return }
            if case .tag = report.result {
                sendTag(report, reader, insertion, reading)
            } else {
                send(report, to: reading.clients, reader, insertion)
            }
        }
    }

    private func send(
        _ report: TapReport,
        to clients: Set<ObjectIdentifier>,
        _ reader: Reader,
        _ insertion: Insertion
    ) {
        let sessions = clients.compactMap { watchers[$0] }
        if case .proven(let proven) = report.result, report.technology == PKOCEdition.one.rawValue,
            panelReaders.contains(reader.name), questions[reader.name]?.insertion != insertion
        {
            let end = Loop.bootClock + questionTime
            questions[reader.name] = Question(reader, insertion, number(of: insertion), proven.key, end)
        }
        if !sessions.isEmpty { observer(report, reader.name, number(of: insertion), sessions) }
    }

    /// Sends a tag to each client, with the message only to those that want it. A client that has joined a reading
    /// without the message that it wants gets a reading of its own.
    private func sendTag(_ report: TapReport, _ reader: Reader, _ insertion: Insertion, _ reading: Reading) {
        let wishes = reading.clients.intersection(ndefWatchers)
        send(report.withoutNDEF, to: reading.clients.subtracting(wishes), reader, insertion)
        if reading.readsNDEF || reader.insertion != insertion {
            send(report, to: wishes, reader, insertion)
        } else if !wishes.isEmpty {
            read(reader, for: wishes)
        }
    }

    /// Tells all clients what a reader in the wall has read, which another program reports.
    func report(_ read: TapReport.RawRead, in reader: String) -> Int {
        count += 1
        if !watchers.isEmpty {
            observer(TapReport(technology: "raw", result: .raw(read)), reader, count, Array(watchers.values))
        }
        return count
    }

    private func number(of insertion: Insertion) -> Int {
        if let last = lastTaps[insertion.reader], last.insertion == insertion { return last.number }
        count += 1
        // Readers that are gone are forgotten.
        lastTaps = lastTaps.filter { registry[$0.key] != nil }
        lastTaps[insertion.reader] = (insertion, count)
        return count
    }

    /// Reads a card once. At the end the card is reset, because a phone signs once per activation, and the reader is
    /// free.
    private func report(of lease: CardLease, _ tapReaders: [any TapReader], _ reading: Reading) async -> TapReport? {
        var report: TapReport?
        var tap = TapRequest()
        tap.answerToReset = lease.answerToReset
        tap.readsNDEF = reading.readsNDEF
        tap.ndef = lease.reader.ndef
        if tap.ndef == .handover { lease.resetsAtEnd = false }
        do throws(CardError) {
            for tapReader in tapReaders {
                guard let found = try await tapReader.read(WantedChannel(base: lease.connection), tap) else { continue }
                report = found
                if found.technology == TapProfile.handover, lease.isCurrent {
                    lease.reader.ndef = .handover
                    lease.update(PhoneProfile())
                }
                guard case .refused = found.result else { break }
            }
        } catch {
            report = nil
            let isExpected = error == .removed || error == .cancelled
            let reader = lease.reader.name
            registry.log(isExpected ? .info : .notice, "card in '\(reader)' could not be read: \(error)", reader)
        }
        await lease.release(removingVirtualCard: false)
        return report
    }
}

/// Door panels that check the signature of a card themselves: PKOC over OSDP.
extension Taps {
    /// A card whose key badged has verified. It may be asked once, and only for a short time after the tap.
    @Loop private final class Question {
        let reader: Reader
        let insertion: Insertion
        let number: Int
        let key: ECPublicKey
        let end: Int64
        var isAsked = false
        weak var asker: Session?
        var task: Task<Void, Never>?

        init(_ reader: Reader, _ insertion: Insertion, _ number: Int, _ key: ECPublicKey, _ end: Int64) {
            self.reader = reader
            self.insertion = insertion
            self.number = number
            self.key = key
            self.end = end
        }
    }

    typealias Proof = (key: ECPublicKey, signature: [UInt8])

    /// Has the card of a tap sign a transaction that the client has chosen, and calls `done` once.
    func challenge(
        _ number: Int,
        _ transaction: [UInt8],
        _ site: PKOCSite,
        for session: Session,
        _ done: @escaping @Loop (Result<Proof, Failure>) -> Void
    ) throws(Failure) {
        guard let question = questions.values.first(where: { $0.number == number }), isWatching(session) else {
            throw Failure(
                .wrongArgument,
                "no door panel may ask the card of this tap",
                advice: "Only the last tap with PKOC (SE V1) at a reader of [credentials] panel_readers may be asked"
            )
        }
        let rest = question.end - Loop.bootClock
        guard !question.isAsked else { throw Failure(.wrongArgument, "the card was asked before") }
        guard rest > 0, question.reader.insertion == question.insertion else {
            throw Failure(.cardLost, "the card has left, or was read too long ago")
        }
        question.isAsked = true
        question.asker = session
        let name = question.reader.name
        session.log(.notice, "a door panel chooses what the card in '\(name)' signs (tap \(number))", reader: name)
        question.task = Task { @Loop in
            let limit = Task { @Loop in
                await Loop.sleep(milliseconds: rest)
                if !Task.isCancelled { question.task?.cancel() }
            }
            let result = await sign(transaction, question, site)
            limit.cancel()
            question.task = nil
            done(result)
        }
    }

    private func sign(_ transaction: [UInt8], _ question: Question, _ site: PKOCSite) async -> Result<Proof, Failure> {
        let lost = Failure(.cardLost, "the card has left, or does not answer")
        guard let lease = await registry.lendForReading(question.reader, question.insertion) else {
            return .failure(lost)
        }
        let result: Result<Proof, Failure>
        do throws(CardError) {
            let reader = try await PKOCReader.select(on: WantedChannel(base: lease.connection))
            switch try await reader?.sign(transaction, with: question.key, for: site) ?? .failure(.refused) {
            case .success(let signature): result = .success((question.key, signature))
            case .failure(let problem): result = .failure(Failure(.cardLost, "the card has not signed: \(problem)"))
            }
        } catch {
            result = .failure(lost)
        }
        await lease.release(removingVirtualCard: false)
        return result
    }
}

/// A channel that sends nothing more when no client wants the result.
private struct WantedChannel: CardChannel {
    let base: any CardChannel

    func transmit(_ command: CommandAPDU) async throws(CardError) -> ResponseAPDU {
        guard !Task.isCancelled else { throw .cancelled }
        return try await base.transmit(command)
    }
}
