// SPDX-License-Identifier: GPL-3.0-or-later
package import Concurrency
package import DoorReaders
import Text

/// A connection to one device, and its characteristics of a profile: org.bluez.Device1 and
/// org.bluez.GattCharacteristic1.
@Loop package final class GATTClient {
    private let bus: SystemBus
    private let address: DeviceAddress
    private let adapter: Int
    private let adapterPath: String
    package let devicePath: String
    private let profile: GATTProfile
    /// Leaves the radio to this connection.
    private let owner: RadioOwner
    /// Called when nothing is connected any more.
    private let onEnd: @Loop (_ devicePath: String) -> Void
    /// The unique bus name of bluetoothd. Only its signals count.
    private var service = ""
    private var gatt: GATTObjects
    private var isReserved = false
    /// Whether `disconnect` must ask bluetoothd to disconnect.
    private var mayBeConnected = false
    private var isConnected = false
    private var isResolved = false
    /// The connection was lost before the services were read.
    private var isLost = false
    /// The services were read, so the connection is not established again.
    private var isEstablished = false
    /// The last failure may not happen again.
    private var isTransient = false
    /// What bluetoothd has said of the last connection that failed.
    private var reason: String?
    /// The time of the last Connect or ConnectDevice that bluetoothd has not answered.
    private var connecting: Milliseconds?
    /// Why nothing more can be received.
    private var failure: LinkFailure?
    private var notifications: [[UInt8]] = []
    /// The last notification since the last write.
    private var last: [UInt8]?
    /// Fulfilled at the next change of the values above.
    private var change: OneShot<Void>?

    /// The connection fails if more notifications than this are waiting to be read.
    private static let mostNotifications = 64
    /// How long the end of a connection may take, in milliseconds.
    private static let disconnectLimit: Milliseconds = 5000
    /// How often a connection is tried, and the pause between two tries in milliseconds. At the edge of the range many
    /// connections fail to be established; bleak-retry-connector tries nine times, too.
    private static let mostTries = 9
    private static let pause: Milliseconds = 100
    /// Linux 6.1 panics when a connection is ended right after it was asked for. So Disconnect waits for the answer to
    /// Connect, or for this time in milliseconds.
    private static let connectTime: Milliseconds = 250

    /// Prepares a connection on a bus that this object takes over. `onEnd` is called with the path of the device when nothing
    /// is connected any more.
    package init(
        _ bus: SystemBus,
        _ address: DeviceAddress,
        adapter: Int,
        _ profile: GATTProfile,
        owner: RadioOwner,
        onEnd: @escaping @Loop (String) -> Void
    ) {
        self.bus = bus
        self.address = address
        self.adapter = adapter
        self.profile = profile
        self.owner = owner
        self.onEnd = onEnd
        gatt = GATTObjects(profile)
        adapterPath = "/org/bluez/hci\(adapter)"
        devicePath = adapterPath + "/dev_" + address.description.map { $0 == ":" ? "_" : String($0) }.joined()
        bus.onMessage = { [weak self] message in self?.handle(message) }
        bus.onEnd = { [weak self] in self?.fail("the connection to the D-Bus has ended") }
    }

    /// The bytes that one write carries, which is three less than the MTU.
    package var capacity: Int { gatt.mtu - 3 }

    // MARK: Connecting

    /// Connects and switches the notifications on. Connects again while the time lasts when a connection fails before that.
    /// - Parameter limit: the time to find the device, to connect to it, and to read its services, each.
    /// - Throws: why there is no connection. `disconnect` must be called nevertheless.
    package func establish(within limit: Milliseconds) async throws(LinkFailure) {
        try await findService(until: Loop.now + limit)
        defer { releaseRadio() }
        let end = Loop.now + limit
        var tries = 0
        while true {
            tries += 1
            do throws(LinkFailure) {
                return try await connect(within: limit)
            } catch {
                guard isTransient, failure == nil, !Task.isCancelled, tries < Self.mostTries, Loop.now < end else {
                    throw error
                }
            }
            try await pauseBeforeNextTry()
        }
    }

    private func reserveRadio() {
        if !isReserved { owner.reserve(adapter) }
        isReserved = true
    }

    private func releaseRadio() {
        if isReserved { owner.release(adapter) }
        isReserved = false
    }

    private func findService(until deadline: Milliseconds) async throws(LinkFailure) {
        service = try await ask(
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
        // The reader has already sent its first message, and does not repeat it in this connection.
        if gatt.isConnected, gatt.isListenedTo { throw .inUse("another program is connected to \(peer)") }
    }

    /// Tries to connect once.
    private func connect(within limit: Milliseconds) async throws(LinkFailure) {
        isLost = false
        isTransient = false
        isConnected = false
        isResolved = false
        if !gatt.hasDevice { try await find(within: limit) }
        reserveRadio()
        if gatt.isRandom != nil, gatt.isRandom != address.isRandom {
            throw .failed("bluetoothd knows the address of \(peer) with another type")
        }
        if !isConnected {
            mayBeConnected = true
            connecting = Loop.now
            try await step("bluetoothd has not connected to \(peer) in time") { () async throws(LinkFailure) in
                try await call(devicePath, BlueZName.device, "Connect", until: Loop.now + limit)
            }
            isConnected = true
        }
        try await step("the services of \(peer) were not read in time") { () async throws(LinkFailure) in
            let deadline = Loop.now + limit
            // Earlier signals may belong to an earlier connection.
            try await readObjects(until: deadline)
            guard gatt.isConnected else { throw lost() }
            if gatt.isResolved { isResolved = true }
            try await wait(until: deadline) { self.isResolved }
            try await readObjects(until: deadline)
            guard let notify = gatt.notifyPath, gatt.writePath != nil else {
                throw .failed("\(peer) does not offer \(profile.name)")
            }
            // From here on the device may have begun the dialogue.
            isEstablished = true
            try await call(notify, BlueZName.characteristic, "StartNotify", until: deadline)
        }
    }

    /// Names the step that has taken too long.
    private func step(
        _ late: String,
        _ body: () async throws(LinkFailure) -> Void
    ) async throws(LinkFailure) {
        do throws(LinkFailure) {
            try await body()
        } catch {
            throw error == .timedOut ? tooLate(late) : error
        }
    }

    /// A step has taken too long, perhaps after failures that bluetoothd has explained.
    private func tooLate(_ step: String) -> LinkFailure {
        .late(step + (reason.map { "; before, bluetoothd has answered \($0)" } ?? ""))
    }

    /// Such as `the reader`.
    private var peer: String { "the \(profile.device)" }

    private var adapterName: String { adapterPath.split(separator: "/").last.map(String.init) ?? "" }

    /// Lets bluetoothd find the device, which it does not know when another scanner has received it. Where the kernel
    /// connects by itself, bluetoothd learns of the device by the connection, and no discovery is necessary.
    private func find(within limit: Milliseconds) async throws(LinkFailure) {
        if try await connectDirectly(within: limit) { return }
        if owner.searches(adapter) {
            return try await step("bluetoothd has not found \(peer) in time") { () async throws(LinkFailure) in
                try await wait(until: Loop.now + limit) { self.gatt.hasDevice }
            }
        }
        reserveRadio()
        if await owner.beginConnection(to: address, adapter: adapter) {
            mayBeConnected = true
            defer { owner.endConnection(to: address, adapter: adapter) }
            try await step("\(peer) was not connected in time") { () async throws(LinkFailure) in
                try await wait(until: Loop.now + 2 * limit) { self.gatt.isConnected }
            }
            isConnected = true
            return
        }
        try await discover(until: Loop.now + limit)
    }

    /// Lets bluetoothd connect to a device that it does not know. Only with option -E has it this method, which waits for
    /// one advertisement less than a discovery and a connection.
    /// - Returns: false when bluetoothd cannot do this, or knows the device by now.
    private func connectDirectly(within limit: Milliseconds) async throws(LinkFailure) -> Bool {
        mayBeConnected = true
        connecting = Loop.now
        let type = address.isRandom ? "random" : "public"
        do throws(LinkFailure) {
            try await call(adapterPath, BlueZName.adapter, "ConnectDevice", until: Loop.now + 2 * limit) { message in
                message.container("a", "{sv}") {
                    message.property("Address", "s") { message.append(address.description) }
                    message.property("AddressType", "s") { message.append(type) }
                }
            }
        } catch {
            guard case .failed = error, failure == nil, !Task.isCancelled else {
                throw error == .timedOut ? tooLate("\(peer) was not connected in time") : error
            }
            mayBeConnected = false
            return false
        }
        isConnected = true
        return true
    }

    private func discover(until deadline: Milliseconds) async throws(LinkFailure) {
        try await call(adapterPath, BlueZName.adapter, "SetDiscoveryFilter", until: deadline) { message in
            message.container("a", "{sv}") {
                message.property("Transport", "s") { message.append("le") }
            }
        }
        // The device that is announced is enough: the answer may come late, when other programs discover.
        var refusal: String?
        bus.call(
            BusMethod(adapterPath, BlueZName.adapter, "StartDiscovery"),
            answer: { [weak self] answer in
                if let answer, answer.kind == .error { refusal = Self.text(answer) }
                self?.change?.fill(())
            }
        )
        try await step("bluetoothd has not found \(peer) in time") { () async throws(LinkFailure) in
            try await wait(until: deadline) { self.gatt.hasDevice || refusal != nil }
        }
        // A controller connects more reliably while no discovery runs. bluetoothd handles the calls in their order.
        bus.call(BusMethod(adapterPath, BlueZName.adapter, "StopDiscovery"))
        if let refusal, !gatt.hasDevice { throw .failed("bluetoothd answers StartDiscovery with \(refusal)") }
    }

    private func readObjects(until deadline: Milliseconds) async throws(LinkFailure) {
        let (adapterPath, devicePath, profile) = (adapterPath, devicePath, profile)
        gatt = try await ask(
            .managedObjects,
            until: deadline,
            refusal: "bluetoothd does not list its objects"
        ) { answer throws(Malformed) in
            var gatt = GATTObjects(profile)
            try answer.eachInterface { path, name throws(Malformed) in
                try gatt.read(answer, path, name, adapter: adapterPath, device: devicePath)
            }
            return gatt
        }
    }

    // MARK: Data

    /// Returns the next notification. Notifications are queued until they are read.
    package func notification(within limit: Milliseconds) async throws(LinkFailure) -> [UInt8] {
        // Notifications that were received before the end of the connection are still returned.
        if notifications.isEmpty { try await wait(until: Loop.now + limit) { !self.notifications.isEmpty } }
        guard !notifications.isEmpty else { throw .timedOut }
        return notifications.removeFirst()
    }

    /// Writes at most `capacity` bytes, and returns when the device or bluetoothd has accepted them.
    package func write(_ bytes: [UInt8], within limit: Milliseconds) async throws(LinkFailure) {
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

    /// Ends the connection or the attempts to connect, and returns when nothing is connected any more.
    package func disconnect() async {
        // The opening may be cancelled, and the device must be disconnected nevertheless.
        await Task { @Loop in
            releaseRadio()
            if mayBeConnected { await endConnection() }
            bus.close()
            onEnd(devicePath)
        }.value
    }

    private func endConnection() async {
        mayBeConnected = false
        // Signals do not matter any more: a device that goes on sending must not end the call.
        service = ""
        failure = nil
        isEstablished = true
        if let connecting {
            let deadline = connecting + Self.connectTime
            try? await wait(until: deadline) { self.connecting == nil }
        }
        // Without bluetoothd there is no connection.
        let deadline = Loop.now + Self.disconnectLimit
        try? await call(devicePath, BlueZName.device, "Disconnect", until: deadline)
        // Otherwise the scan would not see any more what the device advertises.
        guard owner.readsDevices, !gatt.isKept else { return }
        try? await call(adapterPath, BlueZName.adapter, "RemoveDevice", until: deadline) { message in
            message.append(devicePath, "o")
        }
    }

    // MARK: Calls

    private func call(
        _ path: String,
        _ interface: String,
        _ member: String,
        until deadline: Milliseconds,
        _ arguments: (BusMessage) -> Void = { _ in }
    ) async throws(LinkFailure) {
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
    ) async throws(LinkFailure) -> Result {
        if let failure { throw failure }
        let answered = OneShot<Swift.Result<Result, LinkFailure>>()
        let isSent = bus.call(method, arguments: arguments) { [weak self] answer in
            if method.member == "Connect" || method.member == "ConnectDevice" {
                self?.connecting = nil
                self?.change?.fill(())
            }
            guard let answer else { return _ = answered.fill(.failure(.timedOut)) }
            guard answer.kind == .return else {
                let failure = self?.failure(method.member, answer, refusal) ?? .timedOut
                answered.fill(.failure(failure))
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

    private func failure(_ member: String, _ answer: BusMessage, _ refusal: String?) -> LinkFailure {
        let error = answer.errorName
        if member == "StartNotify", error == "org.bluez.Error.NotPermitted" {
            return .inUse("another program has acquired the notifications of \(peer)")
        }
        // Connections fail in many ways that do not last. A device that bluetoothd has forgotten meanwhile is found again.
        if member == "Connect" || member == "ConnectDevice", Self.transientErrors.contains(error ?? "") {
            reason = "\(member) with \(Self.text(answer))"
        }
        if member == "Connect" {
            isTransient = Self.transientErrors.contains(error ?? "")
            if error == Self.unknownObject { gatt.forgetDevice() }
        } else if isLost {
            return lost()
        }
        return .failed(refusal ?? "bluetoothd answers \(member) with \(Self.text(answer))")
    }

    private static let unknownObject = "org.freedesktop.DBus.Error.UnknownObject"
    private static let transientErrors: Set<String> = [
        "org.bluez.Error.Failed", "org.bluez.Error.InProgress", "org.bluez.Error.NotReady", unknownObject,
    ]

    private static func text(_ error: BusMessage) -> String {
        let text = error.errorText.map { $0.isEmpty ? "" : ": \($0)" } ?? ""
        return (error.errorName ?? "an error") + text
    }

    /// The connection was lost before the services were read.
    private func lost() -> LinkFailure {
        isTransient = true
        return .failed("\(peer) has ended the connection")
    }

    /// Ends the call in progress.
    private var pending: ((LinkFailure) -> Void)?

    /// Returns when the condition holds.
    private func wait(until deadline: Milliseconds, for condition: () -> Bool) async throws(LinkFailure) {
        let alarm = Loop.Alarm { [weak self] in self?.change?.fill(()) }
        alarm.set(after: deadline - Loop.now)
        defer { alarm.cancel() }
        while !condition() {
            if let failure { throw failure }
            if isLost, !isEstablished { throw lost() }
            if Task.isCancelled { throw .failed("the opening was cancelled") }
            guard Loop.now < deadline else { throw .timedOut }
            let change = OneShot<Void>()
            self.change = change
            await change.value(whenCancelled: ())
        }
    }

    private func pauseBeforeNextTry() async throws(LinkFailure) {
        isLost = false
        do throws(LinkFailure) {
            try await wait(until: Loop.now + Self.pause) { false }
        } catch {
            guard error == .timedOut else { throw error }
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
        guard message.sender == service else { return }
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
            } else if value {
                gatt.connected()
            } else if isEstablished {
                fail("\(peer) has ended the connection")
            } else if isConnected {
                loseConnection()
            }
        }
    }

    /// The connection was lost before the services were read: what waits for it ends, and it is tried again.
    private func loseConnection() {
        isLost = true
        pending?(lost())
    }

    private func handleValue(_ message: BusMessage) throws(Malformed) {
        guard try message.string() == BlueZName.characteristic else { return }
        try message.properties(["Value": "ay"]) { _ throws(Malformed) in
            let value = try message.bytes()
            // bluetoothd signals a notification once for each program that listens.
            if value == last { return }
            last = value
            guard notifications.count < Self.mostNotifications else {
                return fail("\(peer) sends too much data")
            }
            notifications.append(value)
        }
    }
}
