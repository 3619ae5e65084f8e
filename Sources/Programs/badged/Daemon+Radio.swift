// SPDX-License-Identifier: GPL-3.0-or-later
import Bluetooth
import Concurrency
import DoorOpening
import Host
import MdocFeature
import ScannerMgmt
import Scanners

extension Daemon {
    /// Creates the scan for door readers; nil when no scanner is configured. No scan runs until a client asks for one.
    func makeRadio(_ configuration: RadioConfiguration, _ owner: RadioOwner) -> Radio? {
        let scanners = scanners(configuration)
        guard !scanners.isEmpty else { return nil }
        let radio = Radio(scanners: scanners, clock: MonotonicClock(), owner: owner, configuration: configuration)
        for (_, warning) in configuration.warnings(exists: HostAdapters.exists) { Log.warning("\(warning)") }
        radio.log = { Log.notice("\($0)") }
        return radio
    }

    /// Creates the opener of door readers; nil when no scanner receives readers by radio.
    func makeOpener(_ configuration: RadioConfiguration, _ radio: Radio?, _ owner: RadioOwner) -> DoorOpener? {
        guard configuration.isEnabled, configuration.backend != .replay else { return nil }
        let connector = BlueZConnector(owner: owner)
        radio?.connections = connector
        return DoorOpener(connector, owner: owner)
    }

    /// Creates the way to phones over Bluetooth; nil when badged leaves the radio alone.
    func makePhones(_ configuration: RadioConfiguration, _ owner: RadioOwner) -> BluetoothPhones? {
        guard configuration.isEnabled, configuration.backend != .replay else { return nil }
        return BluetoothPhones(owner: owner) { HostAdapters.anyExists() }
    }

    /// The scanners in order of preference. A new scanner is one line here and one target.
    private func scanners(_ configuration: RadioConfiguration) -> [any Scanner] {
        switch configuration.backend {
        case .replay: return configuration.replay.map { [ReplayScanner(path: $0)] } ?? []
        case .mgmt: return [MgmtScanner(socket: management, configuration)]
        case .bluez: return [BlueZScanner(configuration)]
        case .auto:
            let kernel = management.map { [MgmtScanner(socket: $0, configuration)] } ?? []
            return kernel + [BlueZScanner(configuration)]
        }
    }
}
