// SPDX-License-Identifier: GPL-3.0-or-later
import Glibc
import Text

/// A login with M-Pin at the double of its servers, which measures its own work.
enum MPinBench {
    /// The requests of a login over each of its connections: a time permit; pass 1, pass 2 and the relying party.
    private static let connections = [1, 3]
    private static let user = #""userId":"alice@mpin.test""#

    static func run(_ settings: Settings, _ report: inout Report) throws(BenchError) {
        guard let program = settings.mpinServer else { return }
        let server = try Child(
            "/usr/bin/python3",
            [program, "--stay"],
            log: settings.folder + "/mpin-server.log",
            hasOutput: true
        )
        let port = try port(of: server)
        let folder = settings.folder + "/mpin-state"
        mkdir(folder, 0o700)
        setenv("STATE_DIRECTORY", folder, 1)
        defer { unsetenv("STATE_DIRECTORY") }
        let configuration = try settings.write(
            "mpin.conf",
            "[access]\ndefault=cards,mpin\n[mpin]\nprivate_servers=yes\n"
        )
        let daemon = try Daemon(settings, ["--config", configuration])
        let client = try daemon.client()
        try command(client, "MPIN_INIT")
        try command(client, "MPIN_SET_BACKEND", #""url":"http://127.0.0.1:\#(port)""#)
        try command(client, "MPIN_MAKE_USER", user)
        for step in ["START", "CONFIRM", "FINISH"] { try command(client, "MPIN_\(step)_REGISTRATION", user) }
        // The first login of a day fetches the second share of the time permit.
        try logIn(client)
        var beyond = Samples()
        var atServer = Samples()
        var plain = Samples()
        for _ in 0..<settings.count(60) {
            let before = try spent(port)
            let start = monotonicNow()
            try logIn(client)
            let time = microseconds(since: start) / 1000
            let work = try spent(port) - before
            beyond.add(time - work)
            atServer.add(work)
            // In turns, so that other work of the machine disturbs both.
            let plainStart = monotonicNow()
            for count in connections { try transfer(port, count) }
            plain.add(microseconds(since: plainStart) / 1000)
        }
        let note = "p99 \(text(beyond.percentile(99), 1)) ms, n=\(beyond.count)"
        report.add(.mpinLogin, beyond.median, "\(note); \(text(atServer.median, 0)) ms at the servers")
        report.add(.mpinPlain, plain.median, "p99 \(text(plain.percentile(99), 1)) ms")
        try daemon.child.terminate()
        try server.terminate()
    }

    private static func logIn(_ client: Client) throws(BenchError) {
        try command(client, "MPIN_START_AUTHENTICATION", user)
        try command(client, "MPIN_FINISH_AUTHENTICATION", user)
    }

    /// Runs a command with a client that answers at once.
    private static func command(_ client: Client, _ name: String, _ members: String = "") throws(BenchError) {
        try client.send(#"{"cmd":"\#(name)"\#(members.isEmpty ? "" : ",")\#(members)}"#)
        while true {
            let line = try client.receive()
            if line.isMessage("ENTER_PIN") { try client.send(#"{"cmd":"SET_PIN","value":"1234"}"#) }
            if line.isMessage("ENTER_NEW_PIN") { try client.send(#"{"cmd":"SET_NEW_PIN","value":"1234"}"#) }
            guard line.isMessage("MPIN_RESULT") else { continue }
            guard line.contains("\"status\":0") else { throw BenchError("\(name): \(line.text)") }
            return
        }
    }

    // MARK: The servers

    /// Reads "ready PORT", which the servers print when they listen.
    private static func port(of server: Child) throws(BenchError) -> UInt16 {
        var line: [UInt8] = []
        var byte: UInt8 = 0
        while read(server.output ?? -1, &byte, 1) == 1, byte != 0x0A { line.append(byte) }
        let text = String(decoding: line, as: UTF8.self)
        guard let port = text.split(separator: " ").last.flatMap({ UInt16($0) }) else {
            throw BenchError("the servers of M-Pin do not start: \(text)")
        }
        return port
    }

    /// Milliseconds of the servers' own work until now.
    private static func spent(_ port: UInt16) throws(BenchError) -> Double {
        let socket = try connected(port)
        defer { close(socket) }
        let answer = try exchange(socket, "GET /lab/spent HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n")
        guard let start = answer.firstIndex(of: UInt8(ascii: "{")),
            let time = (try? JSON(answer[start...]))?["microseconds"]?.int
        else { throw BenchError("the servers of M-Pin do not tell their time") }
        return Double(time) / 1000
    }

    /// Sends requests that cause no work over a connection of their own.
    private static func transfer(_ port: UInt16, _ count: Int) throws(BenchError) {
        let socket = try connected(port)
        defer { close(socket) }
        let body = String(repeating: " ", count: 600) + "{}"
        let request = "POST /lab/plain HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: \(body.utf8.count)\r\n\r\n\(body)"
        for _ in 0..<count { _ = try exchange(socket, request) }
    }

    private static func connected(_ port: UInt16) throws(BenchError) -> Int32 {
        guard let socket = connectLoopback(port) else { throw BenchError(call: "connect to the servers of M-Pin") }
        return socket
    }

    /// Sends a request, and returns its answer, which ends with an object.
    private static func exchange(_ socket: Int32, _ request: String) throws(BenchError) -> [UInt8] {
        let bytes = Array(request.utf8)
        guard send(socket, bytes, bytes.count, Int32(MSG_NOSIGNAL)) == bytes.count else {
            throw BenchError(call: "send to the servers of M-Pin")
        }
        var answer: [UInt8] = []
        var chunk = [UInt8](repeating: 0, count: 4096)
        while answer.last != UInt8(ascii: "}") {
            let count = recv(socket, &chunk, chunk.count, 0)
            guard count > 0 else { throw BenchError("the servers of M-Pin do not answer") }
            answer += chunk[..<count]
        }
        return answer
    }
}
