// SPDX-License-Identifier: GPL-3.0-or-later
package import Cards
package import Concurrency
package import CountryAuthorities
import Document
import Glibc
package import Host
import ISO7816
import Readers
package import Server
import Text

/// Reads electronic documents. docs/protocol/documents.md.
@Loop package final class DocumentFeature: CardFeature {
    package let cardKinds: [any CardKind] = [DocumentCardKind()]
    private let registry: ReaderRegistry
    private let folder: DocumentAnchorFolder
    private let time: @Sendable () -> Int
    private let now: Now
    private var readings = LabelledCounter(
        "badged_documents_total",
        "Documents that were read, by verdict.",
        by: "verdict"
    )

    /// - Parameters:
    ///   - registry: the readers.
    ///   - folder: the trusted authorities; without any their check stays undone.
    ///   - time: seconds since 1970.
    ///   - now: the clock of dialogues.
    package init(
        _ registry: ReaderRegistry,
        _ folder: DocumentAnchorFolder,
        time: @escaping @Sendable () -> Int = { Int(Loop.wallClock / 1000) },
        now: @escaping Now = { ContinuousClock.now }
    ) {
        self.registry = registry
        self.folder = folder
        self.time = time
        self.now = now
    }

    package var commands: [CommandSpec] {
        [
            CommandSpec(
                "RUN_READ_DOCUMENT",
                DocumentMessage.name,
                permission: [.cards, .documents],
                isForIdle: true,
                refusal: Self.refusal,
                runReadDocument
            ),
            CommandSpec(answering: "SET_MRZ", permission: [.cards, .documents]),
            CommandSpec("GET_DOCUMENT_ANCHORS", "DOCUMENT_ANCHORS", permission: .documents, anchors),
        ]
    }

    /// DOCUMENT after a failure.
    private static func refusal(_ failure: Failure, _: Session) -> Reply {
        Reply(DocumentMessage.name) { object in
            object.member("success", false)
            object.member("error", failure.code.rawValue)
            object.member("message", failure.message)
            for member in failure.details {
                object.key(member.key)
                object.value(member.value)
            }
        }
    }

    // MARK: Authorities

    /// After this time, in seconds, the newest file is too old: countries change their keys and publish their
    /// revocations. Six months.
    private static let maximumAge = 183 * 86_400

    private func anchors(_ call: Call) async throws(Failure) -> Reply {
        let summary = await folder.summary(at: time())
        return Reply("DOCUMENT_ANCHORS") { [folder] object in
            object.member("folder", folder.path)
            object.member("authorities", summary.authorities)
            object.member("countries", summary.countries)
            object.member("links", summary.links)
            object.member("crls", summary.revocationLists)
            object.member("lists", summary.lists)
            if let newest = summary.newest { object.member("newest", DocumentTime.text(newest)) }
            object.member("warnings", summary.warnings)
        }
    }

    package func health() async -> [HealthCheck] {
        let name = "documentAnchors"
        let summary = await folder.summary(at: time())
        var facts = [HealthCheck.Fact("authorities", summary.authorities), .init("folder", folder.path)]
        let unusable = HealthCheck.unusable(
            name,
            folder.path,
            command: "documents",
            unread: summary.unread,
            lists: summary.authorities > 0 ? summary.unusableLists.map { ($0.place, $0.fault) } : [],
            facts: facts
        )
        if let unusable { return [unusable] }
        guard let newest = summary.newest, summary.authorities > 0 else {
            let isMissing = access(folder.path, F_OK) != 0
            if isMissing, folder.mayBeMissing { return [HealthCheck(name, ok: true, facts: facts)] }
            return [
                HealthCheck(
                    name,
                    ok: false,
                    isOptional: !isMissing,
                    cause: isMissing
                        ? "the folder \(folder.path) is missing, so no document can be called genuine"
                        : "no authority of electronic documents is trusted, so no document can be called genuine",
                    advice: "import the certificates: sudo badgectl documents anchors import FILE",
                    facts: facts
                )
            ]
        }
        facts.insert(.init("newest", DocumentTime.text(newest)), at: 1)
        let isOld = newest < time() - Self.maximumAge
        return [
            HealthCheck(
                name,
                ok: !isOld,
                cause: isOld
                    ? "nothing was imported since \(DocumentTime.text(newest)), for more than six months" : nil,
                advice: isOld ? "import a newer master list: sudo badgectl documents anchors import FILE" : nil,
                facts: facts
            )
        ]
    }

    package func metrics() -> [Metric] { [readings.metric] }

    // MARK: RUN_READ_DOCUMENT

    private func runReadDocument(_ call: Call) throws(Failure) -> Reply {
        let request = try DocumentRequest(call)
        return .workflow("READ_DOCUMENT", announcedBy: WrittenMessage("DOCUMENT")) {
            [self] workflow throws(Failure) in
            try await read(request, workflow)
        }
    }

    private func read(_ request: DocumentRequest, _ workflow: Workflow) async throws(Failure) -> Reply {
        let dialogue = CardDialogue<DocumentRequirements>(
            registry,
            workflow,
            readerName: request.readerName,
            DocumentRequirements(),
            cancelLimit: 50,
            now: now
        )
        let run = ReadDocument(request, workflow, folder, time: time, position: dialogue.cardPosition)
        try await dialogue.run { document throws(Failure) in try await run.read(document) }
        let message = try run.message()
        readings.add(message.verdict.rawValue)
        workflow.session.log(
            .info,
            "\(workflow.session.name): document read, \(message.groupCount) groups, \(message.verdict.rawValue)"
        )
        return Reply(message)
    }
}
