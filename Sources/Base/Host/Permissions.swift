// SPDX-License-Identifier: GPL-3.0-or-later

/// The permissions of a client. docs/protocol.md, Permissions.
package struct Permissions: OptionSet, Sendable, Hashable {
    package let rawValue: UInt16
    package init(rawValue: UInt16) { self.rawValue = rawValue }

    /// See readers and cards.
    package static let readers = Permissions(rawValue: 1)
    /// Run workflows on cards.
    package static let cards = Permissions(rawValue: 2)
    /// Scan for door readers.
    package static let scan = Permissions(rawValue: 4)
    /// Receive whole advertisements: `adverts` in START_SCAN.
    package static let admin = Permissions(rawValue: 8)

    /// Act as the user interface for the browsers of its user.
    package static let agent = Permissions(rawValue: 32)

    /// Run workflows with wallet cards; needs `cards`, too.
    package static let wallet = Permissions(rawValue: 64)

    /// Log users in with M-Pin; needs `cards`, too.
    package static let mpin = Permissions(rawValue: 128)

    /// Pair with other devices, and lend readers to them; needs `cards`, too.
    package static let remote = Permissions(rawValue: 2048)

    /// Use, make and enrol the keys of its user.
    package static let keys = Permissions(rawValue: 256)

    /// Open door readers with the keys of its user; needs `scan`, too.
    package static let open = Permissions(rawValue: 1024)
    /// Receive the credentials that people present at readers.
    package static let credentials = Permissions(rawValue: 512)

    /// Be told of the openings of all clients.
    package static let openings = Permissions(rawValue: 4096)

    /// Read passports and other electronic documents; needs `cards`, too.
    package static let documents = Permissions(rawValue: 8192)

    /// Report what readers in the wall have read and what door panels show, as badged-osdp does.
    package static let report = Permissions(rawValue: 16_384)

    /// Start an online authentication for a browser: ACTIVATE. Only connections of the browser port have this
    /// permission; no configuration grants it.
    package static let activate = Permissions(rawValue: 16)

    /// Everything that a configuration can grant.
    package static let all: Permissions = [
        .readers, .cards, .wallet, .mpin, .keys, .remote, .agent, .scan, .open, .openings, .credentials,
        .documents, .report, .admin,
    ]

    /// The words of [access] in badged.conf(5).
    package var words: [String] { Self.names.filter { contains($0.value) }.map(\.name) }

    static let names: [(name: String, value: Permissions)] = [
        ("readers", .readers), ("cards", .cards), ("wallet", .wallet), ("mpin", .mpin), ("keys", .keys),
        ("remote", .remote), ("agent", .agent), ("scan", .scan), ("open", .open), ("openings", .openings),
        ("credentials", .credentials), ("documents", .documents), ("report", .report),
        ("admin", .admin),
    ]
}
