// SPDX-License-Identifier: GPL-3.0-or-later
import Concurrency
import Glibc
import Host
import MQTT
import Text
import Vault

/// Tells the events of badged to a broker that speaks MQTT: badged-mqtt(8).
@main struct Program {
    private enum Action { case run, status, check, pseudonym, forget, events(from: Int) }

    static func main() {
        ProcessHardening.apply()
        Log.program = "badged-mqtt"
        do throws(StartError) {
            var path = MQTTConfiguration.defaultPath
            var action = Action.run
            var rest = try ProgramArguments.read()
            while let argument = rest.popFirst() {
                switch argument {
                case "--config":
                    guard let value = rest.popFirst() else { throw usage("--config needs a file") }
                    path = value
                case "--status": action = .status
                case "--check-config": action = .check
                case "--pseudonym": action = .pseudonym
                case "--forget": action = .forget
                case "--events":
                    guard let first = rest.popFirst().flatMap({ Int($0) }) else {
                        throw usage("--events needs a number")
                    }
                    action = .events(from: first)
                case "--version": return print("badged-mqtt \(Version.current)")
                case "--help", "-h": return print(help)
                default: throw usage("unknown argument '\(argument)'")
                }
            }
            var errors: [StartError] = []
            let configuration = MQTTConfiguration(path: path, errors: &errors)
            var notes: [String] = []
            switch action {
            case .run, .check: notes = configuration.tryFiles(&errors)
            case .status, .pseudonym, .forget, .events: break
            }
            guard errors.isEmpty else {
                for error in errors { Log.report(error) }
                exit(StartError.exitCode(of: errors))
            }
            switch action {
            case .run: try run(configuration, path)
            case .check:
                for note in notes { print("note: \(note)") }
                print("\(path) is right")
            case .status: try showStatus(configuration)
            case .pseudonym: try printPseudonyms(configuration)
            case .forget:
                guard try !StatusFile(configuration).isHeld() else {
                    throw StartError("badged-mqtt runs", hint: "systemctl stop badged-mqtt")
                }
                confine(configuration, path)
                try Forgetting.run(configuration)
            case .events(let first): try printEvents(configuration, from: first)
            }
        } catch {
            Log.report(error)
            exit(error.exitCode)
        }
    }

    private static func usage(_ text: String) -> StartError {
        StartError(text, hint: "see badged-mqtt --help", exitCode: 2)
    }

    private static let help = """
        usage: badged-mqtt [--config FILE] [--check-config | --status | --events FROM | --pseudonym | --forget]
               badged-mqtt --version | --help

        Tells the events of badged to a broker that speaks MQTT. It takes no commands from the broker.

          --config FILE   read this instead of /etc/badged/mqtt.conf
          --check-config  print every error of the configuration, and end with 78 if there is one
          --status        say whether the running program is connected, and how many events wait; end with 1 if it
                          is not connected
          --events FROM   print the acknowledged events from this number on, oldest first
          --pseudonym     read public keys from standard input, one a line, and print their pseudonyms
          --forget        empty the documents of this host on the broker; stop the service before
          --version       print the version and end
          --help          print this help and end
        """

    private static func run(_ configuration: MQTTConfiguration, _ path: String) throws(StartError) -> Never {
        let content = EventContent(credentials: configuration.credentials, siteKey: try configuration.siteKey())
        let signals = try Signals()
        let mailbox = try EventMailbox()
        let service = ServiceNotification()
        var status = StatusFile(configuration)
        try status.hold()
        let outbox: EventOutbox
        do throws(Failure) {
            outbox = EventOutbox(
                configuration,
                try EventStore(folder: configuration.folder, limit: configuration.limit)
            )
        } catch {
            let hint = "the folder must belong to the user of badged-mqtt, and only one badged-mqtt may use it"
            throw StartError(error.logText, hint: hint)
        }
        confine(configuration, path)
        do throws(SystemError) { try Loop.start() } catch {
            throw StartError("cannot start: \(error.description)", hint: "allow more threads (TasksMax=)")
        }
        let watch = DaemonWatch(configuration, content, mailbox)
        Task { @Loop in
            do throws(SystemError) {
                let registration = try Loop.watch(signals.descriptor, .read) { _ in
                    while let signal = signals.next() {
                        switch signal {
                        case .terminate: end(mailbox)
                        case .reload: reload(path, watch, mailbox)
                        }
                    }
                }
                await watch.watch()
                registration.cancel()
            } catch {
                Log.error("cannot watch signals: \(error.description)")
                _exit(1)
            }
        }
        service.ready(status: "connecting")
        let publisher = Publisher(configuration, mailbox, outbox, service: service, status: status) { new, fault in
            Task { @Loop in watch.reloaded(new, fault) }
        }
        switch publisher.run() {
        case .stopped: _exit(0)
        case .damaged: _exit(1)
        }
    }

    /// Drops all rights that a client of a broker does not need.
    private static func confine(_ configuration: MQTTConfiguration, _ path: String) {
        let readable = [path, InstalledPackages.file] + configuration.files
        let confinement = Confinement.broker(readable: readable, folder: configuration.folder)
        guard confinement.apply(to: "badged-mqtt") else { exit(1) }
    }

    /// A broker that does not answer delays the end by this time at most.
    @Loop private static let deadline = Loop.Alarm { _exit(0) }

    @Loop private static func end(_ mailbox: EventMailbox) {
        mailbox.post(.stop)
        deadline.set(after: 4000)
    }

    /// Reads the configuration again. A file with an error changes nothing.
    @Loop private static func reload(_ path: String, _ watch: DaemonWatch, _ mailbox: EventMailbox) {
        var errors: [StartError] = []
        let new = MQTTConfiguration(path: path, errors: &errors)
        if errors.isEmpty { _ = new.tryFiles(&errors) }
        if errors.isEmpty {
            do throws(StartError) {
                let content = EventContent(credentials: new.credentials, siteKey: try new.siteKey())
                watch.prepareReload(new, content)
                mailbox.post(.reload(new))
                return Log.notice("the configuration was read again, and is tried")
            } catch {
                errors.append(error)
            }
        }
        for error in errors { Log.error("\(error.message); hint: \(error.hint)") }
        Log.error("the configuration is refused, and the old one stays")
        watch.refuseReload(errors.first?.message ?? "")
    }

    private static func showStatus(_ configuration: MQTTConfiguration) throws(StartError) {
        let file = StatusFile(configuration)
        let isRunning = try file.isHeld()
        let isAnswering = isRunning && file.ask()
        guard let status = file.read() else {
            throw StartError(
                "there is no status in \(configuration.folder)",
                hint: "run this as root or as user badged-mqtt; systemctl status badged-mqtt"
            )
        }
        func holds(_ key: String) -> Bool { isAnswering && status[key]?.bool == true }
        func connection(_ key: String) -> String {
            isRunning && !isAnswering ? "not known" : holds(key) ? "connected" : "not connected"
        }
        func count(_ key: String) -> Int { status[key]?.int ?? 0 }
        if !isRunning {
            print("program:  badged-mqtt does not run; what follows was so at its end")
        } else if !isAnswering, isFull(configuration.folder) {
            print("program:  badged-mqtt cannot write its answer, since the disk is full; what follows was so before")
            let folder = configuration.folder
            print("hint:     make room on the disk of \(folder); a restart would lose what it knows of lost events")
        } else if !isAnswering {
            print("program:  badged-mqtt does not answer: it is stopped or hangs; what follows was so before")
            print("hint:     systemctl restart badged-mqtt")
        }
        print("broker:   \(status["broker"]?.string ?? "") \(connection("connected"))")
        if let fault = status["fault"]?.string {
            print("fault:    \(fault)")
        } else if let fault = status["lastFault"]?.string {
            print("before:   \(fault)")
        }
        if let fault = status["newSettings"]?.string { print("settings: the new ones do not connect: \(fault)") }
        for note in (status["notes"]?.array ?? []).compactMap(\.string) { print("note:     \(note)") }
        let watching = holds("watching") ? ", taps are watched" : ""
        print("badged:   \(connection("badged"))\(watching)")
        print("topic:    \(status["topic"]?.string ?? "")")
        print("waiting:  \(count("waiting")) events, \(count("lost")) lost")
        if let loss = status["lastLoss"]?.string { print("loss:     \(loss)") }
        if status["durable"]?.bool == false { print("disk:     events cannot be stored") }
        print("epoch:    \(status["epoch"]?.string ?? "")")
        guard holds("connected") else { exit(1) }
    }

    /// Whether the disk of a folder has no room for a small file.
    private static func isFull(_ folder: String) -> Bool {
        var status = statvfs()
        return statvfs(folder, &status) == 0 && UInt64(status.f_bavail) * UInt64(status.f_frsize) < 16_384
    }

    /// Reads compressed keys or the x of keys, and prints lines for an allow list.
    private static func printPseudonyms(_ configuration: MQTTConfiguration) throws(StartError) {
        guard let key = try configuration.siteKey() else {
            throw .inConfiguration("no site key is named", hint: "write site_key = FILE below [publish]")
        }
        var number = 0
        while let line = readLine() {
            number += 1
            guard !line.isEmpty, !line.hasPrefix("#") else { continue }
            let bytes = Hex.decode(line, limit: 65) ?? []
            let x: [UInt8]? =
                switch bytes.count {
                case 32: bytes
                case 33 where bytes[0] == 2 || bytes[0] == 3: Array(bytes.dropFirst())
                case 65 where bytes[0] == 4: Array(bytes[1...32])
                default: nil
                }
            guard let x, let id = try? key.credential(x: x) else {
                throw StartError("line \(number) is no key", hint: "write 64, 66 or 130 hexadecimal digits a line")
            }
            print("id:\(Base64.url.encode(id))")
        }
    }

    /// Prints what the journal has, as `mosquitto_sub -v` would.
    private static func printEvents(_ configuration: MQTTConfiguration, from first: Int) throws(StartError) {
        guard configuration.keptDays > 0 else {
            throw .inConfiguration(
                "no events are kept",
                hint: "write keep = DAYS below [queue], and reload badged-mqtt"
            )
        }
        let journal = EventJournal(folder: configuration.folder, days: configuration.keptDays)
        try journal.lines(from: first) { print($0) }
    }
}
