// SPDX-License-Identifier: GPL-3.0-or-later
import Glibc

/// Times from exec to the first answer, and from SIGTERM to the end.
enum StartBench {
    static func run(_ settings: Settings, _ report: inout Report) throws(BenchError) {
        var start = Samples(), floor = Samples(), stop = Samples()
        for _ in 0..<settings.count(60) {
            floor.add(try FloorServer(settings).startTime / 1000)
            let daemon = try Daemon(settings)
            start.add(daemon.startTime / 1000)
            stop.add(try daemon.child.terminate() / 1000)
        }
        report.add(.start, start.median, "\(start.span(1)) ms, n=\(start.count)")
        report.add(.startFloor, floor.median, "\(floor.span(1)) ms, n=\(floor.count)")
        report.add(.stop, stop.median, "n=\(stop.count)")
    }
}

/// Memory and wake-ups of the daemon while no client is active.
enum IdleBench {
    /// Milliseconds until the daemon is idle: the runtime of Swift ends threads that had nothing to do for five seconds.
    static let settling = 6500

    static func run(_ settings: Settings, _ report: inout Report) throws(BenchError) {
        let daemon = try Daemon(settings)
        if settings.virtualCard != nil { try daemon.waitForReaders(settings.readers.count) }
        let client = try daemon.client()
        try client.send(#"{"cmd":"GET_INFO"}"#)
        try client.wait(for: "INFO")
        pause(milliseconds: IdleBench.settling)
        let memory = try daemon.figures.memory()
        report.add(.resident, memory.resident / 1024, "two readers, quiet client")
        report.add(.proportional, memory.proportional / 1024, "")
        report.add(.privateDirty, memory.privateDirty / 1024, "")

        let idle = try daemon.figures.watch(seconds: settings.count(30))
        report.add(.wakeUps, idle.wakeUps, idle.note)
        report.add(.idleCPU, idle.share * 100, idle.note)
        try daemon.child.terminate()
    }
}

/// Memory after many clients have connected and left.
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
        // The daemon reads the end of each connection in its next rounds.
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
