// SPDX-License-Identifier: GPL-3.0-or-later
import HDWallet
import ISO7816
import Keycard
import Readers
import ReadersPCSC
import ReadersVirtual
import Synchronization
import TestSupport
import Testing
import Text
import VirtualKeycard

extension RealServices {
    /// Tests a Keycard in a reader of a real pcscd: our virtual card, or in `make peer-test` the applet of the vendor.
    @Suite("Keycards")
    struct KeycardTests {
        static let cards: [Model] = CardProcess.path == nil ? [.v3_1, .v4_0] : [.applet]

        enum Model: CustomTestStringConvertible {
            case v3_1, v4_0, applet

            var testDescription: String {
                switch self {
                case .v3_1: "3.1"
                case .v4_0: "4.0"
                case .applet: "the vendor's applet 3.1"
                }
            }
        }

        @Test("a new card is set up, used, and reset", arguments: cards)
        func life(model: Model) async throws {
            let slot = try await Slot(model)
            let life = KeycardLife(trust: slot.trust)
            let first = try await slot.connection(after: slot.insert)
            let (uid, pairing) = try await life.begin(on: first)
            await first.disconnect(reset: true)
            let second = try await slot.backend.connect(slot.insertion)
            try await life.end(on: second, keyUID: uid, pairing: pairing)
            await second.disconnect(reset: true)
            try await slot.end()
        }

        @Test("a card that leaves in INIT is reported as removed, and SELECT shows if it has a PIN", arguments: cards)
        func leaves(model: Model) async throws {
            for isExecuted in [false, true] {
                let slot = try await Slot(model)
                let connection = try await slot.connection(after: slot.insert)
                let applet = try await KeycardApplet.select(on: connection, trust: slot.trust)
                try slot.leave(at: KeycardInstruction.initialize, executed: isExecuted)
                await #expect(throws: KeycardError.card(.removed)) {
                    try await applet.initialize(
                        pin: Secret("123456".utf8),
                        puk: Secret("987654321098".utf8),
                        pairingSecret: Secret([UInt8](repeating: 1, count: 32))
                    )
                }
                await connection.disconnect(reset: true)
                try await slot.events.wait(for: "withdrawn \(slot.reader)")
                let again = try await slot.connection(after: slot.insert)
                let found = try await KeycardApplet.select(on: again, trust: slot.trust).info
                #expect(found.isInitialized == isExecuted)
                await again.disconnect(reset: true)
                try await slot.end()
            }
        }
    }
}

/// A reader of pcscd with a new card.
private final class Slot {
    let reader: String
    let backend: PCSCBackend
    let trust: KeycardTrust
    private(set) var insertion = Insertion(reader: "", number: 0)
    let events: Events
    /// nil: pcscd runs already, as the card process needs it.
    private let pcscd: PCSCD?
    private let card: any SlotCard

    init(_ model: RealServices.KeycardTests.Model) async throws {
        switch model {
        case .v3_1, .v4_0:
            PCSCD.cleanUp()
            reader = "Virtual One 00 00"
            card = try VirtualSlotCard(model == .v3_1 ? "3.1" : "4.0")
        case .applet:
            reader = "Virtual PCD 00 00"
            card = try ProcessSlotCard()
        }
        trust = KeycardTrust(authorities: [try card.authority])
        backend = PCSCBackend(absenceTime: PCSCD.absenceTime)
        events = Events(backend)
        pcscd = model == .applet ? nil : try PCSCD([.vpcd("Virtual One", port: 36_000)])
        try await events.wait(for: "added \(reader)")
    }

    func insert() throws { try card.insert() }

    /// Connects to the card that `insert` puts into the reader.
    func connection(after insert: () throws -> Void) async throws -> any CardConnection {
        try insert()
        insertion = try await events.insertion(in: reader)
        return try await backend.connect(insertion)
    }

    /// Lets the card leave at the next command with this instruction.
    func leave(at instruction: UInt8, executed: Bool) throws { try card.leave(at: instruction, executed: executed) }

    /// Ends when pcscd has reported the empty reader, so that the next test does not find this card.
    func end() async throws {
        try card.remove()
        try await events.wait(for: "withdrawn \(reader)")
        await pcscd?.end()
    }
}

private protocol SlotCard {
    /// The compressed key of the authority of the card.
    var authority: [UInt8] { get throws }
    func insert() throws
    func remove() throws
    func leave(at instruction: UInt8, executed: Bool) throws
}

/// Our virtual card in a slot of vpcd.
private final class VirtualSlotCard: SlotCard {
    private struct State {
        let applet: VirtualApplet
        var leave: (instruction: UInt8, isExecuted: Bool)?

        mutating func answer(_ command: [UInt8]) -> FakeAnswer {
            // On a 4.0 card INIT is inside the channel.
            guard let leave, command[1] == leave.instruction || command[1] == KeycardInstruction.securedCommand else {
                return .bytes(applet.process(command))
            }
            self.leave = nil
            if leave.isExecuted { _ = applet.process(command) }
            return .leave
        }
    }

    let authority: [UInt8]
    private let card: VPCDCard

    init(_ version: String) throws {
        let key = try VirtualKeycardDescription.authority()
        authority = key.publicKey.compressed
        let identity = version == "4.0" ? try AppletIdentity(signedBy: key) : nil
        let applet = try VirtualApplet(version == "4.0" ? .v4_0 : .v3_1, identity: identity, sources: CardSources())
        let state = Shared(State(applet: applet))
        shared = state
        card = VPCDCard(port: 36_000) { command in state.value.withLock { $0.answer(command) } }
    }

    private final class Shared: Sendable {
        let value: Mutex<State>
        init(_ state: sending State) { value = Mutex(state) }
    }

    private let shared: Shared

    func insert() throws { try #require(card.insert()) }
    func remove() { card.remove() }
    func leave(at instruction: UInt8, executed: Bool) {
        shared.value.withLock { $0.leave = (instruction, executed) }
    }
}

/// The applet of the vendor.
private final class ProcessSlotCard: SlotCard {
    private let process: CardProcess

    init() throws {
        process = try CardProcess()
        try process.ask("fresh")
    }

    var authority: [UInt8] {
        get throws { hex(try JSON(try process.ask("status").utf8)["ca"]?.string ?? "") }
    }
    func insert() throws { try process.ask("insert") }
    func remove() throws { try process.ask("remove") }
    func leave(at instruction: UInt8, executed: Bool) throws {
        try process.ask("fault 1 \(executed ? "remove-after" : "remove") ins=\(Hex.encode([instruction]))")
    }
}
