// SPDX-License-Identifier: GPL-3.0-or-later
package import ISO7816
package import Readers
package import ReadersVirtual
import Synchronization
package import Text

/// Virtual readers with a fault at one command to their card.
package final class FaultyReaders: VirtualReaderBackend {
    package let base: VirtualReaders
    private let state = Mutex(State())

    private struct State {
        var fault: (index: Int, fault: CardFault)?
        var count = 0
        var last: [UInt8] = [0x90, 0x00]
    }

    package init(kinds: [any VirtualCardKind]) { base = VirtualReaders(count: 1, kinds: kinds) }

    package var name: String { base.name }
    package var events: AsyncStream<ReaderEvent> { base.events }

    /// Counts commands from zero on. The command with this index meets the fault.
    package func arm(_ fault: (index: Int, fault: CardFault)?) {
        state.withLock { $0 = State(fault: fault) }
    }

    /// The number of commands since `arm`.
    package var count: Int { state.withLock { $0.count } }

    package func connect(_ insertion: Insertion) async throws(CardError) -> any CardConnection {
        FaultyConnection(self, insertion.reader, try await base.connect(insertion))
    }

    package func describe(simulator: JSON?, card: JSON?) throws(Malformed) -> any CardDescription {
        try base.describe(simulator: simulator, card: card)
    }

    package func insert(_ description: (any CardDescription)?, into reader: String) async throws(Malformed) -> Bool {
        try await base.insert(description, into: reader)
    }

    package func removeCard(from reader: String) async { await base.removeCard(from: reader) }

    /// The fault of the next command.
    fileprivate func next() -> (fault: CardFault?, previous: [UInt8]) {
        state.withLock { state in
            defer { state.count += 1 }
            return (state.fault?.index == state.count ? state.fault?.fault : nil, state.last)
        }
    }

    fileprivate func note(_ answer: [UInt8]) { state.withLock { $0.last = answer } }
}

private struct FaultyConnection: CardConnection {
    private let readers: FaultyReaders
    private let reader: String
    private let base: any CardConnection

    init(_ readers: FaultyReaders, _ reader: String, _ base: any CardConnection) {
        (self.readers, self.reader, self.base) = (readers, reader, base)
    }

    func disconnect(reset: Bool) async { await base.disconnect(reset: reset) }

    func transmit(_ command: CommandAPDU) async throws(CardError) -> ResponseAPDU {
        let (fault, previous) = readers.next()
        switch fault {
        case .removedBefore:
            await readers.removeCard(from: reader)
            throw .removed
        case .failure: return try answer([0x6F, 0x00])
        case .refused: return try answer([0x69, 0x82])
        case nil, .removedAfter, .garbled, .wrongMAC, .replayed: break
        }
        var bytes = try await base.transmit(command).bytes
        switch fault {
        case .removedAfter:
            await readers.removeCard(from: reader)
            throw .removed
        case .garbled: bytes = bytes.dropLast(2).map { $0 &* 31 &+ 7 } + bytes.suffix(2)
        case .wrongMAC: bytes[bytes.count > 2 ? bytes.count - 3 : 1] ^= 1
        case .replayed: bytes = previous
        case nil, .removedBefore, .failure, .refused: break
        }
        return try answer(bytes)
    }

    private func answer(_ bytes: [UInt8]) throws(CardError) -> ResponseAPDU {
        readers.note(bytes)
        guard let response = ResponseAPDU(bytes: bytes) else { throw .mute }
        return response
    }
}
