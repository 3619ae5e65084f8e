// SPDX-License-Identifier: GPL-3.0-or-later
import Concurrency
import Glibc
import Host
import OSDP
import Text

/// Tells taps to door panels, and badged what readers in the wall have read: badged-osdp(8).
@main struct Program {
    static func main() {
        ProcessHardening.apply()
        Log.program = "badged-osdp"
        do throws(StartError) {
            var path = OSDPConfiguration.defaultPath
            var isCheck = false
            var forgotten: String?
            var rest = try ProgramArguments.read()
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
            var notes: [String] = []
            if forgotten == nil { notes = checkFiles(configuration, &errors) }
            guard errors.isEmpty else {
                for error in errors { Log.report(error) }
                exit(StartError.exitCode(of: errors))
            }
            if isCheck {
                for note in notes { print("note: \(note)") }
                return print("\(path) is right")
            }
            if let forgotten {
                guard configuration.panels.contains(where: { $0.bus.name == forgotten }) else {
                    throw usage("\(path) has no panel \(forgotten)")
                }
                let (removed, fault) = KeyFolder(path: configuration.folder).forget(forgotten)
                for file in removed { print("removed \(file)") }
                if let fault { throw fault }
                return
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

    /// Reads the keys and what panels have set, as the start does. A credential of systemd is there only in the
    /// service.
    /// - Returns: what could not be tried.
    private static func checkFiles(_ configuration: OSDPConfiguration, _ errors: inout [StartError]) -> [String] {
        var notes: [String] = []
        func attempt<Value>(_ value: @autoclosure () throws(StartError) -> Value) {
            do throws(StartError) { _ = try value() } catch { errors.append(error) }
        }
        for bus in configuration.panels.map(\.bus) + configuration.readers {
            if case .device(let path)? = bus.line {
                attempt(try ConfiguredPath.checkDevice(path, .serial, of: "[\(bus.name)] device"))
            }
            let isCredential = bus.keyFile?.hasPrefix("/run/credentials/") ?? false
            if isCredential, systemEnvironment("CREDENTIALS_DIRECTORY") == nil {
                notes.append(
                    "the key of \(bus.name) is a credential of the service: it is read when the service starts"
                )
                continue
            }
            attempt(try bus.key())
        }
        let folder = KeyFolder(path: configuration.folder).forCheck
        let fault = folder.fault()
        if !configuration.faulty.contains(""), let fault { errors.append(fault) }
        if let socket = configuration.socket {
            attempt(try ConfiguredPath.checkSocket(socket, isMade: false, of: "[server] socket"))
        }
        if let socket = configuration.socket, access(socket, F_OK) != 0 {
            notes.append("socket \(socket): \(errorText()): badged does not run, or has another socket")
        }
        // What is in such a folder is not known.
        guard fault == nil else { return notes }
        // systemd makes the standard folder.
        let isMade = access(folder.path, F_OK) == 0
        for panel in configuration.panels where !configuration.faulty.contains(panel.bus.name) {
            do throws(StartError) {
                let key = try isMade ? folder.key(of: panel.bus.name) : nil
                if key == nil, panel.lacksKey { throw LineFiles.noKey(panel.bus.name) }
            } catch {
                errors.append(error)
            }
            if isMade, panel.acceptsCommunication { attempt(try folder.communication(of: panel.bus.name)) }
        }
        return notes
    }

    private static func run(_ configuration: OSDPConfiguration, _ path: String) throws(StartError) -> Never {
        Log.level = configuration.logLevel
        let files = LineFiles(path: path, folder: KeyFolder(path: configuration.folder))
        let settings = try files.settings(configuration)
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
        Task { @Loop in
            do throws(SystemError) {
                let gateway = Gateway(files, link, service)
                let registration = try Loop.watch(signals.descriptor, .read) { _ in
                    while let signal = signals.next() {
                        switch signal {
                        case .terminate:
                            gateway.end()
                            _exit(0)
                        case .reload: gateway.reload()
                        }
                    }
                }
                await gateway.run(settings)
                registration.cancel()
            } catch {
                Log.error("cannot watch signals: \(error.description)")
                _exit(1)
            }
        }
        Loop.park()
    }
}
