// SPDX-License-Identifier: GPL-3.0-or-later
package import Text

/// What a GATT client wants of a device: services, one of which the device offers, and their characteristics. UUIDs are in
/// lower case.
package struct GATTProfile: Sendable {
    /// The name of the profile and of the devices that offer it, for people, such as `PKOC` and `the reader`.
    let name: Phrase
    let device: Phrase
    let services: Set<String>
    /// The characteristics that the client writes; the first one has the MTU.
    let written: [String]
    /// The characteristics whose notifications the client receives, in the order in which it switches them on.
    let notified: [String]
    /// The connection fails if more notifications than this are waiting to be read.
    let mostWaiting: Int
    /// The device is met once: no other program listens to it, and bluetoothd forgets it at the end.
    let isPassing: Bool

    package init(
        _ name: Phrase,
        of device: Phrase,
        services: Set<String>,
        written: [String],
        notified: [String],
        mostWaiting: Int = 64,
        isPassing: Bool = false
    ) {
        self.name = name
        self.device = device
        self.services = services
        self.written = written
        self.notified = notified
        self.mostWaiting = mostWaiting
        self.isPassing = isPassing
    }
}

/// What bluetoothd reports about an adapter, a device, and the characteristics of a profile on this device.
struct GATTObjects: Sendable {
    private(set) var hasAdapter = false
    private(set) var isPowered = false
    private(set) var hasDevice = false
    /// nil until bluetoothd has reported the type of the address.
    private(set) var isRandom: Bool?
    private(set) var isResolved = false
    private(set) var isConnected = false
    /// A person has paired or trusts the device, so bluetoothd must not forget it.
    private(set) var isKept = false
    private let profile: GATTProfile
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

    /// Characteristics of the profile beyond this number are ignored.
    private static let mostCharacteristics = 256

    init(_ profile: GATTProfile) { self.profile = profile }

    /// The device was connected.
    mutating func connected() { isConnected = true }

    /// bluetoothd does not know the device any more.
    mutating func forgetDevice() {
        let old = self
        self = GATTObjects(profile)
        hasAdapter = old.hasAdapter
        isPowered = old.isPowered
    }

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
            var properties = try BusProperties(message, ["Powered": "b"])
            while try properties.next() != nil { isPowered = try message.bool() }
        case BlueZName.device where path == device:
            hasDevice = true
            var properties = try BusProperties(message, Self.deviceTypes)
            while let key = try properties.next() {
                switch key {
                case "Paired", "Trusted": if try message.bool() { isKept = true }
                case "AddressType": isRandom = try message.string() == "random"
                case "Connected": isConnected = try message.bool()
                default: isResolved = try message.bool()
                }
            }
        case BlueZName.gattService where path.hasPrefix(device + "/"):
            var properties = try BusProperties(message, ["UUID": "s"])
            while try properties.next() != nil {
                if profile.services.contains(try message.string().lowercased()) { services.insert(path) }
            }
        case BlueZName.characteristic where path.hasPrefix(device + "/"):
            try readCharacteristic(message, path)
        default: try message.skip("a{sv}")
        }
    }

    private static let deviceTypes = [
        "AddressType": "s", "ServicesResolved": "b", "Connected": "b", "Paired": "b", "Trusted": "b",
    ]

    private mutating func readCharacteristic(_ message: BusMessage, _ path: String) throws(Malformed) {
        var found = Characteristic(path: path)
        let types = [
            "UUID": "s", "Service": "o", "Flags": "as", "MTU": "q", "Notifying": "b", "NotifyAcquired": "b",
        ]
        var properties = try BusProperties(message, types)
        while let key = try properties.next() {
            switch key {
            case "UUID": found.uuid = try message.string().lowercased()
            case "Service": found.service = try message.string("o")
            case "MTU": found.mtu = try message.number("q", as: UInt16.self)
            case "Notifying", "NotifyAcquired": if try message.bool() { found.isListenedTo = true }
            default:
                found.flags.formUnion(try message.strings())
            }
        }
        guard characteristics.count < Self.mostCharacteristics else { return }
        if profile.written.contains(found.uuid) || profile.notified.contains(found.uuid) {
            characteristics.append(found)
        }
    }

    /// The first characteristic of a service of the profile with this UUID and one of these flags.
    private func characteristic(_ uuid: String, _ flags: Set<String>) -> Characteristic? {
        characteristics.filter { services.contains($0.service) && $0.uuid == uuid && !$0.flags.isDisjoint(with: flags) }
            .min { $0.path < $1.path }
    }

    /// Where the client writes this characteristic, and whether the device confirms writes.
    func written(_ uuid: String) -> (path: String, isConfirmed: Bool)? {
        characteristic(uuid, ["write", "write-without-response"]).map { ($0.path, $0.flags.contains("write")) }
    }

    private var notified: [Characteristic] {
        profile.notified.compactMap { characteristic($0, ["notify", "indicate"]) }
    }

    var notifyPaths: [(uuid: String, path: String)] { notified.map { ($0.uuid, $0.path) } }

    /// Whether the device has all characteristics of the profile.
    var isComplete: Bool {
        notified.count == profile.notified.count && profile.written.allSatisfy { written($0) != nil }
    }

    /// Whether a program has subscribed to the notifications. bluetoothd enables them for the program in each
    /// connection.
    var isListenedTo: Bool { notified.contains(where: \.isListenedTo) }

    /// The MTU of the connection, 23 to 517: 23 unless bluetoothd reports another one.
    var mtu: Int {
        let first = profile.written.first.flatMap { characteristic($0, ["write", "write-without-response"]) }
        return min(max(Int(first?.mtu ?? 0), 23), 517)
    }
}
