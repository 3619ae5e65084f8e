// SPDX-License-Identifier: GPL-3.0-or-later
import BadgedClient

/// The commands about badged itself and its readers.
let generalFeature = Feature(
    commands: [StatusCommand.spec, HealthCommand.spec, ReadersCommand.spec, HelpCommand.spec]
)

extension OptionSpec {
    static let reader = OptionSpec("--reader", ValueSpec("NAME", .readers), "use this reader")
}

extension Reader {
    /// A summary such as `eID card, 2 PIN tries left`.
    var summary: String {
        guard isAttached else { return "gone" }
        var parts: [String] = []
        if let card {
            parts.append(CommandTable.describe(card) ?? "unknown card")
        } else {
            parts.append(isInsertable ? "virtual card, not inserted" : "no card")
        }
        if hasKeypad { parts.append("keypad") }
        if isRemote { parts.append("over the network") }
        if isBusy { parts.append("in use by another program") }
        return parts.joined(separator: ", ")
    }
}
