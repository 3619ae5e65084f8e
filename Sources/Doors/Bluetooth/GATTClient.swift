// SPDX-License-Identifier: GPL-3.0-or-later
package import Concurrency
package import DoorReaders
import Text

/// A connection to one device, and its characteristics of a profile: org.bluez.Device1 and
/// org.bluez.GattCharacteristic1.
@Loop package final class GATTClient: GATTPeer {
    private let calls: BlueZCalls
    private let address: DeviceAddress
    private let adapter: Int
    private let adapterPath: String
    package let devicePath: String
    private let profile: GATTProfile
    /// Leaves the radio to this connection.
    private let owner: RadioOwner
    /// Called when nothing is connected any more.
    private let onEnd: @Loop (_ devicePath: String) -> Void
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
    /// The time of the last Connect or ConnectDevice that bluetoothd has not answered.
    private var connecting: Milliseconds?
    /// The last notification since the last write.
    private var last: [UInt8]?

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
        onEnd: @escaping @Loop (String) -> Void = { _ in }
    ) {
        calls = BlueZCalls(bus, mostWaiting: profile.mostWaiting)
        self.address = address
        self.adapter = adapter
        self.profile = profile
        self.owner = owner
        self.onEnd = onEnd
        gatt = GATTObjects(profile)
        adapterPath = BlueZAdapter.path(adapter)
        devicePath = adapterPath + "/dev_" + address.description.map { $0 == ":" ? "_" : String($0) }.joined()
        calls.onMessage = { [weak self] message throws(Malformed) in try self?.handle(message) }
        calls.onAnswer = { [weak self] member in
            if member == "Connect" || member == "ConnectDevice" { self?.connecting = nil }
        }
        calls.onRefusal = { [weak self] member, error in self?.failure(member, error) }
        calls.onServiceEnd = { [weak self] in self?.mayBeConnected = false }
        calls.obstacle = { [weak self] in
            guard let self, isLost, !isEstablished else { return nil }
            return lost()
        }
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
                guard isTransient, calls.failure == nil, !Task.isCancelled, tries < Self.mostTries, Loop.now < end
                else {
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
        let isNew = try await calls.findService(until: deadline)
        calls.watch("path_namespace='\(devicePath)'")
        calls.watch("path='\(adapterPath)',interface='\(BlueZName.properties)'")
        calls.watch("interface='\(BlueZName.objects)'")
        try await readObjects(until: deadline)
        // It finds its adapters, and switches them on, when it already runs.
        if isNew {
            do throws(LinkFailure) {
                try await calls.wait(until: deadline) { self.gatt.isPowered }
            } catch {
                guard error == .timedOut else { throw error }
            }
        }
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
            try await calls.step(
                "bluetoothd has not connected to \(peer) in time",
                await calls.call(devicePath, BlueZName.device, "Connect", until: Loop.now + limit)
            )
            isConnected = true
        }
        try await calls.step("the services of \(peer) were not read in time", await establish(until: Loop.now + limit))
    }

    /// Waits for the services of the connected device, and listens to their values.
    private func establish(until deadline: Milliseconds) async throws(LinkFailure) {
        // Earlier signals may belong to an earlier connection.
        try await readObjects(until: deadline)
        guard gatt.isConnected else { throw lost() }
        if gatt.isResolved { isResolved = true }
        try await calls.wait(until: deadline) { self.isResolved }
        try await readObjects(until: deadline)
        guard gatt.isComplete else { throw .failed("\(peer) does not offer \(profile.name)") }
        // From here on the device may have begun the dialogue.
        isEstablished = true
        for notify in gatt.notifyPaths {
            try await calls.call(notify.path, BlueZName.characteristic, "StartNotify", until: deadline)
        }
    }

    /// Such as `the reader`.
    private var peer: Phrase { profile.device }

    private var adapterName: String { adapterPath.split(separator: "/").last.map(String.init) ?? "" }

    /// Lets bluetoothd find the device, which it does not know when another scanner has received it. Where the kernel
    /// connects by itself, bluetoothd learns of the device by the connection, and no discovery is necessary.
    private func find(within limit: Milliseconds) async throws(LinkFailure) {
        if try await connectDirectly(within: limit) { return }
        if owner.searches(adapter) {
            return try await calls.step(
                "bluetoothd has not found \(peer) in time",
                await calls.wait(until: Loop.now + limit) { self.gatt.hasDevice }
            )
        }
        reserveRadio()
        if await owner.beginConnection(to: address, adapter: adapter) {
            mayBeConnected = true
            defer { owner.endConnection(to: address, adapter: adapter) }
            try await calls.step(
                "\(peer) was not connected in time",
                await calls.wait(until: Loop.now + 2 * limit) { self.gatt.isConnected }
            )
            isConnected = true
            return
        }
        await owner.waitUntilLeft(adapter, within: limit)
        try await calls.step(
            "bluetoothd has not found \(peer) in time",
            await calls.discover(on: adapterPath, until: Loop.now + limit) { self.gatt.hasDevice }
        )
    }

    /// Lets bluetoothd connect to a device that it does not know. Only with option -E has it this method, which waits for
    /// one advertisement less than a discovery and a connection.
    /// - Returns: false when bluetoothd cannot do this, or knows the device by now.
    private func connectDirectly(within limit: Milliseconds) async throws(LinkFailure) -> Bool {
        mayBeConnected = true
        connecting = Loop.now
        let type = address.isRandom ? "random" : "public"
        do throws(LinkFailure) {
            let deadline = Loop.now + 2 * limit
            try await calls.step(
                "\(peer) was not connected in time",
                await calls.call(adapterPath, BlueZName.adapter, "ConnectDevice", until: deadline) { message in
                    message.container("a", "{sv}") {
                        message.property("Address", "s") { message.append(address.description) }
                        message.property("AddressType", "s") { message.append(type) }
                    }
                }
            )
        } catch {
            guard case .failed = error, calls.failure == nil, !Task.isCancelled else { throw error }
            mayBeConnected = false
            return false
        }
        isConnected = true
        return true
    }

    private func readObjects(until deadline: Milliseconds) async throws(LinkFailure) {
        try await calls.ask(
            .managedObjects,
            until: deadline,
            refusal: Phrase("bluetoothd does not list its objects")
        ) { [weak self] answer throws(Malformed) in
            guard let self else { return }
            var gatt = GATTObjects(profile)
            var objects = try BusObjects(answer)
            while let (path, name) = try objects.next() {
                try gatt.read(answer, path, name, adapter: adapterPath, device: devicePath)
            }
            // Before a signal that follows the answer.
            self.gatt = gatt
        }
    }

    // MARK: Data

    package func value(within limit: Milliseconds?) async throws(LinkFailure) -> GATTValue {
        try await calls.value(within: limit)
    }

    package func send(
        _ bytes: [UInt8],
        on characteristic: String,
        within limit: Milliseconds
    ) async throws(LinkFailure) {
        guard let target = gatt.written(characteristic), bytes.count <= capacity else {
            throw .failed("the write does not fit the MTU")
        }
        let write: (BusMessage) -> Void = { message in
            message.append(bytes)
            message.container("a", "{sv}") {
                message.property("type", "s") { message.append(target.isConfirmed ? "request" : "command") }
            }
        }
        try await calls.ask(
            BusMethod(target.path, BlueZName.characteristic, "WriteValue"),
            arguments: write,
            until: Loop.now + limit
        ) { [weak self] _ in
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
            calls.bus.close()
            onEnd(devicePath)
        }.value
    }

    private func endConnection() async {
        mayBeConnected = false
        calls.ignoreMessages()
        isEstablished = true
        if let connecting {
            let deadline = connecting + Self.connectTime
            try? await calls.wait(until: deadline) { self.connecting == nil }
        }
        // Without bluetoothd there is no connection.
        let deadline = Loop.now + Self.disconnectLimit
        if profile.isPassing { return await calls.forget(devicePath, of: adapterPath, until: deadline) }
        // Otherwise the scan would not see any more what the device advertises. Other programs would lose their notifications.
        let isRemoved = owner.readsDevices && !gatt.isKept && !gatt.isListenedTo
        if isRemoved { return await calls.remove(devicePath, of: adapterPath, until: deadline) }
        try? await calls.call(devicePath, BlueZName.device, "Disconnect", until: deadline)
    }

    /// nil: the words of bluetoothd say why.
    private func failure(_ member: String, _ answer: BusMessage) -> LinkFailure? {
        let error = answer.errorName
        if member == "StartNotify", error == "org.bluez.Error.NotPermitted" {
            return .inUse("another program has acquired the notifications of \(peer)")
        }
        // Connections fail in many ways that do not last. A device that bluetoothd has forgotten meanwhile is found again.
        if member == "Connect" || member == "ConnectDevice", Self.transientErrors.contains(error ?? "") {
            calls.reason = Phrase("before, bluetoothd has answered \(member) with \(BlueZCalls.text(answer))")
        }
        if member == "Connect" {
            isTransient = Self.transientErrors.contains(error ?? "")
            if error == Self.unknownObject { gatt.forgetDevice() }
        } else if isLost {
            return lost()
        }
        return nil
    }

    private static let unknownObject = "org.freedesktop.DBus.Error.UnknownObject"
    private static let transientErrors: Set<String> = [
        "org.bluez.Error.Failed", "org.bluez.Error.InProgress", "org.bluez.Error.NotReady", unknownObject,
    ]

    /// The connection was lost before the services were read.
    private func lost() -> LinkFailure {
        isTransient = true
        return .failed("\(peer) has ended the connection")
    }

    private func pauseBeforeNextTry() async throws(LinkFailure) {
        isLost = false
        do throws(LinkFailure) {
            try await calls.wait(until: Loop.now + Self.pause) { false }
        } catch {
            guard error == .timedOut else { throw error }
        }
    }

    // MARK: Signals

    private func handle(_ message: BusMessage) throws(Malformed) {
        guard message.kind == .signal else { return }
        switch message.member {
        case "InterfacesAdded": try handleAdded(message)
        case "PropertiesChanged" where message.path == devicePath: try handleDevice(message)
        case "PropertiesChanged" where message.path == adapterPath:
            try gatt.read(message, adapterPath, try message.string(), adapter: adapterPath, device: devicePath)
        case "PropertiesChanged":
            guard let notify = gatt.notifyPaths.first(where: { $0.path == message.path }) else { return }
            try handleValue(message, of: notify.uuid)
        default: break
        }
    }

    private func handleAdded(_ message: BusMessage) throws(Malformed) {
        let path = try message.string("o")
        guard path == devicePath || path == adapterPath else { return }
        var interfaces = try BusEntries(message, "sa{sv}")
        while try interfaces.next() {
            let name = try message.string()
            try gatt.read(message, path, name, adapter: adapterPath, device: devicePath)
        }
    }

    private func handleDevice(_ message: BusMessage) throws(Malformed) {
        guard try message.string() == BlueZName.device else { return }
        var properties = try BusProperties(message, ["Connected": "b", "ServicesResolved": "b"])
        while let key = try properties.next() {
            let value = try message.bool()
            if key == "ServicesResolved" {
                isResolved = value
            } else if value {
                gatt.connected()
            } else if isEstablished {
                calls.fail("\(peer) has ended the connection")
            } else if isConnected {
                loseConnection()
            }
        }
    }

    /// The connection was lost before the services were read: what waits for it ends, and it is tried again.
    private func loseConnection() {
        isLost = true
        calls.interrupt(lost())
    }

    private func handleValue(_ message: BusMessage, of characteristic: String) throws(Malformed) {
        guard try message.string() == BlueZName.characteristic else { return }
        var properties = try BusProperties(message, ["Value": "ay"])
        while try properties.next() != nil {
            let value = try message.bytes()
            // bluetoothd signals a notification once for each program that listens.
            if value == last, !profile.isPassing { continue }
            last = value
            calls.received(value, of: characteristic, from: peer)
        }
    }
}
