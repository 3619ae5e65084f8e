// SPDX-License-Identifier: GPL-3.0-or-later
import Glibc
import Host
import MQTT
import Synchronization
import Text

/// Many hosts on one mosquitto. Each is the real state machine of badged-mqtt, with its queue in a file and its connection;
/// only what badged would tell comes from here.
enum FleetBench {
    private static let eventsOfHost = 20

    /// What the consumer has received.
    private struct Seen {
        var states: Set<Substring> = []
        var events = 0
    }

    static func run(_ settings: Settings, _ report: inout Report) throws(BenchError) {
        let count = settings.count(settings.hosts)
        allowDescriptors()
        Log.level = .error
        let port = settings.broker ?? UInt16.random(in: 20_000..<30_000)
        let broker = settings.broker == nil ? try broker(settings, port) : nil
        let seen = try consumer(settings, port)
        let figures = broker.map { ProcessFigures(pid: $0.pid) }
        let before = try figures?.memory().proportional ?? 0
        // The disk of one machine is not that of a thousand.
        let folder = (access("/dev/shm", W_OK) == 0 ? "/dev/shm" : settings.folder) + "/badged-fleet-\(getpid())"
        mkdir(folder, 0o700)
        defer { remove(folder, count) }
        let hosts = try (0..<count).map { number throws(BenchError) in
            try Door(folder: "\(folder)/\(number)", name: "host\(getpid())-\(number)", port: port)
        }
        try wait("not all hosts are online") { seen.withLock { $0.states.count } == count }
        pause(milliseconds: 2000)
        if let figures {
            let memory = (try figures.memory().proportional - before) / Double(count)
            report.add(.fleetMemory, memory, "\(count) hosts with four documents")
        }
        let busy = try figures?.processorTime() ?? 0
        let start = monotonicNow()
        for number in 1...eventsOfHost { for host in hosts { host.tap(number) } }
        let all = count * eventsOfHost
        try wait("not all events arrive") { seen.withLock { $0.events } >= all }
        let time = microseconds(since: start)
        var note = "\(count) hosts, \(all) events, \(text(1_000_000 * Double(all) / time, 0)) /s"
        if let figures {
            note += "; broker \(text((try figures.processorTime() - busy) * 1000 / time * 100, 0)) % of a core"
        }
        report.add(.fleetEvent, time / Double(all), note)
        for host in hosts { host.stop() }
        for host in hosts { host.thread.join() }
    }

    private static func broker(_ settings: Settings, _ port: UInt16) throws(BenchError) -> Child {
        let file = try settings.write(
            "fleet.conf",
            "user root\nlistener \(port) 127.0.0.1\nallow_anonymous true\nmax_queued_messages 1000000\n"
        )
        let broker = try Child("/usr/sbin/mosquitto", ["-c", file], log: settings.folder + "/fleet.log")
        try wait("mosquitto does not start") { isOpen(port) }
        return broker
    }

    /// Each host has seven descriptors here and one at the broker, which inherits the limit.
    private static func allowDescriptors() {
        var limit = rlimit()
        getrlimit(__rlimit_resource_t(RLIMIT_NOFILE.rawValue), &limit)
        limit.rlim_cur = limit.rlim_max
        setrlimit(__rlimit_resource_t(RLIMIT_NOFILE.rawValue), &limit)
    }

    private static func isOpen(_ port: UInt16) -> Bool {
        guard let socket = connectLoopback(port) else { return false }
        close(socket)
        return true
    }

    private static func wait(_ fault: String, for condition: () -> Bool) throws(BenchError) {
        let start = monotonicNow()
        while !condition() {
            guard microseconds(since: start) < 300e6 else { throw BenchError(fault) }
            pause(milliseconds: 5)
        }
    }

    /// A real consumer, whose lines are counted by a thread.
    private static func consumer(_ settings: Settings, _ port: UInt16) throws(BenchError) -> Shared {
        let topics = ["-t", "badged/1/+/state", "-t", "badged/1/+/credential"]
        let child = try Child(
            "/usr/bin/mosquitto_sub",
            ["-h", "127.0.0.1", "-p", String(port), "-V", "5", "-q", "1", "-i", "consumer\(getpid())", "-F", "%t"]
                + topics,
            log: settings.folder + "/fleet-consumer.log",
            hasOutput: true
        )
        let shared = Shared(child)
        guard let output = child.output else { throw BenchError("mosquitto_sub has no output") }
        let own = "badged/1/host\(getpid())-"
        _ = Worker {
            var rest: [UInt8] = []
            var buffer = [UInt8](repeating: 0, count: 1 << 16)
            while case let count = read(output, &buffer, buffer.count), count > 0 {
                rest += buffer.prefix(count)
                guard let end = rest.lastIndex(of: 0x0A) else { continue }
                let lines = String(decoding: rest[..<end], as: UTF8.self).split(separator: "\n")
                rest.removeFirst(end + 1)
                shared.withLock { seen in
                    for line in lines {
                        guard line.hasPrefix(own) else { continue }
                        if line.hasSuffix("/state") { seen.states.insert(line) } else { seen.events += 1 }
                    }
                }
            }
        }
        // Its subscription must be there before the first event; documents are retained.
        pause(milliseconds: 1000)
        return shared
    }

    private final class Shared: @unchecked Sendable {
        private let seen = Mutex(Seen())
        /// Lives as long as its output is read.
        private let child: Child

        init(_ child: Child) { self.child = child }

        func withLock<Value>(_ body: (inout Seen) -> Value) -> Value { seen.withLock { body(&$0) } }
    }

    private static func remove(_ folder: String, _ count: Int) {
        for number in 0..<count {
            for name in ["queue.db", "queue.db-wal", "queue.numbers", "status.json"] {
                unlink("\(folder)/\(number)/\(name)")
            }
            rmdir("\(folder)/\(number)/kept")
            rmdir("\(folder)/\(number)")
        }
        rmdir(folder)
    }

    /// One host with a thread of its own.
    private struct Door {
        private let mailbox: EventMailbox
        let thread: Worker

        init(folder: String, name: String, port: UInt16) throws(BenchError) {
            mkdir(folder, 0o700)
            var configuration = MQTTConfiguration()
            (configuration.host, configuration.port, configuration.usesTLS) = ("127.0.0.1", Int(port), false)
            (configuration.name, configuration.folder, configuration.credentials) = (name, folder, .hashed)
            let settings = configuration
            do {
                let mailbox = try EventMailbox()
                self.mailbox = mailbox
                thread = Worker {
                    guard let queue = try? EventStore(folder: folder, limit: settings.limit) else { return }
                    _ = Publisher(settings, mailbox, EventOutbox(settings, queue), service: nil).run()
                }
            } catch {
                throw BenchError("a host cannot be made: \(error)")
            }
            var state = DaemonState()
            state.isConnected = true
            state.isWatching = true
            state.version = "0.1.0"
            state.run = 1
            mailbox.post(.daemon(state))
            let reader = JSON.object([
                .init("name", .string("Reader at the door")), .init("keypad", .bool(false)), .init("card", .null),
            ])
            mailbox.post(.document(.readers, [.init("readers", .array([reader]))], isUrgent: true))
            let check = JSON.object([.init("name", .string("pcscd")), .init("ok", .bool(true))])
            mailbox.post(.document(.health, [.init("checks", .array([check, check, check]))], isUrgent: true))
            mailbox.post(
                .document(.sightings, [.init("readers", .array([])), .init("more", .number("0"))], isUrgent: true)
            )
        }

        func tap(_ number: Int) {
            let members: [JSON.Member] = [
                .init("reader", .string("Reader at the door")), .init("protocol", .string("pkoc-se1")),
                .init("verified", .bool(true)), .init("id", .string(String(repeating: "A", count: 43))),
                .init("certificate", .null),
            ]
            mailbox.post(.event(.credential, number: number, run: 1, time: EventStore.now, members))
        }

        func stop() { mailbox.post(.stop) }
    }
}
