// SPDX-License-Identifier: GPL-3.0-or-later
import Glibc

/// Clients that answer at once authenticate with virtual cards to an eID-Server on the same machine.
enum AuthenticationBench {
    private static let readers = 10

    /// What comes between two messages of one run.
    private static let steps = ["service", "card", "PACE", "EAC", "reading", "way back"]

    static func run(_ settings: Settings, _ report: inout Report) throws(BenchError) {
        guard let program = settings.eidServer else { return }
        let server = try EIDServerProcess(program, folder: settings.folder)
        let daemon = try Daemon(settings, ["--no-pcsc", "--config", server.configuration])
        try daemon.waitForReaders(readers)
        // What a first run brings for good (libraries' tables, one card for each reader) is not growth.
        _ = try all(daemon, server)
        let before = try daemon.figures.memory().resident

        var total = Samples()
        var parts = [Samples](repeating: Samples(), count: steps.count)
        for _ in 0..<settings.count(60) {
            let times = try one(daemon, server)
            total.add(times.reduce(0, +))
            for (index, time) in times.enumerated() { parts[index].add(time) }
        }
        var ten = Samples()
        for _ in 0..<settings.count(10) { ten.add(try all(daemon, server)) }
        pause(milliseconds: 200)
        let growth = try daemon.figures.memory().resident - before
        try daemon.child.terminate()

        let busy = Samples(Array(try server.end().dropFirst(readers).prefix(total.count)))
        let split = zip(steps, parts).map { "\($0) \(text($1.median, 1))" }.joined(separator: ", ")
        report.add(.auth, total.median, "p99 \(text(total.percentile(99), 1)) ms, n=\(total.count): \(split)")
        report.add(.authBeyond, total.median - busy.median, "\(text(busy.median, 1)) ms of the server left out")
        report.add(.tenAuths, ten.median / total.median, "\(text(ten.median, 0)) ms, n=\(ten.count)")
        report.add(.authMemory, growth / 1024, "after \(total.count + ten.count * readers)")
    }

    private static func name(_ index: Int) -> String { index == 0 ? "Simulator" : "Simulator \(index + 1)" }

    private static func start(_ client: Client, _ index: Int, _ server: EIDServerProcess) throws(BenchError) {
        try client.send(#"{"cmd":"RUN_AUTH","reader":"\#(name(index))","tcTokenURL":"\#(server.tcTokenURL)"}"#)
    }

    /// Answers one message at once.
    /// - Returns: the step that it ends, nil for none.
    private static func step(_ client: Client, _ index: Int) throws(BenchError) -> Int? {
        let line = try client.receive()
        if line.isMessage("ACCESS_RIGHTS") {
            try client.send(#"{"cmd":"ACCEPT"}"#)
            return 0
        } else if line.isMessage("INSERT_CARD") {
            try client.send(#"{"cmd":"SET_CARD","name":"\#(name(index))"}"#)
        } else if line.isMessage("ENTER_PIN") {
            try client.send(#"{"cmd":"SET_PIN","value":"123456"}"#)
            return 1
        } else if line.contains("\"progress\":20") {
            return 2
        } else if line.contains("\"progress\":60") {
            return 3
        } else if line.contains("\"progress\":80") {
            return 4
        } else if line.contains("\"result\":") {
            guard line.contains("resultmajor#ok") else { throw BenchError("not authenticated: \(line.text)") }
            return 5
        }
        return nil
    }

    /// - Returns: milliseconds of each step.
    private static func one(_ daemon: Daemon, _ server: EIDServerProcess) throws(BenchError) -> [Double] {
        let client = try daemon.client()
        try client.send(#"{"cmd":"GET_INFO"}"#)
        try client.wait(for: "INFO")
        var times = [Double](repeating: 0, count: steps.count)
        var last = monotonicNow()
        try start(client, 0, server)
        while true {
            guard let done = try step(client, 0) else { continue }
            times[done] = microseconds(since: last) / 1000
            last = monotonicNow()
            if done == steps.count - 1 { return times }
        }
    }

    /// One on each reader.
    /// - Returns: milliseconds from the first command to the last result.
    private static func all(_ daemon: Daemon, _ server: EIDServerProcess) throws(BenchError) -> Double {
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
                    if try step(clients[index], index) == steps.count - 1 {
                        missing -= 1
                        polls[index].fd = -1
                    }
                } while clients[index].hasLine
            }
        }
        return microseconds(since: begin) / 1000
    }
}
