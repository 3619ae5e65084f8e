// SPDX-License-Identifier: GPL-3.0-or-later
import Glibc
import Server
import Text

/// `badged-eidserver`, and a configuration of badged that trusts it; docs/testing.md, The eID-Server.
final class EIDServerProcess {
    private let child: Child
    let tcTokenURL: String
    /// The folder of the trust anchors.
    let anchors: String
    /// Path of the configuration; it has ten virtual readers.
    let configuration: String

    init(_ program: String, _ settings: Settings) throws(BenchError) {
        anchors = settings.folder + "/anchors"
        for path in [anchors, anchors + "/test"] { mkdir(path, 0o700) }
        configuration = try settings.write(
            "auth.conf",
            "[virtual]\nenabled=yes\nreaders=10\n[eid]\ntrust_anchors=\(anchors)\n"
        )
        child = try Child(
            program,
            ["--out", anchors + "/test", "--reports"],
            log: settings.folder + "/eidserver.log",
            hasOutput: true
        )
        // The server prints its address when it listens.
        var line: [UInt8] = []
        var byte: UInt8 = 0
        while read(child.output ?? -1, &byte, 1) == 1, byte != 0x0A { line.append(byte) }
        guard line.starts(with: "https://".utf8) else { throw BenchError("badged-eidserver does not start") }
        tcTokenURL = String(decoding: line, as: UTF8.self)
    }

    var figures: ProcessFigures { ProcessFigures(pid: child.pid) }

    /// Ends the server. A failed run is an error.
    /// - Returns: milliseconds of its own work for each run, in their order.
    func end() throws(BenchError) -> [Double] {
        child.signal(SIGTERM)
        var bytes: [UInt8] = []
        var chunk = [UInt8](repeating: 0, count: 65_536)
        while true {
            let count = read(child.output ?? -1, &chunk, chunk.count)
            guard count > 0 else { break }
            bytes += chunk[..<count]
        }
        try child.terminate()
        var times: [Double] = []
        for line in bytes.split(separator: 0x0A) {
            guard let report = try? JSON(line), report["outcome"]?.string == "ok",
                let busy = report["busyMicroseconds"]?.int
            else { throw BenchError("an authentication failed: \(String(decoding: line.prefix(300), as: UTF8.self))") }
            times.append(Double(busy) / 1000)
        }
        return times
    }
}
