// SPDX-License-Identifier: GPL-3.0-or-later
package import Bluetooth
package import Concurrency
package import DoorOpening
package import DoorReaders
import Text

/// Connects to readers through bluetoothd. Each connection uses the bus by itself, so that the scan is not affected.
@Loop package final class BlueZConnector: DoorConnector {
    private let address: String
    private let owner: RadioOwner
    /// The object paths of the readers that are being connected, opened, or disconnected.
    private var own: Set<String> = []
    /// How long bluetoothd may take for its objects, and for the end of a connection, in milliseconds.
    var answerTime: Milliseconds = 2000
    private static let disconnectTime: Milliseconds = 5000

    /// Creates a connector on the bus with this address; nil: the system's bus.
    package init(address: String? = nil, owner: RadioOwner = RadioOwner()) {
        self.address = address ?? SystemBus.standardAddress
        self.owner = owner
    }

    package func link(to device: DeviceAddress, adapter: Int) throws(LinkFailure) -> any DoorLink {
        let bus = try translating(
            { (error: BusFailure) in LinkFailure.failed(error.text) },
            SystemBus(address: address)
        )
        let client = GATTClient(bus, device, adapter: adapter, .pkoc, owner: owner) { [weak self] path in
            self?.own.remove(path)
        }
        own.insert(client.devicePath)
        return client
    }
}

extension BlueZConnector: ReaderConnections {
    package func strangers(endsUnused: Bool) async -> [ConnectedReader] {
        guard let bus = try? SystemBus(address: address) else { return [] }
        defer { bus.close() }
        // A call to bluetoothd itself would start it.
        let isRunning = await bus.result(
            of: .nameOwner,
            within: answerTime,
            arguments: { $0.append(BlueZName.service) },
            read: { _ in true }
        )
        guard isRunning == true else { return [] }
        let found = await bus.result(of: .managedObjects, within: answerTime) { BlueZConnections($0) }
        var readers: [ConnectedReader] = []
        for device in found?.readers ?? [] where !own.contains(device.path) {
            let mayEnd = endsUnused && !device.isListenedTo
            if mayEnd {
                if let address = DeviceAddress(device.address, isRandom: device.isRandom) {
                    owner.endConnection(to: address, adapter: device.adapter)
                }
                let method = BusMethod(device.path, BlueZName.device, "Disconnect")
                _ = await bus.result(of: method, within: Self.disconnectTime) { _ in true }
                if owner.readsDevices, !device.isTrusted { await forget(device, bus) }
            }
            readers.append(
                ConnectedReader(address: device.address, adapter: "hci\(device.adapter)", isEnded: mayEnd)
            )
        }
        return readers
    }

    /// Lets bluetoothd forget a reader, of which it would list the services in place of the advertised ones.
    private func forget(_ device: BlueZConnections.Device, _ bus: SystemBus) async {
        let method = BusMethod("/org/bluez/hci\(device.adapter)", BlueZName.adapter, "RemoveDevice")
        _ = await bus.result(of: method, within: answerTime, arguments: { $0.append(device.path, "o") }) { _ in true }
    }
}

extension GATTProfile {
    fileprivate static let pkoc = GATTProfile(
        "PKOC",
        of: Phrase("the reader"),
        services: Set(PKOCService.services),
        written: [PKOCService.write],
        notified: [PKOCService.notify]
    )
}

extension GATTClient: DoorLink {
    package func notification(within limit: Milliseconds) async throws(LinkFailure) -> [UInt8] {
        try await value(within: limit).bytes
    }

    package func write(_ bytes: [UInt8], within limit: Milliseconds) async throws(LinkFailure) {
        try await send(bytes, on: PKOCService.write, within: limit)
    }
}

/// The readers among the devices to which bluetoothd has a connection.
struct BlueZConnections: Sendable {
    struct Device: Sendable {
        let path: String
        var address = ""
        var isRandom = false
        var isConnected = false
        /// A program has subscribed to notifications.
        var isListenedTo = false
        var isPaired = false
        var isTrusted = false
        var isReader = false

        /// The number of the adapter in the path, such as 0 for `/org/bluez/hci0/dev_...`.
        var adapter: Int {
            let name = path.split(separator: "/").dropFirst(2).first ?? ""
            return Int(name.drop { !$0.isNumber }) ?? 0
        }
    }

    private var devices: [String: Device] = [:]

    /// Reads the answer to GetManagedObjects; nil when it cannot be read.
    init?(_ answer: BusMessage) {
        do throws(Malformed) {
            var objects = try BusObjects(answer)
            while let (path, name) = try objects.next() { try read(answer, path, name) }
        } catch {
            return nil
        }
    }

    /// The readers with PKOC that are connected without pairing. Readers are not paired.
    var readers: [Device] {
        devices.values.filter { $0.isConnected && $0.isReader && !$0.isPaired }.sorted { $0.path < $1.path }
    }

    private mutating func read(_ message: BusMessage, _ path: String, _ name: String) throws(Malformed) {
        switch name {
        case BlueZName.device:
            var device = devices[path] ?? Device(path: path)
            let types = [
                "Address": "s", "AddressType": "s", "Connected": "b", "Paired": "b", "Trusted": "b", "UUIDs": "as",
            ]
            var properties = try BusProperties(message, types)
            while let key = try properties.next() {
                switch key {
                case "Address": device.address = try message.string()
                case "AddressType": device.isRandom = try message.string() == "random"
                case "Connected": device.isConnected = try message.bool()
                case "Paired": device.isPaired = try message.bool()
                case "Trusted": device.isTrusted = try message.bool()
                default:
                    let offered = try message.strings().map { $0.lowercased() }
                    if offered.contains(where: PKOCService.services.contains) { device.isReader = true }
                }
            }
            devices[path] = device
        case BlueZName.characteristic:
            var isListenedTo = false
            var properties = try BusProperties(message, ["Notifying": "b", "NotifyAcquired": "b"])
            while try properties.next() != nil {
                if try message.bool() { isListenedTo = true }
            }
            // Such as /org/bluez/hci0/dev_C0_00_00_00_00_01/service000a/char000d.
            let owner = "/" + path.split(separator: "/").prefix(4).joined(separator: "/")
            if isListenedTo { devices[owner, default: Device(path: owner)].isListenedTo = true }
        default: try message.skip("a{sv}")
        }
    }
}
