// SPDX-License-Identifier: GPL-3.0-or-later
import BadgedClient
import Glibc
import Host
import Synchronization
import Text

/// The commands about mobile documents.
let mdocFeature = FeatureCommands(
    group: .idCard,
    commands: [MdocCommand.spec],
    describeCard: { $0.kind == "mdoc" ? tr("phone with mobile documents") : nil }
)

/// `badgectl mdoc`: reads a mobile document from a phone.
enum MdocCommand {
    /// A document with a short name on the command line.
    private struct KnownDocument {
        let word: String
        let docType: String
        /// The namespace of elements without one.
        let namespace: String
    }

    private static let known = [
        KnownDocument(word: "mdl", docType: "org.iso.18013.5.1.mDL", namespace: "org.iso.18013.5.1"),
        KnownDocument(word: "age", docType: "eu.europa.ec.av.1", namespace: "eu.europa.ec.av.1"),
        KnownDocument(word: "pid", docType: "eu.europa.ec.eudi.pid.1", namespace: "eu.europa.ec.eudi.pid.1"),
        KnownDocument(word: "photoid", docType: "org.iso.23220.photoid.1", namespace: "org.iso.23220.1"),
    ]

    static let spec = ShellCommand(
        name: "mdoc",
        summary: "read a driving licence, a PID or a proof of age from a phone, and check it",
        operand: ValueSpec("anchors", .words(["anchors"]), isOptional: true),
        others: ValueSpec("ARGUMENT", .files),
        options: [
            OptionSpec(.over, ValueSpec("AGE"), "ask whether the holder is over this age, and nothing else"),
            OptionSpec(.doc, ValueSpec("TYPE"), "the document: mdl, age, pid, photoid, or its full name; mdl"),
            OptionSpec(.item, ValueSpec("LIST"), "ask for these elements, such as family_name,birth_date"),
            OptionSpec(.qr, ValueSpec("TEXT"), "the text of the QR code on the phone; - for standard input"),
            OptionSpec(.identity, ValueSpec("NAME"), "the key of badged.conf that signs; none: unsigned"),
            OptionSpec(.portrait, ValueSpec("FILE", .files), "write the picture to this file"),
            .reader,
            .timeout,
        ] + MdocAnchorsCommand.options,
        details: [
            """
            Hold the phone to the reader with its wallet open, or give the text of its QR code. The holder sees what is
            asked for, and agrees on the phone. Then the values are written, a line for each check, and the verdict.
            """,
            """
            With --over it ends with 0 for yes and with 8 for no, both proven by a genuine document. Without it 0 is a
            genuine document. 6 means that a check has failed, 7 that something is not proven, such as the authority of
            the document, and 9 that the phone has given nothing: its holder has declined, or has no such document.
            """,
            """
            An element of another namespace is NAMESPACE/NAME. Ask for no more than you need, and keep nothing that you
            need not keep: which laws allow it, you must know.
            """,
            MdocAnchorsCommand.details,
        ],
        card: tr("phone"),
        progress: [
            20: tr("connecting to the phone"), 40: tr("waiting until its holder agrees"), 60: tr("the answer comes"),
            90: tr("checking the answer"),
        ],
        virtualCard: { _ in .object([JSON.Member("kind", .string("mdoc"))]) },
        run: run
    )

    @Sendable private static func run(_ invocation: Invocation) async throws {
        if invocation.operand == "anchors" { return try await MdocAnchorsCommand.run(invocation.others, invocation) }
        let question = try question(invocation)
        let engagement = try engagement(invocation)
        let identity: MdocIdentity =
            switch invocation.value(of: .identity) {
            case nil: .only
            case "none": .unsigned
            case let name?: .named(name)
            }
        if let path = invocation.value(of: .portrait) {
            guard case .documents(let documents) = question,
                documents.flatMap(\.elements).contains(where: { $0.name == "portrait" })
            else {
                throw CommandFailure(
                    usage: tr("--portrait needs the element portrait"),
                    hint: tr("portrait must be in --item; --over asks for the age alone")
                )
            }
            try FileContent.checkPersonal(path)
        }
        let verdict = Mutex(ExitStatus.failed)
        try await WorkflowRun.run(invocation, notDone: tr("no phone was read")) { workflow in
            let result = try await workflow.connection.readMdoc(
                question,
                reader: invocation.value(of: .reader),
                engagement: engagement,
                identity: identity,
                user: workflow.user
            )
            guard result.success else { throw workflow.user.ending ?? failure(result) }
            if !invocation.wantsJSON {
                for line in MdocText.lines(result) { Output.line(line.printable) }
                for hint in result.documents.flatMap(\.checks).compactMap({ $0.details["advice"] }) {
                    Output.note(tr("hint: \(DaemonWords.text(hint))").printable)
                }
            }
            // Last: a file that cannot be written leaves the data and the verdict.
            if let path = invocation.value(of: .portrait) { try writePortrait(of: result, to: path) }
            verdict.withLock { $0 = status(result) }
        }
        throw verdict.withLock { $0 }
    }

    private static func question(_ invocation: Invocation) throws -> MdocQuestion {
        if let text = invocation.value(of: .over) {
            guard let age = Int(text), (1...99).contains(age) else {
                throw CommandFailure(usage: tr("--over needs an age from 1 to 99"), hint: tr("such as --over 18"))
            }
            guard !invocation.has(.item), !invocation.has(.doc) else {
                throw CommandFailure(
                    usage: tr("--over excludes --doc and --item"),
                    hint: tr("it asks for the age alone")
                )
            }
            return .ageOver(age)
        }
        guard let list = invocation.value(of: .item) else {
            throw CommandFailure(usage: tr("mdoc needs --over or --item"), hint: tr("such as badgectl mdoc --over 18"))
        }
        let type = invocation.value(of: .doc) ?? "mdl"
        let document = known.first { $0.word == type || $0.docType == type }
        let elements = try list.split(separator: ",", omittingEmptySubsequences: false).map { entry in
            let parts = entry.split(separator: "/", maxSplits: 1, omittingEmptySubsequences: false).map(String.init)
            let namespace = parts.count == 2 ? parts[0] : document?.namespace
            guard let namespace, let name = parts.last, !name.isEmpty, !namespace.isEmpty else {
                throw CommandFailure(
                    usage: tr("--item \(entry): an element of \(type) needs its namespace"),
                    hint: tr("such as --item org.iso.18013.5.1/family_name")
                )
            }
            return MdocQuestion.Element(name, in: namespace)
        }
        return .documents([.init(document?.docType ?? type, elements)])
    }

    private static func engagement(_ invocation: Invocation) throws -> String? {
        guard let text = invocation.value(of: .qr) else { return nil }
        guard text == "-" else { return text }
        let line = try FileContent.read("/dev/stdin", limit: 16_384)
        guard let text = String(validating: line, as: UTF8.self) else {
            throw CommandFailure(usage: tr("the text of the QR code is no UTF-8"), hint: tr("it begins with mdoc:"))
        }
        return text
    }

    private static func status(_ result: MdocResult) -> ExitStatus {
        if result.verdict == .suspect { return .suspect }
        if let age = result.age {
            switch age.answer {
            case .yes: return .done
            case .no: return .answeredNo
            case .unknown: return .unproven
            }
        }
        return result.verdict == .genuine ? .done : .unproven
    }

    private static func failure(_ result: MdocResult) -> CommandFailure {
        let text = result.message.map(DaemonWords.text) ?? result.error ?? tr("no phone was read")
        switch result.error {
        case "Declined": return CommandFailure(.declined, text)
        case "NoEngagement", "ConnectionFailed", "ConnectionLost", "SessionError":
            return CommandFailure(text, hint: tr("keep the phone on the reader, unlocked, and run badgectl mdoc again"))
        case "EngagementUnsupported":
            return CommandFailure(text, hint: tr("badgectl health says whether Bluetooth works here"))
        case "TooLarge": return CommandFailure(text, hint: tr("name fewer elements with --item"))
        default: return CommandFailure(text, hint: tr("run badgectl mdoc again"))
        }
    }

    private static func writePortrait(of result: MdocResult, to path: String) throws {
        let portrait = result.documents.flatMap(\.elements).first { $0.name == "portrait" }
        guard let data = portrait?.value["data"]?.string.flatMap({ Base64.standard.decode($0) }) else {
            throw CommandFailure(
                tr("the phone has shown no picture"),
                hint: tr("its holder has not given it, or the document has none")
            )
        }
        try FileContent.writePersonal(data, to: path)
    }
}
