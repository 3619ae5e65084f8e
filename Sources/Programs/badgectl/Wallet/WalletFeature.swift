// SPDX-License-Identifier: GPL-3.0-or-later
import BadgedClient

/// Describes wallet cards.
let walletFeature = Feature(commands: [], describeCard: { $0.keycard?.summary })

extension Keycard {
    /// A summary such as `Keycard 3.1, 2 PIN tries left`.
    var summary: String {
        var parts = [version.map { "Keycard \($0)" } ?? "Keycard"]
        if !isInitialised {
            parts.append("new")
        } else if keyUID == nil {
            parts.append("no keys")
        }
        switch (pinTries, pukTries) {
        case (0, 0): parts.append("PIN and PUK used up")
        case (0, _): parts.append("PIN blocked, needs the PUK")
        case (1, _): parts.append("1 PIN try left")
        case (2, _): parts.append("2 PIN tries left")
        default: break
        }
        return parts.joined(separator: ", ")
    }
}
