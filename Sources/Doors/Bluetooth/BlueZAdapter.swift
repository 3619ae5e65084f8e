// SPDX-License-Identifier: GPL-3.0-or-later
package import Text

/// An adapter of bluetoothd: org.bluez.Adapter1.
package struct BlueZAdapter: Sendable {
    /// `/org/bluez/hci0`
    package let path: String
    package var address = ""
    package var isPowered = false
    /// bluetoothd can advertise with it.
    package var advertises = false
    /// bluetoothd reports which Bluetooth the adapter has: version 5.70 and later do.
    package private(set) var reportsVersion = false

    package init(path: String) { self.path = path }

    /// The path of the adapter with this number.
    static func path(_ number: Int) -> String { "/org/bluez/hci\(number)" }

    /// `hci0`
    package var name: String { path.split(separator: "/").last.map(String.init) ?? path }
    package var number: Int { Int(name.drop { !$0.isNumber }) ?? 0 }

    private static let types = ["Address": "s", "Powered": "b", "Version": "y"]

    /// Reads an `a{sv}`; properties that the message does not contain stay.
    package mutating func read(_ message: BusMessage) throws(Malformed) {
        var copy = self
        var properties = try BusProperties(message, Self.types)
        while let key = try properties.next() {
            switch key {
            case "Address": copy.address = try message.string()
            case "Powered": copy.isPowered = try message.bool()
            case "Version":
                _ = try message.number("y", as: UInt8.self)
                copy.reportsVersion = true
            default: break
            }
        }
        self = copy
    }
}
