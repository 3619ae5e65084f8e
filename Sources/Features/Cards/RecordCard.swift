// SPDX-License-Identifier: GPL-3.0-or-later
import Concurrency
import Host
import ISO7816
import Readers
import Server
import Synchronization
import Text

/// RECORD_CARD: what a card says before any secret, as a recording that can be played again. docs/recordings.md.
extension ReaderFeature {
    func record(_ call: Call) async throws(Failure) -> Reply {
        guard try !call.arguments.isSet("board") else { return try await recordBoard(call) }
        let (reader, insertion) = try cardReader(call)
        let isUnchanged = try call.arguments.isSet("unchanged")
        guard !isUnchanged || call.session.permissions.isSuperset(of: [.documents, .credentials]) else {
            throw call.arguments.wrong("unchanged", "left out: it needs the permissions documents and credentials")
        }
        let empty = CardRecordingMessage(
            reader: reader.name,
            recording: CardRecording(answerToReset: reader.answerToReset, kind: reader.knownKind)
        )
        var message: CardRecordingMessage
        do throws(CardError) {
            message = try await withCard(insertion, for: call) {
                (lease) async throws(CardError) -> CardRecordingMessage in
                await self.record(reader, of: lease, in: empty, withPersonalFiles: isUnchanged)
            }
        } catch {
            message = empty
            message.fault = CardVerdict(error).text(reader.name)
        }
        if !isUnchanged {
            guard let pseudonyms = try? Pseudonyms() else { throw Failure(.internalError, "no random numbers") }
            message.recording.exchanges = pseudonyms.replacing(in: message.recording.exchanges)
        }
        return Reply(message)
    }

    /// Records the frames of an NFC board, which is opened anew; never while somebody has its card. Nobody gets the card
    /// meanwhile, and the next recording waits for no other one, so it cannot begin when a workflow has taken the card.
    private func recordBoard(_ call: Call) async throws(Failure) -> Reply {
        let name = try call.arguments.text("name", 1...1024)
        guard let reader = registry[name] else { throw Failure(.wrongArgument, "there is no reader of this name") }
        guard reader.owner == nil else { throw Failure(.wrongArgument, CardObstacle.busy.text(name)) }
        guard boardRecordings.addition(name, at: Loop.now) != nil else {
            throw Failure(
                .wrongArgument,
                "Reader '\(name)' was recorded several times within a minute: try again later"
            )
        }
        registry.claimForReading(reader)
        defer { registry.release(reader) }
        var message = BoardRecordingMessage(reader: name)
        do throws(CardError) {
            let text = try await reader.backend.record(name)
            // The program of the driver may be taken over.
            guard (try? BoardRecording(text)) != nil else { throw .other("badged-nfc has sent no recording") }
            message.recording = String(decoding: text, as: UTF8.self)
        } catch {
            message.fault =
                if case .other(let text) = error { Phrase(stringLiteral: text) } else { "the reader is gone" }
        }
        return Reply(message)
    }

    /// Adds what a card says. What has been said so far is told, too, if the card stops answering.
    private func record(
        _ reader: Reader,
        of lease: CardLease,
        in message: CardRecordingMessage,
        withPersonalFiles: Bool
    ) async -> CardRecordingMessage {
        var message = message
        let recorder = CardRecorder(lease.connection)
        do throws(CardError) {
            try await survey(reader, on: recorder, withPersonalFiles: withPersonalFiles)
        } catch {
            message.fault = CardVerdict(error).text(reader.name)
        }
        message.recording.exchanges = recorder.exchanges
        return message
    }

    /// Recognises the card as badged does when it comes, and then asks for a fixed list of applications and files.
    private func survey(
        _ reader: Reader,
        on recorder: CardRecorder,
        withPersonalFiles: Bool
    ) async throws(CardError) {
        recorder.note("recognition, as badged does it when a card comes")
        let claiming = registry.kinds.filter { $0.claims(answerToReset: reader.answerToReset) }
        for kind in claiming.isEmpty ? registry.kinds : claiming {
            let channel = RepeatingChannel(recorder)
            guard try await kind.recognize(channel, answerToReset: reader.answerToReset) == nil else { break }
        }
        let files = PlainFiles(CompletingChannel(recorder))
        recorder.note("what the reader knows: number, answer to select")
        for kind: UInt8 in [0x00, 0x01] {
            _ = try await files.channel.transmit(CommandAPDU(0xFF, 0xCA, kind, 0x00, le: 256))
        }
        recorder.note("applications")
        for application in Self.applications {
            guard let aid = Hex.decode(application.aid) else { continue }
            _ = try await files.select(aid)
        }
        recorder.note("files of the card")
        _ = try await files.channel.transmit(CommandAPDU(0x00, 0xA4, 0x00, 0x0C, data: [0x3F, 0x00]))
        for file in PlainFiles.ofCard {
            try await files.read(file, isWhole: !file.isPersonal || withPersonalFiles)
        }
        recorder.note("application of electronic documents")
        guard try await files.select(PlainFiles.document) else { return }
        for file in PlainFiles.ofDocument {
            try await files.read(file, isWhole: !file.isPersonal || withPersonalFiles)
        }
    }
}

/// The files that are read of a card without a secret.
private struct PlainFiles {
    struct File {
        let id: UInt16
        /// nil: the file is known by `id` only.
        let shortID: UInt8?
        /// Whether the file has data of the holder, or a key of this card alone. Then its first bytes show that it is free
        /// to read.
        var isPersonal = false
    }

    /// EF.ATR/INFO, EF.DIR, EF.GDO, EF.CardAccess, EF.CardSecurity.
    static let ofCard = [
        File(id: 0x2F01, shortID: 0x01), File(id: 0x2F00, shortID: 0x1E), File(id: 0x2F02, shortID: nil),
        File(id: 0x011C, shortID: 0x1C), File(id: 0x011D, shortID: 0x1D, isPersonal: true),
    ]
    /// ICAO 9303-10.
    static let document: [UInt8] = [0xA0, 0x00, 0x00, 0x02, 0x47, 0x10, 0x01]
    /// EF.COM, EF.SOD and the data groups. Fingerprints and irises are left out: 3 and 4.
    static let ofDocument =
        [File(id: 0x011E, shortID: 0x1E), File(id: 0x011D, shortID: 0x1D, isPersonal: true)]
        + groups.map { File(id: 0x0100 | UInt16($0), shortID: $0, isPersonal: true) }
    private static let groups: [UInt8] = [1, 2] + Array(5...16)

    let channel: CompletingChannel

    init(_ channel: CompletingChannel) { self.channel = channel }

    /// Whether the card has the application.
    func select(_ aid: [UInt8]) async throws(CardError) -> Bool {
        try await channel.transmit(CommandAPDU(0x00, 0xA4, 0x04, 0x00, data: aid, le: 256)).status == .ok
    }

    /// Reads a file by its short identifier, or else by its identifier; without `isWhole` only its first bytes.
    func read(_ file: File, isWhole: Bool) async throws(CardError) {
        let le = isWhole ? 256 : 4
        var answer: ResponseAPDU?
        if let shortID = file.shortID {
            answer = try await channel.transmit(CommandAPDU(0x00, 0xB0, 0x80 | shortID, 0x00, le: le))
        }
        if answer.map({ Self.isContent($0) }) != true {
            let id = [UInt8(file.id >> 8), UInt8(file.id & 0xFF)]
            guard try await channel.transmit(CommandAPDU(0x00, 0xA4, 0x02, 0x0C, data: id)).status == .ok else {
                return
            }
            answer = try await channel.transmit(CommandAPDU(0x00, 0xB0, 0x00, 0x00, le: le))
        }
        guard isWhole, let first = answer, first.status == .ok, var header = Header(first.data) else { return }
        while header.isIncomplete {
            let offset = header.count
            let command = CommandAPDU(0x00, 0xB0, UInt8(offset >> 8), UInt8(offset & 0xFF), le: 256)
            let next = try await channel.transmit(command)
            guard Self.isContent(next), !next.data.isEmpty, next.status == .ok else { return }
            header.count += next.data.count
        }
    }

    private static func isContent(_ answer: ResponseAPDU) -> Bool {
        answer.status == .ok || answer.status.value == 0x6282
    }

    /// How much of a file is there, and how much its first object needs.
    private struct Header {
        var count: Int
        private let wanted: Int
        /// The highest offset of READ BINARY.
        private static let limit = 0x7FFF

        init?(_ start: [UInt8]) {
            var reader = BERReader(start)
            guard let header = reader.header() else { return nil }
            count = start.count
            wanted = header.count + header.length
        }

        var isIncomplete: Bool { count < wanted && count <= Self.limit }
    }
}

/// Notes what is said to a card. A command that could do more than ask never reaches the card: it is answered with 6D00.
final class CardRecorder: CardChannel {
    private let base: any CardChannel
    private let recorded = Mutex<Recorded>(Recorded())

    private struct Recorded {
        var exchanges: [CardRecording.Exchange] = []
        var bytes = 0
        var note: String?
    }

    /// A recording has a place in one message of 1 MiB.
    private static let maximumBytes = 400_000
    private static let maximumExchanges = 2000

    init(_ base: any CardChannel) { self.base = base }

    var exchanges: [CardRecording.Exchange] { recorded.withLock { $0.exchanges } }

    /// Adds a comment before the next command.
    func note(_ text: String) { recorded.withLock { $0.note = text } }

    func transmit(_ command: CommandAPDU) async throws(CardError) -> ResponseAPDU {
        guard Self.asks(command), hasRoom else { return ResponseAPDU(StatusWord(0x6D00)) }
        let answer = try await base.transmit(command)
        recorded.withLock { recorded in
            let exchange = CardRecording.Exchange(command.bytes, answer.bytes, note: recorded.note.take())
            recorded.exchanges.append(exchange)
            recorded.bytes += exchange.command.count + exchange.answer.count
        }
        return answer
    }

    private var hasRoom: Bool {
        recorded.withLock { $0.bytes < Self.maximumBytes && $0.exchanges.count < Self.maximumExchanges }
    }

    /// Whether a command only asks: SELECT, READ BINARY, READ RECORD, GET DATA, GET RESPONSE, and the question for the tries
    /// that are left, which is MSE:Set AT.
    static func asks(_ command: CommandAPDU) -> Bool {
        switch (command.cla, command.ins) {
        case (0x00, 0xA4), (0x00, 0xB0), (0x00, 0xB2), (0x00, 0xC0), (0x00, 0xCA), (0xFF, 0xCA): true
        case (0x00, 0x22): command.p1 == 0xC1 && command.p2 == 0xA4
        default: false
        }
    }
}

/// CARD_RECORDING: a recording of a card.
struct CardRecordingMessage: Message {
    static let name: StaticString = "CARD_RECORDING"
    let reader: String
    var recording: CardRecording
    /// Why the recording ends early.
    var fault: Phrase?

    init(reader: String, recording: CardRecording) {
        self.reader = reader
        self.recording = recording
    }

    func write(to object: inout JSONWriter, _ level: APILevel) {
        object.member("name", reader)
        if let fault { object.member("fault", fault) }
        object.member("recording", recording.text)
    }
}

/// CARD_RECORDING with the frames of a board.
struct BoardRecordingMessage: Message {
    static let name = CardRecordingMessage.name
    let reader: String
    var recording = ""
    /// Why there is no recording.
    var fault: Phrase?

    init(reader: String) { self.reader = reader }

    func write(to object: inout JSONWriter, _ level: APILevel) {
        object.member("name", reader)
        if let fault { object.member("fault", fault) }
        object.member("recording", recording)
    }
}
