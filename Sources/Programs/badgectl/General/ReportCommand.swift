// SPDX-License-Identifier: GPL-3.0-or-later
import BadgedClient
import Glibc
import Host
import Text

/// `badgectl report`: writes a file that a person can read before giving it away. docs/recordings.md.
enum ReportCommand {
    static let spec = ShellCommand(
        name: "report",
        summary: "write a report for the people who can mend a fault",
        operand: ValueSpec("FILE", .files, isOptional: true),
        options: [
            .reader,
            OptionSpec(.card, "add what the card in the reader says before any secret"),
            OptionSpec(.testCard, "as --card, with all numbers and data: only for a card with made-up data"),
            OptionSpec(.board, "add what the NFC board says while it is opened and looks for a card"),
        ],
        details: [
            """
            Writes one text file, \(standardFile) without a name: versions, checks, readers, settings without values that
            are secret or personal, what badged has counted, and the last lines of its log. Nothing is sent to anybody.
            Read the file, and delete what nobody shall see, before you give it away.
            """,
            """
            --card adds the commands and answers of a card, up to the first secret: no PIN, CAN or PUK is asked for or
            tried, and nothing on the card changes. Numbers and keys of the card are replaced by made-up ones. Of the
            files with data of the holder it has the first bytes only. badged-virtual-card --replay plays the file.
            """,
            """
            --board adds the frames between badged and an NFC board. The board is opened anew, looks for a card and
            activates it; the card gets no command, and its number is replaced. The reader is away for some seconds, and
            is not touched while a workflow has its card.
            """,
        ],
        examples: [
            Example("report a card that is not recognised", "badgectl report --card card-report.txt")
        ],
        run: run
    )

    private static let standardFile = "badged-report.txt"

    @Sendable private static func run(_ invocation: Invocation) async throws {
        let path = invocation.operand.isEmpty ? standardFile : invocation.operand
        // A card is not recorded for a file that cannot be written.
        let file = try FileContent.create(path, flags: O_EXCL | O_NOFOLLOW)
        defer { close(file) }
        EndSignals.handle { number in
            unlink(path)
            Output.quit(.interrupted(number))
        }
        let recordings: [RecordingOfCard]
        do {
            recordings = try await write(invocation, to: file, path)
        } catch {
            unlink(path)
            throw error
        }
        EndSignals.handle(nil)
        for fault in recordings.compactMap(\.fault) {
            Output.note(tr("The recording of the card ends early: \(DaemonWords.text(fault))").printable)
        }
        if invocation.wantsJSON { return }
        Output.line(tr("Written: \(path)"))
        let warning =
            invocation.has(.testCard)
            ? tr("It has all data that the card shows to everybody. Give it away only if they are made up.")
            : tr("Read it, and delete what nobody shall see, before you give it away.")
        Output.note(warning)
    }

    /// Writes the report, and returns the recordings in it.
    private static func write(
        _ invocation: Invocation,
        to file: Int32,
        _ path: String
    ) async throws -> [RecordingOfCard] {
        let wantsCard = invocation.has(.card) || invocation.has(.testCard)
        let wantsBoard = invocation.has(.board)
        var recordings: [RecordingOfCard] = []
        var report = Report()
        do {
            let connection = try await invocation.connect(keepsEvents: false)
            if wantsCard { recordings.append(try await record(invocation, connection)) }
            if wantsBoard { recordings.append(try await recordBoard(invocation, connection)) }
            await report.add(connection)
        } catch let error as ClientError where !wantsCard && !wantsBoard {
            // This is when a report is needed most.
            report.add("badged", [error.description])
        }
        report.addHost()
        let text = report.text + recordings.map { "\n" + $0.recording }.joined()
        try FileContent.append(Array(text.utf8), file, path)
        return recordings
    }

    /// Records the card in the reader that the user names, or the first card.
    private static func record(
        _ invocation: Invocation,
        _ connection: DaemonConnection
    ) async throws -> RecordingOfCard {
        let isTest = invocation.has(.testCard)
        try await connection.require("readers", "cards")
        if isTest { try await connection.require("documents", "credentials") }
        let wanted = invocation.value(of: .reader)
        let reader = try await connection.readers().first { reader in
            reader.card != nil && wanted.map { $0 == reader.name } ?? true
        }
        guard let reader else {
            throw CommandFailure(
                wanted.map { tr("there is no card in the reader \($0)") } ?? tr("no reader has a card"),
                hint: tr("put the card on the reader, and try again")
            )
        }
        return try await connection.recordCard(in: reader.name, unchanged: isTest)
    }
}

extension ReportCommand {
    /// Records the NFC board that the user names, or the first one.
    private static func recordBoard(
        _ invocation: Invocation,
        _ connection: DaemonConnection
    ) async throws -> RecordingOfCard {
        try await connection.require("readers", "cards")
        let wanted = invocation.value(of: .reader)
        let reader = try await connection.readers().first { reader in
            wanted.map { $0 == reader.name } ?? (reader.driver == "nfc")
        }
        guard let reader else {
            throw CommandFailure(
                tr("no reader is an NFC board"),
                hint: tr("badgectl health says what badged looks for")
            )
        }
        let recording = try await connection.recordBoard(of: reader.name)
        guard let fault = recording.fault else { return recording }
        throw CommandFailure(tr("the board cannot be recorded: \(DaemonWords.text(fault))").printable)
    }
}

/// The sections of a report, in the order in which they were added.
struct Report {
    private var sections: [(title: String, lines: [String])] = []
    private var scrubber = ReportScrubber()

    mutating func add(_ title: String, _ lines: [String]) {
        sections.append((title, lines.isEmpty ? ["nothing"] : lines))
    }

    /// The whole report. Each line of a section begins with two spaces, so that none can be one of a recording.
    var text: String {
        var text = """
            badged report 1
            Made by badgectl report. Names of this host and its user, and numbers of devices, are replaced.
            Read it before you give it away, and delete what nobody shall see.

            """
        for section in sections {
            text += "\n[\(section.title)]\n"
            for line in section.lines { text += "  \(scrubber.hidden(line.printable))\n" }
        }
        return text
    }

    // MARK: badged

    /// Adds what badged says of itself.
    mutating func add(_ connection: DaemonConnection) async {
        do throws(ClientError) {
            let info = try await connection.info()
            add(
                "badged",
                [
                    "\(info.name) \(info.version), protocol \(info.protocolVersion.map(String.init) ?? "unknown")",
                    "drivers: \(info.drivers.joined(separator: ", "))",
                    "scanners: \(info.scanners.joined(separator: ", "))",
                    "permissions: \(info.permissions?.joined(separator: ", ") ?? "unknown")",
                ]
            )
        } catch {
            add("badged", [error.description])
        }
        await addLines("health", try await connection.health().map(Self.line))
        await addLines("readers", try await Self.readers(connection))
        await addLines("metrics", Self.samples(try await connection.metrics()))
    }

    private static func readers(_ connection: DaemonConnection) async throws(ClientError) -> [String] {
        var lines: [String] = []
        for reader in try await connection.readers() { lines += await Self.lines(reader, connection) }
        return lines
    }

    private static func samples(_ families: [MetricFamily]) -> [String] {
        MetricsText.text(families, .prometheus).split(separator: "\n").filter { !$0.hasPrefix("#") }.map(String.init)
    }

    private mutating func addLines(
        _ title: String,
        _ lines: @autoclosure () async throws(ClientError) -> [String]
    ) async {
        do throws(ClientError) {
            add(title, try await lines())
        } catch {
            add(title, [error.description])
        }
    }

    private static func line(_ check: BadgedClient.HealthCheck) -> String {
        let mark = check.isOK ? "good" : check.isUnknown ? "unknown" : check.isOptional ? "none" : "bad"
        return ([mark, check.name] + [check.cause, check.advice].compactMap(\.self)).joined(separator: ": ")
    }

    private static func lines(_ reader: Reader, _ connection: DaemonConnection) async -> [String] {
        var words = [reader.driver ?? "unknown driver"]
        if reader.hasKeypad { words.append("keypad") }
        if reader.isRemote { words.append("remote") }
        if reader.isInsertable { words.append("virtual") }
        if reader.isBusy { words.append("busy") }
        var lines = ["\(reader.name): \(words.joined(separator: ", "))"]
        guard let card = reader.card else { return lines }
        lines.append("  card: \(card.kind ?? "unknown")")
        guard let identity = try? await connection.identifyCard(in: reader.name) else { return lines }
        lines.append("  answer to reset: \(identity.answerToReset)")
        lines += identity.applications.map { "  answers: \($0.aid) \($0.name)" }
        if let fault = identity.fault { lines.append("  not asked: \(fault)") }
        return lines
    }

    // MARK: The host

    /// Adds what this host says: versions, USB devices, settings, log.
    mutating func addHost() {
        add("versions", ["badgectl \(Version.current)"] + ReportFacts.system + ReportFacts.packages)
        add("USB devices", ReportFacts.usbDevices)
        add("settings", ReportFacts.settings)
        add("log", ReportFacts.log)
    }
}
