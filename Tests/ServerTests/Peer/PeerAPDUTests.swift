// SPDX-License-Identifier: GPL-3.0-or-later
import Concurrency
import ISO7816
import TestSupport
import Testing

/// The commands that a dialogue sends to the card, by kind: the data is fresh in every run of PACE.
@Suite("The APDUs of AusweisApp2 1.26.2", .timeLimit(.minutes(5)))
struct PeerAPDUTests {
    /// One way in which badged speaks differently to a card, on purpose.
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
            reason: "four pseudo APDUs that the peer only writes to its log; no reader at hand answers them",
            recordings: Set(names)
        ) { $0.filter { !$0.hasPrefix("FF9A") } },
        Difference(
            name: "a workflow selects the application again",
            reason: "the card was let go after it had been recognised; others may have used it in between",
            recordings: Set(names)
        ) { commands in
            // The first counter was read to recognise the card, the second when the workflow began.
            guard let first = commands.firstIndex(of: askForPIN) else { return commands }
            return commands[...first] + ["SELECT eID", "SELECT MF"] + commands[(first + 1)...]
        },
        Difference(
            name: "no question for the PIN's tries after a wrong CAN or PUK",
            reason: "a wrong CAN or PUK does not touch them",
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
            reason: "the right PIN has given them all back, and every workflow asks again when it begins",
            recordings: Set(names)
        ) { $0.last == askForPIN ? Array($0.dropLast()) : $0 },
    ]

    private static let askForPIN = "MSE:Set AT PIN"

    @Test("badged sends what the peer sends but for the named differences", arguments: names)
    @Loop func commands(_ name: String) async throws {
        let recording = try #require(PeerTranscriptTests.recordings.first { $0.name == name })
        let replay = try await recording.replay()
        var expected = try replay.transcript.commands.map { try #require(CommandAPDU(bytes: $0)).kind }
        for difference in Self.differences where difference.recordings.contains(name) {
            let changed = difference.apply(expected)
            #expect(changed != expected, "the difference '\(difference.name)' does not show")
            expected = changed
        }
        let commands = replay.commands.map(\.kind)
        #expect(commands == expected)
        print("\(name): \(commands.count) commands of badged, \(replay.transcript.commands.count) of the peer")
    }
}

extension CommandAPDU {
    /// What the command is for.
    fileprivate var kind: String {
        switch (cla, ins, p1, p2) {
        case (0x00, 0xA4, 0x04, 0x0C): "SELECT eID"
        case (0x00, 0xA4, 0x00, 0x0C): "SELECT MF"
        case (0x00, 0xB0, 0x80..., _): "READ BINARY \(hex([p1 & 0x1F]))"
        // The offset is the length of the file before, and the cards have other files.
        case (0x00, 0xB0, _, _): "READ BINARY, more"
        case (0x00, 0x22, 0xC1, 0xA4) where data.isEmpty: "end of the channel"
        case (0x00, 0x22, 0xC1, 0xA4): "MSE:Set AT \(password)"
        case (0x10, 0x86, 0x00, 0x00): "GENERAL AUTHENTICATE"
        case (0x00, 0x86, 0x00, 0x00): "GENERAL AUTHENTICATE, last"
        default: hex([cla, ins, p1, p2])
        }
    }

    /// By the object 83 of MSE:Set AT. TR-03110-3 B.11.1.
    private var password: String {
        for (start, name) in [([0x83, 0x01, 0x02], "CAN"), ([0x83, 0x01, 0x03], "PIN"), ([0x83, 0x01, 0x04], "PUK")]
        where data.indices.contains(where: { data[$0...].starts(with: start.map(UInt8.init)) }) {
            return name
        }
        return "?"
    }
}
