// SPDX-License-Identifier: GPL-3.0-or-later
import DoorReaders
import DoorTestSupport
import Glibc
import Synchronization

/// Door readers in the daemon: it replays captures to clients on its socket.
enum ScanBench {
    static func run(_ settings: Settings, _ report: inout Report) throws(BenchError) {
        if report.wants(.scanClient) { try throughput(settings, &report) }
        if report.wants(.floodTail, .floodQuietTail, .floodMemory) { try flood(settings, &report) }
    }

    // MARK: Throughput

    /// Codes of the readers that mark the beginning and the end of a round.
    private static let (first, last): (UInt8, UInt8) = (98, 99)

    /// Replays a dense place without pauses to one client. A second client waits for the marks alone.
    private static func throughput(_ settings: Settings, _ report: inout Report) throws(BenchError) {
        let count = settings.count(200_000)
        var random = Generator(seed: 2)
        var capture = BTSnoop.header
        capture += record(marker(first), at: 0)
        for _ in 0..<count { capture += record(DoorReaderBench.event(&random), at: 0) }
        capture += record(marker(last), at: 0)
        let daemon = try Daemon(settings, replaying: capture)
        let (client, watcher) = (try daemon.client(), try daemon.client())
        try watcher.send(#"{"cmd":"START_SCAN","profiles":["seos"],"lockServiceCodes":[98,99],"updates":0}"#)
        try client.send(#"{"cmd":"START_SCAN"}"#)
        let reader = Drain(client)
        var rates = Samples()
        // The first round may have begun before both clients were connected.
        try wait(watcher, for: last)
        for _ in 0..<3 {
            try wait(watcher, for: first)
            let start = monotonicNow()
            try wait(watcher, for: last)
            rates.add(Double(count) / (microseconds(since: start) / 1e6))
        }
        let note = "3 rounds \(rates.span(0)) of \(count); \(reader.end()) messages"
        report.add(.scanClient, rates.median, note)
        try daemon.child.terminate()
    }

    private static func wait(_ client: Client, for code: UInt8) throws(BenchError) {
        while true {
            let line = try client.wait(for: "DOOR_READER")
            if code == first ? line.contains(#""lockServiceCode":98"#) : line.contains(#""lockServiceCode":99"#) {
                return
            }
        }
    }

    /// Reads and counts the messages of a client on a thread of its own.
    private struct Drain {
        private final class Counter: Sendable {
            let lines = Atomic(0)
        }

        private let client: Client
        private let counter = Counter()
        private let worker: Worker

        init(_ client: Client) {
            self.client = client
            let (socket, counter) = (client.socket, counter)
            worker = Worker {
                var buffer = [UInt8](repeating: 0, count: 65_536)
                while true {
                    let count = recv(socket, &buffer, buffer.count, 0)
                    guard count > 0 else { return }
                    counter.lines.add(buffer[..<count].count { $0 == 0x0A }, ordering: .relaxed)
                }
            }
        }

        /// - Returns: the number of lines.
        func end() -> Int {
            shutdown(client.socket, Int32(SHUT_RDWR))
            worker.join()
            return counter.lines.load(ordering: .relaxed)
        }
    }

    // MARK: Flood

    /// A flood of new addresses, each received once, and a client that asks something else.
    private static func flood(_ settings: Settings, _ report: inout Report) throws(BenchError) {
        // 13 every 2 ms are more than 5000 a second, since pauses become longer than 2 ms.
        let (burst, bursts) = (13, settings.count(4000))
        var capture = BTSnoop.header
        capture += record(marker(first), at: 0)
        for number in 0..<burst * bursts {
            let address = DeviceAddress(bits: 0xC000_0000_0000 | UInt64(number), isRandom: true)
            let report = AdvertisingReport(address: address, rssi: -85)
            capture += record(HCIEvent.event(report, data: seos(2)), at: Int64(number / burst + 1) * 2000)
        }
        capture += record(marker(last), at: Int64(bursts + 1) * 2000)
        let daemon = try Daemon(settings, replaying: capture)
        let (client, watcher, other) = (try daemon.client(), try daemon.client(), try daemon.client())
        _ = try tail(other, 100)
        let quiet = try tail(other, settings.count(3000))
        try watcher.send(#"{"cmd":"START_SCAN","profiles":["seos"],"lockServiceCodes":[98,99],"updates":0}"#)
        try client.send(#"{"cmd":"START_SCAN"}"#)
        let reader = Drain(client)
        try wait(watcher, for: first)
        let start = monotonicNow()
        // The table is full after a second.
        pause(milliseconds: 1500)
        let before = try daemon.figures.memory().resident / 1024
        let busy = try tail(other, settings.count(3000))
        let after = try daemon.figures.memory().resident / 1024
        try wait(watcher, for: last)
        let rate = Double(burst * bursts) / (microseconds(since: start) / 1e6)
        let note = "\(text(rate, 0)) new addresses a second"
        report.add(.floodTail, busy.tail, "\(note); median \(text(busy.median, 1))")
        report.add(.floodQuietTail, quiet.tail, "median \(text(quiet.median, 1))")
        report.add(.floodMemory, after - before, "\(note), the table being full")
        _ = reader.end()
        try daemon.child.terminate()
    }

    /// Round trips of GET_INFO in µs, with pauses of a millisecond. The tail is the median of the p99 of ten parts: other
    /// work of the machine disturbs some parts, work of badged all of them.
    private static func tail(_ client: Client, _ count: Int) throws(BenchError) -> (median: Double, tail: Double) {
        var (times, tails) = (Samples(), Samples())
        for _ in 0..<10 {
            var part = Samples()
            for _ in 0..<max(count / 10, 1) {
                let start = monotonicNow()
                try client.send(#"{"cmd":"GET_INFO"}"#)
                try client.wait(for: "INFO")
                part.add(microseconds(since: start))
                pause(milliseconds: 1)
            }
            for time in part.values { times.add(time) }
            tails.add(part.percentile(99))
        }
        return (times.median, tails.median)
    }

    // MARK: Captures

    private static func record(_ event: [UInt8], at microseconds: Int64) -> [UInt8] {
        BTSnoop.record(event: event, microseconds: microseconds)
    }

    private static func seos(_ code: UInt8) -> [UInt8] {
        [17, 0x07, code, 0, 0, 0x7A, 0x17, 0, 0, 0x80, 0, 0x10, 0, 0, 0, 0x98, 0, 0]
    }

    private static func marker(_ code: UInt8) -> [UInt8] {
        let address = DeviceAddress(bits: 0xD000_0000_0000 | UInt64(code), isRandom: true)
        return HCIEvent.event(AdvertisingReport(address: address, rssi: -90), data: seos(code))
    }
}

extension Daemon {
    /// Starts a daemon that replays a capture to the clients that scan.
    convenience init(_ settings: Settings, replaying capture: [UInt8]) throws(BenchError) {
        let path = try settings.write("capture", capture)
        let configuration = try settings.write("replay.conf", "[ble]\nbackend = replay\nreplay = \(path)\n")
        try self.init(settings, ["--no-pcsc", "--no-nfc", "--config", configuration])
    }
}
