// SPDX-License-Identifier: GPL-3.0-or-later
import Host
import Text

/// The names of the health checks of badged, in the language of the user. In English they are those of HEALTH.
enum CheckNames {
    static func text(_ name: String) -> String {
        guard name.isComparable else { return name }
        return phrases.lazy.compactMap { $0.read(name) }.first.map(tr) ?? name
    }

    /// Why a check was not made: another check has failed.
    static func unmade(_ cause: String) -> String? {
        guard cause.isComparable, let needed = Phrase("unknown until \("") is good").read(cause)?.values.first else {
            return nil
        }
        return tr("unknown until \(text(needed)) is good")
    }

    private static let any = ""
    private static let phrases: [Phrase] = [
        Phrase("trustAnchors"), Phrase("network"), Phrase("pcscdAccess"),
        Phrase("drivers"), Phrase("nfc"), Phrase("bluetooth"),
        Phrase("bluetoothAccess"), Phrase("bluetoothAdapter"), Phrase("bluetoothScan"),
        Phrase("bluetoothFragments"), Phrase("bluetoothAdapters"), Phrase("bluetoothCodedPHY"),
        Phrase("bluetoothUSB"), Phrase("bluetoothReaders"), Phrase("bluetoothMessages"),
        Phrase("store"), Phrase("credentials"), Phrase("mdoc"),
        Phrase("mdocAnchors"), Phrase("mdocLists"), Phrase("documentAnchors"),
        Phrase("allowList"), Phrase("remote"), Phrase("remote announcements"),
        Phrase("remote share"), Phrase("records"), Phrase("browserPort"),
        Phrase("confinement"),
        Phrase("nfc \(any)"), Phrase("remote \(any)"), Phrase("osdp \(any)"), Phrase("wallet card \(any)"),
    ]
}
