// SPDX-License-Identifier: GPL-3.0-or-later
import Glibc
import Server
import Text

/// `badged-virtual-card` in a reader of vpcd; badged-virtual-card(1).
final class VirtualCard {
    /// The state that the card prints on SIGUSR2.
    struct State {
        /// Command APDUs since the insertion.
        var apdus = 0
        /// Time in the card for all commands so far.
        var microseconds = 0.0
        var retryCounter = 0
    }

    private let child: Child
    private var partial: [UInt8] = []

    /// Starts the program, which connects and inserts the card. `file` describes another card than the default one.
    init(_ program: String, port: Int, log: String, file: String? = nil) throws(BenchError) {
        let description = file.map { ["--card", $0] } ?? []
        child = try Child(program, ["--vpcd", "127.0.0.1:\(port)"] + description, log: log, hasOutput: true)
    }

    /// Removes the card from the reader, or inserts it again.
    func toggle() { child.signal(SIGUSR1) }

    func state() throws(BenchError) -> State {
        child.signal(SIGUSR2)
        while true {
            let line = try readLine()
            guard let json = try? JSON(line), let apdus = json["apdus"]?.int else { continue }
            return State(
                apdus: apdus,
                microseconds: Double(json["busyMicroseconds"]?.int ?? 0),
                retryCounter: json["retryCounter"]?.int ?? -1
            )
        }
    }

    func end() throws(BenchError) { try child.terminate() }

    private func readLine() throws(BenchError) -> [UInt8] {
        while true {
            if let end = partial.firstIndex(of: 0x0A) {
                defer { partial.removeFirst(end + 1) }
                return Array(partial[..<end])
            }
            var chunk = [UInt8](repeating: 0, count: 4096)
            let count = read(child.output ?? -1, &chunk, chunk.count)
            guard count > 0 else { throw BenchError("badged-virtual-card has ended") }
            partial += chunk[..<count]
        }
    }
}
