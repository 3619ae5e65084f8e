// SPDX-License-Identifier: GPL-3.0-or-later
import Concurrency
import ISO7816
import TestSupport
import Testing

/// Compares the commands to the card by kind, because the data differs in each run of PACE.
@Suite("The APDUs of AusweisApp2 1.26.2", .timeLimit(.minutes(5)))
struct PeerAPDUTests {
    /// An intended difference between the commands of badged and of the peer.
    struct Difference: Sendable {
        let name: String
        let reason: String
        let recordings: Set<String>
        let apply: @Sendable ([String]) -> [String]
    }

    private static let names = ["pcsc-happy", "pcsc-wrong-pin-to-can", "pcsc-wrong-pin-to-puk"]

    private static let differences: [Difference] = [
        Difference(
            name: "no reader identification",
            reason: "the peer sends four pseudo APDUs for its log only; no tested reader answers them",
            recordings: Set(names)
        ) { $0.filter { !$0.hasPrefix("FF9A") } },
        Difference(
            name: "a workflow selects the application again",
            reason: "badged disconnects after identification; another program may have used the card since",
            recordings: Set(names)
        ) { commands in
            // The first retry counter is read at identification, the second at the start of the workflow.
            guard let first = commands.firstIndex(of: askForPIN) else { return commands }
            return commands[...first] + ["SELECT eID", "SELECT MF"] + commands[(first + 1)...]
        },
        Difference(
            name: "no question for the PIN's tries after a wrong CAN or PUK",
            reason: "a wrong CAN or PUK does not change the tries of the PIN",
            recordings: ["pcsc-wrong-pin-to-can", "pcsc-wrong-pin-to-puk"]
        ) { commands in
            commands.indices.filter { index in
                guard commands[index] == askForPIN, index > 0, index + 1 < commands.count else { return true }
                let isAfterPACE = commands[index - 1] == "GENERAL AUTHENTICATE, last"
                return !(isAfterPACE && ["MSE:Set AT CAN", "MSE:Set AT PUK"].contains(commands[index + 1]))
            }.map { commands[$0] }
        },
        Difference(
            name: "no question for the PIN's tries after a changed PIN",
            reason: "the right PIN resets the tries, and every workflow reads them at its start",
            recordings: Set(names)
        ) { $0.last == askForPIN ? Array($0.dropLast()) : $0 },
    ]

    private static let askForPIN = "MSE:Set AT PIN"

    @Test("badged sends the commands of the peer, except for the named differences", arguments: names)
    @Loop func commands(_ name: String) async throws {
        let recording = try #require(PeerTranscriptTests.recordings.first { $0.name == name })
        let replay = try await recording.replay()
        var expected = try replay.transcript.commands.map { try #require(CommandAPDU(bytes: $0)).kind }
        for difference in Self.differences where difference.recordings.contains(name) {
            let changed = difference.apply(expected)
            #expect(changed != expected, "the difference '\(difference.name)' does not occur")
            expected = changed
        }
        #expect(replay.commands.map(\.kind) == expected)
    }
}

extension CommandAPDU {
    /// The purpose of the command.
    fileprivate var kind: String {
        switch (cla, ins, p1, p2) {
        case (0x00, 0xA4, 0x04, 0x0C): "SELECT eID"
        case (0x00, 0xA4, 0x00, 0x0C): "SELECT MF"
        case (0x00, 0xB0, 0x80..., _): "READ BINARY \(hex([p1 & 0x1F]))"
        // The offset depends on the file, and the files of the cards differ.
        case (0x00, 0xB0, _, _): "READ BINARY, more"
        case (0x00, 0x22, 0xC1, 0xA4) where data.isEmpty: "end of the channel"
        case (0x00, 0x22, 0xC1, 0xA4): "MSE:Set AT \(password)"
        case (0x10, 0x86, 0x00, 0x00): "GENERAL AUTHENTICATE"
        case (0x00, 0x86, 0x00, 0x00): "GENERAL AUTHENTICATE, last"
        default: hex([cla, ins, p1, p2])
        }
    }

    /// The password that data object 83 of MSE:Set AT selects. TR-03110-3 B.11.1.
    private var password: String {
        for (start, name) in [([0x83, 0x01, 0x02], "CAN"), ([0x83, 0x01, 0x03], "PIN"), ([0x83, 0x01, 0x04], "PUK")]
        where data.indices.contains(where: { data[$0...].starts(with: start.map(UInt8.init)) }) {
            return name
        }
        return "?"
    }
}
