// SPDX-License-Identifier: GPL-3.0-or-later
import Glibc

/// Fifty clients change the PINs of fifty virtual cards at once.
enum ManyReadersBench {
    private static let readers = 50

    static func run(_ settings: Settings, _ report: inout Report) throws(BenchError) {
        let configuration = settings.folder + "/readers.conf"
        let lines = "[virtual]\nenabled=yes\nreaders=\(readers)\n"
        let file = open(configuration, O_WRONLY | O_CREAT | O_TRUNC, 0o600)
        guard file >= 0, write(file, lines, lines.utf8.count) == lines.utf8.count else {
            throw BenchError(call: configuration)
        }
        close(file)
        let daemon = try Daemon(settings, ["--no-pcsc", "--config", configuration])
        try daemon.waitForReaders(readers)
        var all = Samples()
        for round in 0..<settings.count(10) {
            let pins = round.isMultiple(of: 2) ? ("123456", "654321") : ("654321", "123456")
            all.add(try changeAll(daemon, from: pins.0, to: pins.1))
        }
        let spread = "\(all.span(0)) ms, n=\(all.count)"
        report.add(.manyReaders, all.median, "\(spread); card's and terminal's cryptography in one process")
        let memory = try daemon.figures.memory()
        report.add(.manyReadersMemory, memory.resident / 1024, "after it")
        try daemon.child.terminate()
    }

    /// - Returns: milliseconds from the first command to the last result.
    private static func changeAll(_ daemon: Daemon, from old: String, to new: String) throws(BenchError) -> Double {
        var clients: [Client] = []
        for _ in 0..<readers {
            let client = try daemon.client()
            try client.send(#"{"cmd":"GET_INFO"}"#)
            try client.wait(for: "INFO")
            clients.append(client)
        }
        let start = monotonicNow()
        for (index, client) in clients.enumerated() {
            let name = index == 0 ? "Simulator" : "Simulator \(index + 1)"
            try client.send(#"{"cmd":"RUN_CHANGE_PIN","reader":"\#(name)"}"#)
        }
        var polls = clients.map { pollfd(fd: $0.socket, events: Int16(POLLIN), revents: 0) }
        var missing = readers
        while missing > 0 {
            guard poll(&polls, nfds_t(polls.count), 20_000) > 0 else { throw BenchError("no progress on the readers") }
            for index in polls.indices where polls[index].revents != 0 {
                if try step(clients[index], index, old, new) {
                    missing -= 1
                    polls[index].fd = -1
                }
            }
        }
        return microseconds(since: start) / 1000
    }

    /// Answers what has come; true when the last message has.
    private static func step(_ client: Client, _ index: Int, _ old: String, _ new: String) throws(BenchError) -> Bool {
        repeat {
            let line = try client.receive()
            if line.isMessage("INSERT_CARD") {
                let name = index == 0 ? "Simulator" : "Simulator \(index + 1)"
                try client.send(#"{"cmd":"SET_CARD","name":"\#(name)"}"#)
            } else if line.isMessage("ENTER_PIN") {
                try client.send(#"{"cmd":"SET_PIN","value":"\#(old)"}"#)
            } else if line.isMessage("ENTER_NEW_PIN") {
                try client.send(#"{"cmd":"SET_NEW_PIN","value":"\#(new)"}"#)
            } else if line.contains("\"success\":") {
                guard line.contains("\"success\":true") else { throw BenchError("PIN not changed: \(line.text)") }
                return true
            }
        } while client.hasLine
        return false
    }
}
