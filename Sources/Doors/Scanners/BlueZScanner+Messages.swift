// SPDX-License-Identifier: GPL-3.0-or-later
import Bluetooth
import DoorReaders
import Text

/// The objects and signals of bluetoothd.
extension BlueZScanner {
    func handle(_ message: BusMessage) {
        // Other programs can send signals directly to this connection, which no match rule prevents.
        guard message.sender == owner || message.sender == BlueZName.bus else { return }
        if message.kind == .call {
            monitors?.answer(message)
            return
        }
        do throws(Malformed) {
            switch (message.interface, message.member) {
            case (BlueZName.properties, "PropertiesChanged"): try propertiesChanged(message)
            case (BlueZName.objects, "InterfacesAdded"):
                try readInterfaces(of: try message.string("o"), message, isNew: true)
                update()
            case (BlueZName.objects, "InterfacesRemoved"): try interfacesRemoved(message)
            case (BlueZName.bus, "NameOwnerChanged") where message.sender == BlueZName.bus:
                guard try message.string() == BlueZName.service else { return }
                _ = try message.string()
                ownerChanged(to: try message.string())
            default: break
            }
        } catch {
            countMalformed()
        }
    }

    /// Reads the interfaces of an object, an `a{sa{sv}}`. `isNew` is false for an object from GetManagedObjects.
    func readInterfaces(of path: String, _ message: BusMessage, isNew: Bool) throws(Malformed) {
        var supportsMonitors = false
        var interfaces = try BusEntries(message, "sa{sv}")
        while try interfaces.next() {
            let name = try message.string()
            switch name {
            case BlueZName.adapter:
                var adapter = adapters[path] ?? BlueZAdapter(path: path)
                try adapter.read(message)
                guard rules.mayScan(adapter.shown()) else {
                    unused[path] = adapter
                    continue
                }
                adapters[path] = adapter
                startDiscovery(path)
            case BlueZName.device:
                var device = BlueZDevice()
                try device.read(message)
                // The signal strength of a known device is from an unknown time.
                if !isNew { device.rssi = nil }
                deviceChanged(device, path)
            case BlueZMonitors.manager:
                supportsMonitors = true
                try message.skip("a{sv}")
            default: try message.skip("a{sv}")
            }
        }
        if supportsMonitors, adapters[path] != nil, demand != nil { monitors?.register(path) }
    }

    private func propertiesChanged(_ message: BusMessage) throws(Malformed) {
        let path = message.path
        switch try message.string() {
        case BlueZName.device:
            let known = devices[path]
            var device = known ?? BlueZDevice()
            try device.read(message)
            if let known {
                if device.isConnected, !known.isConnected { reportConnection(of: device, path) }
                deviceChanged(device, path)
            } else if device.rssi != nil {
                readProperties(of: path)
            }
        case BlueZName.adapter:
            if var adapter = unused[path] {
                try adapter.read(message)
                unused[path] = adapter
                return update()
            }
            guard var adapter = adapters[path] else { return }
            let wasPowered = adapter.isPowered
            try adapter.read(message)
            if wasPowered, !adapter.isPowered { discoveries[path]?.adapterSwitchedOff() }
            adapters[path] = adapter
            if adapter.isPowered, !wasPowered { startDiscovery(path) }
            update()
        default: break
        }
    }

    private func interfacesRemoved(_ message: BusMessage) throws(Malformed) {
        let path = try message.string("o")
        try message.enter("a", "s")
        while try message.hasNext() {
            switch try message.string() {
            case BlueZName.device: devices.remove(path)
            case BlueZName.adapter:
                unused[path] = nil
                discoveries[path] = nil
                monitors?.forget(path)
                guard let adapter = adapters.removeValue(forKey: path) else { continue }
                observer?.adapterRemoved(adapter.number)
            default: break
            }
        }
        update()
    }

    /// Reads all properties of a device that was received and is not stored, for example because too many are.
    private func readProperties(of path: String) {
        guard demand != nil, reading.count < Self.maximumReading, reading.insert(path).inserted else { return }
        bus?.call(
            BusMethod(path, BlueZName.properties, "GetAll"),
            arguments: { $0.append(BlueZName.device) },
            answer: { [weak self] answer in
                self?.reading.remove(path)
                // Without an answer the device is gone.
                guard let self, let answer, answer.kind == .return, self.demand != nil else { return }
                var device = BlueZDevice()
                guard (try? device.read(answer)) != nil else { return self.countMalformed() }
                self.deviceChanged(device, path)
            }
        )
    }

    private func countMalformed() {
        malformed += 1
        status.malformed = malformed
    }

    private func reportConnection(of device: BlueZDevice, _ path: String) {
        guard let text = device.address, let isRandom = device.isRandom, let number = adapterNumber(of: path),
            let address = DeviceAddress(text, isRandom: isRandom)
        else { return }
        observer?.deviceConnected(address, adapter: number)
    }

    /// The number of the adapter to which a device belongs.
    private func adapterNumber(of path: String) -> Int? {
        path.lastIndex(of: "/").flatMap { adapters[String(path[..<$0])]?.number }
    }

    /// Reports the device as an advertisement when its signal strength was updated.
    private func deviceChanged(_ device: BlueZDevice, _ path: String) {
        guard let text = device.address, let isRandom = device.isRandom,
            let address = DeviceAddress(text, isRandom: isRandom)
        else { return }
        devices.keep(device, at: path)
        guard let rssi = device.rssi, demand != nil else { return }
        let report = AdvertisingReport(address: address, rssi: Int8(clamping: rssi))
        // Discoveries of other programs find devices on adapters that are left out, too.
        guard let adapter = path.lastIndex(of: "/").map({ String(path[..<$0]) }), let number = adapters[adapter]?.number
        else { return }
        if let discovery = discoveries[adapter], discovery.received(path, at: time.heard(at: now())) { update() }
        observer?.received(report, device.advertisingData.span, adapter: number)
    }
}
