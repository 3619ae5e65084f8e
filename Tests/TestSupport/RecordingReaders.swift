// SPDX-License-Identifier: GPL-3.0-or-later
package import ISO7816
package import Readers
import ReadersVirtual
import Synchronization
package import Text
package import VirtualEID

/// Virtual readers that record the commands to their cards and can hold commands back. A reader can also appear as a
/// plugged-in reader, which does not accept SET_CARD.
package final class RecordingReaders: VirtualReaderBackend {
    package let name = "virtual"
    package let events: AsyncStream<ReaderEvent>
    private let base: VirtualReaders
    /// The names of the virtual readers, by the names that clients see.
    private let baseNames: [String: String]
    private let takesCards: @Sendable (String) -> Bool
    private let state = Mutex(State())

    private struct State {
        var recorded: [Exchange] = []
        var gates: [Gate] = []
    }

    /// A command to a card with its answer; nil when no answer came.
    package struct Exchange: Sendable {
        package let reader: String
        package let command: CommandAPDU
        package let response: ResponseAPDU?
    }

    /// Creates one virtual reader for each name.
    /// - Parameters:
    ///   - names: the names that clients see, in the order of `Simulator`, `Simulator 2`, ....
    ///   - plugged: the names of the readers that appear as plugged-in readers.
    /// - Throws: `Malformed` when there is no default card.
    package init(_ names: [String] = ["Simulator"], plugged: Set<String> = []) throws {
        let base = VirtualReaders(count: names.count, kinds: [VirtualEIDKind()])
        self.base = base
        var byBase: [String: String] = [:]
        for (index, name) in names.enumerated() { byBase[index == 0 ? "Simulator" : "Simulator \(index + 1)"] = name }
        baseNames = Dictionary(uniqueKeysWithValues: byBase.map { ($1, $0) })
        takesCards = { !plugged.contains($0) }
        let (takesCards, byBaseName) = (takesCards, byBase)
        let (stream, continuation) = AsyncStream<ReaderEvent>.makeStream()
        events = stream
        let relay = Task {
            for await event in base.events {
                continuation.yield(
                    event.renamed {
                        byBaseName[$0] ?? $0
                    } takesCards: {
                        takesCards($0)
                    }
                )
            }
            continuation.finish()
        }
        continuation.onTermination = { _ in relay.cancel() }
    }

    package func connect(_ insertion: Insertion) async throws(CardError) -> any CardConnection {
        let connection = try await base.connect(
            Insertion(reader: baseNames[insertion.reader] ?? insertion.reader, number: insertion.number)
        )
        if let keypad = connection as? any KeypadConnection {
            return RecordingKeypadConnection(self, insertion.reader, keypad)
        }
        return RecordingConnection(self, insertion.reader, connection)
    }

    package func describe(simulator: JSON?, card: JSON?) throws(Malformed) -> any CardDescription {
        try base.describe(simulator: simulator, card: card)
    }

    package func insert(_ description: (any CardDescription)?, into reader: String) async throws(Malformed) -> Bool {
        try await base.insert(description, into: baseNames[reader] ?? reader)
    }

    package func cardState(in reader: String) async -> VirtualEIDState? {
        await base.cardState(in: baseNames[reader] ?? reader)
    }

    package func removeCard(from reader: String) async {
        await base.removeCard(from: baseNames[reader] ?? reader)
    }

    /// Returns whether the card of the reader, inserted or not, has this PIN; costs no try.
    package func cardHasPIN(_ pin: consuming Secret, in reader: String) async -> Bool {
        await base.cardHasPIN(pin, in: baseNames[reader] ?? reader)
    }

    // MARK: Recording

    /// The exchanges with cards since the start or the last `forget`.
    package var recorded: [Exchange] { state.withLock { $0.recorded } }

    package func forget() { state.withLock { $0.recorded = [] } }

    fileprivate func record(_ exchange: Exchange) { state.withLock { $0.recorded.append(exchange) } }

    // MARK: Gates

    /// A gate that holds commands until the test opens it.
    package final class Gate: Sendable {
        fileprivate let isFor: @Sendable (String, CommandAPDU) -> Bool
        private let state = Mutex(State())

        private struct State {
            var isOpen = false
            var waiting: [CheckedContinuation<Void, Never>] = []
            var arrivals: [CheckedContinuation<Void, Never>] = []
        }

        fileprivate init(isFor: @escaping @Sendable (String, CommandAPDU) -> Bool) { self.isFor = isFor }

        /// Releases the waiting commands and all later ones.
        package func open() {
            let waiting = state.withLock { state in
                state.isOpen = true
                defer { state.waiting = [] }
                return state.waiting
            }
            for continuation in waiting { continuation.resume() }
        }

        /// Waits until a command waits at the gate.
        package func arrival() async {
            await withCheckedContinuation { continuation in
                let isThere = state.withLock { state in
                    if state.waiting.isEmpty { state.arrivals.append(continuation) }
                    return !state.waiting.isEmpty
                }
                if isThere { continuation.resume() }
            }
        }

        fileprivate func pass() async {
            await withCheckedContinuation { continuation in
                let (isOpen, arrivals) = state.withLock { state in
                    defer { state.arrivals = [] }
                    if !state.isOpen { state.waiting.append(continuation) }
                    return (state.isOpen, state.arrivals)
                }
                if isOpen { continuation.resume() } else { for arrival in arrivals { arrival.resume() } }
            }
        }
    }

    /// Holds every command that `isFor` accepts until the gate is opened. An operation of a keypad counts as its first
    /// command: MSE:Set AT for PACE, RESET RETRY COUNTER for the change of the PIN.
    package func gate(_ isFor: @escaping @Sendable (_ reader: String, CommandAPDU) -> Bool = { _, _ in true }) -> Gate {
        let gate = Gate(isFor: isFor)
        state.withLock { $0.gates.append(gate) }
        return gate
    }

    fileprivate func pass(_ reader: String, _ command: CommandAPDU) async {
        for gate in state.withLock({ $0.gates }) where gate.isFor(reader, command) { await gate.pass() }
    }
}

extension ReaderEvent {
    fileprivate func renamed(_ name: (String) -> String, takesCards: (String) -> Bool) -> ReaderEvent {
        func renamed(_ description: ReaderDescription) -> ReaderDescription {
            let name = name(description.name)
            return ReaderDescription(
                name: name,
                hasKeypad: description.hasKeypad,
                takesCards: description.takesCards && takesCards(name),
                hasExtendedLength: description.hasExtendedLength
            )
        }
        switch self {
        case .added(let description): return .added(renamed(description))
        case .changed(let description): return .changed(renamed(description))
        case .removed(let reader): return .removed(reader: name(reader))
        case .inserted(let insertion, let answerToReset):
            return .inserted(
                Insertion(reader: name(insertion.reader), number: insertion.number),
                answerToReset: answerToReset
            )
        case .withdrawn(let insertion):
            return .withdrawn(Insertion(reader: name(insertion.reader), number: insertion.number))
        case .held(let insertion): return .held(Insertion(reader: name(insertion.reader), number: insertion.number))
        case .health: return self
        }
    }
}

private struct RecordingConnection: CardConnection {
    private let readers: RecordingReaders
    private let reader: String
    private let base: any CardConnection

    init(_ readers: RecordingReaders, _ reader: String, _ base: any CardConnection) {
        (self.readers, self.reader, self.base) = (readers, reader, base)
    }

    func pass(_ command: CommandAPDU) async { await readers.pass(reader, command) }

    func transmit(_ command: CommandAPDU) async throws(CardError) -> ResponseAPDU {
        await pass(command)
        do throws(CardError) {
            let response = try await base.transmit(command)
            readers.record(.init(reader: reader, command: command, response: response))
            return response
        } catch {
            readers.record(.init(reader: reader, command: command, response: nil))
            throw error
        }
    }

    func disconnect(reset: Bool) async { await base.disconnect(reset: reset) }
}

private struct RecordingKeypadConnection: KeypadConnection {
    private let plain: RecordingConnection
    private let base: any KeypadConnection

    init(_ readers: RecordingReaders, _ reader: String, _ base: any KeypadConnection) {
        plain = RecordingConnection(readers, reader, base)
        self.base = base
    }

    func transmit(_ command: CommandAPDU) async throws(CardError) -> ResponseAPDU {
        try await plain.transmit(command)
    }

    func disconnect(reset: Bool) async { await base.disconnect(reset: reset) }

    func establishPACE(_ request: KeypadPACERequest) async throws(CardError) -> KeypadPACEResult {
        await plain.pass(CommandAPDU(0x00, 0x22, 0xC1, 0xA4))
        return try await base.establishPACE(request)
    }

    func destroyPACE() async throws(CardError) { try await base.destroyPACE() }

    func modifyPIN() async throws(CardError) -> StatusWord {
        await plain.pass(CommandAPDU(0x00, 0x2C, 0x02, 0x03))
        return try await base.modifyPIN()
    }
}
