// SPDX-License-Identifier: GPL-3.0-or-later
import Concurrency
import EService
import Glibc
import Host
import ScannerMgmt

/// The daemon: reads options and configuration, wires the targets together, and runs until SIGTERM.
@main struct Program {
    static func main() {
        ProcessHardening.apply()
        // The kernel removes ended children, which nobody waits for.
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
                management: management
            ).start()
        }
        Loop.park()
    }

    /// Opens the management socket of the kernel's Bluetooth, and gives up the capability that only this needs.
    private static func managementSocket(_ radio: RadioConfiguration) -> ManagementSocket? {
        guard NetworkCapability.isHeld else { return nil }
        let isWanted = radio.isEnabled && (radio.backend == .auto || radio.backend == .mgmt)
        let socket = isWanted ? ManagementSocket() : nil
        if !NetworkCapability.giveUp() { Log.warning("cannot give CAP_NET_ADMIN up") }
        return socket
    }
}
