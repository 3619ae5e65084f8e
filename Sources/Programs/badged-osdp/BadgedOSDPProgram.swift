// SPDX-License-Identifier: GPL-3.0-or-later
import Concurrency
import Crypto
import Glibc
import Host
import OSDP
import Text

/// Tells taps to door panels, and badged what readers in the wall have read: badged-osdp(8).
@main struct Program {
    static func main() {
        ProcessHardening.apply()
        do throws(StartError) {
            var path = OSDPConfiguration.defaultPath
            var isCheck = false
            var forgotten: String?
            var rest = CommandLine.arguments.dropFirst()
            while let argument = rest.popFirst() {
                switch argument {
                case "--config":
                    guard let value = rest.popFirst() else { throw usage("--config needs a file") }
                    path = value
                case "--check-config": isCheck = true
                case "--forget":
                    guard let value = rest.popFirst() else { throw usage("--forget needs the name of a panel") }
                    forgotten = value
                case "--version": return print("badged-osdp \(Version.current)")
                case "--help", "-h": return print(help)
                default: throw usage("unknown argument '\(argument)'")
                }
            }
            var errors: [StartError] = []
            let configuration = OSDPConfiguration(path: path, errors: &errors)
            if errors.isEmpty, isCheck { checkFiles(configuration, &errors) }
            guard errors.isEmpty else {
                for error in errors { Log.report(error) }
                exit(78)
            }
            if isCheck { return print("\(path) is right") }
            if let forgotten {
                guard configuration.panels.contains(where: { $0.bus.name == forgotten }) else {
                    throw usage("\(path) has no panel \(forgotten)")
                }
                return KeyFolder(path: configuration.folder).forget(forgotten)
            }
            try run(configuration, path)
        } catch {
            Log.report(error)
            exit(error.exitCode)
        }
    }

    private static func usage(_ text: String) -> StartError {
        StartError(text, hint: "see badged-osdp --help", exitCode: 2)
    }

    private static let help = """
        usage: badged-osdp [--config FILE] [--check-config | --forget PANEL]
               badged-osdp --version | --help

        Tells door panels over OSDP what people hold to the readers of badged, and badged what readers in the wall have
        read.

          --config FILE   read this instead of /etc/badged/osdp.conf
          --check-config  print every error of the configuration, and end with 78 if there is one
          --forget PANEL  remove the key, the address and the baud rate that this panel has set; stop the service before
          --version       print the version and end
          --help          print this help and end
        """

    /// Reads the keys. A credential of systemd is there only in the service.
    private static func checkFiles(_ configuration: OSDPConfiguration, _ errors: inout [StartError]) {
        for bus in configuration.panels.map(\.bus) + configuration.readers {
            let isCredential = bus.keyFile?.hasPrefix("/run/credentials/") ?? false
            if isCredential, systemEnvironment("CREDENTIALS_DIRECTORY") == nil {
                print("note: the key of \(bus.name) is a credential of the service: it is read when the service starts")
                continue
            }
            do throws(StartError) { _ = try bus.key() } catch { errors.append(error) }
        }
        let folder = KeyFolder(path: configuration.folder)
        for panel in configuration.panels where panel.lacksKey && !folder.hasKey(of: panel.bus.name) {
            errors.append(noKey(panel.bus.name))
        }
    }

    private static func noKey(_ name: String) -> StartError {
        .inConfiguration(
            "\(name) has no key",
            hint: "write key = FILE, or install = MINUTES, in which the panel sets one"
        )
    }

    private static func run(_ configuration: OSDPConfiguration, _ path: String) throws(StartError) -> Never {
        Log.level = configuration.logLevel
        let folder = KeyFolder(path: configuration.folder)
        var peripherals: [OSDPPeripheral.Settings] = []
        for panel in configuration.panels { peripherals.append(try settings(panel, folder)) }
        var keys: [String: OSDPKey] = [:]
        for reader in configuration.readers { keys[reader.name] = try reader.key() }
        let signals = try Signals()
        let service = ServiceNotification()
        let readable = [path] + configuration.files
        guard Confinement.lines(readable: readable, folder: configuration.folder).apply(to: "badged-osdp") else {
            exit(1)
        }
        do throws(SystemError) { try Loop.start() } catch {
            throw StartError("cannot start: \(error.description)", hint: "allow more threads (TasksMax=)")
        }
        let link = DaemonLink(socket: configuration.socket)
        let (settings, secrets) = (peripherals, keys)
        Task { @Loop in
            do throws(SystemError) {
                let registration = try Loop.watch(signals.descriptor, .read) { _ in
                    while let signal = signals.next() {
                        // New settings are read by a new start, which is what the unit does.
                        if signal == .terminate { _exit(0) }
                    }
                }
                let gateway = Gateway(configuration, settings, secrets, folder, link)
                service.ready(status: "serving \(configuration.panels.count) panels")
                await gateway.run(service)
                registration.cancel()
            } catch {
                Log.error("cannot watch signals: \(error.description)")
                _exit(1)
            }
        }
        Loop.park()
    }

    private static func settings(
        _ panel: OSDPConfiguration.Panel,
        _ folder: KeyFolder
    ) throws(StartError) -> OSDPPeripheral.Settings {
        var settings = OSDPPeripheral.Settings()
        settings.address = UInt8(truncatingIfNeeded: panel.bus.address)
        settings.baud = panel.bus.baud
        settings.security = panel.bus.security
        settings.acceptsCommunication = panel.acceptsCommunication
        settings.leds = panel.leds
        settings.hasBuzzer = panel.hasBuzzer
        settings.rows = panel.rows
        settings.outputs = panel.outputs
        settings.patience = Int64(panel.patience) * 1000
        if panel.acceptsCommunication, let (address, baud) = folder.communication(of: panel.bus.name) {
            settings.address = address
            settings.baud = baud
        }
        // A key that the panel has set is newer than the one in the settings.
        let stored = try folder.key(of: panel.bus.name)
        settings.key = if let stored { stored } else { try panel.bus.key() }
        if settings.key == nil, panel.lacksKey { throw noKey(panel.bus.name) }
        var seed = Array("badged osdp \(panel.bus.name) ".utf8)
        if case .bytes(let identifier) = PlainFile.read("/etc/machine-id", limit: 64) { seed += identifier }
        let digest = (try? DigestAlgorithm.sha256.hash(seed)) ?? []
        settings.serial = digest.prefix(4).reduce(0) { $0 << 8 | UInt32($1) }
        let numbers = Version.current.split(whereSeparator: { !$0.isNumber }).prefix(3).map { UInt8($0) ?? 0 }
        settings.firmware = numbers + [UInt8](repeating: 0, count: 3 - numbers.count)
        return settings
    }
}

/// All buses, and the taps that go to their panels.
@Loop final class Gateway {
    private let configuration: OSDPConfiguration
    private let link: DaemonLink
    private let panels: [PanelBus]
    private let readers: [ReaderBus]
    private var watchdog: Loop.Alarm?
    /// Counts the taps for the log, where badged does not.
    private var taps = 0

    init(
        _ configuration: OSDPConfiguration,
        _ settings: [OSDPPeripheral.Settings],
        _ keys: [String: OSDPKey],
        _ folder: KeyFolder,
        _ link: DaemonLink
    ) {
        self.configuration = configuration
        self.link = link
        panels = zip(configuration.panels, settings).map { PanelBus($0, $1, folder, link) }
        readers = configuration.readerLines.map { ReaderBus($0.line, $0.members, keys, link) }
    }

    func run(_ service: ServiceNotification) async {
        for panel in panels { panel.start() }
        for reader in readers { reader.start() }
        if let interval = service.watchdogInterval {
            let milliseconds = interval.components.seconds * 1000
            let alarm = Loop.Alarm { [unowned self] in
                service.watchdog()
                watchdog?.set(after: milliseconds)
            }
            watchdog = alarm
            alarm.set(after: milliseconds)
        }
        await link.watch(
            needsTaps: !panels.isEmpty,
            tapped: { [unowned self] card, reader, number in tapped(card, reader, number) },
            watches: { [unowned self] isWatching in
                for panel in panels { panel.setReading(isWatching) }
            }
        )
    }

    private func tapped(_ card: PresentedCard, _ reader: String, _ number: Int) {
        for panel in panels where panel.wants(reader) {
            do throws(Malformed) {
                panel.present(try CardRule.number(of: card, for: panel.name, configuration.rules), number)
            } catch {
                Log.notice("\(panel.name): tap \(number) at '\(reader)' is not told: \(error.text)")
                panel.refuse()
            }
        }
    }
}
