// SPDX-License-Identifier: GPL-3.0-or-later
import CPCSCLite
import Glibc

/// Watches one reader and records when pcscd reports the insertion or removal of a card.
final class ReaderWatch {
    private struct Event {
        var time: UInt64
        var isPresent: Bool
    }

    /// The watching thread uses the context. Another thread may only call SCardCancel with it.
    private let context: SCARDCONTEXT
    private let events: Int32
    private let worker: Worker

    /// - Throws: `BenchError` when pcscd does not answer or has no such reader.
    init(_ reader: String) throws(BenchError) {
        var context: SCARDCONTEXT = 0
        let code = SCardEstablishContext(DWORD(SCARD_SCOPE_SYSTEM), nil, nil, &context)
        guard code == 0 else { throw BenchError("SCardEstablishContext: \(String(code, radix: 16))") }
        var pipes: [Int32] = [-1, -1]
        guard pipe(&pipes) == 0 else { throw BenchError(call: "pipe") }
        self.context = context
        events = pipes[0]
        let sink = pipes[1]
        worker = Worker { [context] in
            reader.withCString { Self.watch(context, $0, sink) }
            close(sink)
        }
    }

    /// Ends the thread.
    func stop() {
        SCardCancel(context)
        worker.join()
        SCardReleaseContext(context)
        close(events)
    }

    private static func watch(_ context: SCARDCONTEXT, _ reader: UnsafePointer<CChar>, _ sink: Int32) {
        var state = SCARD_READERSTATE()
        state.szReader = reader
        // The first call reports the present state.
        state.dwCurrentState = DWORD(SCARD_STATE_UNAWARE)
        var wasPresent: Bool?
        while SCardGetStatusChange(context, DWORD(INFINITE), &state, 1) == 0 {
            let time = monotonicNow()
            let isPresent = state.dwEventState & DWORD(SCARD_STATE_PRESENT) != 0
            state.dwCurrentState = state.dwEventState & ~DWORD(SCARD_STATE_CHANGED)
            if isPresent == wasPresent { continue }
            wasPresent = isPresent
            var event = Event(time: time, isPresent: isPresent)
            guard write(sink, &event, MemoryLayout<Event>.size) > 0 else { return }
        }
    }

    /// Waits until pcscd has reported this state.
    /// - Returns: the time of the report, as `monotonicNow`.
    func wait(present: Bool) throws(BenchError) -> UInt64 {
        while true {
            var event = Event(time: 0, isPresent: false)
            guard read(events, &event, MemoryLayout<Event>.size) == MemoryLayout<Event>.size else {
                throw BenchError("pcscd ended or has no such reader")
            }
            if event.isPresent == present { return event.time }
        }
    }
}

/// Commands through pcscd without badged, to measure the cost of pcscd and the reader.
enum PlainTransfer {
    /// SELECT of the master file, `count` times over one connection.
    /// - Returns: microseconds of each, the card's time included.
    static func run(_ reader: String, count: Int) throws(BenchError) -> Samples {
        let select: [UInt8] = [0x00, 0xA4, 0x00, 0x0C, 0x02, 0x3F, 0x00]
        return Samples(try exchange(reader, Array(repeating: select, count: count)).map(\.time))
    }

    /// Sends commands over one connection, and resets the card at the end if `reset` is true.
    /// - Returns: microseconds of each, the card's time included, and the number of bytes of its answer.
    static func exchange(
        _ reader: String,
        _ commands: [[UInt8]],
        reset: Bool = false
    ) throws(BenchError) -> [(time: Double, length: Int)] {
        var context: SCARDCONTEXT = 0
        var card: SCARDHANDLE = 0
        var protocolInUse: DWORD = 0
        guard SCardEstablishContext(DWORD(SCARD_SCOPE_SYSTEM), nil, nil, &context) == 0 else {
            throw BenchError("SCardEstablishContext failed")
        }
        defer { SCardReleaseContext(context) }
        let (mode, protocols) = (DWORD(SCARD_SHARE_SHARED), DWORD(SCARD_PROTOCOL_T1))
        let code = SCardConnect(context, reader, mode, protocols, &card, &protocolInUse)
        guard code == 0 else { throw BenchError("SCardConnect: \(String(code, radix: 16))") }
        defer { SCardDisconnect(card, DWORD(reset ? SCARD_RESET_CARD : SCARD_LEAVE_CARD)) }
        var times: [(time: Double, length: Int)] = []
        var header = SCARD_IO_REQUEST(
            dwProtocol: protocolInUse,
            cbPciLength: UInt(MemoryLayout<SCARD_IO_REQUEST>.size)
        )
        var answer = [UInt8](repeating: 0, count: 65_538)
        for command in commands {
            var size = DWORD(answer.count)
            let start = monotonicNow()
            guard SCardTransmit(card, &header, command, DWORD(command.count), nil, &answer, &size) == 0, size >= 2
            else { throw BenchError("SCardTransmit failed") }
            times.append((microseconds(since: start), Int(size)))
        }
        return times
    }
}
