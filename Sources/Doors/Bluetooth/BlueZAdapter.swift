// SPDX-License-Identifier: GPL-3.0-or-later
package import Text

/// An adapter of bluetoothd: org.bluez.Adapter1.
package struct BlueZAdapter {
    /// `/org/bluez/hci0`
    package let path: String
    package var address = ""
    package var isPowered = false

    package init(path: String) { self.path = path }

    /// `hci0`
    package var name: String { path.split(separator: "/").last.map(String.init) ?? path }
    package var number: Int { Int(name.drop { !$0.isNumber }) ?? 0 }

    private static let types = ["Address": "s", "Powered": "b"]

    /// Reads an `a{sv}`; properties that the message does not contain stay.
    package mutating func read(_ message: BusMessage) throws(Malformed) {
        var copy = self
        try message.properties(Self.types) { key throws(Malformed) in
            switch key {
            case "Address": copy.address = try message.string()
            case "Powered": copy.isPowered = try message.bool()
            default: break
            }
        }
        self = copy
    }
}
