// SPDX-License-Identifier: GPL-3.0-or-later
import Concurrency
import Confinement
import Credentials
import Glibc
import Host
import MQTT
import Text

/// Tells the events of badged to a broker that speaks MQTT: badged-mqtt(8).
@main struct Program {
    private enum Action { case run, status, check, pseudonym, forget, events(from: Int) }

    static func main() {
        ProcessHardening.apply()
        do throws(StartError) {
            var path = MQTTConfiguration.defaultPath
            var action = Action.run
            var rest = CommandLine.arguments.dropFirst()
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
            guard errors.isEmpty else {
                for error in errors { Log.report(error) }
                exit(78)
            }
            switch action {
            case .run: try run(configuration, path)
            case .check:
                _ = try siteKey(configuration)
                print("\(path) is right")
            case .status: try showStatus(configuration)
            case .pseudonym: try printPseudonyms(configuration)
            case .forget: try forget(configuration)
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

    private static func siteKey(_ configuration: MQTTConfiguration) throws(StartError) -> SiteKey? {
        guard let path = configuration.siteKeyFile else { return nil }
        guard let key = SiteKey(try SecretFile.read(path, limit: SiteKey.count, setting: "[publish] site_key")) else {
            throw .inConfiguration("\(path) has not \(SiteKey.count) bytes", hint: "correct [publish] site_key")
        }
        return key
    }

    private static func run(_ configuration: MQTTConfiguration, _ path: String) throws(StartError) -> Never {
        let content = EventContent(credentials: configuration.credentials, siteKey: try siteKey(configuration))
        let signals = try Signals()
        let mailbox = try EventMailbox()
        let service = ServiceNotification()
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
        BrokerConnection.start()
        let confinement = Confinement.broker(readable: [path] + configuration.files, folder: configuration.folder)
        guard confinement.apply(to: "badged-mqtt") else { exit(1) }
        do throws(SystemError) { try Loop.start() } catch {
            throw StartError("cannot start: \(error.description)", hint: "allow more threads (TasksMax=)")
        }
        Task { @Loop in
            let watch = DaemonWatch(configuration, content, mailbox)
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
        switch Publisher(configuration, mailbox, outbox, service: service).run() {
        case .stopped: _exit(0)
        case .damaged: _exit(1)
        }
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
        if errors.isEmpty {
            do throws(StartError) {
                let content = EventContent(credentials: new.credentials, siteKey: try siteKey(new))
                watch.reload(new, content)
                mailbox.post(.reload(new))
                return Log.notice("the configuration was read again")
            } catch {
                errors.append(error)
            }
        }
        for error in errors { Log.error("\(error.message); hint: \(error.hint)") }
        Log.error("the configuration is refused, and the old one stays")
        watch.refuseReload(errors.first?.message ?? "")
    }

    private static func showStatus(_ configuration: MQTTConfiguration) throws(StartError) {
        guard let status = StatusFile(configuration).read() else {
            throw StartError(
                "there is no status in \(configuration.folder)",
                hint: "run this as root or as user badged-mqtt; systemctl status badged-mqtt"
            )
        }
        let isConnected = status["connected"]?.bool ?? false
        print("broker:   \(status["broker"]?.string ?? "") \(isConnected ? "connected" : "not connected")")
        if let fault = status["fault"]?.string { print("fault:    \(fault)") }
        let watching = status["watching"]?.bool == true ? ", taps are watched" : ""
        print("badged:   \(status["badged"]?.bool == true ? "connected" : "not connected")\(watching)")
        print("topic:    \(status["topic"]?.string ?? "")")
        print("waiting:  \(status["waiting"]?.int ?? 0) events, \(status["lost"]?.int ?? 0) lost")
        print("epoch:    \(status["epoch"]?.string ?? "")")
        guard isConnected else { exit(1) }
    }

    /// Reads compressed keys or the x of keys, and prints lines for an allow list.
    private static func printPseudonyms(_ configuration: MQTTConfiguration) throws(StartError) {
        guard let key = try siteKey(configuration) else {
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
        EventJournal(folder: configuration.folder, days: configuration.keptDays).lines(from: first) { print($0) }
    }

    /// Publishes empty retained messages, which removes them from the broker.
    private static func forget(_ configuration: MQTTConfiguration) throws(StartError) {
        BrokerConnection.start()
        let connection = try BrokerConnection(configuration, clientID: configuration.clientID, will: nil)
        if let reason = connection.connect(
            to: configuration.host ?? "",
            port: configuration.port,
            keepAlive: configuration.keepAlive
        ) {
            throw StartError("cannot connect to the broker: \(reason)", hint: "see badged-mqtt --status")
        }
        var topics = Document.allCases.map { configuration.topic($0.rawValue) }
        if configuration.isHomeAssistantEnabled { topics.append(configuration.discoveryTopic) }
        var (open, isBegun): (Set<Int32>, Bool) = ([], false)
        let deadline = Loop.clock + 10_000_000
        while Loop.clock < deadline {
            var polled = pollfd(fd: connection.descriptor, events: Int16(POLLIN | POLLOUT), revents: 0)
            if !connection.wantsWrite { polled.events = Int16(POLLIN) }
            _ = poll(&polled, 1, 1000)
            let bits = Int32(polled.revents)
            let (events, ending) = connection.step(
                canRead: bits & (POLLIN | POLLHUP | POLLERR) != 0,
                canWrite: bits & POLLOUT != 0
            )
            for event in events {
                switch event {
                case .connected:
                    isBegun = true
                    for topic in topics {
                        if case .sent(let id) = connection.publish(topic, [], retain: true) { open.insert(id) }
                    }
                case .acknowledged(let id, let reason):
                    open.remove(id)
                    guard reason < 0x80 else {
                        throw StartError("the broker refuses to forget: reason \(reason)", hint: "check its ACL")
                    }
                case .refused(let reason):
                    throw StartError("the broker refuses the connection: \(reason)", hint: "check user and password")
                case .message: break
                }
            }
            if isBegun, open.isEmpty {
                connection.disconnect()
                return print("\(topics.count) messages are removed")
            }
            if let ending { throw StartError("the connection has ended: \(ending)", hint: "try again") }
        }
        throw StartError("the broker does not answer", hint: "try again later")
    }
}
