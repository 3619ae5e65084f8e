// SPDX-License-Identifier: GPL-3.0-or-later

/// Clients authenticate with virtual cards to an eID-Server on the same machine.
enum AuthenticationBench {
    private static let readers = 10

    static func run(_ settings: Settings, _ report: inout Report) throws(BenchError) {
        guard let program = settings.eidServer else { return }
        try speed(settings, program, &report)
        if report.wants(.authMemory, .authDirty) { try memory(settings, program, &report) }
    }

    private static func speed(
        _ settings: Settings,
        _ program: String,
        _ report: inout Report
    ) throws(BenchError) {
        let server = try EIDServerProcess(program, settings)
        let daemon = try Daemon(settings, ["--no-pcsc", "--config", server.configuration])
        try daemon.waitForReaders(readers)
        // The first runs load libraries and insert a card into each reader.
        _ = try all(daemon, server)

        var total = Samples()
        let one = try processorTime(daemon, server) { () throws(BenchError) in
            for _ in 0..<settings.count(60) { total.add(try Self.one(daemon, server)) }
        }
        var ten = Samples()
        let crowd = try processorTime(daemon, server) { () throws(BenchError) in
            for _ in 0..<settings.count(10) { ten.add(try all(daemon, server)) }
        }
        // A real card takes longer. While one authentication waits for its card, the others run.
        _ = try all(daemon, server, isSlow: true)
        var slowOne = Samples()
        for _ in 0..<settings.count(20) { slowOne.add(try Self.one(daemon, server, isSlow: true)) }
        var slowTen = Samples()
        for _ in 0..<settings.count(10) { slowTen.add(try all(daemon, server, isSlow: true)) }
        try daemon.child.terminate()
        report.add(
            .tenAuths,
            slowTen.median / slowOne.median,
            """
            \(text(slowTen.median, 0)) against \(text(slowOne.median, 0)) ms, n=\(slowTen.count); \
            with cards that answer at once \(text(ten.median / total.median, 1)): \(text(ten.median, 0)) ms
            """
        )

        let busy = Samples(Array(try server.end().dropFirst(readers).prefix(total.count)))
        report.add(.auth, total.median, "p99 \(text(total.percentile(99), 1)) ms, n=\(total.count)")
        report.add(.authBeyond, total.median - busy.median, "")
        report.add(.authServer, busy.median, "the server's own measure, without TLS")
        let perRun = one.daemon / Double(total.count)
        report.add(
            .authProcessor,
            perRun,
            "of ten at once \(text(crowd.daemon / Double(ten.count * readers), 1)) ms; "
                + "the server's own \(text(one.server / Double(total.count), 1)) ms"
        )
    }

    /// Growth of memory from a new daemon to some seconds after its last authentication.
    private static func memory(
        _ settings: Settings,
        _ program: String,
        _ report: inout Report
    ) throws(BenchError) {
        let server = try EIDServerProcess(program, settings)
        let daemon = try Daemon(settings, ["--no-pcsc", "--config", server.configuration])
        try daemon.waitForReaders(readers)
        let before = try daemon.figures.memory()
        let count = settings.count(60)
        for _ in 0..<count { _ = try one(daemon, server) }
        // The last threads and connections end meanwhile.
        pause(milliseconds: 3000)
        let after = try daemon.figures.memory()
        try daemon.child.terminate()
        _ = try server.end()
        let words = "from \(text(before.resident / 1024, 1)) MB idle, after \(count)"
        report.add(.authMemory, (after.resident - before.resident) / 1024, words)
        report.add(
            .authDirty,
            (after.privateDirty - before.privateDirty) / 1024,
            "from \(text(before.privateDirty / 1024, 1)) MB; the rest are pages of libraries' files"
        )
    }

    /// Milliseconds on processors while `body` runs.
    private static func processorTime(
        _ daemon: Daemon,
        _ server: EIDServerProcess,
        _ body: () throws(BenchError) -> Void
    ) throws(BenchError) -> (daemon: Double, server: Double) {
        let before = (try daemon.figures.processorTime(), try server.figures.processorTime())
        try body()
        return (
            try daemon.figures.processorTime() - before.0, try server.figures.processorTime() - before.1
        )
    }

    /// - Returns: milliseconds from the command to the result.
    private static func one(
        _ daemon: Daemon,
        _ server: EIDServerProcess,
        isSlow: Bool = false
    ) throws(BenchError) -> Double {
        try run(1, daemon, server, isSlow)
    }

    /// One authentication on each reader.
    /// - Returns: milliseconds from the first command to the last result.
    private static func all(
        _ daemon: Daemon,
        _ server: EIDServerProcess,
        isSlow: Bool = false
    ) throws(BenchError) -> Double {
        try run(readers, daemon, server, isSlow)
    }

    private static func run(
        _ count: Int,
        _ daemon: Daemon,
        _ server: EIDServerProcess,
        _ isSlow: Bool
    ) throws(BenchError) -> Double {
        let url = server.tcTokenURL
        return try Dialogue.runAll(try Dialogue.clients(count, of: daemon)) { (client, index) throws(BenchError) in
            try Dialogue.startAuthentication(client, Dialogue.simulator(index), url)
        } step: { (client, index) throws(BenchError) in
            try Dialogue.authenticationStep(client, Dialogue.simulator(index), isSlow: isSlow)
        }
    }
}
