// SPDX-License-Identifier: GPL-3.0-or-later
import Glibc

/// The daemon that is measured.
final class Daemon {
    let child: Child
    let socket: String
    /// Microseconds from exec to the first answer to GET_INFO.
    let startTime: Double

    /// Starts the daemon and waits for its first answer.
    init(_ settings: Settings, _ arguments: [String] = []) throws(BenchError) {
        socket = settings.folder + "/badged.sock"
        unlink(socket)
        let start = monotonicNow()
        child = try Child(settings.badged, ["--socket", socket] + arguments, log: settings.folder + "/badged.log")
        let client = try child.connect(to: socket)
        try client.send(#"{"cmd":"GET_INFO"}"#)
        try client.wait(for: "INFO")
        startTime = microseconds(since: start)
    }

    var figures: ProcessFigures { ProcessFigures(pid: child.pid) }

    func client() throws(BenchError) -> Client { try Client.connected(to: socket) }

    /// Waits until a READER_LIST has this many attached readers.
    func waitForReaders(_ count: Int) throws(BenchError) {
        let client = try client()
        let deadline = monotonicNow() + UInt64(Client.timeout) * 1_000_000_000
        while monotonicNow() < deadline {
            try client.send(#"{"cmd":"GET_READER_LIST"}"#)
            if try client.wait(for: "READER_LIST").text.split(separator: "\"attached\":true").count > count { return }
            pause(milliseconds: 10)
        }
        throw BenchError("badged does not find \(count) readers")
    }
}

/// The options of the command line.
struct Settings {
    /// Path of the daemon.
    var badged = ""
    /// Path of the program that is the floor of times.
    var floor = ""
    /// Path of the virtual card; nil: rows that need pcscd and a card are left out.
    var virtualCard: String?
    /// Path of the eID-Server; nil: rows that need it are left out.
    var eidServer: String?
    /// The socket of a TPM; nil: keys are in software.
    var tpm: String?
    /// Path of the M-Pin servers, a program in Python; nil: rows that need them are left out.
    var mpinServer: String?
    /// The catalogue of Tests/Vectors/documents.
    var documents: String?
    /// A private folder for sockets and logs.
    var folder = ""
    /// Readers of vpcd and the port of the first.
    var readers = ["Virtual PCD 00 00", "Virtual PCD 00 01"]
    var port = 35963
    /// The hosts of the fleet.
    var hosts = 1000
    /// The port of a mosquitto that several benches share, since one process has not enough descriptors for 10 000 hosts.
    var broker: UInt16?
    /// Divides the number of repetitions; for trying the bench itself.
    var divisor = 1
    /// Rows to measure; empty: all.
    var only: Set<String> = []
    /// Figures that run.sh has measured.
    var given: [Row: Double] = [:]
    var baseline = ""
    var writesBaseline = false

    func count(_ number: Int) -> Int { max(number / divisor, 2) }

    /// Writes a file into the folder.
    /// - Returns: its path.
    func write(_ name: String, _ content: String) throws(BenchError) -> String {
        try write(name, Array(content.utf8))
    }

    func write(_ name: String, _ content: [UInt8]) throws(BenchError) -> String {
        let path = folder + "/" + name
        let file = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0o600)
        guard file >= 0, Glibc.write(file, content, content.count) == content.count else {
            throw BenchError(call: path)
        }
        close(file)
        return path
    }
}
