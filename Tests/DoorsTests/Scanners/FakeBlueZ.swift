// SPDX-License-Identifier: GPL-3.0-or-later
import Concurrency
import DoorTestSupport
import Glibc
import TestSupport
import Text

@testable import Bluetooth
@testable import Scanners

/// Emulates bluetoothd on a private bus, with the objects, methods and signals that a scan needs, and with faults.
/// Tests/Guest checks the scanner with the real bluetoothd.
@Loop final class FakeBlueZ {
    struct Adapter {
        var number: UInt8 = 0
        var isPowered = true
        var hasMonitors = false
    }

    var adapters: [String: Adapter] = ["/org/bluez/hci0": Adapter()]
    /// The devices in the answer to GetManagedObjects, by path; the closures write their properties.
    var devices: [String: (BusMessage) -> Void] = [:]
    /// The errors of the next calls of StartDiscovery, in order.
    var refusals: [String] = []
    /// Calls of these methods are answered by `release`.
    var held: Set<String> = []
    private var answers: [() -> Void] = []
    /// The objects of adapters whose discovery is refused.
    var refusing: Set<String> = []
    /// The received calls, such as "StartDiscovery hci0".
    private(set) var calls: [String] = []
    /// The last filter of the discovery, with its values as text.
    private(set) var filter: [String: String] = [:]
    /// All filters, in order.
    private(set) var filters: [[String: String]] = []
    /// The number of patterns of each monitor of the client.
    private(set) var patterns: [String: Int] = [:]

    private var bus: SystemBus
    private let address: String
    private let waiters = Waiters()

    init(_ address: String) async throws {
        self.address = address
        bus = try SystemBus(address: address)
        await bus.serve { [weak self] message in self?.take(message) }
    }

    /// Connects again, like a service that was killed and started again.
    func restart() async throws {
        bus.close()
        bus = try SystemBus(address: address)
        await bus.serve { [weak self] message in self?.take(message) }
    }

    func end() { bus.close() }

    /// Returns when the condition holds; it is checked after each call.
    func wait(until condition: @escaping () -> Bool) async {
        await waiters.wait(until: condition)
    }

    func wait(for call: String, times: Int = 1) async {
        await wait { self.calls.filter { $0 == call }.count >= times }
    }

    private func record(_ call: String) {
        calls.append(call)
        waiters.check()
    }

    // MARK: Methods

    private func take(_ call: BusMessage) {
        guard call.kind == .call else { return }
        let name = call.path.split(separator: "/").last.map(String.init) ?? ""
        switch call.member {
        case "GetManagedObjects" where held.contains("GetManagedObjects"):
            answers.append { [self] in bus.reply(to: call, values: describe) }
        case "GetManagedObjects": bus.reply(to: call, values: describe)
        case "GetAll":
            if let fill = devices[call.path] {
                bus.reply(to: call) { message in message.container("a", "{sv}") { fill(message) } }
            } else {
                bus.refuse(call, "org.freedesktop.DBus.Error.UnknownObject")
            }
        case "Set": setPowered(call)
        case "SetDiscoveryFilter":
            filter = (try? Self.filter(call)) ?? ["malformed": ""]
            filters.append(filter)
            bus.reply(to: call)
        case "StartDiscovery":
            if refusing.contains(call.path) {
                bus.refuse(call, "org.bluez.Error.InProgress")
            } else if refusals.isEmpty {
                bus.reply(to: call)
            } else {
                bus.refuse(call, refusals.removeFirst())
            }
        case "StopDiscovery" where held.contains("StopDiscovery"):
            answers.append { [self] in bus.reply(to: call) }
        case "RegisterMonitor":
            let root = (try? call.string("o")) ?? ""
            bus.reply(to: call)
            bus.call(
                BusMethod(root, "org.freedesktop.DBus.ObjectManager", "GetManagedObjects", of: call.sender),
                answer: {
                    [weak self] answer in
                    guard let self, let answer else { return }
                    self.patterns = (try? Self.countPatterns(answer)) ?? [:]
                    self.record("patterns")
                    for path in self.patterns.keys.sorted() {
                        self.bus.call(
                            BusMethod(path, "org.bluez.AdvertisementMonitor1", "Activate", of: call.sender)
                        )
                    }
                }
            )
        default: bus.reply(to: call)
        }
        record("\(call.member) \(name)")
    }

    /// Sends the held answers and holds no further ones.
    func release() {
        held = []
        let answers = answers
        self.answers = []
        for answer in answers { answer() }
    }

    /// Sets the power of an adapter; a scan sets no other property.
    private func setPowered(_ call: BusMessage) {
        guard adapters[call.path] != nil else {
            return bus.refuse(call, "org.freedesktop.DBus.Error.UnknownObject")
        }
        _ = try? (call.string(), call.string())
        if let isOn = try? call.variant("b", call.bool()) { power(call.path, isOn) }
        if held.contains("Set") { answers.append { [self] in bus.reply(to: call) } } else { bus.reply(to: call) }
    }

    private static func filter(_ call: BusMessage) throws(Malformed) -> [String: String] {
        var filter: [String: String] = [:]
        var entries = try BusEntries(call, "sv")
        while try entries.next() {
            let key = try call.string()
            let type = try call.variantType()
            try call.enter("v", type)
            switch type {
            case "s": filter[key] = try call.string()
            case "n": filter[key] = "\(try call.number("n", as: Int16.self))"
            case "b": filter[key] = "\(try call.bool())"
            default: try call.skip(type)
            }
            try call.leave()
        }
        return filter
    }

    private static func countPatterns(_ message: BusMessage) throws(Malformed) -> [String: Int] {
        var counts: [String: Int] = [:]
        var objects = try BusObjects(message)
        while let (path, _) = try objects.next() {
            var properties = try BusProperties(message, ["Patterns": "a(yyay)"])
            while try properties.next() != nil {
                try message.enter("a", "(yyay)")
                while try message.hasNext() {
                    try message.skip("(yyay)")
                    counts[path, default: 0] += 1
                }
            }
        }
        return counts
    }

    private func describe(_ message: BusMessage) {
        message.container("a", "{oa{sa{sv}}}") {
            for (path, adapter) in adapters {
                message.object(path) {
                    message.interfaceEntry("org.bluez.Adapter1") { Self.describe(adapter, message) }
                    if adapter.hasMonitors { message.interfaceEntry("org.bluez.AdvertisementMonitorManager1") {} }
                }
            }
            for (path, fill) in devices {
                message.object(path) { message.interfaceEntry("org.bluez.Device1") { fill(message) } }
            }
        }
    }

    private static func describe(_ adapter: Adapter, _ message: BusMessage) {
        message.property("Address", "s") { message.append("00:11:22:33:44:5\(5 + adapter.number)") }
        message.property("Powered", "b") { message.append(adapter.isPowered) }
        message.property("Class", "u") { message.append(UInt32(7), "u") }
    }

    // MARK: Signals

    func addAdapter(_ path: String, _ adapter: Adapter = Adapter()) {
        adapters[path] = adapter
        bus.signal("/", "org.freedesktop.DBus.ObjectManager", "InterfacesAdded") { message in
            message.append(path, "o")
            message.container("a", "{sa{sv}}") {
                message.interfaceEntry("org.bluez.Adapter1") { Self.describe(adapter, message) }
            }
        }
    }

    func remove(_ path: String, _ interface: String) {
        adapters[path] = nil
        bus.signal("/", "org.freedesktop.DBus.ObjectManager", "InterfacesRemoved") { message in
            message.append(path, "o")
            message.container("a", "s") { message.append(interface) }
        }
    }

    func power(_ path: String, _ value: Bool) {
        adapters[path]?.isPowered = value
        bus.changed(path, of: "org.bluez.Adapter1") { message in
            message.property("Powered", "b") { message.append(value) }
        }
    }

    /// Reports a new device.
    func found(_ path: String, _ fill: (BusMessage) -> Void) {
        bus.signal("/", "org.freedesktop.DBus.ObjectManager", "InterfacesAdded") { message in
            message.append(path, "o")
            message.container("a", "{sa{sv}}") { message.interfaceEntry("org.bluez.Device1") { fill(message) } }
        }
    }

    func changed(_ path: String, _ fill: (BusMessage) -> Void) { bus.changed(path, of: BlueZName.device, fill) }

    func signal(_ path: String, _ interface: String, _ member: String, _ fill: (BusMessage) -> Void) {
        bus.signal(path, interface, member, fill)
    }

    /// The properties of a Seos-style reader with lock service code 2.
    static func seos(_ address: String, _ rssi: Int16) -> (BusMessage) -> Void {
        { message in
            message.property("Address", "s") { message.append(address) }
            message.property("AddressType", "s") { message.append("random") }
            message.property("Name", "s") { message.append("Lobby") }
            message.property("UUIDs", "as") {
                message.container("a", "s") {
                    message.append("00001800-0000-1000-8000-00805f9b34fb")
                    message.append("00009800-0000-1000-8000-00177a000002")
                }
            }
            message.property("ManufacturerData", "a{qv}") {
                message.container("a", "{qv}") {
                    message.container("e", "qv") {
                        message.append(UInt16(0x012E), "q")
                        message.container("v", "ay") {
                            message.append([0x01, 0x2E, 0x10, 0x01, 0x02, 0xBA, 0xCE, 0xB5])
                        }
                    }
                }
            }
            message.property("RSSI", "n") { message.append(rssi, "n") }
        }
    }

    static func strength(_ rssi: Int16) -> (BusMessage) -> Void {
        { message in message.property("RSSI", "n") { message.append(rssi, "n") } }
    }
}
