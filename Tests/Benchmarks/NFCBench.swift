// SPDX-License-Identifier: GPL-3.0-or-later
import CNFCClient
import Dispatch
import Drivers
import Glibc
import ISO7816
import NFCTestSupport
import Readers
import ReadersNFC
import Synchronization

/// The NFC driver on an emulated PN532, compared with plain C on the same libnfc and board.
enum NFCBench {
    static func run(_ settings: Settings, _ report: inout Report) throws(BenchError) {
        let board = try board()
        let short = [UInt8](repeating: 0x5A, count: 200), long = [UInt8](repeating: 0xA5, count: 30_000)
        let count = settings.count(2000), longCount = settings.count(40)
        // In turns, so that other work on the machine disturbs both.
        var (ours, framed, ourLong, plainLong) = (Samples(), Samples(), Samples(), Samples())
        for _ in 0..<4 {
            try own(board, short, count / 4, into: &ours)
            try plain(board, blocks: false, [0, 0xC0, 0, 0, 200] + short, count / 4, into: &framed)
            try own(board, long, max(1, longCount / 4), into: &ourLong)
            let head: [UInt8] = [0, 0xC0, 0, 0, 0, UInt8(long.count >> 8), UInt8(long.count & 0xFF)]
            try plain(board, blocks: true, head + long, max(1, longCount / 4), into: &plainLong)
        }
        report.add(
            .nfcShort,
            ours.median / framed.median,
            "\(text(ours.median, 0)) µs to \(text(framed.median, 0)) µs, n=\(ours.count)"
        )
        report.add(
            .nfcLong,
            ourLong.median / plainLong.median,
            "\(text(ourLong.median / 1000, 1)) ms to \(text(plainLong.median / 1000, 1)) ms, n=\(ourLong.count)"
        )
        try idle(settings, board, &report)
    }

    private static func board() throws(BenchError) -> EmulatedPN532 {
        do {
            return try EmulatedPN532()
        } catch {
            throw BenchError("no pseudo-terminal for the board")
        }
    }

    private static func plain(
        _ board: EmulatedPN532,
        blocks: Bool,
        _ command: [UInt8],
        _ count: Int,
        into samples: inout Samples
    ) throws(BenchError) {
        board.field.insert(PICC(application: PICC.echo))
        guard let client = cnfc_client_open(board.connection, blocks ? 1 : 0) else {
            throw BenchError("libnfc does not open the board")
        }
        defer { cnfc_client_close(client) }
        var answer = [UInt8](repeating: 0, count: 65_538)
        for _ in 0..<count {
            let start = monotonicNow()
            let length = cnfc_client_exchange(client, command, command.count, &answer, answer.count)
            samples.add(microseconds(since: start))
            guard length > 2 else { throw BenchError("libnfc gets no answer") }
        }
    }

    /// Measures the driver.
    private static func own(
        _ board: EmulatedPN532,
        _ data: [UInt8],
        _ count: Int,
        into samples: inout Samples
    ) throws(BenchError) {
        board.field.insert(PICC(application: PICC.echo))
        let backend = DriverBackend.nfc(devices: [board.connection])
        let result = Mutex<[Double]?>(nil)
        let box = Box(result: result)
        let done = DispatchSemaphore(value: 0)
        Task {
            defer { done.signal() }
            var insertion: Insertion?
            // The end of the stream would end the driver.
            var events = backend.events.makeAsyncIterator()
            while insertion == nil, let event = await events.next() {
                if case .inserted(let found, _) = event { insertion = found }
            }
            defer { withExtendedLifetime(events) {} }
            guard let insertion, let connection = try? await backend.connect(insertion) else { return }
            let times = await exchange(data, times: count, on: connection)
            await connection.disconnect(reset: true)
            await backend.close()
            box.result.withLock { $0 = times }
        }
        done.wait()
        guard let times = box.result.withLock({ $0 }) else { throw BenchError("the driver gets no answer") }
        for time in times { samples.add(time) }
    }

    /// Microseconds of each exchange; nil when one failed.
    private static func exchange(
        _ data: [UInt8],
        times count: Int,
        on connection: any CardConnection
    ) async -> [Double]? {
        var times: [Double] = []
        for _ in 0..<count {
            let start = monotonicNow()
            let answer = try? await connection.transmit(CommandAPDU(0, 0xC0, 0, 0, data: data))
            times.append(microseconds(since: start))
            guard answer?.data.count == data.count else { return nil }
        }
        return times
    }

    private final class Box: Sendable {
        let result: Mutex<[Double]?>
        init(result: consuming Mutex<[Double]?>) { self.result = result }
    }

    /// Measures the daemon and badged-nfc with a board and no card.
    private static func idle(
        _ settings: Settings,
        _ board: EmulatedPN532,
        _ report: inout Report
    ) throws(BenchError) {
        board.field.remove()
        let file = settings.folder + "/nfc.conf"
        let configuration = "[pcsc]\nenabled = no\n[nfc]\ndevices = \(board.connection)\n"
        guard let stream = fopen(file, "w") else { throw BenchError(call: "fopen \(file)") }
        fputs(configuration, stream)
        fclose(stream)
        let daemon = try Daemon(settings, ["--config", file])
        try daemon.waitForReaders(1)
        pause(milliseconds: IdleBench.settling)
        let seconds = settings.count(10)
        let processes = [daemon.figures] + daemon.figures.children
        guard processes.count == 2 else { throw BenchError("badged has not started badged-nfc") }
        let before = try processes.map { (process) throws(BenchError) in try process.activity() }
        let start = monotonicNow()
        pause(milliseconds: seconds * 1000)
        let after = try processes.map { (process) throws(BenchError) in try process.activity() }
        let elapsed = Double(monotonicNow() - start) / 1e9
        let switches = zip(after, before).reduce(0) { $0 + $1.0.since($1.1).switches }
        let memory = try processes[1].memory()
        report.add(
            .nfcWakeUps,
            Double(switches) / elapsed,
            "\(seconds) s, PN532 on a UART; badged-nfc has \(text(memory.privateDirty / 1024, 1)) MiB private and dirty"
        )
        try daemon.child.terminate()
    }
}
