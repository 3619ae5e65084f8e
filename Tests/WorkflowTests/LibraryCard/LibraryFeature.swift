// SPDX-License-Identifier: GPL-3.0-or-later
import Cards
import Concurrency
import Host
import ISO7816
import Readers
import Server
import Text

/// A card kind and its dialogue as a developer adds them: a library card that lends a book against a PIN.
///
/// The card answers SELECT of its application with the number of lent books, VERIFY with the tries left, and UPDATE
/// RECORD with the new number. No code in Sources refers to it.
struct LibraryCardKind: CardKind {
    func recognize(
        _ channel: any CardChannel,
        answerToReset: [UInt8]
    ) async throws(CardError) -> (any CardProfile)? {
        let answer = try await channel.transmit(LibraryCommand.select)
        guard answer.status == .ok, answer.data.count == 1 else { return nil }
        return LibraryCardProfile(books: Int(answer.data[0]))
    }
}

struct LibraryCardProfile: CardProfile {
    let kind = "library"
    var books: Int
    var members: [JSON.Member] { [JSON.Member("books", .number(String(books)))] }
    var isUsable: Bool { true }
}

struct LibraryRequirements: CardRequirements {
    let wrongKind = CardObstacle("noLibraryCard") {
        "The card in reader '\($0)' is not a library card: use another one"
    }

    func obstacle(of profile: LibraryCardProfile, in reader: ReaderDescription) -> CardObstacle? { nil }

    func open(_ lease: CardLease, _ profile: LibraryCardProfile) async throws(CardError) -> CardLease {
        _ = try await lease.connection.transmit(LibraryCommand.select)
        return lease
    }
}

/// The card's PIN, which SET_LIBRARY_PIN answers.
struct LibraryPINPrompt: CardPrompt {
    typealias Answer = SecretBox

    let lease: CardLease
    var name: StaticString { "ENTER_LIBRARY_PIN" }

    func message(_ number: Int, to session: Session, error: Phrase?) -> any Message {
        question(number, error: error) { _ in }
    }

    func answer(in call: Call) throws(Failure) -> SecretBox {
        guard call.name == "SET_LIBRARY_PIN" else { throw .badState }
        return try call.secret(.text(0...64))
    }
}

/// LEND at the start and at the end of the workflow.
struct LendMessage: Message {
    static let name: StaticString = "LEND"
    var outcome: String?

    func write(to object: inout JSONWriter, _ level: APILevel) {
        if let outcome { object.member("outcome", outcome) }
    }
}

@Loop final class LibraryFeature: CardFeature {
    private let registry: ReaderRegistry
    let cardKinds: [any CardKind] = [LibraryCardKind()]

    init(_ registry: ReaderRegistry) { self.registry = registry }

    var commands: [CommandSpec] {
        [
            CommandSpec(
                "RUN_LEND",
                LendMessage.name,
                permission: .cards,
                isForIdle: true,
                refusal: { failure, _ in Reply(LendMessage(outcome: "\(failure.message)")) },
                runLend
            ),
            CommandSpec(answering: "SET_LIBRARY_PIN"),
        ]
    }

    private func runLend(_ call: Call) -> Reply {
        .workflow("LEND", announcedBy: LendMessage()) { [registry] workflow throws(Failure) in
            try await Self.lend(registry, workflow)
            return Reply(LendMessage(outcome: "lent"))
        }
    }

    private static func lend(_ registry: ReaderRegistry, _ workflow: Workflow) async throws(Failure) {
        let dialogue = CardDialogue<LibraryRequirements>(
            registry,
            workflow,
            readerName: nil,
            LibraryRequirements(),
            now: { ContinuousClock.now }
        )
        try await dialogue.run { lease throws(Failure) in
            let pin = try await workflow.ask(LibraryPINPrompt(lease: lease))
            do throws(CardError) {
                guard try await lease.connection.transmit(LibraryCommand.verify(pin)).status == .ok else {
                    throw CardError.other("wrong PIN")
                }
                let answer = try await lease.connection.transmit(LibraryCommand.lend)
                lease.update(LibraryCardProfile(books: Int(answer.data.first ?? 0)))
            } catch {
                throw error == .removed ? .cardLost : Failure(.init("WrongPIN"), "wrong PIN")
            }
        }
    }
}

/// The commands of the card.
enum LibraryCommand {
    static let select = CommandAPDU(0x00, 0xA4, 0x04, 0x00, data: [0xD2, 0x76, 0x00, 0x4C, 0x49], le: 256)
    static let lend = CommandAPDU(0x00, 0xDC, 0x01, 0x04, le: 256)

    static func verify(_ pin: SecretBox) -> CommandAPDU {
        CommandAPDU(0x00, 0x20, 0x00, 0x81, data: pin.take()?.withBytes { Array($0) } ?? [])
    }
}
