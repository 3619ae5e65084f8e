// SPDX-License-Identifier: GPL-3.0-or-later
import Scanners
import Text

/// An adapter of bluetoothd: org.bluez.Adapter1.
struct BlueZAdapter {
    /// `/org/bluez/hci0`
    let path: String
    var address = ""
    var isPowered = false

    init(path: String) { self.path = path }

    /// `hci0`
    var name: String { path.split(separator: "/").last.map(String.init) ?? path }
    var number: Int { Int(name.drop { !$0.isNumber }) ?? 0 }

    /// The adapter as SCAN shows it.
    func shown(isListening: Bool = false) -> RadioAdapter {
        RadioAdapter(name: name, address: address, isPowered: isPowered, isListening: isListening)
    }

    private static let types = ["Address": "s", "Powered": "b"]

    /// Reads an `a{sv}`; properties that the message does not contain stay.
    mutating func read(_ message: BusMessage) throws(Malformed) {
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
