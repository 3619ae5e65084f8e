// SPDX-License-Identifier: GPL-3.0-or-later
import Cards
import Concurrency
import ISO7816
import Readers
import ReadersRemote
import RemoteDevices
import RemoteFeature
import Synchronization
import TestSupport
import Testing
import Text
import VirtualEID

/// AusweisApp2 as the client: what it has sent goes to a badged that lends a reader, whose card answers as in the recording.
@Suite(.timeLimit(.minutes(5))) @Loop struct RecordedClientTests {
    /// Where badged answers otherwise than the recorded phone, a program made for the recording.
    nonisolated private static let differences: [String: Set<String>] = [
        // badged reports a wrong PIN without the tries that are left, as AusweisApp2 1.26.2 does as the phone.
        "comfort-wrong-pin": ["ResultCode"]
    ]

    @Test(
        "badged answers AusweisApp2 as the recorded phone did",
        arguments: ["basic-change-pin", "comfort-change-pin", "comfort-wrong-pin", "auth-comfort"]
    )
    func replay(_ name: String) async throws {
        let recording = try Recording(name)
        let card = try RecordedCard(recording, hasKeypad: name.contains("comfort"))
        let cable = try Cable()
        let stage = try await RemoteStage(cable: cable, backends: [card.readers], desk: { $0.readers = ["NFC"] })
        card.readers.add(ReaderDescription(name: "NFC", hasKeypad: name.contains("comfort")))
        try await stage.pair()
        await stage.changes.wait { stage.lenders.devices.contains { $0.isConnected } }
        cable.isPlugged = false
        cable.cut(before: 0)
        // The status of the card is the message that is lost; then the desk is free for the recording.
        card.readers.insert(into: "NFC")
        await cable.nextAnnouncement()
        while !stage.desk.registry.hasCard(in: "NFC", for: ObjectIdentifier(stage)) {
            await stage.desk.registry.nextChange()
        }
        card.begin()
        let client = try await RawBorrower(stage, cable)
        var handles: [String: String] = [:]
        for (request, answers) in recording.exchanges {
            var text = String(decoding: request.bytes, as: UTF8.self)
            for (recorded, own) in handles { text = text.replacing(recorded, with: own) }
            client.link.send(Array(text.utf8))
            for recorded in answers {
                let answer = try JSON(try #require(await client.nextText()))
                let without = Self.differences[name] ?? []
                #expect(answer.comparable(without: without) == recorded.comparable(without: without), "\(text)")
                for key in ["ContextHandle", "SlotHandle"] {
                    if let old = recorded[key]?.string, let own = answer[key]?.string { handles[old] = own }
                }
            }
        }
        #expect(card.isUsedUp)
        client.link.close()
        await stage.stop()
    }
}

/// A reader whose card answers as in a recording. Before `begin` it holds a virtual card, so that badged recognises it.
private final class RecordedCard: Sendable {
    private struct State {
        var answers: [(command: String, answer: String)] = []
        var results: [KeypadPACEResult] = []
        var changes: [StatusWord] = []
    }

    let readers: ScriptedReaders
    private let hasKeypad: Bool
    private let state = Mutex(State())

    init(_ recording: Recording, hasKeypad: Bool) throws {
        self.hasKeypad = hasKeypad
        let card = try VirtualEIDDescription().makeCard()
        readers = ScriptedReaders { _ in ScriptedConnection(to: card) }
        for (request, answers) in recording.exchanges {
            guard let answer = answers.first else { continue }
            let output = answer["OutputData"]?.string.flatMap { Hex.decode($0) } ?? []
            try state.withLock { state in
                switch request["msg"]?.string {
                case "IFDTransmit":
                    let command = try #require(request["InputAPDU"]?.string)
                    state.answers.append((command, try #require(answer["ResponseAPDU"]?.string)))
                case "IFDEstablishPACEChannel":
                    let code = try #require(answer["ResultCode"]?.string.flatMap { Hex.decode($0) })
                    let count = [UInt8(truncatingIfNeeded: output.count), UInt8(output.count >> 8)]
                    state.results.append(try #require(PACEChannel.established(code + count + output)))
                case "IFDModifyPIN": state.changes.append(try #require(ResponseAPDU(bytes: output)).status)
                default: break
                }
            }
        }
    }

    /// From now on the card answers as in the recording.
    func begin() {
        readers.onConnect { [self] _ in
            let plain = ScriptedConnection { [self] command throws(CardError) in try answer(command) }
            guard hasKeypad else { return plain }
            return ScriptedKeypad(plain) { [self] _ throws(CardError) in
                guard let result = state.withLock({ $0.results.isEmpty ? nil : $0.results.removeFirst() }) else {
                    throw .mute
                }
                return result
            } modify: { [self] () throws(CardError) in
                guard let status = state.withLock({ $0.changes.isEmpty ? nil : $0.changes.removeFirst() }) else {
                    throw .mute
                }
                return status
            }
        }
    }

    private func answer(_ command: CommandAPDU) throws(CardError) -> ResponseAPDU {
        let next = state.withLock { state in state.answers.isEmpty ? nil : state.answers.removeFirst() }
        guard let next, next.command == Hex.encode(command.bytes), let bytes = Hex.decode(next.answer),
            let answer = ResponseAPDU(bytes: bytes)
        else { throw .mute }
        return answer
    }

    /// Whether the card was asked everything that is in the recording.
    var isUsedUp: Bool { state.withLock { $0.answers.isEmpty && $0.results.isEmpty && $0.changes.isEmpty } }
}
