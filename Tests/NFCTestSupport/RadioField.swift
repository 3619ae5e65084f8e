// SPDX-License-Identifier: GPL-3.0-or-later
import Synchronization

/// The field above a reader's antenna: what is in it, and what goes wrong in it.
package final class RadioField: Sendable {
    /// What happens to one exchange of frames.
    package enum Fault: Sendable, Equatable {
        /// The card does not get the frame.
        case commandLost
        /// The reader does not get the answer.
        case answerLost
        /// The answer comes with a wrong CRC.
        case answerBroken
        /// The reader gets the answer before, again.
        case answerDoubled
        /// The reader gets these bytes.
        case garbage([UInt8])
        /// The answer is right, after so many milliseconds.
        case slow(Int)
        /// The card loses power for a moment.
        case powerLost
        /// The card leaves before it gets the frame.
        case removed
        /// The card executes the frame and leaves.
        case removedAfter
    }

    /// A card with an evil mind, from then on.
    package enum Malice: Sendable, Equatable, CaseIterable {
        case extensionStorm, endlessChain, emptyChain, wrongNumbers, refusals, acknowledgements, reserved
    }

    package enum Outcome: Sendable, Equatable {
        case frame([UInt8])
        case nothing
        case broken
    }

    private struct State {
        var card: PICC?
        var isOn = false
        var exchanges = 0
        var faults: [Int: Fault] = [:]
        var malice: (from: Int, Malice)?
        var lastAnswer: [UInt8] = []
        var chainNumber: UInt8 = 0
        var visits = 0
        var log: [[UInt8]] = []
    }
    private let state = Mutex(State())
    private let onChange: Mutex<@Sendable () -> Void> = Mutex({})

    package init() {}

    // MARK: For the test

    /// Puts a card into the field.
    package func insert(_ card: PICC) {
        state.withLock { state in
            state.card = card
            state.card?.reset()
            state.exchanges = 0
            state.visits += 1
        }
        onChange.withLock { $0 }()
    }

    /// Takes it out.
    package func remove() {
        state.withLock { state in
            state.card?.reset()
            state.card = nil
        }
        onChange.withLock { $0 }()
    }

    /// What happens to the exchanges of frames, counted from the insertion of the card (activation included).
    package func plan(_ faults: [Int: Fault], malice: (from: Int, Malice)? = nil) {
        state.withLock { ($0.faults, $0.malice) = (faults, malice) }
    }

    /// Exchanges since the insertion.
    package var exchanges: Int { state.withLock { $0.exchanges } }
    /// Faults that have not happened.
    package var faultsLeft: Int { state.withLock { $0.faults.count } }
    package var isOn: Bool { state.withLock { $0.isOn } }
    package var card: PICC? { state.withLock { $0.card } }
    /// Frames of the reader since the last call.
    package func takeLog() -> [[UInt8]] {
        state.withLock { state in
            defer { state.log = [] }
            return state.log
        }
    }

    func notify(_ body: @escaping @Sendable () -> Void) { onChange.withLock { $0 = body } }

    // MARK: For the chip

    package func turn(on: Bool) {
        state.withLock { state in
            guard state.isOn != on else { return }
            state.isOn = on
            state.card?.reset()
        }
    }

    /// The chip looks for cards of this kind.
    package func select(_ technology: PICC.Technology) -> PICC? {
        state.withLock { state in
            state.isOn = true
            guard state.card?.technology == technology, state.card?.select() == true else { return nil }
            return state.card
        }
    }

    /// A command in a chip's own blocks; nil for no answer.
    package func exchangeByChip(_ command: [UInt8]) -> [UInt8]? {
        state.withLock { state in
            switch state.card?.receiveByChip(command) {
            case .answer(let bytes): return bytes
            case .removed:
                state.card = nil
                return nil
            case .mute, nil: return nil
            }
        }
    }

    package func activateByChip() { state.withLock { $0.card?.activateByChip() } }

    package func exchange(_ frame: [UInt8]) -> Outcome { exchangeTimed(frame).outcome }

    /// The same with the milliseconds that the answer takes.
    func exchangeTimed(_ frame: [UInt8]) -> (outcome: Outcome, milliseconds: Int) {
        state.withLock { state in
            state.isOn = true
            state.log.append(frame)
            return Self.exchange(frame, &state)
        }
    }

    private static func exchange(_ frame: [UInt8], _ state: inout State) -> (outcome: Outcome, milliseconds: Int) {
        guard state.card != nil else { return (.nothing, 0) }
        let index = state.exchanges
        state.exchanges += 1
        if let malice = state.malice, index >= malice.from { return (evil(malice.1, frame, &state), 0) }
        var outcome = Outcome.nothing
        var pause = 0
        switch state.faults.removeValue(forKey: index) {
        case nil: outcome = deliver(frame, &state)
        case .commandLost: break
        case .answerLost: _ = deliver(frame, &state)
        case .answerBroken: if case .frame = deliver(frame, &state) { outcome = .broken }
        case .answerDoubled:
            let before = state.lastAnswer
            if case .frame = deliver(frame, &state) { outcome = .frame(before) }
        case .garbage(let bytes):
            _ = deliver(frame, &state)
            outcome = .frame(bytes)
        case .slow(let milliseconds):
            outcome = deliver(frame, &state)
            pause = milliseconds
        case .powerLost: state.card?.reset()
        case .removed:
            state.card?.reset()
            state.card = nil
        case .removedAfter:
            _ = deliver(frame, &state)
            state.card?.reset()
            state.card = nil
        }
        return (outcome, pause)
    }

    private static func deliver(_ frame: [UInt8], _ state: inout State) -> Outcome {
        guard let (answer, isRemoved) = state.card?.receive(frame) else { return .nothing }
        if isRemoved { state.card = nil }
        guard let answer else { return .nothing }
        state.lastAnswer = answer
        return .frame(answer)
    }

    private static func evil(_ malice: Malice, _ frame: [UInt8], _ state: inout State) -> Outcome {
        let control = frame.first ?? 0
        let number = control & 0x01
        switch malice {
        case .extensionStorm: return .frame([0xF2, 0x3B])
        case .endlessChain: return .frame([0x12 | number] + [UInt8](repeating: 0x5A, count: 253))
        case .emptyChain: return .frame([0x12 | number])
        case .wrongNumbers: return .frame([0x02 | (number ^ 1), 0x90, 0x00])
        case .refusals: return .frame([0xB2 | number])
        case .acknowledgements: return .frame([0xA2 | (number ^ 1)])
        case .reserved: return .frame([0xF2, 0x00])
        }
    }
}
