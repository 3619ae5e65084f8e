// SPDX-License-Identifier: GPL-3.0-or-later
package import Concurrency
package import DoorReaders
import Text

/// A service that a GATT server offers. UUIDs are in lower case.
package struct GATTService: Sendable {
    package struct Characteristic: Sendable {
        let uuid: String
        /// In the words of bluetoothd, such as `notify`.
        let flags: [String]
        /// What is read.
        let value: [UInt8]

        package init(_ uuid: String, _ flags: [String], value: [UInt8] = []) {
            self.uuid = uuid
            self.flags = flags
            self.value = value
        }
    }

    let uuid: String
    let characteristics: [Characteristic]

    package init(_ uuid: String, _ characteristics: [Characteristic]) {
        self.uuid = uuid
        self.characteristics = characteristics
    }
}

/// A service that bluetoothd offers and advertises, and the one device that uses it: org.bluez.GattManager1 and
/// org.bluez.LEAdvertisingManager1. The first device that writes is the peer. Then nothing is advertised any more, and what
/// others write is refused.
///
/// Values go through the D-Bus. With the sockets of AcquireWrite and AcquireNotify, bluetoothd 5.66 and 5.82 crash when a
/// program ends.
@Loop package final class GATTServer: GATTPeer {
    private let calls: BlueZCalls
    private let adapterPath: String
    private let service: GATTService
    /// The path of the device that uses the service.
    private var peer: String?
    /// The paths of the devices that have touched the service.
    private var visitors: [String] = []
    private var isAdvertised = false
    /// The MTU of the connection: 23 until bluetoothd reports another one.
    package private(set) var mtu = 23

    private static let root = "/org/badged/gatt"
    private static let servicePath = root + "/service"
    private static let advertisement = "/org/badged/advertisement"
    /// More values than a message of 2 MiB has, in parts of 512 bytes.
    private static let mostWaiting = 8192
    private static let mostVisitors = 16
    /// How long the end of the connection to one device may take, in milliseconds.
    private static let disconnectLimit: Milliseconds = 5000
    /// The pause between two advertisements, in milliseconds. Without it the kernel takes 1.28 s.
    private static let intervals = (minimum: UInt32(20), maximum: UInt32(30))

    /// Prepares a service on a bus that this object takes over.
    package init(_ bus: SystemBus, adapter: Int, _ service: GATTService) {
        calls = BlueZCalls(bus, mostWaiting: Self.mostWaiting)
        adapterPath = BlueZAdapter.path(adapter)
        self.service = service
        calls.onMessage = { [weak self] message throws(Malformed) in try self?.take(message) }
        calls.onServiceEnd = { [weak self] in
            self?.isAdvertised = false
            self?.visitors = []
        }
    }

    package var capacity: Int { mtu - 3 }

    // MARK: The connection

    /// Offers and advertises the service until a device uses it, or the time is over.
    package func establish(within limit: Milliseconds) async throws(LinkFailure) {
        let deadline = Loop.now + limit
        try await calls.findService(until: deadline)
        try await register("RegisterApplication", BlueZName.gattManager, Self.root, until: deadline)
        isAdvertised = true
        try await register("RegisterAdvertisement", BlueZName.advertisingManager, Self.advertisement, until: deadline)
        try await calls.step("no phone has connected in time", await calls.wait(until: deadline) { self.peer != nil })
        stopAdvertising()
        if let peer { try await watch(peer, until: deadline) }
    }

    private func register(
        _ member: String,
        _ manager: String,
        _ path: String,
        until deadline: Milliseconds
    ) async throws(LinkFailure) {
        try await calls.step(
            "bluetoothd has not answered \(member) in time",
            await calls.call(adapterPath, manager, member, until: deadline) { message in
                message.append(path, "o")
                message.container("a", "{sv}") {}
            }
        )
    }

    private func stopAdvertising() {
        guard isAdvertised else { return }
        isAdvertised = false
        let method = BusMethod(adapterPath, BlueZName.advertisingManager, "UnregisterAdvertisement")
        calls.bus.call(method, arguments: { $0.append(Self.advertisement, "o") })
    }

    /// Notices the end of the connection, which may have come already.
    private func watch(_ peer: String, until deadline: Milliseconds) async throws(LinkFailure) {
        calls.watch("path='\(peer)',interface='\(BlueZName.properties)'")
        let isConnected = try await calls.flag("Connected", of: peer, until: deadline)
        if !isConnected { throw .failed("the phone has ended the connection") }
    }

    package func value(within limit: Milliseconds?) async throws(LinkFailure) -> GATTValue {
        try await calls.value(within: limit)
    }

    package func send(
        _ bytes: [UInt8],
        on characteristic: String,
        within limit: Milliseconds
    ) async throws(LinkFailure) {
        if let failure = calls.failure { throw failure }
        guard let index = service.characteristics.firstIndex(where: { $0.uuid == characteristic }),
            bytes.count <= capacity
        else { throw .failed("the value does not fit the MTU") }
        calls.bus.changed(Self.path(index), of: BlueZName.characteristic) { message in
            message.property("Value", "ay") { message.append(bytes) }
        }
    }

    /// Ends the advertisement at once, disconnects the devices that have touched the service, lets bluetoothd forget them, and
    /// withdraws the service.
    package func disconnect() async {
        // The task may be cancelled.
        await Task { @Loop in
            stopAdvertising()
            calls.ignoreMessages()
            for visitor in visitors {
                await calls.forget(visitor, of: adapterPath, until: Loop.now + Self.disconnectLimit)
            }
            // bluetoothd withdraws what belongs to a bus that is closed.
            calls.bus.close()
        }.value
    }

    // MARK: Messages of bluetoothd

    private static func path(_ index: Int) -> String { "\(servicePath)/\(index)" }

    private func take(_ message: BusMessage) throws(Malformed) {
        if message.kind == .call { return try answer(message) }
        guard message.member == "PropertiesChanged", message.path == peer, try message.string() == BlueZName.device
        else {
            return
        }
        var properties = try BusProperties(message, ["Connected": "b"])
        while try properties.next() != nil {
            if try !message.bool() { calls.fail("the phone has ended the connection") }
        }
    }

    private func answer(_ call: BusMessage) throws(Malformed) {
        let bus = calls.bus
        let index = service.characteristics.indices.first { Self.path($0) == call.path }
        switch (call.member, index) {
        case ("GetManagedObjects", nil) where call.path == Self.root: bus.reply(to: call, values: describeService)
        case ("GetManagedObjects", nil) where call.path == Self.advertisement:
            bus.reply(to: call) { message in
                message.container("a", "{oa{sa{sv}}}") {
                    message.object(Self.advertisement) {
                        message.interfaceEntry(BlueZName.advertisement) { describeAdvertisement(message) }
                    }
                }
            }
        case ("GetAll", nil) where call.path == Self.advertisement:
            bus.reply(to: call) { message in message.container("a", "{sv}") { describeAdvertisement(message) } }
        case ("Release", nil) where call.path == Self.advertisement:
            bus.reply(to: call)
            if isAdvertised { calls.fail("bluetoothd has ended the advertisement") }
            isAdvertised = false
        case ("ReadValue", let index?):
            let options = try Options(call)
            visit(options.device)
            let value = service.characteristics[index].value
            guard options.offset <= value.count else { return bus.refuse(call, "org.bluez.Error.InvalidOffset") }
            bus.reply(to: call) { $0.append(Array(value.dropFirst(options.offset))) }
        case ("WriteValue", let index?):
            let bytes = try call.bytes()
            let options = try Options(call)
            visit(options.device)
            if peer == nil { peer = options.device }
            guard options.offset == 0, let device = options.device, device == peer else {
                return bus.refuse(call, "org.bluez.Error.NotPermitted")
            }
            mtu = min(max(options.mtu, mtu), 517)
            calls.received(bytes, of: service.characteristics[index].uuid, from: "the phone")
            bus.reply(to: call)
        case ("StartNotify", _?), ("StopNotify", _?): bus.reply(to: call)
        default: bus.refuse(call, "org.freedesktop.DBus.Error.UnknownMethod")
        }
    }

    /// What bluetoothd says about a read or write.
    private struct Options {
        var device: String?
        var offset = 0
        var mtu = 0

        init(_ call: BusMessage) throws(Malformed) {
            var properties = try BusProperties(call, ["device": "o", "offset": "q", "mtu": "q"])
            while let key = try properties.next() {
                switch key {
                case "device": device = try call.string("o")
                case "offset": offset = Int(try call.number("q", as: UInt16.self))
                default: mtu = Int(try call.number("q", as: UInt16.self))
                }
            }
        }
    }

    private func visit(_ device: String?) {
        guard let device, visitors.count < Self.mostVisitors, !visitors.contains(device) else { return }
        visitors.append(device)
    }

    private func describeService(_ message: BusMessage) {
        message.container("a", "{oa{sa{sv}}}") {
            message.object(Self.servicePath) {
                message.interfaceEntry(BlueZName.gattService) {
                    message.property("UUID", "s") { message.append(service.uuid) }
                    message.property("Primary", "b") { message.append(true) }
                }
            }
            for (index, characteristic) in service.characteristics.enumerated() {
                message.object(Self.path(index)) {
                    message.interfaceEntry(BlueZName.characteristic) {
                        message.property("UUID", "s") { message.append(characteristic.uuid) }
                        message.property("Service", "o") { message.append(Self.servicePath, "o") }
                        message.property("Flags", "as") { message.append(characteristic.flags) }
                    }
                }
            }
        }
    }

    private func describeAdvertisement(_ message: BusMessage) {
        message.property("Type", "s") { message.append("peripheral") }
        message.property("ServiceUUIDs", "as") { message.append([service.uuid]) }
        message.property("MinInterval", "u") { message.append(Self.intervals.minimum, "u") }
        message.property("MaxInterval", "u") { message.append(Self.intervals.maximum, "u") }
    }
}
