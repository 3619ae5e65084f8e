// SPDX-License-Identifier: GPL-3.0-or-later
import Glibc

/// exec to the first answer, and SIGTERM to the end.
enum StartBench {
    static func run(_ settings: Settings, _ report: inout Report) throws(BenchError) {
        var start = Samples()
        var stop = Samples()
        for _ in 0..<settings.count(60) {
            let daemon = try Daemon(settings)
            start.add(daemon.startTime / 1000)
            stop.add(try daemon.child.terminate() / 1000)
        }
        let spread = "\(start.span(1)) ms, n=\(start.count)"
        report.add(.start, start.median, spread)
        report.add(.stop, stop.median, "n=\(stop.count)")
    }
}

/// What the daemon costs while nobody wants anything of it.
enum IdleBench {
    /// Milliseconds until the daemon has nothing left of what it did before.
    static let settling = 6500

    static func run(_ settings: Settings, _ report: inout Report) throws(BenchError) {
        let daemon = try Daemon(settings)
        if settings.virtualCard != nil { try daemon.waitForReaders(settings.readers.count) }
        let client = try daemon.client()
        try client.send(#"{"cmd":"GET_INFO"}"#)
        try client.wait(for: "INFO")
        // The language's runtime sends threads home that have had nothing to do for five seconds.
        pause(milliseconds: IdleBench.settling)
        let memory = try daemon.figures.memory()
        report.add(.resident, memory.resident / 1024, "two readers, quiet client")
        report.add(.proportional, memory.proportional / 1024, "")
        report.add(.privateDirty, memory.privateDirty / 1024, "")

        let seconds = settings.count(30)
        let before = try daemon.figures.activity()
        let start = monotonicNow()
        pause(milliseconds: seconds * 1000)
        let after = try daemon.figures.activity()
        let elapsed = Double(monotonicNow() - start) / 1e9
        let note = "\(seconds) s, \(after.threads.count) threads"
        let sum = after.since(before)
        report.add(.wakeUps, Double(sum.switches) / elapsed, note)
        report.add(.idleCPU, Double(sum.runtime) / 1e9 / elapsed * 100, note)
        try daemon.child.terminate()
    }
}

/// Memory after many clients have come and gone.
enum LoadBench {
    static func run(_ settings: Settings, _ report: inout Report) throws(BenchError) {
        let daemon = try Daemon(settings)
        if settings.virtualCard != nil { try daemon.waitForReaders(settings.readers.count) }
        let before = try daemon.figures.memory()
        var clients: [Client] = []
        for _ in 0..<500 { clients.append(try daemon.client()) }
        for client in clients { try client.send(#"{"cmd":"GET_INFO"}"#) }
        for client in clients { try client.wait(for: "INFO") }
        let peak = try daemon.figures.memory()
        clients = []
        try RoundTripBench.pipeline(daemon, count: settings.count(100_000))
        // The server hears of the closed connections a moment later.
        pause(milliseconds: 1000)
        let after = try daemon.figures.memory()
        report.add(
            .afterLoad,
            after.resident / 1024,
            "before \(text(before.resident / 1024, 1)), with 500 clients \(text(peak.resident / 1024, 1))"
        )
        try daemon.child.terminate()
    }
}
