// SPDX-License-Identifier: GPL-3.0-or-later
import Concurrency
import Foundation
import HDWallet
import ISO7816
import Keycard
import Readers
import ReadersVirtual
import Store
import Synchronization
import TestSupport
import Testing
import Text
import VirtualDocument
import VirtualEID
import VirtualKeycard

@testable import Cards
@testable import CredentialFeature
@testable import DocumentFeature
@testable import EIDFeature
@testable import WalletFeature

/// The recognition of every kind of card by the registry.
@Suite("Recognition of cards", .timeLimit(.minutes(5)))
@Loop struct RecognitionTests {
    /// A card, and what READER must show of it.
    struct Subject: Sendable, CustomTestStringConvertible {
        let name: String
        let kind: String
        let make: @Loop @Sendable () throws -> VirtualCard
        var testDescription: String { name }
    }

    nonisolated static let subjects: [Subject] = [
        .init(name: "eID card", kind: "eid") { try VirtualCard() },
        .init(name: "Keycard 3.1", kind: "keycard") { try keycardCard(#"{"kind":"keycard","version":"3.1"}"#) },
        .init(name: "Keycard 4.0", kind: "keycard") { try keycardCard(#"{"kind":"keycard","version":"4.0"}"#) },
        .init(name: "document", kind: "document") { try VirtualDocumentDescription(card: nil).makeCard() },
        .init(name: "PKOC", kind: "pkoc") { try CredentialStage.card(try Vectors.plainCard()) },
        .init(name: "Aliro", kind: "aliro") { try CredentialStage.card("", kind: "aliro") },
        .init(name: "tag", kind: "tag") { try CredentialStage.card("", kind: "tag") },
    ]

    nonisolated private static func keycardCard(_ text: String) throws -> VirtualCard {
        try VirtualCardKinds([VirtualKeycardKind()]).describe(simulator: nil, card: try JSON(text.utf8)).makeCard()
    }

    /// A single answer that is not what the card has sent. 61xx announces data that the card does not have.
    enum Disturbance: String, CaseIterable, Sendable {
        case s6988 = "6988", s6F00 = "6F00", s6110 = "6110", s6985 = "6985", s6A86 = "6A86", s6D00 = "6D00"
        case lost, failed

        func spoil() throws(CardError) -> ResponseAPDU {
            switch self {
            case .lost: throw .mute
            case .failed: throw .other("disturbed")
            default: return ResponseAPDU(StatusWord(UInt16(rawValue, radix: 16) ?? 0))
            }
        }
    }

    private func kinds() throws -> [any CardKind] {
        let authority = try VirtualKeycardDescription.authority().publicKey.compressed
        let folder = NSTemporaryDirectory() + "badged-recognition-" + UUID().uuidString
        let store = StateStore(folder: folder)
        return [
            EIDCardKind(), KeycardKind(KeycardPairings(store), trust: KeycardTrust(authorities: [authority])),
            DocumentCardKind(), PKOCCardKind(), AliroCardKind(), TagCardKind(),
        ]
    }

    /// Recognises a card while one answer is spoiled.
    /// - Returns: the kind with its members, and the number of commands.
    private func recognize(
        _ subject: Subject,
        at number: Int = 0,
        _ disturbance: Disturbance? = nil,
        tagFirst: Bool = false,
        uid: [UInt8]? = nil
    ) async throws -> (card: String, commands: Int) {
        let card = try subject.make()
        let count = Mutex(0)
        let backend = ScriptedReaders { _ throws(CardError) in
            ScriptedConnection { command throws(CardError) in
                let isNow = count.withLock { count in
                    count += 1
                    return count == number + 1
                }
                let isNumber = command.cla == 0xFF && command.ins == 0xCA
                if isNumber, let uid { return ResponseAPDU(data: uid, StatusWord(0x9000)) }
                let answer = try await card.answer(command)
                guard isNow, let disturbance else { return answer }
                return try disturbance.spoil()
            } disconnect: { reset in
                if reset { await card.reset() }
            }
        }
        let registry = ReaderRegistry()
        registry.kinds = (tagFirst ? [TagCardKind()] : []) + (try kinds())
        registry.add(backend)
        backend.add(ReaderDescription(name: "Desk"))
        backend.insert(into: "Desk", answerToReset: card.answerToReset)
        while true {
            switch registry["Desk"]?.card {
            case .known(let profile):
                let members = JSON.object(profile.members).description
                return ("\(profile.kind) \(members)", count.withLock { $0 })
            case .unknown, .unusable: return ("unknown", count.withLock { $0 })
            case .none?, .recognizing, nil: await registry.nextChange()
            }
        }
    }

    @Test(
        "a reader that knows the number of each card changes no kind, in whatever order the kinds are named",
        arguments: subjects,
        [[0x08, 0xA1, 0xB2, 0xC3], [0x04, 0x11, 0x22, 0x33, 0x44, 0x55, 0x66]]
    )
    func numbers(subject: Subject, uid: [UInt8]) async throws {
        for tagFirst in [false, true] {
            let found = try await recognize(subject, tagFirst: tagFirst, uid: uid).card
            #expect(found.hasPrefix(subject.kind + " "), "\(found)")
        }
    }

    @Test("one spoiled answer does not make another card of the right one", arguments: subjects, Disturbance.allCases)
    func spoiled(subject: Subject, disturbance: Disturbance) async throws {
        let (expected, commands) = try await recognize(subject, at: 0, nil)
        #expect(expected.hasPrefix(subject.kind + " "))
        for number in 0..<commands {
            let (found, _) = try await recognize(subject, at: number, disturbance)
            #expect(found == expected, "command \(number)")
        }
    }

    @Test(
        "a card of no kind is asked once more after an odd refusal, and not after 'not found'",
        arguments: [0x6A82, 0x6F00]
    )
    func unknown(status: Int) async throws {
        let commands = Mutex<[CommandAPDU]>([])
        let card = ScriptedConnection { command throws(CardError) in
            commands.withLock { $0.append(command) }
            return ResponseAPDU(StatusWord(UInt16(status)))
        }
        for kind in try kinds() {
            commands.withLock { $0 = [] }
            #expect(try await kind.recognize(RepeatingChannel(card), answerToReset: []) == nil)
            let sent = commands.withLock { $0 }
            let repeated = sent.indices.dropFirst().filter { sent[$0] == sent[$0 - 1] }.count
            #expect(status == 0x6A82 ? repeated == 0 : repeated * 2 == sent.count)
        }
    }

    @Test("the text for a card of another kind says what to do if it is the right one")
    func words() {
        for obstacle in [CardObstacle.noKeycard, .noEIDCard, DocumentRequirements().wrongKind] {
            #expect(obstacle.text("Desk").contains("put it in again"))
        }
    }
}
