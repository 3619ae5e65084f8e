// SPDX-License-Identifier: GPL-3.0-or-later
import CTestSupport
import Glibc

/// One question at a time, and as many as fit.
enum RoundTripBench {
    private static let question = #"{"cmd":"GET_INFO"}"#

    static func run(_ settings: Settings, _ report: inout Report) throws(BenchError) {
        let (medians, tails, floors) = try OneProcessor.run { () throws(BenchError) in try rounds(settings) }
        report.add(.roundTrip, medians.median, "5 rounds \(medians.span(1)), on one processor as the echo below")
        report.add(.roundTripTail, tails.median, "5 rounds \(tails.span(0))")
        report.add(.floor, floors.median, "5 rounds \(floors.span(1)); a thread of the bench answers")
        let (apart, _, echoes) = try rounds(settings)
        report.add(.roundTripApart, apart.median, "5 rounds \(apart.span(1)); the echo \(echoes.span(1))")

        let daemon = try Daemon(settings)
        var rates = Samples()
        for _ in 0..<5 {
            let count = settings.count(200_000)
            let start = monotonicNow()
            try pipeline(daemon, count: count)
            rates.add(Double(count) / (microseconds(since: start) / 1e6))
        }
        report.add(.pipelined, rates.median, "5 rounds \(rates.span(0))")
        try daemon.child.terminate()
    }

    /// Medians and 99th percentiles of round trips in µs, and the medians of a bare echo: rounds of both in turns, that
    /// they see the same weather.
    private static func rounds(
        _ settings: Settings
    ) throws(BenchError) -> (medians: Samples, tails: Samples, floors: Samples) {
        let daemon = try Daemon(settings)
        let client = try daemon.client()
        try client.send(question)
        let size = try client.wait(for: "INFO").bytes.count + 1
        try roundTrips(client, count: 1000, into: nil)
        let echo = try Echo(answerSize: size)
        var medians = Samples(), tails = Samples(), floors = Samples()
        for _ in 0..<5 {
            floors.add(try echo.roundTrips(count: settings.count(3000)).median)
            var times = Samples()
            try roundTrips(client, count: settings.count(6000)) { times.add($0) }
            medians.add(times.median)
            tails.add(times.percentile(99))
        }
        try daemon.child.terminate()
        return (medians, tails, floors)
    }

    private static func roundTrips(_ client: Client, count: Int, into sink: ((Double) -> Void)?) throws(BenchError) {
        for _ in 0..<count {
            let start = monotonicNow()
            try client.send(question)
            let line = try client.receive()
            sink?(microseconds(since: start))
            // READER may come between; it is no answer.
            if !line.isMessage("INFO") { try client.wait(for: "INFO") }
        }
    }

    /// Asks `count` questions without waiting for answers, and waits for the last answer.
    static func pipeline(_ daemon: Daemon, count: Int) throws(BenchError) {
        let client = try daemon.client()
        // What is pushed on connect is through before the first answer.
        try client.send(question)
        try client.wait(for: "INFO")
        let socket = client.socket
        let writer = Worker {
            let perChunk = 1000
            let chunk = Array(String(repeating: question + "\n", count: perChunk).utf8)
            let line = chunk.count / perChunk
            var missing = count
            while missing > 0 {
                let size = min(missing, perChunk) * line
                var sent = 0
                while sent < size {
                    let written = chunk.withUnsafeBytes { raw in
                        Glibc.send(socket, raw.baseAddress.map { $0 + sent }, size - sent, Int32(MSG_NOSIGNAL))
                    }
                    guard written > 0 else { return }
                    sent += written
                }
                missing -= perChunk
            }
        }
        defer { writer.join() }
        do throws(BenchError) {
            try client.count(lines: count)
        } catch {
            shutdown(socket, Int32(SHUT_RDWR))
            throw error
        }
    }
}

/// A thread that answers each line with so many bytes: what the sockets and the scheduler cost without any server.
final class Echo {
    private let socket: Int32
    private let worker: Worker
    private let answerSize: Int

    init(answerSize: Int) throws(BenchError) {
        var pair: [Int32] = [-1, -1]
        guard socketpair(AF_UNIX, Int32(SOCK_STREAM.rawValue), 0, &pair) == 0 else {
            throw BenchError(call: "socketpair")
        }
        (socket, self.answerSize) = (pair[0], answerSize)
        let other = pair[1]
        worker = Worker {
            var question = [UInt8](repeating: 0, count: 256)
            let answer = [UInt8](repeating: 0x20, count: answerSize)
            while read(other, &question, question.count) > 0, write(other, answer, answer.count) == answer.count {}
            close(other)
        }
    }

    deinit {
        shutdown(socket, Int32(SHUT_RDWR))
        worker.join()
        close(socket)
    }

    func roundTrips(count: Int) throws(BenchError) -> Samples {
        var samples = Samples()
        let question = [UInt8](repeating: 0x20, count: 19)
        var answer = [UInt8](repeating: 0, count: answerSize)
        for _ in 0..<count {
            let start = monotonicNow()
            guard write(socket, question, question.count) == question.count else { throw BenchError(call: "write") }
            var missing = answerSize
            while missing > 0 {
                let got = read(socket, &answer, missing)
                guard got > 0 else { throw BenchError(call: "read") }
                missing -= got
            }
            samples.add(microseconds(since: start))
        }
        return samples
    }
}

/// Keeps this thread, and what it starts meanwhile, on one processor. Between two the kernel has to wake the one that
/// sleeps, and on a virtual machine that takes longer than badged's answer: a plain C program that answers through
/// epoll(7) was seen at 11 and at 50 µs there, from one round to the next.
private enum OneProcessor {
    static func run<Result>(_ body: () throws(BenchError) -> Result) throws(BenchError) -> Result {
        guard ctestsupport_keep_to_one_processor() == 0 else { throw BenchError(call: "sched_setaffinity") }
        defer { ctestsupport_use_all_processors() }
        return try body()
    }
}
