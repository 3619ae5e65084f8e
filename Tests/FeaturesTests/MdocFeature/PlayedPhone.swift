// SPDX-License-Identifier: GPL-3.0-or-later
import Concurrency
import DoorTestSupport
import MdocFeature
import MobileDocument
import Text

@testable import Bluetooth
@testable import VirtualDocument

/// Emulates a bluetoothd whose adapter reaches a phone with a virtual wallet, and strangers.
@Loop final class PlayedPhone {
    static let adapter = "/org/bluez/hci0"
    static let phone = adapter + "/dev_C1_00_00_00_00_02"
    static let stranger = adapter + "/dev_C1_00_00_00_00_03"

    var wallet: VirtualWallet
    /// Whether the phone uses the service of the reader, or offers its own.
    var isClient = true
    var isServer = true
    var mtu: UInt16 = 517
    /// bluetoothd does not say what it has.
    var isSilent = false
    var isPowered = true
    /// bluetoothd says which Bluetooth the adapter has, as 5.70 and later do.
    var reportsVersion = true
    /// The phone is paired with this computer.
    var isPaired = false
    /// The adapter can advertise.
    var advertises = true
    /// The UUID of the service is the local name of the phone, and the service itself is in a later part of its advertisement. A
    /// stranger has the same name.
    var hasLocalName = false
    /// What the phone expects of Ident; nil: it looks at nothing.
    var expectedIdent: [UInt8]?
    /// The phone is known before a search.
    var isKnown = false
    /// What strangers write who are faster than the phone, one after another.
    var strangers: [[[UInt8]]] = []
    /// A stranger who writes this while the phone is connected, and the errors that he gets.
    var intruder: [UInt8]?
    private(set) var refusals: [String] = []
    /// Changes the parts of the answer; an empty part is the end of the session.
    var spoil: ([[UInt8]]) -> [[UInt8]] = { $0 }
    /// The phone ends the connection in place of an answer.
    var leaves = false
    /// The first value that the phone writes.
    var start: [UInt8] = [1]

    private(set) var calls: [String] = []
    /// The devices that bluetoothd would keep on its disk.
    private(set) var kept: Set<String> = []
    /// The services that are advertised now.
    private(set) var advertised: [String] = []
    private(set) var properties: [String: String] = [:]
    /// The last values that the reader has written to State.
    private(set) var states: [[UInt8]] = []
    private(set) var identOfReader: [UInt8] = []
    private var characteristics: [String: String] = [:]
    private var reader = ""
    /// Who is connected.
    private var connected: String?
    private var isListening = false
    private var parts = BluetoothParts()
    private let bus: SystemBus
    private let waiters = Waiters()

    init(_ address: String, _ wallet: VirtualWallet) async throws {
        self.wallet = wallet
        bus = try SystemBus(address: address)
        await bus.serve { [weak self] message in self?.take(message) }
    }

    func end() { bus.close() }

    /// Returns when the condition holds; it is checked after each message.
    func wait(until condition: @escaping () -> Bool) async { await waiters.wait(until: condition) }

    private static func uuid(_ number: Int) -> String { "0000000\(number)-a123-48ce-896b-4c76973373e6" }

    private var service: String { UUIDText.encode(wallet.uuid) }

    // MARK: Calls

    private func take(_ message: BusMessage) {
        defer { waiters.check() }
        if message.kind == .signal { return hear(message) }
        guard message.kind == .call else { return }
        calls.append(message.member)
        switch message.member {
        case "GetManagedObjects" where isSilent: break
        case "GetManagedObjects": bus.reply(to: message, values: describe)
        case "Get":
            let name = (try? (message.string(), message.string()))?.1
            bus.reply(to: message) { answer in
                answer.container("v", "b") {
                    answer.append(name == "Paired" ? isPaired : connected == message.path)
                }
            }
        case "GetAll":
            bus.reply(to: message) { answer in answer.container("a", "{sv}") { describePhone(answer) } }
        case "RegisterApplication": readApplication(message)
        case "RegisterAdvertisement": readAdvertisement(message)
        case "UnregisterAdvertisement":
            advertised = []
            bus.reply(to: message)
        case "StartDiscovery":
            bus.reply(to: message)
            guard isServer, !isKnown else { return }
            isKnown = true
            if hasLocalName { announce(Self.stranger, services: []) }
            announce(Self.phone, services: hasLocalName ? [] : [service])
            guard hasLocalName else { return }
            bus.changed(Self.phone, of: BlueZName.device) { signal in
                signal.property("UUIDs", "as") { signal.append([service]) }
            }
        case "Connect":
            connect(message.path)
            bus.reply(to: message)
            bus.changed(message.path, of: BlueZName.device) { signal in
                signal.property("ServicesResolved", "b") { signal.append(true) }
            }
        case "StartNotify":
            isListening = true
            bus.reply(to: message)
        case "Disconnect":
            if connected == message.path { connected = nil }
            isListening = false
            bus.reply(to: message)
        case "RemoveDevice":
            if let device = try? message.string("o") { kept.remove(device) }
            isKnown = false
            bus.reply(to: message)
        case "WriteValue":
            bus.reply(to: message)
            guard let bytes = try? message.bytes() else { return }
            if message.path == Self.characteristic(1) { states.append(bytes) } else { receive(bytes) }
        default: bus.reply(to: message)
        }
    }

    private func announce(_ device: String, services: [String]) {
        bus.signal("/", BlueZName.objects, "InterfacesAdded") { signal in
            signal.append(device, "o")
            signal.container("a", "{sa{sv}}") {
                signal.interfaceEntry(BlueZName.device) { describePhone(signal, services: services) }
            }
        }
    }

    private func connect(_ device: String) {
        connected = device
        kept.insert(device)
    }

    /// What the reader notifies.
    private func hear(_ signal: BusMessage) {
        guard signal.member == "PropertiesChanged", connected == Self.phone, (try? signal.string()) != nil else {
            return
        }
        guard var properties = try? BusProperties(signal, ["Value": "ay"]) else { return }
        while (try? properties.next()) != nil, let bytes = try? signal.bytes() {
            if signal.path == characteristics[Self.uuid(5)] { states.append(bytes) } else { receive(bytes) }
        }
    }

    // MARK: The wallet

    private func receive(_ part: [UInt8]) {
        guard let message = try? parts.add(part) else { return }
        if leaves { return hangUp() }
        guard case .message(let answer) = wallet.answer(to: message), wallet.description.consent != .never else {
            return
        }
        send(spoil(BluetoothParts.divide(answer, capacity: Int(mtu) - 3))[...])
    }

    /// Sends the parts one after another: a bus allows few calls without an answer.
    private func send(_ parts: ArraySlice<[UInt8]>) {
        guard let part = parts.first else { return }
        let isEnd = part.isEmpty
        guard isListening else {
            return write(isEnd ? [2] : part, to: isEnd ? 5 : 6, from: Self.phone) { [self] in send(parts.dropFirst()) }
        }
        bus.changed(Self.characteristic(isEnd ? 1 : 3), of: BlueZName.characteristic) { message in
            message.property("Value", "ay") { message.append(isEnd ? [2] : part) }
        }
        send(parts.dropFirst())
    }

    private func hangUp() {
        connected = nil
        bus.changed(Self.phone, of: BlueZName.device) { message in
            message.property("Connected", "b") { message.append(false) }
        }
    }

    // MARK: The phone as client

    private func readApplication(_ call: BusMessage) {
        reader = call.sender
        let root = (try? call.string("o")) ?? ""
        bus.call(BusMethod(BlueZName.busPath, BlueZName.bus, "AddMatch", of: BlueZName.bus)) { message in
            message.append("type='signal',sender='\(reader)'")
        }
        bus.call(
            BusMethod(root, BlueZName.objects, "GetManagedObjects", of: reader),
            answer: { [self] answer in
                characteristics = [:]
                if let answer { try? readCharacteristics(answer) }
                bus.reply(to: call)
            }
        )
    }

    private func readCharacteristics(_ answer: BusMessage) throws(Malformed) {
        var objects = try BusObjects(answer)
        while let (path, _) = try objects.next() {
            var properties = try BusProperties(answer, ["UUID": "s"])
            while try properties.next() != nil { characteristics[try answer.string()] = path }
        }
    }

    private func readAdvertisement(_ call: BusMessage) {
        let path = (try? call.string("o")) ?? ""
        bus.call(
            BusMethod(path, BlueZName.properties, "GetAll", of: reader),
            arguments: { $0.append(BlueZName.advertisement) },
            answer: { [self] answer in
                if let answer { try? readAdvertisement(of: answer) }
                bus.reply(to: call)
                if !strangers.isEmpty { return playStranger(strangers.removeFirst()) }
                if isClient, advertised == [service] { useService() }
                waiters.check()
            }
        )
    }

    private func readAdvertisement(of answer: BusMessage) throws(Malformed) {
        var entries = try BusProperties(answer, ["ServiceUUIDs": "as", "Type": "s"])
        while let key = try entries.next() {
            if key == "Type" { properties[key] = try answer.string() } else { advertised += try answer.strings() }
        }
    }

    private func playStranger(_ values: [[UInt8]]) {
        connect(Self.stranger)
        write([1], to: 5, from: Self.stranger)
        for value in values { write(value, to: 6, from: Self.stranger) }
    }

    private func useService() {
        connect(Self.phone)
        call("ReadValue", 8, arguments: { _ in }, from: Self.phone) { [self] answer in
            identOfReader = (try? answer?.bytes()) ?? []
            if let expectedIdent, expectedIdent != identOfReader { return hangUp() }
            for number in [5, 7] {
                bus.call(method("StartNotify", number))
            }
            write(start, to: 5, from: Self.phone)
            if let intruder { write(intruder, to: 6, from: Self.stranger) }
        }
    }

    private func method(_ member: String, _ number: Int) -> BusMethod {
        BusMethod(characteristics[Self.uuid(number)] ?? "/none", BlueZName.characteristic, member, of: reader)
    }

    private func write(
        _ value: [UInt8],
        to number: Int,
        from device: String,
        then next: @escaping @Loop () -> Void = {}
    ) {
        call("WriteValue", number, arguments: { $0.append(value) }, from: device) { [self] answer in
            if let name = answer?.errorName { refusals.append(name) }
            waiters.check()
            next()
        }
    }

    private func call(
        _ member: String,
        _ number: Int,
        arguments: (BusMessage) -> Void,
        from device: String,
        answer: @escaping SystemBus.Answer
    ) {
        let mtu = mtu
        bus.call(
            method(member, number),
            arguments: { message in
                arguments(message)
                message.container("a", "{sv}") {
                    message.property("device", "o") { message.append(device, "o") }
                    message.property("mtu", "q") { message.append(mtu, "q") }
                }
            },
            answer: answer
        )
    }

    // MARK: Objects

    private static func characteristic(_ number: Int) -> String { phone + "/service0010/char001\(number)" }

    private func describe(_ message: BusMessage) {
        message.container("a", "{oa{sa{sv}}}") {
            message.object(Self.adapter) {
                message.interfaceEntry(BlueZName.adapter) {
                    message.property("Address", "s") { message.append("00:11:22:33:44:55") }
                    message.property("Powered", "b") { message.append(isPowered) }
                    if reportsVersion { message.property("Version", "y") { message.append(UInt8(9), "y") } }
                }
                message.interfaceEntry(BlueZName.gattManager) {}
                if advertises { message.interfaceEntry(BlueZName.advertisingManager) {} }
            }
            if isKnown {
                message.object(Self.phone) { message.interfaceEntry(BlueZName.device) { describePhone(message) } }
            }
            if connected == Self.phone {
                message.object(Self.phone + "/service0010") {
                    message.interfaceEntry(BlueZName.gattService) {
                        message.property("UUID", "s") { message.append(service) }
                    }
                }
                describe(1, ["notify", "write-without-response"], message)
                describe(2, ["write-without-response"], message)
                describe(3, ["notify"], message)
            }
        }
    }

    private func describe(_ number: Int, _ flags: [String], _ message: BusMessage) {
        message.object(Self.characteristic(number)) {
            message.interfaceEntry(BlueZName.characteristic) {
                message.property("UUID", "s") { message.append(Self.uuid(number)) }
                message.property("Service", "o") { message.append(Self.phone + "/service0010", "o") }
                message.property("Flags", "as") { message.append(flags) }
                message.property("MTU", "q") { message.append(mtu, "q") }
            }
        }
    }

    private func describePhone(_ message: BusMessage, services: [String]? = nil) {
        message.property("Address", "s") { message.append("C1:00:00:00:00:02") }
        message.property("AddressType", "s") { message.append("random") }
        message.property("Paired", "b") { message.append(isPaired) }
        if hasLocalName { message.property("Name", "s") { message.append(service.uppercased()) } }
        message.property("UUIDs", "as") { message.append(services ?? [service]) }
        message.property("ServicesResolved", "b") { message.append(connected == Self.phone) }
        message.property("Connected", "b") { message.append(connected == Self.phone) }
    }
}
