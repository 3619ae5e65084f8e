// SPDX-License-Identifier: GPL-3.0-or-later
import Host
import Text

/// The names of the health checks of badged, in the language of the user. In English they are those of HEALTH.
enum CheckNames {
    static func text(_ name: String) -> String {
        guard name.isComparable else { return name }
        let owned = owners.lazy.compactMap { owner, phrase in
            name.hasPrefix(owner) ? phrase(name.dropFirst(owner.count)) : nil
        }
        return tr(phrases.first { $0.key == name } ?? owned.first ?? Phrase(verbatim: name))
    }

    /// Checks with the name of a device.
    private static let owners: [(String, @Sendable (Substring) -> Phrase)] = [
        ("nfc ", { Phrase("nfc \($0)") }), ("remote ", { Phrase("remote \($0)") }),
        ("panel ", { Phrase("panel \($0)") }),
    ]

    private static let phrases: [Phrase] = [
        Phrase("trustAnchors"), Phrase("network"), Phrase("pcscdAccess"),
        Phrase("drivers"), Phrase("nfc"), Phrase("bluetooth"),
        Phrase("bluetoothAccess"), Phrase("bluetoothAdapter"), Phrase("bluetoothScan"),
        Phrase("bluetoothFragments"), Phrase("bluetoothAdapters"), Phrase("bluetoothCodedPHY"),
        Phrase("bluetoothUSB"), Phrase("bluetoothReaders"), Phrase("bluetoothMessages"),
        Phrase("store"), Phrase("credentials"), Phrase("mdoc"),
        Phrase("mdocAnchors"), Phrase("mdocLists"), Phrase("documentAnchors"),
        Phrase("allowList"), Phrase("remote"), Phrase("remote announcements"),
        Phrase("remote pairings"), Phrase("remote share"), Phrase("records"), Phrase("browserPort"),
        Phrase("wallet card"), Phrase("confinement"),
    ]
}
