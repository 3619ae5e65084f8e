// SPDX-License-Identifier: GPL-3.0-or-later
package import ISO7816
package import Text

/// What happens once instead of an answer of the card.
package struct VirtualCardFault: Sendable, Equatable {
    package enum Action: Sendable, Equatable {
        /// The card leaves the reader; the command is not executed.
        case remove
        /// No answer; the command is not executed.
        case mute
        /// This status word alone; the command is not executed.
        case status(StatusWord)
        /// The command is executed; the card leaves before its answer arrives.
        case removeAfter
        /// The command is executed; no answer.
        case muteAfter
        /// The command is executed; the answer is this status word alone.
        case statusAfter(StatusWord)
        /// The command is executed; the answer loses its second half.
        case truncate
        /// The command is executed; the answer is replaced by as many random bytes.
        case garbage
        /// The command is executed; one bit of the answer is wrong, in its data if it has some. This makes a MAC wrong.
        case flipBit
        /// The command is executed; the answer is that of the command before, or 9000 for the first command.
        case replay
    }

    /// After this number of commands since the insertion, the next command meets the fault.
    package var afterAPDU: Int
    package var action: Action

    package init(afterAPDU: Int, action: Action) {
        self.afterAPDU = afterAPDU
        self.action = action
    }
}

/// The options that virtual cards of every kind have. docs/protocol/readers.md, Virtual reader.
package struct VirtualCardOptions: Sendable, Equatable {
    /// Milliseconds that each answer takes at least, 0 to 60000.
    package var latency = 0
    package var faults: [VirtualCardFault] = []

    package init() {}

    /// Reads `latencyMs` and `faults` of the object `card`.
    package init(card: JSON?) throws(Malformed) {
        let card = CardEntry("card", card)
        if card["latencyMs"].json != nil { latency = try card["latencyMs"].int(Self.latencies) }
        for entry in try card["faults"].objects() {
            let count = try entry["afterApdu"].int(0...1_000_000)
            guard let text = entry["do"].json?.string, let action = Self.action(text) else {
                throw entry["do"].wrong("is not one of \(Self.actions)")
            }
            faults.append(.init(afterAPDU: count, action: action))
        }
    }

    private static let latencies = 0...60_000
    private static let actions =
        "remove, removeAfter, mute, muteAfter, truncate, garbage, flipBit, replay, sw:XXXX, swAfter:XXXX"

    private static func action(_ text: String) -> VirtualCardFault.Action? {
        switch text {
        case "remove": .remove
        case "removeAfter": .removeAfter
        case "mute": .mute
        case "muteAfter": .muteAfter
        case "truncate": .truncate
        case "garbage": .garbage
        case "flipBit": .flipBit
        case "replay": .replay
        default:
            if let status = status(text, behind: "sw:") {
                .status(status)
            } else if let status = status(text, behind: "swAfter:") {
                .statusAfter(status)
            } else {
                nil
            }
        }
    }

    private static func status(_ text: String, behind prefix: String) -> StatusWord? {
        guard text.hasPrefix(prefix), let bytes = Hex.decode(text.dropFirst(prefix.count)), bytes.count == 2 else {
            return nil
        }
        return StatusWord(UInt16(bytes[0]) << 8 | UInt16(bytes[1]))
    }

    /// Checks values that a program has set.
    func check() throws(Malformed) {
        guard Self.latencies.contains(latency) else { throw Malformed("card.latencyMs is not from 0 to 60000") }
        for (index, fault) in faults.enumerated() where fault.afterAPDU < 0 {
            throw Malformed("card.faults[\(index)].afterApdu is below 0")
        }
    }
}
