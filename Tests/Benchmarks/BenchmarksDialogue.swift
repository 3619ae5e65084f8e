// SPDX-License-Identifier: GPL-3.0-or-later
import Glibc

/// The workflows of clients that answer at once.
enum Dialogue {
    /// The name of a virtual reader.
    static func simulator(_ index: Int) -> String { index == 0 ? "Simulator" : "Simulator \(index + 1)" }

    static func startChange(_ client: Client, _ reader: String) throws(BenchError) {
        try client.send(#"{"cmd":"RUN_CHANGE_PIN","reader":"\#(reader)"}"#)
    }

    /// Answers one message of RUN_CHANGE_PIN.
    /// - Returns: whether it was the last message.
    static func changeStep(
        _ client: Client,
        _ reader: String,
        from old: String,
        to new: String
    ) throws(BenchError) -> Bool {
        let line = try client.receive()
        if line.isMessage("INSERT_CARD") {
            try client.send(#"{"cmd":"SET_CARD","name":"\#(reader)"}"#)
        } else if line.isMessage("ENTER_PIN") {
            try client.send(#"{"cmd":"SET_PIN","value":"\#(old)"}"#)
        } else if line.isMessage("ENTER_NEW_PIN") {
            try client.send(#"{"cmd":"SET_NEW_PIN","value":"\#(new)"}"#)
        } else if line.contains("\"success\":") {
            guard line.contains("\"success\":true") else { throw BenchError("PIN not changed: \(line.text)") }
            return true
        } else if !["READER", "STATUS", "CHANGE_PIN"].contains(where: { line.isMessage($0) }) {
            throw BenchError("unexpected while the PIN is changed: \(line.text)")
        }
        return false
    }

    static func startAuthentication(_ client: Client, _ reader: String, _ url: String) throws(BenchError) {
        try client.send(#"{"cmd":"RUN_AUTH","reader":"\#(reader)","tcTokenURL":"\#(url)"}"#)
    }

    /// Answers one message of RUN_AUTH. A slow card takes a millisecond for each command.
    /// - Returns: whether it was the last message.
    static func authenticationStep(_ client: Client, _ reader: String, isSlow: Bool) throws(BenchError) -> Bool {
        let line = try client.receive()
        if line.isMessage("ACCESS_RIGHTS") {
            try client.send(#"{"cmd":"ACCEPT"}"#)
        } else if line.isMessage("INSERT_CARD") {
            let card = isSlow ? #","card":{"latencyMs":1}"# : ""
            try client.send(#"{"cmd":"SET_CARD","name":"\#(reader)"\#(card)}"#)
        } else if line.isMessage("ENTER_PIN") {
            try client.send(#"{"cmd":"SET_PIN","value":"123456"}"#)
        } else if line.contains("\"result\":") {
            guard line.contains("resultmajor#ok") else { throw BenchError("not authenticated: \(line.text)") }
            return true
        }
        return false
    }

    /// Connects clients, and waits until badged has served each once.
    static func clients(_ count: Int, of daemon: Daemon) throws(BenchError) -> [Client] {
        var clients: [Client] = []
        for _ in 0..<count {
            let client = try daemon.client()
            try client.send(#"{"cmd":"GET_INFO"}"#)
            try client.wait(for: "INFO")
            clients.append(client)
        }
        return clients
    }

    /// Starts a dialogue of each client and runs all of them to their last messages.
    /// - Returns: milliseconds from the first command to the last message.
    static func runAll(
        _ clients: [Client],
        start: (Client, Int) throws(BenchError) -> Void,
        step: (Client, Int) throws(BenchError) -> Bool
    ) throws(BenchError) -> Double {
        let begin = monotonicNow()
        for (index, client) in clients.enumerated() { try start(client, index) }
        var polls = clients.map { pollfd(fd: $0.socket, events: Int16(POLLIN), revents: 0) }
        var missing = clients.count
        while missing > 0 {
            guard poll(&polls, nfds_t(polls.count), Int32(Client.timeout * 1000)) > 0 else {
                throw BenchError("no message for \(Client.timeout) s")
            }
            for index in polls.indices where polls[index].revents != 0 {
                repeat {
                    if try step(clients[index], index) {
                        missing -= 1
                        polls[index].fd = -1
                    }
                } while clients[index].hasLine
            }
        }
        return microseconds(since: begin) / 1000
    }
}
