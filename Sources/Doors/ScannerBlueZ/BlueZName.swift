// SPDX-License-Identifier: GPL-3.0-or-later

/// The names of services, paths and interfaces on the D-Bus.
enum BlueZName {
    static let service = "org.bluez"
    static let adapter = "org.bluez.Adapter1"
    static let device = "org.bluez.Device1"
    static let gattService = "org.bluez.GattService1"
    static let characteristic = "org.bluez.GattCharacteristic1"
    static let objects = "org.freedesktop.DBus.ObjectManager"
    static let properties = "org.freedesktop.DBus.Properties"
    static let bus = "org.freedesktop.DBus"
    static let busPath = "/org/freedesktop/DBus"
}

/// A method of an object on the D-Bus.
struct BusMethod: Sendable {
    let destination: String
    let path: String
    let interface: String
    let member: String

    init(_ path: String, _ interface: String, _ member: String, of destination: String = BlueZName.service) {
        self.path = path
        self.interface = interface
        self.member = member
        self.destination = destination
    }

    /// All objects of bluetoothd, with their properties.
    static let managedObjects = BusMethod("/", BlueZName.objects, "GetManagedObjects")
    /// Its argument is the name of a service. A call to bluetoothd itself would start it.
    static let nameOwner = BusMethod(BlueZName.busPath, BlueZName.bus, "GetNameOwner", of: BlueZName.bus)
    static let addMatch = BusMethod(BlueZName.busPath, BlueZName.bus, "AddMatch", of: BlueZName.bus)
}
