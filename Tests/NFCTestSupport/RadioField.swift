// SPDX-License-Identifier: GPL-3.0-or-later
import Synchronization

/// The radio field of a reader: the card in it and the planned faults.
package final class RadioField: Sendable {
    /// A fault in one exchange of frames.
    package enum Fault: Sendable, Equatable {
        /// The card does not receive the frame.
        case commandLost
        /// The reader does not receive the answer.
        case answerLost
        /// The answer has a wrong CRC.
        case answerDamaged
        /// The reader receives the previous answer again.
        case answerRepeated
        /// The reader receives these bytes.
        case garbage([UInt8])
        /// The right answer comes after this number of milliseconds.
        case slow(Int)
        /// The card loses its power for a moment.
        case powerLost
        /// The card leaves before it receives the frame.
        case removed
        /// The card executes the frame and leaves.
        case removedAfter
    }

    /// What a hostile card does in every exchange.
    package enum Attack: Sendable, Equatable, CaseIterable {
        case extensionStorm, endlessChain, emptyChain, wrongNumbers, refusals, acknowledgements, reserved
    }

    package enum Outcome: Sendable, Equatable {
        case frame([UInt8])
        case nothing
        case damaged
    }

    private struct State {
        var card: PICC?
        var isOn = false
        var exchanges = 0
        var faults: [Int: Fault] = [:]
        var blockFault: (blocksBefore: Int, Fault)?
        var attack: (from: Int, Attack)?
        var isAttacking = false
        var lastAnswer: [UInt8] = []
        var log: [[UInt8]] = []
        /// Counts changes of what `wait` can look at.
        var changes = 0
        var waiters: [CheckedContinuation<Void, Never>] = []
    }
    private let state = Mutex(State())
    private let changeHandler: Mutex<@Sendable () -> Void> = Mutex({})

    package init() {}

    // MARK: For the test

    /// Puts a card into the field.
    package func insert(_ card: PICC) {
        state.withLock { state in
            state.card = card
            state.card?.reset()
            state.exchanges = 0
        }
        changeHandler.withLock { $0 }()
    }

    /// Takes the card out.
    package func remove() {
        state.withLock { state in
            state.card?.reset()
            state.card = nil
        }
        changeHandler.withLock { $0 }()
    }

    /// Plans faults. The keys are numbers of exchanges since the insertion; the activation counts, too. An attack begins
    /// with the first I-block from the given exchange on.
    package func plan(_ faults: [Int: Fault], attack: (from: Int, Attack)? = nil) {
        state.withLock { ($0.faults, $0.attack, $0.isAttacking) = (faults, attack, false) }
    }

    /// Plans a fault for an I-block from now on, so that it hits a command and no presence check.
    package func plan(_ fault: Fault, afterBlocks blocksBefore: Int) {
        state.withLock { $0.blockFault = (blocksBefore, fault) }
    }

    /// The number of exchanges since the insertion.
    package var exchanges: Int { state.withLock { $0.exchanges } }
    /// The number of faults that have not happened yet.
    package var faultsLeft: Int { state.withLock { $0.faults.count } }
    package var isOn: Bool { state.withLock { $0.isOn } }
    package var card: PICC? { state.withLock { $0.card } }
    /// Returns the frames that the reader has sent since the last call.
    package func takeLog() -> [[UInt8]] {
        state.withLock { state in
            defer { state.log = [] }
            return state.log
        }
    }

    /// Returns when the condition holds. It is checked after each exchange and each command to the chip.
    package func wait(until condition: () -> Bool) async throws {
        while true {
            let changes = state.withLock { $0.changes }
            guard !condition() else { return }
            await withTaskCancellationHandler {
                await withCheckedContinuation { continuation in
                    let isChanged = state.withLock { state in
                        guard state.changes == changes, !Task.isCancelled else { return true }
                        state.waiters.append(continuation)
                        return false
                    }
                    if isChanged { continuation.resume() }
                }
            } onCancel: {
                wakeWaiters()
            }
            try Task.checkCancellation()
        }
    }

    func wakeWaiters() {
        let waiters = state.withLock { state in
            defer { state.waiters = [] }
            state.changes += 1
            return state.waiters
        }
        for waiter in waiters { waiter.resume() }
    }

    /// Sets what runs after each insertion and removal.
    func onChange(_ body: @escaping @Sendable () -> Void) { changeHandler.withLock { $0 = body } }

    // MARK: For the chip

    package func turn(on: Bool) {
        defer { wakeWaiters() }
        state.withLock { state in
            guard state.isOn != on else { return }
            state.isOn = on
            state.card?.reset()
        }
    }

    /// The chip looks for a card of this type.
    package func select(_ technology: PICC.Technology) -> PICC? {
        state.withLock { state in
            state.isOn = true
            guard state.card?.technology == technology, state.card?.select() == true else { return nil }
            return state.card
        }
    }

    /// Carries a command in blocks that the chip makes.
    /// - Returns: nil for no answer.
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

    /// Carries a frame to the card and its answer back.
    package func exchange(_ frame: [UInt8]) -> Outcome { exchangeTimed(frame).outcome }

    /// Carries a frame, and returns the milliseconds that the answer takes.
    func exchangeTimed(_ frame: [UInt8]) -> (outcome: Outcome, milliseconds: Int) {
        defer { wakeWaiters() }
        return state.withLock { state in
            state.isOn = true
            state.log.append(frame)
            return Self.exchange(frame, &state)
        }
    }

    private static func exchange(_ frame: [UInt8], _ state: inout State) -> (outcome: Outcome, milliseconds: Int) {
        guard state.card != nil else { return (.nothing, 0) }
        let index = state.exchanges
        state.exchanges += 1
        if let attack = state.attack, index >= attack.from {
            // Presence checks before the next command are answered as usual.
            if isIBlock(frame) { state.isAttacking = true }
            if state.isAttacking { return (answer(attack.1, to: frame), 0) }
        }
        var outcome = Outcome.nothing
        var pause = 0
        switch state.faults.removeValue(forKey: index) ?? blockFault(frame, &state) {
        case nil: outcome = deliver(frame, &state)
        case .commandLost: break
        case .answerLost: _ = deliver(frame, &state)
        case .answerDamaged: if case .frame = deliver(frame, &state) { outcome = .damaged }
        case .answerRepeated:
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

    /// ISO/IEC 14443-4 7.1.1.1.
    private static func isIBlock(_ frame: [UInt8]) -> Bool { frame.first.map { $0 & 0xE2 == 0x02 } == true }

    private static func blockFault(_ frame: [UInt8], _ state: inout State) -> Fault? {
        guard isIBlock(frame), let (blocksBefore, fault) = state.blockFault else { return nil }
        state.blockFault = blocksBefore > 0 ? (blocksBefore - 1, fault) : nil
        return blocksBefore > 0 ? nil : fault
    }

    private static func deliver(_ frame: [UInt8], _ state: inout State) -> Outcome {
        guard let (answer, isRemoved) = state.card?.receive(frame) else { return .nothing }
        if isRemoved { state.card = nil }
        guard let answer else { return .nothing }
        state.lastAnswer = answer
        return .frame(answer)
    }

    private static func answer(_ attack: Attack, to frame: [UInt8]) -> Outcome {
        let control = frame.first ?? 0
        let number = control & 0x01
        switch attack {
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
