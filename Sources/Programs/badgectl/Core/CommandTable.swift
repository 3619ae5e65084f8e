// SPDX-License-Identifier: GPL-3.0-or-later
import BadgedClient
import Text

/// Everything that badgectl can do. A feature adds one line here.
enum CommandTable {
    private static let features = [
        generalFeature,
        eidFeature,
        anchorFeature,
        documentFeature,
        mdocFeature,
        walletFeature,
        mpinFeature,
        keyFeature,
        credentialFeature,
        remoteFeature,
        browserFeature,
        doorReaderFeature,
        scriptingFeature,
    ]

    static let commands = features.flatMap(\.commands)

    static func command(named name: String) -> ShellCommand? { commands.first { $0.name == name } }

    static func commands(of group: CommandGroup) -> [ShellCommand] {
        features.filter { $0.group == group }.flatMap(\.commands)
    }

    /// The options of all commands.
    static let global = [
        OptionSpec(.socket, ValueSpec("PATH", .files), "talk to the badged that listens here"),
        OptionSpec(.json, "write the messages of badged unchanged, one per line"),
        OptionSpec(.help, "show help, also after a command"),
        OptionSpec(.version, "show the version"),
    ]

    /// Describes a card; nil for a card that no feature knows.
    static func describe(_ card: Card) -> String? {
        for feature in features {
            if let text = feature.describeCard(card) { return text }
        }
        return nil
    }
}
