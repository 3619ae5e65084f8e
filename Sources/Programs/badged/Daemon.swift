// SPDX-License-Identifier: GPL-3.0-or-later
import Concurrency
import DoorReaders
import Glibc
import Host
import Readers
import ReadersNFC
import ReadersPCSC
import ReadersVirtual
import ScannerMgmt
import Scanners
import Server
import Wire
import Workflows

/// The life of the process between the open socket and SIGTERM.
@Loop final class Daemon {
    private let options: CommandLineOptions
    private let settings: Settings
    private let configuration: Configuration
    private var browserPort: BrowserPort?
    private let signals: Signals
    private let socket: ListeningSocket
    private let service = ServiceNotification()
    private let registry = ReaderRegistry()
    private var nfc: NFCBackend?
    /// Of virtual cards; nil: the test authority that they know by themselves.
    private let trustPoint: [UInt8]?
    /// Opened while the process had the right to; nil without.
    let management: ManagementSocket?
    private var policy: AccessPolicy
    private var server: SocketServer?
    private var radio: Radio?
    private var watched: [Loop.Registration] = []
    private var watchdogAlarm: Loop.Alarm?

    init(
        _ options: CommandLineOptions,
        _ settings: Settings,
        _ configuration: Configuration,
        _ signals: Signals,
        _ socket: ListeningSocket,
        trustPoint: [UInt8]?,
        management: ManagementSocket?
    ) {
        (self.options, self.settings, self.signals, self.socket) = (options, settings, signals, socket)
        (self.trustPoint, self.configuration) = (trustPoint, configuration)
        self.management = management
        policy = Self.policy(configuration)
    }

    private static func text(_ error: CardShelfError) -> String {
        switch error {
        case .invalid(let text): text
        case .unknownReader, .occupied: "\(error)"
        }
    }

    private static func policy(_ configuration: Configuration) -> AccessPolicy {
        var warnings: [String] = []
        let policy = AccessPolicy(rules: configuration.access, warnings: &warnings)
        for warning in warnings + configuration.warnings { Log.warning("\(warning)") }
        return policy
    }

    func start() async {
        // A new driver is one line here and one target.
        if settings.virtualReaders > 0 {
            do throws(CardShelfError) {
                let surroundings = VirtualCard.Surroundings(trustPoint: trustPoint)
                registry.add(try VirtualReaders(count: settings.virtualReaders, surroundings: surroundings))
            } catch {
                Log.error("cannot make the virtual readers: \(Self.text(error))")
                exit(1)
            }
        }
        // They are there at once: the first client may count on them.
        await registry.waitForReaders(settings.virtualReaders)
        if settings.isPCSCEnabled { registry.add(PCSCBackend()) }
        if settings.isNFCEnabled {
            let boards = NFCBackend(devices: settings.nfcDevices)
            nfc = boards
            registry.add(boards)
        }
        if settings.radio.isEnabled { radio = makeRadio(settings.radio) }

        let server = SocketServer(
            registry: registry,
            services: OnlineServices(settings),
            info: ServerInfo(version: Version.current, drivers: registry.drivers, scanners: radio?.names ?? []),
            maximumClients: settings.maximumClients,
            permissions: { [self] peer in
                Server.Permissions(
                    rawValue: Int(policy.permissions(uid: peer.uid, gid: peer.gid, groups: peer.groups).rawValue)
                )
            },
            log: { severity, text in Log.write(Log.Level(rawValue: severity.rawValue) ?? .notice) { "\(text)" } }
        )
        server.radio = radio
        self.server = server
        do throws(SystemError) {
            try server.listen(on: socket.descriptor)
            watched.append(try Loop.watch(signals.descriptor, .read) { [self] _ in handleSignals() })
            if let interval = service.watchdogInterval {
                watchdogAlarm = Loop.Alarm { [unowned self] in callWatchdog(every: interval) }
                callWatchdog(every: interval)
            }
        } catch {
            Log.error("cannot start: \(error.description)")
            exit(1)
        }
        openBrowserPort(server)
        service.ready(status: "serving \(socket.path)")
        Log.info("serving \(socket.path)")
    }

    /// Opens the browser port. A port that is taken is an error in the log; the rest of badged works without it.
    private func openBrowserPort(_ server: SocketServer) {
        guard configuration.isActivationEnabled else { return }
        do throws(StartError) {
            browserPort = try BrowserPort(configuration, server)
        } catch {
            Log.error("browsers are not served: \(error.message); hint: \(error.hint)")
            // TR-03124-1: a second eID client asks the first one to show its window.
            let port = configuration.activationPort
            _ = startThread("badged-ask") {
                guard let owner = LoopbackSockets.askOwnerToShowItself(port: port) else { return }
                Log.notice("port \(port) belongs to \(owner), which was asked to show itself")
            }
        }
    }

    private func callWatchdog(every interval: Duration) {
        service.watchdog()
        watchdogAlarm?.set(after: Int64(interval / .milliseconds(1)))
    }

    private func handleSignals() {
        while let signal = signals.next() {
            switch signal {
            case .terminate: Task { @Loop in await self.end() }
            case .reload: reload()
            }
        }
    }

    /// Access rules, log level and the names of NFC devices; everything else needs a restart. And a look for readers that
    /// nobody has told of.
    private func reload() {
        service.reloading()
        do throws(StartError) {
            let configuration = try Configuration(path: options.configurationPath)
            policy = Self.policy(configuration)
            let settings = Settings(options, configuration)
            Log.level = settings.logLevel
            nfc?.change(devices: settings.nfcDevices)
            Log.notice("configuration read again")
            registry.rescan()
        } catch {
            Log.error("configuration not changed: \(error.message)")
        }
        service.ready(status: "serving \(socket.path)")
    }

    /// Cards are given back and clients told before the process ends; a card that does not let go has a second.
    private func end() async {
        service.stopping()
        let deadline = Task {
            try? await Task.sleep(for: .milliseconds(900))
            if !Task.isCancelled {
                Log.warning("a card did not let go in time")
                await leave()
            }
        }
        radio?.stop()
        await server?.stop()
        await registry.stop()
        deadline.cancel()
        await leave()
    }

    /// An adapter that recovery has just switched off is worth more than a second: who switches it on again, otherwise?
    private func leave() async -> Never {
        socket.close()
        let deadline = Loop.Alarm {
            Log.warning("a Bluetooth adapter does not come on again; hint: bluetoothctl power on")
            _exit(0)
        }
        deadline.set(after: 10_000)
        await radio?.restorePower()
        // Not exit(): its handlers take down what threads that still wait in C use at that moment.
        _exit(0)
    }
}
