// SPDX-License-Identifier: GPL-3.0-or-later
import Glibc

/// Clients that answer at once authenticate with virtual cards to an eID-Server on the same machine.
enum AuthenticationBench {
    private static let readers = 10

    /// The parts of one authentication, as badged counts them itself: AuthenticationTimes.
    private static let parts = ["tls", "server", "xml", "card", "cryptography"]

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
        let server = try EIDServerProcess(program, folder: settings.folder)
        let daemon = try Daemon(settings, ["--no-pcsc", "--log-level", "debug", "--config", server.configuration])
        try daemon.waitForReaders(readers)
        // What a first run costs is not what is measured: libraries, one card for each reader.
        _ = try all(daemon, server)
        let first = try took(settings).count

        var total = Samples()
        let one = try processorTime(daemon, server) { () throws(BenchError) in
            for _ in 0..<settings.count(60) { total.add(try Self.one(daemon, server)) }
        }
        let times = try took(settings).dropFirst(first).prefix(total.count)
        var ten = Samples()
        let crowd = try processorTime(daemon, server) { () throws(BenchError) in
            for _ in 0..<settings.count(10) { ten.add(try all(daemon, server)) }
        }
        // A card in a field takes longer than that; while one is waited for the others go on.
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
            \(text(slowTen.median, 0)) against \(text(slowOne.median, 0)) ms, n=\(slowTen.count), everything in; \
            with cards that take no time \(text(ten.median / total.median, 1)): \(text(ten.median, 0)) ms
            """
        )

        let busy = Samples(Array(try server.end().dropFirst(readers).prefix(total.count)))
        var rest = Samples(times.map { $0["total"] ?? 0 }).median
        var split: [String] = []
        for part in parts {
            let median = Samples(times.map { $0[part] ?? 0 }).median
            split.append("\(part) \(text(median, 1))")
            rest -= median
        }
        split.append("rest \(text(rest, 1))")
        let note = "p99 \(text(total.percentile(99), 1)) ms, n=\(total.count): \(split.joined(separator: ", "))"
        report.add(.auth, total.median, note)
        report.add(.authBeyond, total.median - busy.median, "\(text(busy.median, 1)) ms of the server left out")
        let perRun = one.daemon / Double(total.count)
        report.add(
            .authProcessor,
            perRun,
            "of ten at once \(text(crowd.daemon / Double(ten.count * readers), 1)) ms; "
                + "the server's own \(text(one.server / Double(total.count), 1)) ms"
        )
    }

    /// From a cold start: what is left some seconds after the last of some authentications.
    private static func memory(
        _ settings: Settings,
        _ program: String,
        _ report: inout Report
    ) throws(BenchError) {
        let server = try EIDServerProcess(program, folder: settings.folder)
        let daemon = try Daemon(settings, ["--no-pcsc", "--config", server.configuration])
        try daemon.waitForReaders(readers)
        let before = try daemon.figures.memory()
        let count = settings.count(60)
        for _ in 0..<count { _ = try one(daemon, server) }
        // It gives memory back when nobody has authenticated for two seconds.
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

    /// The lines of the log that say where the time went, in milliseconds by their words.
    private static func took(_ settings: Settings) throws(BenchError) -> [[String: Double]] {
        var all: [[String: Double]] = []
        for line in try ProcessFigures.lines(settings.folder + "/badged.log") {
            guard let begin = line.split(separator: ": AUTH took, in ms: ").last, begin != line else { continue }
            var times: [String: Double] = [:]
            for word in begin.split(separator: " ") {
                let pair = word.split(separator: "=")
                if pair.count == 2, let value = Double(pair[1]) { times[String(pair[0])] = value }
            }
            all.append(times)
        }
        return all
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

    private static func name(_ index: Int) -> String { index == 0 ? "Simulator" : "Simulator \(index + 1)" }

    private static func start(_ client: Client, _ index: Int, _ server: EIDServerProcess) throws(BenchError) {
        try client.send(#"{"cmd":"RUN_AUTH","reader":"\#(name(index))","tcTokenURL":"\#(server.tcTokenURL)"}"#)
    }

    /// Answers one message at once. A slow card takes a millisecond for each command.
    /// - Returns: was it the last?
    private static func step(_ client: Client, _ index: Int, isSlow: Bool) throws(BenchError) -> Bool {
        let line = try client.receive()
        if line.isMessage("ACCESS_RIGHTS") {
            try client.send(#"{"cmd":"ACCEPT"}"#)
        } else if line.isMessage("INSERT_CARD") {
            let card = isSlow ? #""card":{"latencyMs":1},"# : ""
            try client.send(#"{\#(card)"cmd":"SET_CARD","name":"\#(name(index))"}"#)
        } else if line.isMessage("ENTER_PIN") {
            try client.send(#"{"cmd":"SET_PIN","value":"123456"}"#)
        } else if line.contains("\"result\":") {
            guard line.contains("resultmajor#ok") else { throw BenchError("not authenticated: \(line.text)") }
            return true
        }
        return false
    }

    /// - Returns: milliseconds from the command to the result.
    private static func one(
        _ daemon: Daemon,
        _ server: EIDServerProcess,
        isSlow: Bool = false
    ) throws(BenchError) -> Double {
        let client = try daemon.client()
        try client.send(#"{"cmd":"GET_INFO"}"#)
        try client.wait(for: "INFO")
        let begin = monotonicNow()
        try start(client, 0, server)
        while try !step(client, 0, isSlow: isSlow) {}
        return microseconds(since: begin) / 1000
    }

    /// One on each reader.
    /// - Returns: milliseconds from the first command to the last result.
    private static func all(
        _ daemon: Daemon,
        _ server: EIDServerProcess,
        isSlow: Bool = false
    ) throws(BenchError) -> Double {
        var clients: [Client] = []
        for _ in 0..<readers {
            let client = try daemon.client()
            try client.send(#"{"cmd":"GET_INFO"}"#)
            try client.wait(for: "INFO")
            clients.append(client)
        }
        let begin = monotonicNow()
        for (index, client) in clients.enumerated() { try start(client, index, server) }
        var polls = clients.map { pollfd(fd: $0.socket, events: Int16(POLLIN), revents: 0) }
        var missing = readers
        while missing > 0 {
            guard poll(&polls, nfds_t(polls.count), 20_000) > 0 else { throw BenchError("no progress") }
            for index in polls.indices where polls[index].revents != 0 {
                repeat {
                    if try step(clients[index], index, isSlow: isSlow) {
                        missing -= 1
                        polls[index].fd = -1
                    }
                } while clients[index].hasLine
            }
        }
        return microseconds(since: begin) / 1000
    }
}
