// SPDX-License-Identifier: GPL-3.0-or-later
import Glibc

/// The daemon under measurement.
final class Daemon {
    let child: Child
    let socket: String
    /// Microseconds from exec to the first answer to GET_INFO.
    let startTime: Double

    /// Starts it and gets its first answer.
    init(_ settings: Settings, _ arguments: [String] = []) throws(BenchError) {
        socket = settings.folder + "/badged.sock"
        unlink(socket)
        let start = monotonicNow()
        child = try Child(settings.badged, ["--socket", socket] + arguments, log: settings.folder + "/badged.log")
        let client = try Self.connect(socket, child)
        try client.send(#"{"cmd":"GET_INFO"}"#)
        try client.wait(for: "INFO")
        startTime = microseconds(since: start)
    }

    var figures: ProcessFigures { ProcessFigures(pid: child.pid) }

    func client() throws(BenchError) -> Client { try Client.connected(to: socket) }

    /// Tries every 20 µs, as nothing tells a stranger when a socket begins to listen.
    private static func connect(_ socket: String, _ child: Child) throws(BenchError) -> Client {
        var wait = timespec(tv_sec: 0, tv_nsec: 20_000)
        let deadline = monotonicNow() + 10_000_000_000
        while true {
            if let client = try Client(socket) { return client }
            guard monotonicNow() < deadline, !child.hasEnded() else {
                throw BenchError("badged does not listen; see badged.log in the bench's folder")
            }
            nanosleep(&wait, nil)
        }
    }

    /// A client that has seen a READER or READER_LIST with this many readers.
    func waitForReaders(_ count: Int) throws(BenchError) {
        let client = try client()
        let deadline = monotonicNow() + 10_000_000_000
        while monotonicNow() < deadline {
            try client.send(#"{"cmd":"GET_READER_LIST"}"#)
            if try client.wait(for: "READER_LIST").text.split(separator: "\"attached\":true").count > count { return }
            pause(milliseconds: 10)
        }
        throw BenchError("badged does not find \(count) readers")
    }
}

/// What the bench is told on its command line.
struct Settings {
    /// Path of the daemon.
    var badged = ""
    /// Path of the virtual card; nil: rows that need pcscd and a card are left out.
    var virtualCard: String?
    /// Path of the eID-Server; nil: rows that need it are left out.
    var eidServer: String?
    /// A private folder for sockets and logs.
    var folder = ""
    /// Readers of vpcd and the port of the first.
    var readers = ["Virtual PCD 00 00", "Virtual PCD 00 01"]
    var port = 35963
    /// Divides the number of repetitions; for trying the bench itself.
    var divisor = 1
    /// Rows to measure; empty: all.
    var only: Set<String> = []
    /// Figures that the shell script has found, by row.
    var given: [Row: Double] = [:]
    var baseline = ""
    var writesBaseline = false

    func count(_ number: Int) -> Int { max(number / divisor, 2) }
}
