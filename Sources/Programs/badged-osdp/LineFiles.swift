// SPDX-License-Identifier: GPL-3.0-or-later
import Crypto
import Host
import OSDP
import Text

/// The settings of all lines, with what is in the files that they name.
struct LineSettings: Sendable {
    let configuration: OSDPConfiguration
    /// For each panel of the configuration, in its order.
    let peripherals: [OSDPPeripheral.Settings]
    /// The keys of readers in the wall, by name.
    let keys: [String: OSDPKey]
}

/// The files of badged-osdp: osdp.conf, keys, and what panels have set.
struct LineFiles: Sendable {
    let path: String
    let folder: KeyFolder
    /// The host, for the serial numbers of its readers. The file cannot be read later.
    private let machine: [UInt8]

    init(path: String, folder: KeyFolder) {
        self.path = path
        self.folder = folder
        machine = if case .bytes(let bytes) = PlainFile.read("/etc/machine-id", limit: 64) { bytes } else { [] }
    }

    static func noKey(_ name: String) -> StartError {
        .inConfiguration(
            "\(name) has no key",
            hint: "write key = FILE, or install = MINUTES, in which the panel sets one"
        )
    }

    /// Reads osdp.conf and the keys again.
    /// - Throws: the errors of the file; nothing has changed then.
    func read() throws(StartErrors) -> LineSettings {
        var errors: [StartError] = []
        let configuration = OSDPConfiguration(path: path, errors: &errors)
        guard errors.isEmpty else { throw StartErrors(list: errors) }
        do throws(StartError) { return try settings(configuration) } catch { throw StartErrors(list: [error]) }
    }

    struct StartErrors: Error { let list: [StartError] }

    func settings(_ configuration: OSDPConfiguration) throws(StartError) -> LineSettings {
        var peripherals: [OSDPPeripheral.Settings] = []
        for panel in configuration.panels { peripherals.append(try settings(panel)) }
        var keys: [String: OSDPKey] = [:]
        for reader in configuration.readers { keys[reader.name] = try reader.key() }
        return LineSettings(configuration: configuration, peripherals: peripherals, keys: keys)
    }

    private func settings(_ panel: OSDPConfiguration.Panel) throws(StartError) -> OSDPPeripheral.Settings {
        var settings = OSDPPeripheral.Settings()
        settings.address = UInt8(truncatingIfNeeded: panel.bus.address)
        settings.baud = panel.bus.baud
        settings.security = panel.bus.security
        settings.acceptsCommunication = panel.acceptsCommunication
        settings.leds = panel.leds
        settings.hasBuzzer = panel.hasBuzzer
        settings.rows = panel.rows
        settings.outputs = panel.outputs
        settings.wait = Int64(panel.wait) * 1000
        settings.silence = panel.silence
        settings.silenceText = panel.silenceText
        settings.asksCards = panel.pkoc == .panel
        if panel.acceptsCommunication, let (address, baud) = try folder.communication(of: panel.bus.name) {
            settings.address = address
            settings.baud = baud
        }
        // A key that the panel has set is newer than the one in the settings.
        let stored = try folder.key(of: panel.bus.name)
        settings.key = if let stored { stored } else { try panel.bus.key() }
        if settings.key == nil, panel.lacksKey { throw Self.noKey(panel.bus.name) }
        let seed = Array("badged osdp \(panel.bus.name) ".utf8) + machine
        let digest = (try? DigestAlgorithm.sha256.hash(seed)) ?? []
        settings.serial = digest.prefix(4).reduce(0) { $0 << 8 | UInt32($1) }
        let numbers = Version.current.split(whereSeparator: { !$0.isNumber }).prefix(3).map { UInt8($0) ?? 0 }
        settings.firmware = numbers + [UInt8](repeating: 0, count: 3 - numbers.count)
        return settings
    }
}
