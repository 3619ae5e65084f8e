// SPDX-License-Identifier: GPL-3.0-or-later
package import Host
package import ISO7816
package import Readers
package import ReadersVirtual
import Synchronization
import VirtualEID

/// A backend that a test controls: calls send events, closures answer connections. It simulates what a virtual reader
/// cannot do: exclusive use by another program, refused access, a lost service.
package final class ScriptedReaders: ReaderBackend {
    package typealias Connect = @Sendable (Insertion) async throws(CardError) -> any CardConnection

    package let name: String
    package let events: AsyncStream<ReaderEvent>
    private let continuation: AsyncStream<ReaderEvent>.Continuation
    private let state: Mutex<State>

    private struct State {
        var connect: Connect
        var insertions: [String: Insertion] = [:]
        var count: UInt64 = 0
        var recording = Result<[UInt8], CardError>.failure(.serviceUnavailable)
        var beforeRecording: @Sendable () async -> Void = {}
    }

    package init(_ name: String = "scripted", connect: @escaping Connect) {
        self.name = name
        state = Mutex(State(connect: connect))
        (events, continuation) = AsyncStream.makeStream()
    }

    /// Replaces the closure that makes connections.
    package func onConnect(_ connect: @escaping Connect) { state.withLock { $0.connect = connect } }

    /// Answers `record` from now on, each time after `wait`.
    package func onRecord(_ result: Result<[UInt8], CardError>, after wait: @escaping @Sendable () async -> Void = {}) {
        state.withLock { state in
            state.recording = result
            state.beforeRecording = wait
        }
    }

    package func record(_ reader: String) async throws(CardError) -> [UInt8] {
        await state.withLock { $0.beforeRecording }()
        return try state.withLock { $0.recording }.get()
    }

    package func connect(_ insertion: Insertion) async throws(CardError) -> any CardConnection {
        let (connect, isThere) = state.withLock { ($0.connect, $0.insertions[insertion.reader] == insertion) }
        guard isThere else { throw .removed }
        return try await connect(insertion)
    }

    // MARK: Events

    package func add(_ reader: ReaderDescription) { continuation.yield(.added(reader)) }

    package func change(_ reader: ReaderDescription) { continuation.yield(.changed(reader)) }

    /// Reports that another program holds the card in a reader; `change` reports the end.
    package func hold(_ reader: String) {
        if let insertion = state.withLock({ $0.insertions[reader] }) { continuation.yield(.held(insertion)) }
    }

    /// Removes a reader with its card.
    package func remove(_ reader: String) {
        state.withLock { $0.insertions[reader] = nil }
        continuation.yield(.removed(reader: reader))
    }

    package func report(_ checks: [HealthCheck]) { continuation.yield(.health(checks)) }

    package func insert(into reader: String, answerToReset: [UInt8]? = nil) {
        let insertion = state.withLock { state in
            state.count += 1
            let insertion = Insertion(reader: reader, number: state.count)
            state.insertions[reader] = insertion
            return insertion
        }
        let answer = answerToReset ?? VirtualCard.answerToReset(VirtualEIDDescription.historicalBytes)
        continuation.yield(.inserted(insertion, answerToReset: answer))
    }

    package func withdraw(from reader: String) {
        if let insertion = state.withLock({ $0.insertions.removeValue(forKey: reader) }) {
            continuation.yield(.withdrawn(insertion))
        }
    }
}

/// A connection with a closure that answers commands.
package final class ScriptedConnection: CardConnection {
    package typealias Transmit = @Sendable (CommandAPDU) async throws(CardError) -> ResponseAPDU

    private let onTransmit: Transmit
    private let onDisconnect: @Sendable (_ reset: Bool) async -> Void

    package init(
        transmit: @escaping Transmit,
        disconnect: @escaping @Sendable (_ reset: Bool) async -> Void = { _ in }
    ) {
        (onTransmit, onDisconnect) = (transmit, disconnect)
    }

    /// Creates a connection to a virtual card. `before` runs before each command and can throw.
    package convenience init(
        to card: VirtualCard,
        before: @escaping @Sendable (CommandAPDU) async throws(CardError) -> Void = { _ throws(CardError) in }
    ) {
        self.init { command throws(CardError) in
            try await before(command)
            return try await card.answer(command)
        } disconnect: { reset in
            if reset { await card.reset() }
        }
    }

    package func transmit(_ command: CommandAPDU) async throws(CardError) -> ResponseAPDU {
        try await onTransmit(command)
    }

    package func disconnect(reset: Bool) async { await onDisconnect(reset) }
}

/// A connection through a reader with a keypad; closures take the place of the user.
package final class ScriptedKeypad: KeypadConnection {
    package typealias Establish = @Sendable (KeypadPACERequest) async throws(CardError) -> KeypadPACEResult
    package typealias Modify = @Sendable () async throws(CardError) -> StatusWord

    private let plain: ScriptedConnection
    private let onEstablish: Establish
    private let onModify: Modify

    package init(_ plain: ScriptedConnection, establish: @escaping Establish, modify: @escaping Modify) {
        (self.plain, onEstablish, onModify) = (plain, establish, modify)
    }

    package func transmit(_ command: CommandAPDU) async throws(CardError) -> ResponseAPDU {
        try await plain.transmit(command)
    }

    package func disconnect(reset: Bool) async { await plain.disconnect(reset: reset) }

    package func establishPACE(_ request: KeypadPACERequest) async throws(CardError) -> KeypadPACEResult {
        try await onEstablish(request)
    }

    package func destroyPACE() async throws(CardError) {}

    package func modifyPIN() async throws(CardError) -> StatusWord { try await onModify() }
}

extension VirtualCard {
    /// Sends one command to the card and returns its answer.
    package func answer(_ command: CommandAPDU) async throws(CardError) -> ResponseAPDU {
        switch await exchange(command.bytes) {
        case .answer(let bytes):
            guard let response = ResponseAPDU(bytes: bytes) else { throw .mute }
            return response
        case .mute: throw .mute
        case .removed: throw .removed
        }
    }
}

/// A channel to a virtual card without a reader.
package struct VirtualCardChannel: CardChannel {
    package let card: VirtualCard

    package init(_ card: VirtualCard) { self.card = card }

    package func transmit(_ command: CommandAPDU) async throws(CardError) -> ResponseAPDU {
        try await card.answer(command)
    }
}
