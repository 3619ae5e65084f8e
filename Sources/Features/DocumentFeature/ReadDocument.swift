// SPDX-License-Identifier: GPL-3.0-or-later
import Cards
import Concurrency
import CountryAuthorities
import Document
import ISO7816
import Readers
import Server
import Text
import Wire

/// What RUN_READ_DOCUMENT asks for.
struct DocumentRequest {
    private(set) var groups: Set<Int> = [1, 2, 11, 12]
    private(set) var wantsPortrait = true
    private(set) var wantsRaw = false
    private(set) var policy = DocumentChip.BACPolicy.whenNoPACE
    private(set) var readerName: String?
    /// The MRZ or CAN, if the command has it.
    private(set) var key: AccessKey?

    @Loop init(_ call: Call) throws(Failure) {
        let arguments = call.arguments
        readerName = try arguments.optionalText("reader", 1...255)
        let numbers = try arguments.list("groups", 0...16, of: "a whole number from 1 to 16") { value in
            value.int.flatMap { (1...16).contains($0) ? $0 : nil }
        }
        if let numbers { groups = Set(numbers) }
        wantsPortrait = try arguments.flag("portrait") ?? true
        wantsRaw = try arguments.isSet("raw")
        let words = DocumentChip.BACPolicy.allCases.map { ($0.rawValue, $0) }
        policy = try arguments.optionalWord("allowBAC", words) ?? .whenNoPACE
        switch (arguments.has("mrz"), arguments.has("can")) {
        case (true, true): throw Failure(.wrongArgument, "Parameter 'mrz' excludes parameter 'can'")
        case (true, false): key = try DocumentKeyArguments.zone(call, "mrz")
        case (false, true): key = try DocumentKeyArguments.can(call, "can")
        case (false, false): break
        }
    }
}

/// One reading of a document, which goes on when the document comes back.
@Loop final class ReadDocument {
    private let request: DocumentRequest
    private let workflow: Workflow
    private let time: Int
    /// The authorities, which are read while the client is asked.
    private let anchors: Task<DocumentAnchors, Never>
    private var reading: DocumentReading
    private var reader = ""
    /// The key that a chip has accepted, and the EF.CardAccess of this chip.
    private var accepted: (key: AccessKey, cardAccess: [UInt8]?, abilities: ReadAbilities)?
    /// How often the chip may still be reset.
    private var resets = 8

    init(_ request: DocumentRequest, _ workflow: Workflow, _ folder: DocumentAnchorFolder, time: Int) {
        (self.request, self.workflow, self.time) = (request, workflow, time)
        reading = DocumentReading(groups: request.groups)
        anchors = Task.detached { await folder.anchors(at: time) }
    }

    /// Wipes what was read, unless a message has it. After CANCEL the last command may still run until then.
    deinit {
        anchors.cancel()
        reading.wipe()
    }

    /// The final message, which takes what was read.
    /// - Throws: `TooLarge` if the client would not get it.
    func message() throws(Failure) -> DocumentMessage {
        defer { reading = DocumentReading(groups: []) }
        let message = DocumentMessage(reader: reader, reading: reading, request: request, time: time)
        guard message.secretCapacity < DocumentMessage.maximumLength else {
            throw Failure(
                .init("TooLarge"),
                "The data of the document do not fit into one message",
                advice: "ask for fewer groups, or without raw"
            )
        }
        return message
    }

    /// Asks for the key until the chip accepts one, and reads.
    /// - Throws: `.cardLost` when the document has left.
    func read(_ document: OpenDocument) async throws(Failure) {
        guard let offer = document.offer else { throw .notADocument }
        reader = document.lease.reader.name
        if try await goOn(document) { return }
        var refused: AccessKey.Kind?
        while true {
            let isGiven = refused == nil && request.key != nil
            let prompt = DocumentPrompt(
                lease: document.lease,
                acceptsCAN: offer.hasPACE && request.policy != .always,
                refused: refused
            )
            let key: AccessKey
            if isGiven, let given = request.key { key = given } else { key = try await workflow.ask(prompt) }
            let chip = makeChip(
                document,
                key,
                ReadAbilities(usesExtendedLength: document.lease.reader.description.hasExtendedLength)
            )
            do throws(DocumentError) {
                return try await run(chip, key)
            } catch {
                guard case .wrongPassword = error, !isGiven else { throw Failure(error) }
                refused = key.kind
            }
        }
    }

    /// Goes on with a document that has come back, with the key that its chip has accepted before. Another document is
    /// read from its beginning.
    ///
    /// - Returns: false if the client must be asked. A key is only tried again on a chip with the same EF.CardAccess,
    ///   and neither MRZ nor CAN of a document can be blocked.
    private func goOn(_ document: OpenDocument) async throws(Failure) -> Bool {
        guard let known = accepted else { return false }
        accepted = nil
        let chip = makeChip(document, known.key, known.abilities)
        do throws(DocumentError) {
            try await chip.probe()
            if await chip.cardAccess == known.cardAccess {
                try await run(chip, known.key)
                return true
            }
        } catch {
            guard case .wrongPassword = error else { throw Failure(error) }
        }
        reading.wipe()
        reading = DocumentReading(groups: request.groups)
        return false
    }

    private func makeChip(_ document: OpenDocument, _ key: AccessKey, _ abilities: ReadAbilities) -> DocumentChip {
        DocumentChip(channel: document.lease.connection, key: key, policy: request.policy, abilities: abilities)
    }

    /// Reads and checks. What was read before the document has left stays.
    private func run(_ chip: DocumentChip, _ key: AccessKey) async throws(DocumentError) {
        workflow.workBegins()
        // The folder may have hundreds of files.
        let folder = anchors
        let anchors = await folder.cancellableValue
        // A copy, because the reading is not isolated to the loop; the files are not copied.
        var copy = reading
        reading = DocumentReading(groups: request.groups)
        let progress = DocumentProgress(workflow)
        do throws(DocumentError) {
            try await copy.run(chip, key: key, anchors: anchors, at: time, progress: progress.report)
            reading = copy
        } catch {
            reading = copy
            if await chip.access != nil { accepted = (key, await chip.cardAccess, await chip.abilities) }
            // Releasing the card resets it, and the dialogue takes it again.
            guard error == .card(.reset), resets > 0 else { throw error }
            resets -= 1
            throw .card(.removed)
        }
    }
}
