// SPDX-License-Identifier: GPL-3.0-or-later
package import Concurrency
package import DoorOpening
package import DoorReaders
import Scanners
import Text
import Threads

/// A connection to one reader: org.bluez.Device1 and org.bluez.GattCharacteristic1.
@Loop final class BlueZLink: DoorLink {
    private let bus: SystemBus
    private let adapterPath: String
    private let devicePath: String
    private let isRandom: Bool
    /// The unique bus name of bluetoothd. Only its signals count.
    private var owner = ""
    private var gatt = BlueZGATT()
    /// Whether `disconnect` must ask bluetoothd to disconnect.
    private var mayBeConnected = false
    private var isConnected = false
    private var isResolved = false
    /// Why nothing more can be received.
    private var failure: DoorLinkFailure?
    private var notifications: [[UInt8]] = []
    /// The last notification since the last write.
    private var last: [UInt8]?
    /// Fulfilled at the next change of the values above.
    private var change: OneShot<Void>?

    /// The connection fails if more notifications than this are waiting to be read.
    private static let mostNotifications = 64
    /// How long the end of a connection may take, in milliseconds.
    private static let disconnectLimit: Milliseconds = 5000

    init(_ bus: SystemBus, _ address: DeviceAddress, adapter: Int) {
        self.bus = bus
        isRandom = address.isRandom
        adapterPath = "/org/bluez/hci\(adapter)"
        devicePath = adapterPath + "/dev_" + address.description.map { $0 == ":" ? "_" : String($0) }.joined()
        bus.onMessage = { [weak self] message in self?.handle(message) }
        bus.onEnd = { [weak self] in self?.fail("the connection to the D-Bus has ended") }
    }

    var capacity: Int { gatt.mtu - 3 }

    // MARK: Connecting

    func establish(within limit: Milliseconds) async throws(DoorLinkFailure) {
        let deadline = Loop.now + limit
        owner = try await ask(
            .nameOwner,
            arguments: { $0.append(BlueZName.service) },
            until: deadline,
            refusal: "bluetoothd is not running"
        ) { answer throws(Malformed) in try answer.string() }
        for rule in [
            "type='signal',sender='\(BlueZName.service)',path_namespace='\(devicePath)'",
            "type='signal',sender='\(BlueZName.service)',interface='\(BlueZName.objects)'",
            "type='signal',sender='\(BlueZName.bus)',member='NameOwnerChanged',arg0='\(BlueZName.service)'",
        ] {
            bus.call(.addMatch, arguments: { $0.append(rule) })
        }
        try await readObjects(until: deadline)
        guard gatt.hasAdapter else { throw .failed("bluetoothd does not know \(adapterName)") }
        guard gatt.isPowered else { throw .failed("\(adapterName) is switched off") }
        if !gatt.hasDevice { try await discover(until: deadline) }
        if gatt.isRandom != nil, gatt.isRandom != isRandom {
            throw .failed("bluetoothd knows the address of the reader with another type")
        }
        // The reader has already sent its first message, and does not repeat it in this connection.
        if gatt.isConnected, gatt.isListenedTo { throw .inUse("another program is connected to the reader") }
        mayBeConnected = true
        try await call(devicePath, BlueZName.device, "Connect", until: deadline)
        isConnected = true
        // Earlier signals may belong to an earlier connection.
        try await readObjects(until: deadline)
        if gatt.isResolved { isResolved = true }
        try await wait(until: deadline) { self.isResolved }
        try await readObjects(until: deadline)
        guard let notify = gatt.notifyPath, gatt.writePath != nil else {
            throw .failed("the reader does not offer PKOC")
        }
        try await call(notify, BlueZName.characteristic, "StartNotify", until: deadline)
    }

    private var adapterName: String { adapterPath.split(separator: "/").last.map(String.init) ?? "" }

    /// Lets bluetoothd find the reader, which it does not know when another scanner has received it.
    private func discover(until deadline: Milliseconds) async throws(DoorLinkFailure) {
        try await call(adapterPath, BlueZName.adapter, "SetDiscoveryFilter", until: deadline) { message in
            message.container("a", "{sv}") {
                message.property("Transport", "s") { message.append("le") }
            }
        }
        try await call(adapterPath, BlueZName.adapter, "StartDiscovery", until: deadline)
        try await wait(until: deadline) { self.gatt.hasDevice }
        // A controller connects more reliably while no discovery runs.
        try await call(adapterPath, BlueZName.adapter, "StopDiscovery", until: deadline)
    }

    private func readObjects(until deadline: Milliseconds) async throws(DoorLinkFailure) {
        let (adapterPath, devicePath) = (adapterPath, devicePath)
        gatt = try await ask(
            .managedObjects,
            until: deadline,
            refusal: "bluetoothd does not list its objects"
        ) { answer throws(Malformed) in
            var gatt = BlueZGATT()
            try answer.eachInterface { path, name throws(Malformed) in
                try gatt.read(answer, path, name, adapter: adapterPath, device: devicePath)
            }
            return gatt
        }
    }

    // MARK: DoorLink

    func notification(within limit: Milliseconds) async throws(DoorLinkFailure) -> [UInt8] {
        // Notifications that were received before the end of the connection are still returned.
        if notifications.isEmpty { try await wait(until: Loop.now + limit) { !self.notifications.isEmpty } }
        guard !notifications.isEmpty else { throw .timedOut }
        return notifications.removeFirst()
    }

    func write(_ bytes: [UInt8], within limit: Milliseconds) async throws(DoorLinkFailure) {
        guard let path = gatt.writePath, bytes.count <= capacity else {
            throw .failed("the write does not fit the MTU")
        }
        let type = gatt.writesWithResponse ? "request" : "command"
        let write: (BusMessage) -> Void = { message in
            message.append(bytes)
            message.container("a", "{sv}") {
                message.property("type", "s") { message.append(type) }
            }
        }
        try await ask(
            BusMethod(path, BlueZName.characteristic, "WriteValue"),
            arguments: write,
            until: Loop.now + limit
        ) { [weak self] _ throws(Malformed) in
            // The next notification is new, even if its value is the same.
            self?.last = nil
        }
    }

    func disconnect() async {
        // The opening may be cancelled, and the reader must be disconnected nevertheless.
        await Task { @Loop in
            if mayBeConnected {
                mayBeConnected = false
                // Signals do not matter any more: a reader that goes on sending must not end the call.
                (owner, failure) = ("", nil)
                do throws(DoorLinkFailure) {
                    let deadline = Loop.now + Self.disconnectLimit
                    try await call(devicePath, BlueZName.device, "Disconnect", until: deadline)
                } catch {
                    // Without bluetoothd there is no connection.
                }
            }
            bus.close()
        }.value
    }

    // MARK: Calls

    private func call(
        _ path: String,
        _ interface: String,
        _ member: String,
        until deadline: Milliseconds,
        _ arguments: (BusMessage) -> Void = { _ in }
    ) async throws(DoorLinkFailure) {
        try await ask(BusMethod(path, interface, member), arguments: arguments, until: deadline) {
            _ throws(Malformed) in
        }
    }

    /// Calls a method and returns what `read` makes of the answer.
    private func ask<Result: Sendable>(
        _ method: BusMethod,
        arguments: (BusMessage) -> Void = { _ in },
        until deadline: Milliseconds,
        refusal: String? = nil,
        read: @escaping @Loop (BusMessage) throws(Malformed) -> Result
    ) async throws(DoorLinkFailure) -> Result {
        if let failure { throw failure }
        let answered = OneShot<Swift.Result<Result, DoorLinkFailure>>()
        let isSent = bus.call(method, arguments: arguments) { answer in
            guard let answer else { return _ = answered.fill(.failure(.timedOut)) }
            guard answer.kind == .return else {
                answered.fill(.failure(Self.failure(method.member, answer.errorName, refusal)))
                return
            }
            do throws(Malformed) {
                answered.fill(.success(try read(answer)))
            } catch {
                answered.fill(.failure(.failed("bluetoothd answers \(method.member) in an unknown form")))
            }
        }
        guard isSent else { throw .failed("the D-Bus cannot be reached") }
        pending = { answered.fill(.failure($0)) }
        let alarm = Loop.Alarm { answered.fill(.failure(.timedOut)) }
        alarm.set(after: deadline - Loop.now)
        let result = await answered.value(whenCancelled: .failure(.failed("the opening was cancelled")))
        alarm.cancel()
        pending = nil
        return try result.get()
    }

    private static func failure(_ member: String, _ error: String?, _ refusal: String?) -> DoorLinkFailure {
        if member == "StartNotify", error == "org.bluez.Error.NotPermitted" {
            return .inUse("another program has acquired the notifications of the reader")
        }
        return .failed(refusal ?? "bluetoothd answers \(member) with \(error ?? "an error")")
    }

    /// Ends the call in progress.
    private var pending: ((DoorLinkFailure) -> Void)?

    /// Returns when the condition holds.
    private func wait(until deadline: Milliseconds, for condition: () -> Bool) async throws(DoorLinkFailure) {
        let alarm = Loop.Alarm { [weak self] in self?.change?.fill(()) }
        alarm.set(after: deadline - Loop.now)
        defer { alarm.cancel() }
        while !condition() {
            if let failure { throw failure }
            if Task.isCancelled { throw .failed("the opening was cancelled") }
            guard Loop.now < deadline else { throw .timedOut }
            let change = OneShot<Void>()
            self.change = change
            await change.value(whenCancelled: ())
        }
    }

    private func fail(_ reason: String) {
        failure = failure ?? .failed(reason)
        pending?(.failed(reason))
        change?.fill(())
    }

    // MARK: Signals

    private func handle(_ message: BusMessage) {
        guard message.kind == .signal else { return }
        if message.sender == BlueZName.bus {
            guard message.member == "NameOwnerChanged" else { return }
            // A call would start bluetoothd again.
            mayBeConnected = false
            return fail("bluetoothd has ended")
        }
        guard message.sender == owner else { return }
        do throws(Malformed) {
            switch message.member {
            case "InterfacesAdded": try handleAdded(message)
            case "PropertiesChanged" where message.path == devicePath: try handleDevice(message)
            case "PropertiesChanged" where message.path == gatt.notifyPath: try handleValue(message)
            default: return
            }
        } catch {
            fail("bluetoothd has sent a signal in an unknown form")
        }
        change?.fill(())
    }

    private func handleAdded(_ message: BusMessage) throws(Malformed) {
        let path = try message.string("o")
        guard path == devicePath else { return }
        try message.interfaces { name throws(Malformed) in
            try gatt.read(message, path, name, adapter: adapterPath, device: devicePath)
        }
    }

    private func handleDevice(_ message: BusMessage) throws(Malformed) {
        guard try message.string() == BlueZName.device else { return }
        try message.properties(["Connected": "b", "ServicesResolved": "b"]) { key throws(Malformed) in
            let value = try message.bool()
            if key == "ServicesResolved" {
                isResolved = value
            } else if !value, isConnected {
                fail("the reader has ended the connection")
            }
        }
    }

    private func handleValue(_ message: BusMessage) throws(Malformed) {
        guard try message.string() == BlueZName.characteristic else { return }
        try message.properties(["Value": "ay"]) { _ throws(Malformed) in
            let value = try message.bytes()
            // bluetoothd signals a notification once for each program that listens.
            if value == last { return }
            last = value
            guard notifications.count < Self.mostNotifications else {
                return fail("the reader sends too much data")
            }
            notifications.append(value)
        }
    }
}

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

/// Connects to readers through bluetoothd. Each connection uses the bus by itself, so that the scan is not affected.
@Loop package final class BlueZConnector: DoorConnector {
    private let address: String

    /// Creates a connector on the bus with this address; nil: the system's bus.
    package init(address: String? = nil) { self.address = address ?? SystemBus.standardAddress }

    package func connect(
        _ device: DeviceAddress,
        adapter: Int,
        within limit: Milliseconds
    ) async throws(DoorLinkFailure) -> any DoorLink {
        let bus = try translating({ DoorLinkFailure.failed($0.text) }) { () throws(ScannerFault) in
            try SystemBus(address: address)
        }
        let link = BlueZLink(bus, device, adapter: adapter)
        do throws(DoorLinkFailure) {
            try await link.establish(within: limit)
        } catch {
            await link.disconnect()
            throw error
        }
        return link
    }
}
