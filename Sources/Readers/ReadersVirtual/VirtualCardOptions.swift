// SPDX-License-Identifier: GPL-3.0-or-later
package import ISO7816
package import Readers
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
        /// The command is executed; the answer loses its second half.
        case truncate
        /// The command is executed; the answer is replaced by as many random bytes.
        case garbage
    }

    /// After this number of commands since the insertion, the next command meets the fault.
    package var afterAPDU: Int
    package var action: Action

    package init(afterAPDU: Int, action: Action) {
        (self.afterAPDU, self.action) = (afterAPDU, action)
    }
}

/// What a description can say of a virtual card of any kind. docs/protocol/readers.md, Virtual reader.
package struct VirtualCardOptions: Sendable, Equatable {
    /// Milliseconds that each answer takes at least, 0 to 60000.
    package var latency = 0
    package var faults: [VirtualCardFault] = []

    package init() {}

    /// Reads `latencyMs` and `faults` of the object `card`.
    package init(card: JSON?) throws(CardShelfError) {
        let card = CardEntry("card", card)
        if card["latencyMs"].json != nil { latency = try card["latencyMs"].int(Self.latencies) }
        for entry in try card["faults"].objects() {
            let count = try entry["afterApdu"].int(0...1_000_000)
            guard let text = entry["do"].json?.string, let action = Self.action(text) else {
                throw entry["do"].wrong("is not one of remove, removeAfter, mute, truncate, garbage, sw:XXXX")
            }
            faults.append(.init(afterAPDU: count, action: action))
        }
    }

    private static let latencies = 0...60_000

    private static func action(_ text: String) -> VirtualCardFault.Action? {
        switch text {
        case "remove": return .remove
        case "removeAfter": return .removeAfter
        case "mute": return .mute
        case "truncate": return .truncate
        case "garbage": return .garbage
        default:
            guard text.hasPrefix("sw:"), let bytes = Hex.decode(text.dropFirst(3)), bytes.count == 2 else { return nil }
            return .status(StatusWord(UInt16(bytes[0]) << 8 | UInt16(bytes[1])))
        }
    }

    /// Checks values that a program has set.
    func check() throws(CardShelfError) {
        guard Self.latencies.contains(latency) else { throw .invalid("card.latencyMs is not from 0 to 60000") }
        for (index, fault) in faults.enumerated() where fault.afterAPDU < 0 {
            throw .invalid("card.faults[\(index)].afterApdu is below 0")
        }
    }
}
