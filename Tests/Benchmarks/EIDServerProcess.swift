// SPDX-License-Identifier: GPL-3.0-or-later
import Glibc
import Text
import Wire

/// `badged-eidserver`, and a configuration with which badged believes it; docs/testing.md, The eID-Server.
final class EIDServerProcess {
    private let child: Child
    let tcTokenURL: String
    /// Of a daemon with ten virtual readers.
    let configuration: String

    init(_ program: String, folder: String) throws(BenchError) {
        let anchors = folder + "/anchors"
        for path in [anchors, anchors + "/test"] { mkdir(path, 0o700) }
        configuration = folder + "/auth.conf"
        let lines = "[virtual]\nenabled=yes\nreaders=10\n[eid]\ntrust_anchors=\(anchors)\n"
        let file = open(configuration, O_WRONLY | O_CREAT | O_TRUNC, 0o600)
        guard file >= 0, write(file, lines, lines.utf8.count) == lines.utf8.count else {
            throw BenchError(call: configuration)
        }
        close(file)
        child = try Child(
            program,
            ["--out", anchors + "/test", "--reports"],
            log: folder + "/eidserver.log",
            hasOutput: true
        )
        // The address comes when it listens.
        var line: [UInt8] = []
        var byte: UInt8 = 0
        while read(child.output ?? -1, &byte, 1) == 1, byte != 0x0A { line.append(byte) }
        guard line.starts(with: "https://".utf8) else { throw BenchError("badged-eidserver does not start") }
        tcTokenURL = String(decoding: line, as: UTF8.self)
    }

    var figures: ProcessFigures { ProcessFigures(pid: child.pid) }

    /// Ends it.
    /// - Returns: milliseconds of its own work in each run, in their order; what it says of a run that failed is an error.
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
