// SPDX-License-Identifier: GPL-3.0-or-later
import Cards
import Concurrency
import CountryAuthorities
import Document
import ISO7816
import Readers
import Server
import Text

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
    private let position: @Loop (Bool) -> Void
    private let workflow: Workflow
    private let folder: DocumentAnchorFolder
    private let now: @Sendable () -> Int
    /// When the last reading of the chip began, in seconds since 1970: possibly days after the command.
    private var time = 0
    private var authorities: Task<DocumentAnchors, Never>?
    /// The same, begun while the client is asked.
    private var early: Task<DocumentAnchors, Never>?
    private var reading: DocumentReading
    /// What has happened to the document of `reading`.
    private var tries = Tries()
    private var reader = ""
    private var next = NextAccess.asks(refused: nil)

    /// What one document has taken of its tries.
    private struct Tries {
        static let maximumResets = 8
        /// How many failures of a reading may be disturbances; of steps without progress, too.
        static let maximumFailures = 3

        /// What has failed once. What fails twice counts.
        var doubts: Set<DocumentReading.Doubt> = []
        var failures: [DocumentError] = []
        /// How often the chip may still be reset, unless a reading gets further.
        var resets = maximumResets
        /// How often the chip gave no answer of its own in a step since the reading got further.
        var interruptions = 0
        /// How far the reading has got.
        var furthest = 0
    }

    /// How the next card is opened.
    private enum NextAccess {
        /// The client is asked, after the chip has refused a value of this kind.
        case asks(refused: AccessKey.Kind?)
        /// Without a question, as far as the card is the same.
        case goesOn(KnownChip)
    }

    /// What is known of a chip after its reset.
    private struct KnownChip {
        let key: AccessKey
        let insertion: Insertion
        let abilities: ReadAbilities
        /// nil: no chip has accepted the key yet.
        let acceptance: Acceptance?
    }

    /// Which chip has accepted a key.
    private struct Acceptance {
        let insertion: Insertion
        let cardAccess: [UInt8]?
    }

    /// `position` hears whether the document lies well: it does when a run brings something new.
    init(
        _ request: DocumentRequest,
        _ workflow: Workflow,
        _ folder: DocumentAnchorFolder,
        time: @escaping @Sendable () -> Int,
        position: @escaping @Loop (Bool) -> Void
    ) {
        self.request = request
        self.workflow = workflow
        self.folder = folder
        now = time
        self.position = position
        reading = DocumentReading(groups: request.groups)
    }

    /// Wipes what was read, unless a message has it. After CANCEL the last command may still run until then.
    deinit {
        early?.cancel()
        authorities?.cancel()
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

    /// Reads with the key that is known, or asks for one.
    /// - Throws: `.cardLost` when the document has left, and when it is to be reset: before the next value, since some
    ///   chips need that, and before what was disturbed is done once more.
    func read(_ document: OpenDocument) async throws(Failure) {
        // A disturbed answer may hide the application of documents.
        guard let offer = document.offer else { throw mayGoOn(after: .notADocument) ? .cardLost : .notADocument }
        reader = document.lease.reader.name
        let previous = next
        next = .asks(refused: nil)
        switch previous {
        case .goesOn(let known):
            let chip = makeChip(document, offer, known.key, known.abilities)
            if try await isSame(chip, document, known) { return try await run(chip, known.key, document, known) }
            try await ask(document, offer, refused: nil)
        case .asks(let refused):
            try await ask(document, offer, refused: refused)
        }
    }

    /// Forgets the document before: the next one is read from its beginning.
    private func startOver() {
        reading.wipe()
        reading = DocumentReading(groups: request.groups)
        tries = Tries()
        // The folder may have hundreds of files.
        early = readAuthorities(at: now())
    }

    /// Reads the authorities; those of a folder that has not changed are there at once.
    private func readAuthorities(at time: Int) -> Task<DocumentAnchors, Never> {
        Task.detached(executorPreference: Requester.share) { [folder] in await folder.anchors(at: time) }
    }

    /// Asks for the key of a document of which nothing is known.
    private func ask(_ document: OpenDocument, _ offer: DocumentOffer, refused: AccessKey.Kind?) async throws(Failure) {
        startOver()
        let key: AccessKey
        if let given = request.key {
            key = given
        } else {
            let prompt = DocumentPrompt(
                lease: document.lease,
                acceptsCAN: offer.hasPACE && request.policy != .always,
                refused: refused
            )
            key = try await workflow.ask(prompt)
        }
        let abilities = ReadAbilities(
            usesExtendedLength: document.lease.reader.description.hasExtendedLength,
            answerToReset: document.lease.answerToReset
        )
        try await run(makeChip(document, offer, key, abilities), key, document, nil)
    }

    /// Whether the card is still, or again, the one that is known: it was not taken out, or its chip has accepted the key
    /// and has the same EF.CardAccess. Neither MRZ nor CAN of a document can be blocked.
    private func isSame(
        _ chip: DocumentChip,
        _ document: OpenDocument,
        _ known: KnownChip
    ) async throws(Failure) -> Bool {
        if document.lease.insertion == known.insertion { return true }
        guard let acceptance = known.acceptance else { return false }
        reading.wasTakenOut()
        do throws(DocumentError) {
            try await chip.probe()
        } catch {
            guard mayGoOn(after: error) else { throw failure(error, known.key) }
            // Nobody knows yet whether the card is the same.
            next = .goesOn(known)
            throw .cardLost
        }
        return await chip.cardAccess == acceptance.cardAccess
    }

    private func makeChip(
        _ document: OpenDocument,
        _ offer: DocumentOffer,
        _ key: AccessKey,
        _ abilities: ReadAbilities
    ) -> DocumentChip {
        DocumentChip(
            channel: document.lease.connection,
            key: key,
            policy: request.policy,
            hasOfferedPACE: offer.hasPACE,
            abilities: abilities
        )
    }

    /// Reads and checks. What was read before the document has left stays.
    /// `known`: what is known of the chip; nil before the first use of a key.
    private func run(
        _ chip: DocumentChip,
        _ key: AccessKey,
        _ document: OpenDocument,
        _ known: KnownChip?
    ) async throws(Failure) {
        workflow.workBegins()
        let time = now()
        self.time = time
        let authorities = readAuthorities(at: time)
        self.authorities = authorities
        let anchors = await authorities.cancellableValue
        // A copy, because the reading is not isolated to the loop; the files are not copied.
        var copy = reading
        reading = DocumentReading(groups: request.groups)
        let progress = DocumentProgress(workflow)
        do throws(DocumentError) {
            try await copy.run(chip, key: key, anchors: anchors, at: time, progress: progress.report)
            keep(copy)
            guard !copy.doubts.isSubset(of: tries.doubts), tries.resets > 0 else { return }
            tries.doubts.formUnion(copy.doubts)
            throw .card(.reset)
        } catch {
            keep(copy)
            try await stop(error, chip, key, document, known)
        }
    }

    /// Keeps what a run has read. A chip may need a reset after each step, so one that gets further may be reset again.
    private func keep(_ copy: DocumentReading) {
        reading = copy
        if copy.hasBegunAnew { tries = Tries() }
        guard copy.steps > tries.furthest else { return }
        tries.furthest = copy.steps
        position(true)
        tries.resets = Tries.maximumResets
        tries.interruptions = 0
    }

    /// Decides how a reading that has ended early goes on.
    private func stop(
        _ error: DocumentError,
        _ chip: DocumentChip,
        _ key: AccessKey,
        _ document: OpenDocument,
        _ known: KnownChip?
    ) async throws(Failure) {
        let insertion = document.lease.insertion
        var acceptance = known?.acceptance
        if await chip.access != nil { acceptance = Acceptance(insertion: insertion, cardAccess: await chip.cardAccess) }
        // Whether the chip has taken the key since it was put here.
        let isAccepted = acceptance?.insertion == insertion
        if case .wrongPassword = error, !isAccepted {
            // A document that has come back, and has another key after all, is another one.
            if acceptance == nil {
                guard request.key == nil else { throw failure(error, key) }
                next = .asks(refused: key.kind)
            }
            throw .cardLost
        }
        guard mayGoOn(after: error) else { throw failure(error, key) }
        if case .card(.removed) = error, !isAccepted {
            // The document that took the key before may come back.
            if let known, acceptance != nil { next = .goesOn(known) }
        } else {
            next = .goesOn(
                KnownChip(key: key, insertion: insertion, abilities: await chip.abilities, acceptance: acceptance)
            )
        }
        // Releasing the card resets it, and the dialogue takes it again.
        throw .cardLost
    }

    /// Counts the end of a reading.
    /// - Returns: whether the document may be read once more.
    private func mayGoOn(after error: DocumentError) -> Bool {
        switch error {
        case .card(.removed):
            position(false)
        case .card(.reset), .wrongPassword:
            guard tries.resets > 0 else { return false }
            tries.resets -= 1
        case _ where reading.interruptedStep != nil && tries.interruptions < Tries.maximumFailures:
            tries.interruptions += 1
        default:
            let isNew = !tries.failures.contains(error) && tries.failures.count < Tries.maximumFailures
            guard error.mayBeDisturbance, isNew else { return false }
            tries.failures.append(error)
        }
        return true
    }

    private func failure(_ error: DocumentError, _ key: AccessKey) -> Failure {
        Failure(error, key.kind, request.policy)
    }
}
