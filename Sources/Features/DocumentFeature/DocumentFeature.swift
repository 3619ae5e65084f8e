// SPDX-License-Identifier: GPL-3.0-or-later
package import Cards
package import Concurrency
package import Document
import Host
import ISO7816
import Readers
package import Server
package import Text
import Wire

/// What RUN_READ_DOCUMENT asks for.
struct DocumentRequest {
    var groups: Set<Int> = [1, 2, 11, 12]
    var wantsPortrait = true
    var wantsRaw = false
    var policy = DocumentChip.BACPolicy.whenNoPACE
    var readerName: String?
}

/// Reads electronic documents. docs/protocol/documents.md.
@Loop package final class DocumentFeature: CardFeature {
    package let cardKinds: [any CardKind] = [DocumentCardKind()]
    private let registry: ReaderRegistry
    private let anchors: @Sendable () -> DocumentAnchors
    private let time: @Sendable () -> Int
    private let now: Now

    /// - Parameters:
    ///   - registry: the readers.
    ///   - anchors: the trusted authorities; empty ones leave their check undone.
    ///   - time: seconds since 1970.
    ///   - now: the clock of dialogues.
    package init(
        _ registry: ReaderRegistry,
        anchors: @escaping @Sendable () -> DocumentAnchors,
        time: @escaping @Sendable () -> Int,
        now: @escaping Now = { ContinuousClock.now }
    ) {
        (self.registry, self.anchors, self.time, self.now) = (registry, anchors, time, now)
    }

    package var commands: [CommandSpec] {
        [
            CommandSpec(
                "RUN_READ_DOCUMENT",
                DocumentMessage.name,
                permission: [.cards, .documents],
                isForIdle: true,
                runReadDocument
            ),
            CommandSpec(answering: "SET_MRZ", permission: [.cards, .documents]),
        ]
    }

    /// DOCUMENT after a failure.
    package func refusal(_ failure: Failure, of spec: CommandSpec, _ session: Session) -> Reply {
        Reply(DocumentMessage.name) {
            $0.member("success", false)
            $0.member("error", failure.code.rawValue)
            $0.member("message", failure.message)
        }
    }

    private func runReadDocument(_ call: Call) throws(Failure) -> Reply {
        var request = DocumentRequest()
        request.readerName = try call.arguments.optionalText("reader", 1...255)
        let form = "a whole number from 1 to 16"
        if let groups = try call.arguments.list(
            "groups",
            0...16,
            of: form,
            { value in
                value.int.flatMap { (1...16).contains($0) ? $0 : nil }
            }
        ) {
            request.groups = Set(groups)
        }
        request.wantsPortrait = try call.arguments.flag("portrait") ?? true
        request.wantsRaw = try call.arguments.isSet("raw")
        let words = DocumentChip.BACPolicy.allCases.map { ($0.rawValue, $0) }
        request.policy = try call.arguments.optionalWord("allowBAC", words) ?? .whenNoPACE
        let chosen = request
        return .workflow("READ_DOCUMENT", announcedBy: ReadDocumentStartedMessage()) {
            [self] workflow throws(Failure) in
            try await read(chosen, workflow)
        }
    }

    private func read(_ request: DocumentRequest, _ workflow: Workflow) async throws(Failure) -> Reply {
        let dialogue = CardDialogue<DocumentRequirements>(
            registry,
            workflow,
            readerName: request.readerName,
            DocumentRequirements(),
            now: now
        )
        var reading = DocumentReading(groups: request.groups)
        var reader = ""
        try await dialogue.run { document throws(Failure) in
            reader = document.lease.reader.name
            reading = try await self.read(document, reading, request, workflow)
        }
        let verdict = reading.checks.verdict.rawValue
        workflow.session.log(
            .info,
            "\(workflow.session.name): document read, \(reading.groups.count) groups, \(verdict)"
        )
        return Reply(DocumentMessage(reader: reader, reading: reading, request: request))
    }

    /// Asks for the key until the chip accepts one, and reads.
    private func read(
        _ document: OpenDocument,
        _ begun: DocumentReading,
        _ request: DocumentRequest,
        _ workflow: Workflow
    ) async throws(Failure) -> DocumentReading {
        var isRepeated = false
        while true {
            let prompt = DocumentPrompt(
                lease: document.lease,
                acceptsCAN: document.offer.hasPACE && request.policy != .always,
                isRepeated: isRepeated
            )
            let key = try await workflow.ask(prompt)
            workflow.workBegins()
            let chip = DocumentChip(
                channel: document.lease.connection,
                key: key,
                policy: request.policy,
                usesExtendedLength: document.lease.reader.description.hasExtendedLength
            )
            var reading = begun
            do throws(DocumentError) {
                let progress = DocumentProgress(workflow)
                try await reading.run(chip, key: key, anchors: anchors(), at: time(), progress: progress.report)
                return reading
            } catch {
                guard case .wrongPassword = error else { throw Failure(error) }
                isRepeated = true
            }
        }
    }
}

/// DOCUMENT at the start of the workflow has no members.
private struct ReadDocumentStartedMessage: Message {
    static let name: StaticString = "DOCUMENT"

    func write(to object: inout JSONWriter, _ level: APILevel) {}
}
