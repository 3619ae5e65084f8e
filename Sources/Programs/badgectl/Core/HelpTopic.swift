// SPDX-License-Identifier: GPL-3.0-or-later

/// What `badgectl help` explains beside the commands.
enum HelpTopic: String, CaseIterable, Sendable {
    case exitCodes = "exit-codes"
    case permissions
    case formatting

    static let names = allCases.map(\.rawValue)

    var text: String {
        switch self {
        case .exitCodes:
            return """
                \(Help.exitCodes)

                \(Layout.wrapped(Self.aboutExitCodes))
                """
        case .permissions:
            return """
                \(Layout.wrapped(Self.aboutPermissions))

                \(Help.columns(Self.permissionList))

                \(Layout.wrapped(Self.howToPermit))
                """
        case .formatting: return Self.formattingParagraphs.map { Layout.wrapped($0) }.joined(separator: "\n\n")
        }
    }

    private static let aboutExitCodes =
        "After a number other than 0, standard error has a line that begins with \"badgectl: error:\", and mostly a line"
        + " \"hint:\" with what to do. health ends with 5 without such a line, document with 6 and 7."

    private static let aboutPermissions =
        "Who may open the socket is a member of the group badged. What this user may do there is written in [access] of"
        + " /etc/badged/badged.conf. badgectl status shows the permissions that you have. The permissions:"

    private static let permissionList = [
        ("readers", "see readers and cards, the health and the metrics"),
        ("cards", "use cards: prove an identity, change a PIN"),
        ("wallet", "use wallet cards; needs cards, too"),
        ("mpin", "log in with M-Pin; needs cards, too"),
        ("keys", "use, make and enrol your keys"),
        ("remote", "pair with phones, and lend readers; needs cards, too"),
        ("agent", "be asked when a browser starts an authentication"),
        ("scan", "look for door readers"),
        ("open", "open door readers; needs scan, too"),
        ("openings", "be told of the openings of all users"),
        ("credentials", "see the credentials that people put on readers"),
        ("documents", "read passports and other electronic documents; needs cards, too"),
        ("admin", "write captures of the radio"),
    ]

    private static let howToPermit =
        "A line of [access] is user:NAME = LIST, group:NAME = LIST, or others = LIST, with permissions and commas between"
        + " them. After a change: systemctl reload badged. See badged.conf(5)."

    private static let formattingParagraphs = [
        "Standard output has the result and nothing else. Questions, progress, errors and hints go to the terminal or to"
            + " standard error. So badgectl auth URL | xargs xdg-open works.",
        "With --json, standard output has the messages of badged unchanged, one object of JSON in each line, as"
            + " docs/protocol.md describes them. Members come in any order, and new ones may come.",
        "readers, keys list and remote list have --names: the names alone, one in each line.",
        "Texts for people are wrapped at the width of a terminal, and never wrapped in a file or a pipe. They may change"
            + " with each version; messages of --json, exit codes and options do not.",
        "Control characters of cards, services and devices are never written to the terminal. There are no colours."
            + " With TERM=dumb, or without UTF-8, no line is replaced and no screen is cleared.",
    ]
}
