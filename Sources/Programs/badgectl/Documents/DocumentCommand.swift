// SPDX-License-Identifier: GPL-3.0-or-later
import BadgedClient
import Glibc
import Host
import ISO7816
import Synchronization
import Text

/// The commands about passports and other electronic documents.
let documentFeature = FeatureCommands(
    group: .idCard,
    commands: [DocumentCommand.spec, DocumentAnchorsCommand.spec],
    describeCard: { card in
        guard card.kind == "document" else { return nil }
        let access = card.members["access"]?.array?.compactMap(\.string).joined(separator: ", ") ?? ""
        return tr("electronic document") + (access.isEmpty ? "" : " (\(access))")
    }
)

/// `badgectl document`: reads a passport or another electronic document.
enum DocumentCommand {
    static let spec = ShellCommand(
        name: "document",
        summary: "read a passport or another electronic document, and check it",
        options: [
            .reader,
            .timeout,
            .pinStdin,
            .pinentry,
            OptionSpec(.groups, ValueSpec("LIST"), "read these data groups, such as 1,2,11; 1, 2, 11 and 12"),
            OptionSpec(.portrait, ValueSpec("FILE", .files), "write the picture to this file"),
            OptionSpec(.files, ValueSpec("FOLDER", .files), "write the files of the chip to this folder"),
            OptionSpec(.record, ValueSpec("FILE", .files), "write a recording of the files; only of made-up data"),
            OptionSpec(
                .bac,
                ValueSpec("WHEN", .words(["never", "always"])),
                "use BAC never, or instead of PACE; otherwise if the chip has no PACE"
            ),
        ],
        details: [
            """
            Asks for what is printed on the document: the card access number (CAN, 6 digits), if the chip takes it, or
            the machine readable zone, line by line. The terminal does not show what you type. Then it writes the data,
            a line for each check, and the verdict.
            """,
            """
            Ends with 0 for a genuine document, with 6 for one of which a check has failed, and with 7 if nothing has
            failed but not everything is proven: badged trusts no authority of its country, or nothing proves the chip.
            With 1 no document was read, or a file was not written. Which laws allow to read and to keep the data, you
            must know.
            """,
            """
            --record writes what badged-virtual-card --replay plays as a document without access control: a document
            with made-up data becomes a test. It has all data, and none of the keys that prove the chip.
            """,
        ],
        examples: [
            Example("read a passport, and keep its picture", "badgectl document --portrait portrait.jp2"),
            Example("read name and number only", "badgectl document --groups 1"),
        ],
        card: tr("document"),
        progress: [:],
        virtualCard: { _ in .keptCard("document") },
        run: run
    )

    @Sendable private static func run(_ invocation: Invocation) async throws {
        let groups = try groups(invocation)
        if let folder = invocation.value(of: .files) { try FileContent.checkFolder(folder) }
        if let path = invocation.value(of: .portrait) {
            guard groups?.contains(2) != false else {
                throw CommandFailure(usage: tr("--portrait needs group 2"), hint: tr("2 must be in --groups"))
            }
            try FileContent.checkPersonal(path)
        }
        if let path = invocation.value(of: .record) { try FileContent.checkPersonal(path) }
        let verdict = Mutex(ExitStatus.failed)
        try await WorkflowRun.run(invocation, notDone: tr("no document was read")) { workflow in
            let result = try await workflow.connection.readDocument(
                reader: invocation.value(of: .reader),
                groups: groups,
                raw: invocation.has(.files) || invocation.has(.record),
                allowBAC: invocation.value(of: .bac),
                user: workflow.user
            )
            guard result.success else { throw workflow.user.ending ?? failure(result) }
            if !invocation.wantsJSON {
                for line in DocumentText.lines(result) { Output.line(line.printable) }
                for hint in result.checks.compactMap({ $0.details["advice"] }) {
                    Output.note(tr("hint: \(DaemonWords.text(hint))").printable)
                }
            }
            // Last: a file that cannot be written leaves the data and the verdict.
            try write(result, invocation)
            verdict.withLock { $0 = status(result) }
        }
        throw verdict.withLock { $0 }
    }

    private static func groups(_ invocation: Invocation) throws -> [Int]? {
        guard let list = invocation.value(of: .groups) else { return nil }
        let numbers = list.split(separator: ",", omittingEmptySubsequences: false).map {
            Int($0.filter { $0 != " " }).flatMap { (1...16).contains($0) ? $0 : nil }
        }
        guard !numbers.contains(nil) else {
            throw CommandFailure(usage: tr("--groups needs numbers from 1 to 16"), hint: tr("such as --groups 1,2,11"))
        }
        return numbers.compactMap(\.self)
    }

    private static func status(_ result: DocumentResult) -> ExitStatus {
        switch result.verdict {
        case .genuine: .done
        case .suspect: .suspect
        case .genuineCopyable, .unverified, nil: .unproven
        }
    }

    private static func failure(_ result: DocumentResult) -> CommandFailure {
        let hint: String
        switch result.error {
        case "WrongPassword": hint = tr("compare what you typed with the document")
        case "AccessUnsupported":
            hint = tr("type the machine readable zone if you typed the CAN; leave out --bac never")
        case "NotADocument": hint = tr("use a passport, an identity card or a residence permit")
        case "AccessRefused", "CardError", "Malformed": hint = tr("put the document flat on the reader, and try again")
        case "TooLarge": hint = tr("name fewer groups with --groups")
        default: hint = tr("run badgectl document again")
        }
        let text = result.message.map(DaemonWords.text) ?? result.error
        return CommandFailure(text ?? tr("no document was read"), hint: hint)
    }

    // MARK: Files

    private static func write(_ result: DocumentResult, _ invocation: Invocation) throws {
        if let path = invocation.value(of: .portrait) {
            guard let portrait = result.portrait else {
                throw CommandFailure(
                    tr("the chip has given no picture that can be read"),
                    hint: tr("the picture is in group 2: the result says what the chip has given")
                )
            }
            try FileContent.writePersonal(portrait.data, to: path)
        }
        if let path = invocation.value(of: .record) {
            try FileContent.writePersonal(Array(result.recording.text.utf8), to: path)
        }
        guard let folder = invocation.value(of: .files) else { return }
        for group in result.groups {
            guard let content = group.content else { continue }
            try FileContent.writePersonal(content, to: "\(folder)/DG\(group.number).bin")
        }
        for file in result.files where fileNames.contains(file.name) {
            try FileContent.writePersonal(file.content, to: "\(folder)/\(file.name).bin")
        }
    }

    private static let fileNames = ["EF.CardAccess", "EF.CardSecurity", "EF.COM", "EF.SOD"]
}

extension DocumentResult {
    /// The files of the document as a card without access control says them. Keys of the chip cannot be recorded.
    var recording: CardRecording {
        var recording = CardRecording(answerToReset: [0x3B, 0x80, 0x80, 0x01, 0x01], kind: "document")
        let application: [UInt8] = [0xA0, 0x00, 0x00, 0x02, 0x47, 0x10, 0x01]
        let select = CommandAPDU(0x00, 0xA4, 0x04, 0x0C, data: application)
        recording.exchanges.append(.init(select.bytes, ResponseAPDU(.ok).bytes))
        let common = [("EF.COM", UInt8(0x1E)), ("EF.SOD", 0x1D)].compactMap { name, shortID in
            files.first { $0.name == name }.map { (name, shortID, $0.content) }
        }
        let data = groups.compactMap { group in
            group.content.map { ("DG\(group.number)", UInt8(truncatingIfNeeded: group.number), $0) }
        }
        for (name, shortID, content) in common + data {
            var note: String? = name
            // READ BINARY reaches no further.
            for offset in stride(from: 0, to: min(content.count, 0x8000), by: 256) {
                let (high, low) = (UInt8(offset >> 8), UInt8(offset & 0xFF))
                let read = CommandAPDU(0x00, 0xB0, offset == 0 ? 0x80 | shortID : high, low, le: 256)
                let answer = ResponseAPDU(data: Array(content[offset...].prefix(256)), .ok)
                recording.exchanges.append(.init(read.bytes, answer.bytes, note: note.take()))
            }
        }
        return recording
    }
}

extension CommandLineUser: DocumentUser {
    func key(for question: DocumentQuestion) async -> DocumentKey? {
        cardIsThere()
        if let error = (question.message ?? question.error).map(DaemonWords.text) {
            say((question.error == "wrongPassword" ? error : tr("Not sent to the document: \(error)")) + ".")
            if endsScript(error) { return nil }
        }
        let name =
            question.acceptsCAN ? tr("CAN, or first line of the zone") : tr("first line of the machine readable zone")
        guard let first = await secret(TypedSecretForm(name: name, content: .characters(6...90)))?.take() else {
            return nil
        }
        let length = first.withBytes { $0.count }
        if question.acceptsCAN, length == 6 { return work(.can(SecretBox(first))) }
        var zone = first
        for _ in 0..<(length == 30 ? 2 : length == 36 || length == 44 ? 1 : 0) {
            var form = TypedSecretForm(name: tr("next line"), content: .characters(length...length))
            form.isContinuation = true
            guard let line = await secret(form)?.take() else { return nil }
            zone = zone.appending(line)
        }
        return work(.mrz(SecretBox(zone)))
    }

    private func work(_ key: DocumentKey) -> DocumentKey {
        say(tr("Leave the document on the reader: reading it ..."), isPassing: true)
        return key
    }
}
