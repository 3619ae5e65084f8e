// SPDX-License-Identifier: GPL-3.0-or-later
import Concurrency
import Crypto
import HDWallet
import ISO7816
import Keycard
import Readers
import ReadersVirtual
import Server
import Store
import Taps
import TestSupport
import Testing
import Text
import VirtualDocument
import VirtualEID
import VirtualKeycard
import VirtualTaps

@testable import Cards
@testable import CredentialFeature
@testable import DocumentFeature
@testable import WalletFeature

/// RECORD_CARD of every kind of virtual card, and what badged recognises when the recording is played.
@Suite("Kinds of recorded cards", .timeLimit(.minutes(5)))
@Loop struct RecordedKindTests {
    /// The kinds that TestServer does not have.
    private final class Kinds: CardFeature {
        let commands: [CommandSpec] = []
        let cardKinds: [any CardKind]

        init(_ cardKinds: [any CardKind]) { self.cardKinds = cardKinds }
    }

    nonisolated private static let virtualKinds = VirtualCardKinds([
        VirtualEIDKind(), VirtualKeycardKind(), VirtualDocumentKind(), VirtualPKOCKind(), VirtualAliroKind(),
        VirtualTagKind(), VirtualMdocKind(),
    ])

    /// `card` of SET_CARD.
    nonisolated static let cards: [String] =
        [
            #"{"kind":"eid"}"#, #"{"kind":"eid","retryCounter":2}"#, #"{"kind":"eid","retryCounter":0}"#,
            #"{"kind":"eid","transportPin":"12345"}"#, #"{"kind":"eid","deactivated":true}"#, #"{"kind":"document"}"#,
            #"{"kind":"pkoc"}"#, #"{"kind":"aliro"}"#, #"{"kind":"aliro","pkoc":true}"#, #"{"kind":"mdoc"}"#,
            #"{"kind":"mdoc","handover":"negotiated"}"#,
        ]
        + ["3.0", "3.1", "4.0"].flatMap { version in
            [#""initialised":false"#, #""pin":"135790""#, #""words":"\#(words)""#].map {
                #"{"kind":"keycard","version":"\#(version)",\#($0)}"#
            }
        }
        + TagType.allCases.map { #"{"kind":"tag","type":"\#($0.rawValue)"}"# }

    nonisolated private static let words = String(repeating: "abandon ", count: 11) + "about"

    /// A server with a card in its reader.
    private func recognize(_ card: VirtualCard) async throws -> (server: TestServer, client: TestClient, card: JSON) {
        let backend = ScriptedReaders { _ throws(CardError) in ScriptedConnection(to: card) }
        let store = StateStore { () throws(Failure) in throw Failure(.internalError, "no pairings here") }
        let server = try await TestServer(
            readers: 0,
            backends: [backend],
            moreFeatures: { _ in
                [
                    Kinds([
                        KeycardKind(KeycardPairings(store), trust: KeycardTrust()), DocumentCardKind(), PKOCCardKind(),
                        AliroCardKind(), TagCardKind(),
                    ])
                ]
            }
        )
        backend.add(ReaderDescription(name: "Desk"))
        await server.ready(["Desk"])
        let client = try server.connect()
        _ = await client.exchange()
        backend.insert(into: "Desk", answerToReset: card.answerToReset)
        let reader = try #require(await client.next("READER"))
        return (server, client, try #require(reader["card"]))
    }

    @Test("a recording is recognised as the card was, in each of its states", arguments: cards)
    func kinds(text: String) async throws {
        let card = try Self.virtualKinds.describe(simulator: nil, card: JSON(text.utf8)).makeCard()
        let live = try await recognize(card)
        let answer = try #require(await live.client.ask(#"{"cmd":"RECORD_CARD","name":"Desk"}"#, "CARD_RECORDING"))
        let recording = try CardRecording(try #require(answer["recording"]?.string).utf8)
        #expect(recording.kind == live.card["kind"]?.string)
        let played = try await recognize(try VirtualCard(RecordedCard(recording)))
        for member in live.card.members ?? [] where member.key != "keyUID" {
            #expect(played.card[member.key] == member.value, "\(member.key)")
        }
        #expect(played.card.members?.map(\.key) == live.card.members?.map(\.key))
        // The number of the keys of a Keycard is another one.
        let uid = live.card["keyUID"]?.string
        #expect(played.card["keyUID"]?.string?.utf8.count == uid?.utf8.count)
        #expect(uid == nil || played.card["keyUID"]?.string != uid)
    }

    /// The value of the object 86 in an answer whose numbers are replaced.
    private func replaced(_ values: [[UInt8]]) throws -> [[UInt8]] {
        let answers = values.map { BERTLV(0x86, $0).encoded + [0x90, 0x00] }
        let recorded = answers.map { CardRecording.Exchange(hex("00A4040001AA"), $0) }
        return try Pseudonyms().replacing(in: recorded).map { try BERTLV($0.answer.dropLast(2)).value }
    }

    @Test("a public key becomes another key of its curve", arguments: Curve.allCases)
    func keys(curve: Curve) throws {
        let key = try ECPrivateKey(on: try curve.group).publicKey
        let new = try replaced([key.uncompressed, key.uncompressed])
        #expect(try ECPublicKey(new[0], on: curve) != key)
        #expect(new[1] == new[0])
    }

    @Test("a key of secp256k1, in both of its forms, and the certificate of a Keycard become others that can be read")
    func certificates() throws {
        let authority = try PrivateKey.generate()
        let card = try PrivateKey.generate().publicKey
        let hash = try DigestAlgorithm.sha256.hash(card.compressed)
        let signature = try authority.sign(hash)
        let id = try #require(try signature.recoveryID(for: hash, by: authority.publicKey))
        let certificate = card.compressed + signature.compact + [id]
        let new = try replaced([card.uncompressed, card.compressed, certificate])
        let key = try PublicKey(new[0])
        #expect(key != card)
        #expect(try PublicKey(new[1]) == key)
        let read = try KeycardCertificate(new[2])
        #expect(read.identity == key)
        #expect(read.authority != authority.publicKey)
    }
}
