// SPDX-License-Identifier: GPL-3.0-or-later
import CLinux
import Foundation
import Synchronization

/// The reaction of a fake card to a command.
enum FakeAnswer: Sendable {
    case bytes([UInt8])
    /// The card is removed and does not answer.
    case leave
}

enum FakeCard {
    /// The answer to reset of a contactless card without historical bytes. PC/SC part 3.
    static let answerToReset: [UInt8] = [0x3B, 0x80, 0x80, 0x01, 0x01]

    /// Returns the received data and 9000.
    @Sendable static func echo(_ command: [UInt8]) -> FakeAnswer {
        switch command.count {
        case ...5: return .bytes([0x90, 0x00])
        case _ where command[4] == 0 && command.count > 7:
            let length = Int(command[5]) << 8 | Int(command[6])
            return .bytes(Array(command.dropFirst(7).prefix(length)) + [0x90, 0x00])
        default: return .bytes(Array(command.dropFirst(5).prefix(Int(command[4]))) + [0x90, 0x00])
        }
    }
}

/// A card for the virtual reader of vsmartcard.
///
/// The driver listens on a TCP port for each slot, and a connected card is in the reader. A message begins with its
/// length (two bytes, big-endian). Messages of one byte are 0 power off, 1 power on, 2 reset and 4 answer to reset.
final class VPCDCard: Sendable {
    private struct State {
        var stream: Stream?
        var resets = 0
        var answered: ContinuousClock.Instant?
    }
    private let state = Mutex(State())
    private let port: UInt16
    private let answerToReset: [UInt8]
    private let answer: @Sendable ([UInt8]) -> FakeAnswer

    init(
        port: UInt16,
        answerToReset: [UInt8] = FakeCard.answerToReset,
        answer: @escaping @Sendable ([UInt8]) -> FakeAnswer = FakeCard.echo
    ) {
        (self.port, self.answerToReset, self.answer) = (port, answerToReset, answer)
    }

    deinit { remove() }

    var resets: Int { state.withLock { $0.resets } }
    /// The time of the last answer to reset.
    var answered: ContinuousClock.Instant? { state.withLock { $0.answered } }

    /// Inserts the card; returns false when there is no reader.
    @discardableResult
    func insert() -> Bool {
        guard let stream = Stream.connect(port: port) else { return false }
        clinux_tcp_nodelay(stream.fd)
        state.withLock { $0.stream = stream }
        Thread.detachNewThread { [weak self] in
            while let message = Self.receive(stream), let self, self.serve(message, stream) {}
            stream.hangUp()
            stream.close()
        }
        return true
    }

    func remove() {
        state.withLock { state in
            state.stream?.hangUp()
            state.stream = nil
        }
    }

    private static func receive(_ stream: Stream) -> [UInt8]? {
        // The driver sends length and message separately. Delayed acknowledgement would cost 40 ms.
        clinux_tcp_quickack(stream.fd)
        guard let length = stream.read(2) else { return nil }
        clinux_tcp_quickack(stream.fd)
        return stream.read(Int(length[0]) << 8 | Int(length[1]))
    }

    /// Answers a message; returns false when the card is removed.
    private func serve(_ message: [UInt8], _ stream: Stream) -> Bool {
        let reply: [UInt8]
        switch message {
        case [0]: return true
        case [1]: return true
        case [2]:
            state.withLock { $0.resets += 1 }
            return true
        case [4]:
            reply = answerToReset
            state.withLock { $0.answered = .now }
        default:
            guard case .bytes(let bytes) = answer(message) else {
                remove()
                return false
            }
            reply = bytes
        }
        return stream.write([UInt8(reply.count >> 8), UInt8(reply.count & 0xFF)] + reply)
    }
}
