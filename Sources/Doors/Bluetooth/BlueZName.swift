// SPDX-License-Identifier: GPL-3.0-or-later

/// The names of services, paths and interfaces on the D-Bus.
package enum BlueZName {
    package static let service = "org.bluez"
    package static let adapter = "org.bluez.Adapter1"
    package static let device = "org.bluez.Device1"
    package static let gattService = "org.bluez.GattService1"
    package static let characteristic = "org.bluez.GattCharacteristic1"
    package static let gattManager = "org.bluez.GattManager1"
    package static let advertisingManager = "org.bluez.LEAdvertisingManager1"
    package static let advertisement = "org.bluez.LEAdvertisement1"
    package static let objects = "org.freedesktop.DBus.ObjectManager"
    package static let properties = "org.freedesktop.DBus.Properties"
    package static let bus = "org.freedesktop.DBus"
    package static let busPath = "/org/freedesktop/DBus"
}

/// A method of an object on the D-Bus.
package struct BusMethod: Sendable {
    package let destination: String
    package let path: String
    package let interface: String
    package let member: String

    package init(_ path: String, _ interface: String, _ member: String, of destination: String = BlueZName.service) {
        self.path = path
        self.interface = interface
        self.member = member
        self.destination = destination
    }

    /// All objects of bluetoothd, with their properties.
    package static let managedObjects = BusMethod("/", BlueZName.objects, "GetManagedObjects")
    /// Its argument is the name of a service. A call to bluetoothd itself would start it.
    package static let nameOwner = BusMethod(BlueZName.busPath, BlueZName.bus, "GetNameOwner", of: BlueZName.bus)
    package static let addMatch = BusMethod(BlueZName.busPath, BlueZName.bus, "AddMatch", of: BlueZName.bus)
}
