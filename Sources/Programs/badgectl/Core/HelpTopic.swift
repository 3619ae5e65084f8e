// SPDX-License-Identifier: GPL-3.0-or-later
import Host
import Text

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

    private static let aboutExitCodes = tr(
        """
        After a number other than 0, standard error has a line that begins with "badgectl: error:", and mostly \
        a line "hint:" with what to do. Some ends have no such line: 5 of health, 6 and 7 of document, 6, 7 and 8 \
        of mdoc, and 1 of credentials, after a card that has shown none.
        """
    )

    private static let aboutPermissions = tr(
        """
        Who may open the socket is a member of the group badged. What this user may do there is written in \
        [access] of /etc/badged/badged.conf. badgectl status shows the permissions that you have. The \
        permissions:
        """
    )

    static let permissionList = [
        ("readers", tr("see readers and cards, the health and the metrics")),
        ("cards", tr("use cards: prove an identity, change a PIN")),
        ("wallet", tr("use wallet cards; needs cards, too")),
        ("mpin", tr("log in with M-Pin; needs cards, too")),
        ("keys", tr("use, make and enrol your keys")),
        ("remote", tr("pair with phones, and lend readers; needs cards, too")),
        ("agent", tr("be asked when a browser starts an authentication")),
        ("scan", tr("look for door readers")),
        ("open", tr("open door readers; needs scan, too")),
        ("openings", tr("be told of the openings of all users")),
        ("credentials", tr("see the credentials that people put on readers")),
        ("documents", tr("read passports and other electronic documents; needs cards, too")),
        ("report", tr("report what readers in the wall have read")),
        ("admin", tr("write captures of the radio; see and change the keys (IRK) of door readers")),
    ]

    private static let howToPermit = tr(
        """
        A line of [access] is user:NAME = LIST, group:NAME = LIST, or default = LIST, with permissions and \
        commas between them. After a change: systemctl reload badged. See badged.conf(5).
        """
    )

    private static let formattingParagraphs = [
        tr(
            """
            Standard output has the result and nothing else. Questions, progress, errors and hints go to the \
            terminal or to standard error. So badgectl auth URL | xargs xdg-open works.
            """
        ),
        tr(
            """
            With --json, standard output has the messages of badged unchanged, one object of JSON in each \
            line, as docs/protocol.md describes them. Members come in any order, and new ones may come.
            """
        ),
        tr(
            "readers, keys list and remote list have --names: the names alone, one in each line."
        ),
        tr(
            """
            Texts for people are wrapped at the width of a terminal, and never wrapped in a file or a pipe. \
            They may change with each version; messages of --json, exit codes and options do not.
            """
        ),
        tr(
            """
            Control characters of cards, services and devices are never written to the terminal. There are no \
            colours. With TERM=dumb, or without UTF-8, no line is replaced and no screen is cleared.
            """
        ),
    ]
}
