// SPDX-License-Identifier: GPL-3.0-or-later
import CTestSupport
import Glibc

/// Round trips of GET_INFO, one at a time and pipelined.
enum RoundTripBench {
    private static let question = #"{"cmd":"GET_INFO"}"#

    static func run(_ settings: Settings, _ report: inout Report) throws(BenchError) {
        // Between two processors the kernel has to wake the one that sleeps. On a virtual machine that can take longer
        // than the answer, and differs from run to run.
        guard ctestsupport_keep_to_one_processor() == 0 else { throw BenchError(call: "sched_setaffinity") }
        let together = try rounds(settings)
        ctestsupport_use_all_processors()
        report.add(.roundTrip, together.medians.median, "5 rounds \(together.medians.span(1))")
        report.add(.roundTripTail, together.tails.median, "5 rounds \(together.tails.span(0))")
        report.add(.floor, together.floors.median, "5 rounds \(together.floors.span(1)); a C program with epoll(7)")
        let apart = try rounds(settings)
        report.add(.roundTripApart, apart.medians.median, "5 rounds \(apart.medians.span(1))")
        report.add(.floorApart, apart.floors.median, "5 rounds \(apart.floors.span(1))")

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

    /// Medians and 99th percentiles of round trips in µs, and medians of the bare echo. Rounds of both alternate, so that
    /// other work of the machine disturbs both.
    private static func rounds(
        _ settings: Settings
    ) throws(BenchError) -> (medians: Samples, tails: Samples, floors: Samples) {
        let daemon = try Daemon(settings)
        let client = try daemon.client()
        try client.send(question)
        let size = try client.wait(for: "INFO").bytes.count + 1
        try roundTrips(client, count: 1000, into: nil)
        let floor = try FloorServer(settings, answerSize: size)
        var medians = Samples(), tails = Samples(), floors = Samples()
        for _ in 0..<5 {
            var echoes = Samples(), times = Samples()
            try roundTrips(floor.client, count: settings.count(6000)) { echoes.add($0) }
            floors.add(echoes.median)
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
            // A READER that comes meanwhile is not the answer.
            if line.isMessage("READER") { _ = try client.receive() }
        }
    }

    /// Sends `count` questions without waiting for answers, then waits for the last answer.
    static func pipeline(_ daemon: Daemon, count: Int) throws(BenchError) {
        let client = try daemon.client()
        // Messages that badged sends on connect come before the first answer.
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

/// A program that answers each line by epoll(7) and does nothing else: Tests/BenchmarkFloor.
final class FloorServer {
    private let child: Child
    let client: Client
    /// Microseconds from exec to the first answer.
    let startTime: Double

    init(_ settings: Settings, answerSize: Int = 512) throws(BenchError) {
        let socket = settings.folder + "/floor.sock"
        unlink(socket)
        let start = monotonicNow()
        child = try Child(settings.floor, [socket, String(answerSize)], log: settings.folder + "/floor.log")
        client = try child.connect(to: socket)
        try client.send(#"{"cmd":"GET_INFO"}"#)
        _ = try client.receive()
        startTime = microseconds(since: start)
    }
}
