// SPDX-License-Identifier: GPL-3.0-or-later
import Aliro
import Concurrency
import EService
import Glibc
import HTTP
import Host
import KeyFeature
import MPin
import PKOC
import ScannerMgmt
import WalletFeature

/// The daemon: reads options and configuration, wires the targets together, and runs until SIGTERM.
@main struct Program {
    static func main() {
        ProcessHardening.apply()
        // The kernel removes ended child processes, because badged does not wait for them.
        signal(SIGCHLD, SIG_IGN)
        do throws(StartError) {
            let options = try CommandLineOptions(arguments: CommandLine.arguments.dropFirst())
            switch options.action {
            case .version: print(CommandLineOptions.versionText, terminator: "")
            case .help: print(CommandLineOptions.helpText, terminator: "")
            case .run: try run(options)
            }
        } catch {
            Log.report(error)
            exit(error.exitCode)
        }
    }

    private static func run(_ options: CommandLineOptions) throws(StartError) -> Never {
        let configuration = try Configuration(path: options.configurationPath)
        let settings = Settings(options, configuration)
        Log.level = settings.logLevel
        let management = managementSocket(settings.radio)
        let trustPoint = try settings.readVirtualTrustPoint()
        let proxies = try ProxySettings.read(settings)
        let antelope = try AntelopeServices.read(settings, proxies)
        let mpin = try MPinConfiguration.read(settings, proxies)
        let site = try PKOCSite.read(settings)
        let aliro = try AliroSite.read(settings)
        let issuer = try IssuerSettings.read(settings, proxies)
        // Signals are blocked before the first other thread starts, because threads inherit the signal mask.
        let signals = try Signals()
        let socket = try ListeningSocket.open(options: options, configuration: configuration)
        do throws(SystemError) {
            try Loop.start()
        } catch {
            throw StartError("cannot start: \(error.description)", hint: "allow the daemon more threads (TasksMax=)")
        }
        Task { @Loop in
            await Daemon(
                options,
                settings,
                configuration,
                signals,
                socket,
                trustPoint: trustPoint,
                proxies: proxies,
                antelope: antelope,
                mpin: mpin,
                site: site,
                aliro: aliro,
                issuer: issuer,
                management: management
            ).start()
        }
        Loop.park()
    }

    /// Returns the management socket of the kernel's Bluetooth; nil if it is not wanted or not allowed.
    ///
    /// systemd passes the one that badged-bluetooth has opened. A badged that is started with CAP_NET_ADMIN opens it itself
    /// and gives up the capability, which only this needs.
    private static func managementSocket(_ radio: RadioConfiguration) -> ManagementSocket? {
        let isWanted = radio.isEnabled && (radio.backend == .auto || radio.backend == .mgmt)
        var socket: ManagementSocket?
        if let passed = SocketActivation.bluetooth() {
            // The socket must end with this process, which alone reads it.
            ServiceNotification().removeStored(name: SocketActivation.bluetoothName)
            socket = ManagementSocket(taking: passed)
            if socket == nil {
                Log.warning("the descriptor that systemd passes for Bluetooth is not a Bluetooth socket")
            }
        }
        if NetworkCapability.isHeld {
            if socket == nil, isWanted { socket = ManagementSocket() }
            if !NetworkCapability.giveUp() { Log.warning("cannot drop CAP_NET_ADMIN") }
        }
        return isWanted ? socket : nil
    }
}
