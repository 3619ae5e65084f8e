// SPDX-License-Identifier: GPL-3.0-or-later
import Concurrency
import CountryAuthorities
import CredentialFeature
import Glibc
import Host
import ScannerMgmt
import Scanners

/// The daemon: reads options and configuration, wires the targets together, and runs until SIGTERM.
@main struct Program {
    static func main() {
        ProcessHardening.apply()
        // The kernel removes ended child processes, because badged does not wait for them.
        signal(SIGCHLD, SIG_IGN)
        do throws(StartError) {
            let options = try CommandLineOptions(arguments: ProgramArguments.read())
            switch options.action {
            case .version: print(CommandLineOptions.versionText, terminator: "")
            case .help: print(CommandLineOptions.helpText, terminator: "")
            case .check: exit(check(options))
            case .show: exit(show(options))
            case .run: try run(options)
            }
        } catch {
            Log.report(error)
            SocketActivation.refuseClients()
            exit(error.exitCode)
        }
    }

    /// Prints every error and warning of the configuration.
    /// - Returns: the exit code.
    private static func check(_ options: CommandLineOptions) -> Int32 {
        var errors: [StartError] = []
        var configuration = Configuration(files: SettingFiles(options.configurationPath), errors: &errors)
        configuration.override(by: options)
        if errors.isEmpty, ConfiguredParts.read(configuration, &errors) != nil,
            let list = configuration.credentials.allowList
        {
            do throws(StartError) {
                _ = try AllowList(file: list, hasSiteKey: configuration.credentials.siteKey != nil)
            } catch {
                errors.append(configuration.placed(error))
            }
        }
        errors += ConfiguredParts.pathErrors(configuration, socket: options.socketPath)
        var unknownNames: [String] = []
        let policy = AccessPolicy(rules: configuration.access, warnings: &unknownNames)
        let warnings =
            policy.doubtful + configuration.radio.warnings(exists: HostAdapters.exists)
            + anchorWarnings(configuration)
        for error in errors { Log.report(error) }
        for (setting, warning) in warnings {
            let place = configuration.settings[setting].map { "\($0.place): " } ?? ""
            Log.warning("\(place)\(warning)")
        }
        guard errors.isEmpty, warnings.isEmpty || !options.isStrict else { return wrongConfiguration }
        let path = options.configurationPath ?? Configuration.defaultPath
        print(access(path, F_OK) == 0 ? "\(path) is right" : "there is no \(path): all settings have their defaults")
        return 0
    }

    /// The files in the folders of authorities that badged ignores.
    private static func anchorWarnings(_ configuration: Configuration) -> [(String, String)] {
        let now = Int(Glibc.time(nil))
        let folders: [(setting: String, path: String, warnings: (String) -> [String])] = [
            ("[eid] trust_anchors", configuration.trustAnchors, { TrustAnchors(folder: $0).warnings.map { "\($0)" } }),
            (
                "[documents] anchors", configuration.documentAnchors,
                { DocumentAnchorFolder($0) { _ in }.warnings(at: now) }
            ),
            ("[mdoc] anchors", configuration.mdocAnchors, { MdocAnchorFolder($0) { _ in }.warnings(at: now) }),
        ]
        return folders.flatMap { folder in
            // A folder that cannot be used is an error.
            let isThere = access(folder.path, F_OK) == 0
            let isUsable = isThere && ConfiguredPath.reason(againstFolder: folder.path, for: .read) == nil
            return isUsable ? folder.warnings(folder.path).map { (folder.setting, $0) } : []
        }
    }

    /// EX_CONFIG of sysexits.h.
    private static let wrongConfiguration: Int32 = 78

    /// Prints the settings in force, without the options of the command line.
    private static func show(_ options: CommandLineOptions) -> Int32 {
        var errors: [StartError] = []
        let configuration = Configuration(files: SettingFiles(options.configurationPath), errors: &errors)
        for error in errors { Log.report(error) }
        print(configuration.printed, terminator: "")
        guard fflush(nil) == 0 else {
            Log.report(StartError("cannot write the settings: \(errorText())", hint: "write them to another place"))
            return 1
        }
        return errors.isEmpty ? 0 : wrongConfiguration
    }

    private static func run(_ options: CommandLineOptions) throws(StartError) -> Never {
        let configuration = try Configuration(options)
        Log.level = configuration.logLevel
        Log.useJournal()
        let management = managementSocket(configuration.radio)
        let parts = try ConfiguredParts(configuration)
        // Signals are blocked before the first other thread starts, because threads inherit the signal mask.
        let signals = try Signals()
        let socket = try ListeningSocket.open(options: options, configuration: configuration)
        do throws(SystemError) {
            try Loop.start()
        } catch {
            let isLackOfFiles = [EMFILE, ENFILE].contains(error.code)
            let hint = isLackOfFiles ? "more open files (LimitNOFILE=)" : "more threads (TasksMax=)"
            throw StartError("cannot start: \(error.description)", hint: "allow the daemon \(hint)")
        }
        Task { @Loop in
            await Daemon(options, parts, signals, socket, management: management).start()
        }
        Loop.park()
    }

    /// Returns the management socket of the kernel's Bluetooth; nil if it is not wanted or not allowed.
    ///
    /// systemd passes the one that badged-bluetooth has opened. A badged that is started with CAP_NET_ADMIN opens it
    /// itself and drops the capability, which only this needs.
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
