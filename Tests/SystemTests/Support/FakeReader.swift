// SPDX-License-Identifier: GPL-3.0-or-later
import Glibc
import Synchronization
import TestSupport

/// A reader for the driver in `ifd-keypad`. The test controls presence, power, commands and keypad functions.
final class FakeReader: Sendable {
    /// Return codes of ifdhandler.h.
    enum Code {
        static let success: UInt32 = 0
        static let powerFailed: UInt32 = 608
        static let communicationError: UInt32 = 612
        static let notSupported: UInt32 = 614
        static let present: UInt32 = 615
        static let notPresent: UInt32 = 616
    }

    struct Control: Sendable {
        var code = Code.success
        var answer: [UInt8] = []
    }

    private struct State {
        var isPresent = false
        var answerToReset: [UInt8]? = FakeCard.answerToReset
        var events: [Stream] = []
        var commands: [Stream] = []
        var lastReport: (isPresent: Bool, at: ContinuousClock.Instant)?
        var poweredUp: ContinuousClock.Instant?
        var resets = 0
        var controls: [(function: UInt32, input: [UInt8])] = []
    }
    private let state = Mutex(State())
    private let changes = Changes()
    private let answer: @Sendable ([UInt8]) -> FakeAnswer
    private let control: @Sendable (UInt32, [UInt8]) -> Control
    private let listener = Mutex<UnixListener?>(nil)
    let path: String

    init(
        _ path: String,
        answer: @escaping @Sendable ([UInt8]) -> FakeAnswer = FakeCard.echo,
        control: @escaping @Sendable (UInt32, [UInt8]) -> Control = { _, _ in Control(code: Code.notSupported) }
    ) {
        (self.path, self.answer, self.control) = (path, answer, control)
        let new = UnixListener(path) { [weak self] stream in
            let role = stream.read(1)
            if role == [UInt8(ascii: "E")] {
                // A card may have been inserted after the last poll of pcscd and before this connection.
                self?.state.withLock { state in
                    state.events.append(stream)
                    stream.write([1])
                }
            }
            if role == [UInt8(ascii: "C")] {
                self?.state.withLock { $0.commands.append(stream) }
                while let self, let request = Self.receive(stream), stream.write(self.serve(request)) {}
                stream.close()
            }
        }
        listener.withLock { $0 = new }
    }

    deinit { unplug() }

    /// Inserts a card. A card without an answer to reset is mute.
    func insert(answerToReset: [UInt8]? = FakeCard.answerToReset) {
        signal { state in
            state.isPresent = true
            state.answerToReset = answerToReset
        }
    }

    func remove() { signal { $0.isPresent = false } }

    /// Disconnects the reader.
    func unplug() {
        listener.withLock { $0?.end() }
        state.withLock { state in
            for stream in state.events + state.commands { stream.hangUp() }
            state.events = []
            state.commands = []
        }
    }

    /// The time when pcscd last received the answer to reset, or the report that the card is absent.
    var poweredUp: ContinuousClock.Instant? { state.withLock { $0.poweredUp } }
    var absenceReport: ContinuousClock.Instant? {
        state.withLock { $0.lastReport.flatMap { $0.isPresent ? nil : $0.at } }
    }
    var resets: Int { state.withLock { $0.resets } }
    var controls: [(function: UInt32, input: [UInt8])] { state.withLock { $0.controls } }

    /// Waits until pcscd has sent requests after which `condition` holds.
    func wait(until condition: (FakeReader) -> Bool) async { await changes.wait { condition(self) } }

    private func signal(_ body: (inout State) -> Void) {
        state.withLock { state in
            body(&state)
            for stream in state.events { stream.write([1]) }
        }
    }

    private struct Request {
        let operation: UInt8
        let number: UInt32
        let data: [UInt8]
    }

    private static func receive(_ stream: Stream) -> Request? {
        guard let head = stream.read(9) else { return nil }
        let number = { (at: Int) in head[at..<at + 4].reduce(UInt32(0)) { $0 << 8 | UInt32($1) } }
        guard let data = stream.read(Int(number(5))) else { return nil }
        return Request(operation: head[0], number: number(1), data: data)
    }

    private func serve(_ request: Request) -> [UInt8] {
        var reply = Control()
        defer { changes.notify() }
        switch request.operation {
        case 1:
            reply.code = state.withLock { state in
                if state.lastReport?.isPresent != state.isPresent { state.lastReport = (state.isPresent, .now) }
                return state.isPresent ? Code.present : Code.notPresent
            }
        case 2:
            guard request.number != 501 /* down */ else { break }
            state.withLock { state in
                if request.number == 502 /* reset */ { state.resets += 1 }
                state.poweredUp = .now
                reply.answer = state.answerToReset ?? []
                if state.answerToReset == nil { reply.code = Code.powerFailed }
            }
        case 3:
            switch answer(request.data) {
            case .bytes(let bytes): reply.answer = bytes
            case .leave:
                remove()
                reply.code = Code.communicationError
            }
        default:
            state.withLock { $0.controls.append((request.number, request.data)) }
            changes.notify()
            reply = control(request.number, request.data)
        }
        let numbers = [reply.code, UInt32(reply.answer.count)]
        return numbers.flatMap { number in (0..<4).map { UInt8(truncatingIfNeeded: number >> (24 - 8 * $0)) } }
            + reply.answer
    }
}
