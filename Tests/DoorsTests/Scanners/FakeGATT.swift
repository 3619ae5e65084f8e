// SPDX-License-Identifier: GPL-3.0-or-later
import Concurrency
import DoorOpening
import DoorReaders
import DoorTestSupport

@testable import Bluetooth
@testable import Scanners

/// Emulates a bluetoothd with one PKOC reader: its objects, connections, writes and notifications.
@Loop final class FakeGATT {
    static let adapter = "/org/bluez/hci0"
    static let device = "/org/bluez/hci0/dev_C0_00_00_00_00_01"
    static let address = DeviceAddress(bits: 0xC000_0000_0001, isRandom: true)

    var reader: ModelReader
    var mtu: UInt16 = 517
    /// bluetoothd knows the reader before a discovery.
    var isKnown = true
    var isPowered: Bool
    var isTrusted = false
    /// bluetoothd runs with option -E.
    var isExperimental = false
    /// Errors in place of an answer, by method.
    var refusals: [String: String] = [:]
    /// Methods that are never answered.
    var silent: Set<String> = []
    /// Methods that are not answered after the refused connections.
    var silentAfterRefusals: Set<String> = []
    /// This number of connections fails before the next one is established: Connect is refused, or the connection is lost
    /// before the services were read.
    var refusedConnections = 0
    var lostConnections = 0
    /// This number of discoveries is refused.
    var refusedDiscoveries = 0
    /// The reader ends the connection when it has received this number of messages.
    var disconnectsAfter: Int?
    /// The reader sends this number of notifications at once, and again when it shall be disconnected.
    var flood = 0
    var offersPKOC = true
    /// Other programs that listen to the reader. bluetoothd switches the notifications on for them when the reader is connected, and
    /// signals each notification once for each program.
    var listeners = 0
    /// Another program is connected to the reader.
    var isConnectedBefore = false
    private(set) var calls: [String] = []
    /// Whether the caller of Disconnect was still there when a flood was over; nil until then.
    private(set) var callerWaited: Bool?
    private var isConnected = false
    private var isListening = false
    private var messages = 0
    private var input = PKOCFraming()
    private var output = PKOCFraming()
    private let bus: SystemBus
    private let waiters = Waiters()

    init(_ address: String, _ reader: ModelReader, isPowered: Bool = true) async throws {
        self.reader = reader
        self.isPowered = isPowered
        bus = try SystemBus(address: address)
        await bus.serve { [weak self] message in self?.take(message) }
    }

    /// Returns when the bus has no bluetoothd any more.
    func end() async {
        await withCheckedContinuation { continuation in
            bus.call(
                BusMethod(BlueZName.busPath, BlueZName.bus, "ReleaseName", of: BlueZName.bus),
                arguments: { $0.append(BlueZName.service) },
                answer: { _ in continuation.resume() }
            )
        }
        bus.close()
    }

    /// Switches the adapter on.
    func switchOn() {
        isPowered = true
        bus.changed(Self.adapter, of: BlueZName.adapter) { message in
            message.property("Powered", "b") { message.append(true) }
        }
    }

    /// Returns when the condition holds; it is checked after each call.
    func wait(until condition: @escaping () -> Bool) async { await waiters.wait(until: condition) }

    private func take(_ call: BusMessage) {
        guard call.kind == .call else { return }
        defer { waiters.check() }
        calls.append(call.member)
        if let refusal = refusals[call.member] { return bus.refuse(call, refusal) }
        guard !silent.contains(call.member) else { return }
        if refusedConnections == 0, silentAfterRefusals.contains(call.member) { return }
        switch call.member {
        case "GetManagedObjects": bus.reply(to: call, values: describe)
        case "StartDiscovery" where refusedDiscoveries > 0:
            refusedDiscoveries -= 1
            bus.refuse(call, "org.bluez.Error.InProgress")
        case "StartDiscovery":
            bus.reply(to: call)
            isKnown = true
            bus.signal("/", BlueZName.objects, "InterfacesAdded") { message in
                message.append(Self.device, "o")
                message.container("a", "{sa{sv}}") {
                    message.interfaceEntry(BlueZName.device) { describeDevice(message) }
                }
            }
        case "ConnectDevice" where !isExperimental:
            bus.refuse(call, "org.freedesktop.DBus.Error.UnknownMethod")
        case "ConnectDevice":
            isKnown = true
            isConnected = true
            bus.reply(to: call) { $0.append(Self.device, "o") }
        case "Connect" where refusedConnections > 0:
            refusedConnections -= 1
            bus.refuse(call, "org.bluez.Error.Failed")
        case "Connect" where lostConnections > 0:
            lostConnections -= 1
            bus.reply(to: call)
            for value in [true, false] {
                bus.changed(Self.device, of: BlueZName.device) { message in
                    message.property("Connected", "b") { message.append(value) }
                }
            }
        case "Connect":
            isConnected = true
            if listeners > 0 { greet() }
            bus.reply(to: call)
            bus.changed(Self.device, of: BlueZName.device) { message in
                message.property("ServicesResolved", "b") { message.append(true) }
            }
        case "Disconnect":
            isConnectedBefore = false
            for number in 0..<flood { value([3, 4, UInt8(number)]) }
            (isConnected, isListening) = (false, false)
            if flood > 0 { answerAfterFlood(call) } else { bus.reply(to: call) }
        case "StartNotify":
            isListening = true
            // The reader speaks first, and may do so before bluetoothd has answered.
            if listeners == 0 { greet() }
            for number in 0..<flood { value([1, 2, UInt8(number)]) }
            bus.reply(to: call)
        case "WriteValue":
            bus.reply(to: call)
            write((try? call.bytes()) ?? [])
        default: bus.reply(to: call)
        }
    }

    /// Gives the caller of Disconnect the time of some calls to leave before the answer.
    private func answerAfterFlood(_ disconnect: BusMessage, round: Int = 0) {
        bus.call(
            BusMethod(BlueZName.busPath, BlueZName.bus, "NameHasOwner", of: BlueZName.bus),
            arguments: { $0.append(disconnect.sender) },
            answer: { [self] answer in
                let isThere = (try? answer?.bool()) ?? false
                if isThere, round < 20 { return answerAfterFlood(disconnect, round: round + 1) }
                callerWaited = isThere
                bus.reply(to: disconnect)
                waiters.check()
            }
        )
    }

    private func write(_ bytes: [UInt8]) {
        guard let message = try? input.receive(bytes) else { return }
        messages += 1
        if let number = disconnectsAfter, messages >= number {
            isConnected = false
            bus.changed(Self.device, of: BlueZName.device) { message in
                message.property("Connected", "b") { message.append(false) }
            }
        } else if case .message(let answer) = try? reader.receive(message) {
            notify(answer)
        }
    }

    private func greet() { if let greeting = try? reader.greeting() { notify(greeting) } }

    private func notify(_ message: [UInt8]) {
        if output.dialect == nil { _ = try? output.receive([2, 0x0C]) }
        for piece in output.divide(message, capacity: Int(mtu) - 3) ?? [] {
            for _ in 0..<listeners + (isListening ? 1 : 0) { value(piece) }
        }
    }

    private func value(_ bytes: [UInt8]) {
        bus.changed(Self.device + "/service000a/char000d", of: BlueZName.characteristic) { message in
            message.property("Value", "ay") { message.append(bytes) }
        }
    }

    // MARK: Objects

    private func describe(_ message: BusMessage) {
        message.container("a", "{oa{sa{sv}}}") {
            object(message, Self.adapter, BlueZName.adapter) { message in
                message.property("Powered", "b") { message.append(self.isPowered) }
            }
            if isKnown { object(message, Self.device, BlueZName.device, describeDevice) }
            if isConnected || listeners > 0, offersPKOC {
                object(message, Self.device + "/service000a", BlueZName.gattService) { message in
                    message.property("UUID", "s") { message.append(PKOCService.services[0]) }
                }
                characteristic(message, "char000b", PKOCService.write, ["write", "write-without-response"])
                characteristic(message, "char000d", PKOCService.notify, ["read", "notify"])
            }
        }
    }

    private func describeDevice(_ message: BusMessage) {
        message.property("Address", "s") { message.append("C0:00:00:00:00:01") }
        message.property("AddressType", "s") { message.append("random") }
        message.property("Paired", "b") { message.append(false) }
        message.property("Trusted", "b") { message.append(self.isTrusted) }
        message.property("UUIDs", "as") {
            message.container("a", "s") { message.append(PKOCService.services[0]) }
        }
        message.property("ServicesResolved", "b") { message.append(isConnected) }
        message.property("Connected", "b") { message.append(isConnected || isConnectedBefore) }
    }

    private func characteristic(_ message: BusMessage, _ name: String, _ uuid: String, _ flags: [String]) {
        object(message, Self.device + "/service000a/\(name)", BlueZName.characteristic) { message in
            message.property("UUID", "s") { message.append(uuid) }
            message.property("Service", "o") { message.append(Self.device + "/service000a", "o") }
            message.property("Flags", "as") {
                message.container("a", "s") { for flag in flags { message.append(flag) } }
            }
            message.property("MTU", "q") { message.append(self.mtu, "q") }
            if flags.contains("notify") {
                message.property("Notifying", "b") { message.append(self.listeners > 0) }
                message.property("NotifyAcquired", "b") { message.append(false) }
            }
        }
    }

    private func object(
        _ message: BusMessage,
        _ path: String,
        _ name: String,
        _ body: (BusMessage) -> Void
    ) {
        message.object(path) { message.interfaceEntry(name) { body(message) } }
    }
}
