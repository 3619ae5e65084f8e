// SPDX-License-Identifier: GPL-3.0-or-later
package import Concurrency
package import DoorReaders
import Text

/// Searches the device that advertises a service, whose address nobody knows.
@Loop package final class GATTSearch {
    private let calls: BlueZCalls
    private let adapterPath: String
    private let uuid: String
    /// The path of the device.
    private var found: String?

    private init(_ bus: SystemBus, _ adapter: Int, _ uuid: String) {
        calls = BlueZCalls(bus)
        adapterPath = BlueZAdapter.path(adapter)
        self.uuid = uuid
        calls.onMessage = { [weak self] message throws(Malformed) in try self?.take(message) }
    }

    /// Returns the address of the device with this service, in lower case. bluetoothd knows the device from then on. The bus
    /// is taken over.
    package static func find(
        _ uuid: String,
        _ bus: SystemBus,
        adapter: Int,
        within limit: Milliseconds
    ) async throws(LinkFailure) -> DeviceAddress {
        let search = GATTSearch(bus, adapter, uuid)
        // bluetoothd ends a discovery that belongs to a bus that is closed.
        defer { bus.close() }
        return try await search.run(until: Loop.now + limit)
    }

    private func run(until deadline: Milliseconds) async throws(LinkFailure) -> DeviceAddress {
        try await calls.findService(until: deadline)
        calls.watch("interface='\(BlueZName.objects)'")
        // The service may be in a later part of the advertisement.
        calls.watch("path_namespace='\(adapterPath)',interface='\(BlueZName.properties)'")
        // Another discovery may have found it already.
        let known = try await calls.ask(.managedObjects, until: deadline) {
            [adapterPath, uuid] answer throws(Malformed) in
            var known: String?
            var objects = try BusObjects(answer)
            while let (path, name) = try objects.next() {
                if try Self.offers(uuid, answer, path, name, adapterPath) { known = path }
            }
            return known
        }
        found = found ?? known
        if found == nil { try await discover(until: deadline) }
        return try await address(until: deadline)
    }

    private func discover(until deadline: Milliseconds) async throws(LinkFailure) {
        try await calls.step(
            "the phone was not found in time",
            await calls.discover(on: adapterPath, services: [uuid], until: deadline) { self.found != nil }
        )
    }

    private func address(until deadline: Milliseconds) async throws(LinkFailure) -> DeviceAddress {
        let address = try await calls.ask(
            BusMethod(found ?? "", BlueZName.properties, "GetAll"),
            arguments: { $0.append(BlueZName.device) },
            until: deadline
        ) { answer throws(Malformed) in
            var device = BlueZDevice()
            try device.read(answer)
            return device.address.flatMap { DeviceAddress($0, isRandom: device.isRandom ?? false) }
        }
        guard let address else { throw .failed("bluetoothd does not know the address of the phone") }
        return address
    }

    private func take(_ message: BusMessage) throws(Malformed) {
        switch message.member {
        case "InterfacesAdded":
            let path = try message.string("o")
            var interfaces = try BusEntries(message, "sa{sv}")
            while try interfaces.next() { try note(message, path, try message.string()) }
        case "PropertiesChanged": try note(message, message.path, try message.string())
        default: break
        }
    }

    private func note(_ message: BusMessage, _ path: String, _ interface: String) throws(Malformed) {
        if try Self.offers(uuid, message, path, interface, adapterPath) { found = found ?? path }
    }

    /// Reads the properties of one interface: whether it is a device of the adapter with this service.
    private static func offers(
        _ uuid: String,
        _ message: BusMessage,
        _ path: String,
        _ interface: String,
        _ adapterPath: String
    ) throws(Malformed) -> Bool {
        guard interface == BlueZName.device, path.hasPrefix(adapterPath + "/") else {
            try message.skip("a{sv}")
            return false
        }
        var isOffered = false
        var properties = try BusProperties(message, ["UUIDs": "as"])
        while try properties.next() != nil {
            if try message.strings().contains(where: { $0.lowercased() == uuid }) { isOffered = true }
        }
        return isOffered
    }
}
