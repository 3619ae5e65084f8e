// SPDX-License-Identifier: GPL-3.0-or-later
import DoorOpening
import Text

/// What bluetoothd reports about an adapter, a reader, and the PKOC characteristics of this reader.
struct BlueZGATT: Sendable {
    private(set) var hasAdapter = false
    private(set) var isPowered = false
    private(set) var hasDevice = false
    /// nil until bluetoothd has reported the type of the address.
    private(set) var isRandom: Bool?
    private(set) var isResolved = false
    private(set) var isConnected = false
    private var services: Set<String> = []
    private var characteristics: [Characteristic] = []

    private struct Characteristic {
        let path: String
        var service = ""
        var uuid = ""
        var flags: Set<String> = []
        var mtu: UInt16 = 0
        var isListenedTo = false
    }

    /// A reader has two characteristics of PKOC; those beyond this number are ignored.
    private static let mostCharacteristics = 256

    init() {}

    private init(hasAdapter: Bool, isPowered: Bool) {
        self.hasAdapter = hasAdapter
        self.isPowered = isPowered
    }

    /// The reader was connected.
    mutating func connected() { isConnected = true }

    /// bluetoothd does not know the reader any more.
    mutating func forgetDevice() { self = BlueZGATT(hasAdapter: hasAdapter, isPowered: isPowered) }

    /// Reads the properties of one interface of one object; those of other objects are skipped.
    mutating func read(
        _ message: BusMessage,
        _ path: String,
        _ name: String,
        adapter: String,
        device: String
    ) throws(Malformed) {
        switch name {
        case BlueZName.adapter where path == adapter:
            hasAdapter = true
            try message.properties(["Powered": "b"]) { _ throws(Malformed) in
                isPowered = try message.bool()
            }
        case BlueZName.device where path == device:
            hasDevice = true
            try message.properties(["AddressType": "s", "ServicesResolved": "b", "Connected": "b"]) {
                key throws(Malformed) in
                switch key {
                case "AddressType": isRandom = try message.string() == "random"
                case "Connected": isConnected = try message.bool()
                default: isResolved = try message.bool()
                }
            }
        case BlueZName.gattService where path.hasPrefix(device + "/"):
            try message.properties(["UUID": "s"]) { _ throws(Malformed) in
                if PKOCService.services.contains(try message.string().lowercased()) { services.insert(path) }
            }
        case BlueZName.characteristic where path.hasPrefix(device + "/"):
            try readCharacteristic(message, path)
        default: try message.skip("a{sv}")
        }
    }

    private mutating func readCharacteristic(_ message: BusMessage, _ path: String) throws(Malformed) {
        var found = Characteristic(path: path)
        let types = [
            "UUID": "s", "Service": "o", "Flags": "as", "MTU": "q", "Notifying": "b", "NotifyAcquired": "b",
        ]
        try message.properties(types) { key throws(Malformed) in
            switch key {
            case "UUID": found.uuid = try message.string().lowercased()
            case "Service": found.service = try message.string("o")
            case "MTU": found.mtu = try message.number("q", as: UInt16.self)
            case "Notifying", "NotifyAcquired": if try message.bool() { found.isListenedTo = true }
            default:
                try message.each("s") { () throws(Malformed) in found.flags.insert(try message.string()) }
            }
        }
        guard characteristics.count < Self.mostCharacteristics else { return }
        if found.uuid == PKOCService.write || found.uuid == PKOCService.notify { characteristics.append(found) }
    }

    /// The first characteristic of a PKOC service with this UUID and one of these flags.
    private func characteristic(_ uuid: String, _ flags: Set<String>) -> Characteristic? {
        characteristics.filter { services.contains($0.service) && $0.uuid == uuid && !$0.flags.isDisjoint(with: flags) }
            .min { $0.path < $1.path }
    }

    private var writeCharacteristic: Characteristic? {
        characteristic(PKOCService.write, ["write", "write-without-response"])
    }

    var writePath: String? { writeCharacteristic?.path }
    private var notifyCharacteristic: Characteristic? {
        characteristic(PKOCService.notify, ["notify", "indicate"])
    }

    var notifyPath: String? { notifyCharacteristic?.path }
    /// Whether a program has subscribed to the notifications. bluetoothd enables them for the program in each
    /// connection.
    var isListenedTo: Bool { notifyCharacteristic?.isListenedTo ?? false }
    /// Whether the reader confirms writes.
    var writesWithResponse: Bool { writeCharacteristic?.flags.contains("write") ?? false }

    /// The MTU of the connection, 23 to 517: 23 unless bluetoothd reports another one.
    var mtu: Int { min(max(Int(writeCharacteristic?.mtu ?? 0), 23), 517) }
}
