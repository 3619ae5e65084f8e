// SPDX-License-Identifier: GPL-3.0-or-later
import Concurrency
import Glibc
package import Host
import Text

/// Keeps a connection to the broker: connects, lets the `EventOutbox` publish, and connects again after random pauses.
/// All of it runs on one thread, which waits in poll(2).
package final class Publisher {
    package enum End {
        case stopped
        /// The queue was damaged while it was open.
        case damaged
    }

    private var configuration: MQTTConfiguration
    private let mailbox: EventMailbox
    private let outbox: EventOutbox
    private let service: ServiceNotification?
    /// The milliseconds between two signs of life for the service manager; nil: it does not watch.
    private let signInterval: Int64?
    private var nextSign = Int64.min

    private var connection: BrokerConnection?
    private var isConnecting = false
    /// The attempt that runs has settings that no longer count.
    private var isAttemptVoid = false
    /// Since CONNACK; nil before.
    private var readySince: Int64?
    private var startedAt: Int64 = 0
    private var session = ""
    private var failures = 0
    private var nextTry: Int64
    /// Why there is no connection; nil while there is one.
    private var fault: String?
    private var loggedFault: String?
    private var shownFault: String?
    /// What CONNACK of this connection has said.
    private var refusal: String?

    /// `service` gets the state for the service manager; nil without one.
    package init(
        _ configuration: MQTTConfiguration,
        _ mailbox: EventMailbox,
        _ outbox: EventOutbox,
        service: ServiceNotification?
    ) {
        (self.configuration, self.mailbox, self.outbox, self.service) = (configuration, mailbox, outbox, service)
        signInterval = service?.watchdogInterval.map { Int64($0 / .milliseconds(1)) }
        nextTry = Self.now + Int64.random(in: 0...2000)
        warnOfVersion()
    }

    private func warnOfVersion() {
        guard configuration.version == .three else { return }
        Log.notice("MQTT 3.1.1 has no expiry and no reasons: a broker can refuse messages without a sign")
    }

    private static var now: Int64 { Loop.clock / 1000 }

    /// Runs until `MailboxInput.stop`.
    package func run() -> End {
        writeStatus()
        while true {
            let inputs = mailbox.take()
            outbox.process(inputs, at: Self.now)
            for input in inputs {
                switch input {
                case .connected(let reason): attemptEnded(reason)
                case .reload(let new): reload(new)
                case .alive: service?.watchdog()
                case .stop:
                    service?.stopping()
                    leave("stopped")
                    return .stopped
                case .event, .gap, .document, .daemon: break
                }
            }
            let now = Self.now
            askForSign(now)
            outbox.tidy(at: now)
            keepConnection(now)
            if readySince != nil, let connection {
                outbox.pump(at: now) { connection.publish($0, $1, retain: $2, expiry: $3) }
            }
            if outbox.queue.isDamaged { return .damaged }
            if outbox.fault != shownFault { writeStatus() }
            wait(until: deadline(now))
        }
    }

    /// Asks the thread that watches badged, when a sign of life is due. Its answer becomes the sign, so it proves that both
    /// threads go on.
    private func askForSign(_ now: Int64) {
        guard let signInterval, now >= nextSign else { return }
        nextSign = now + signInterval
        Task { @Loop [mailbox] in mailbox.post(.alive) }
    }

    private func keepConnection(_ now: Int64) {
        guard !isConnecting else { return }
        if connection == nil {
            if now >= nextTry { connect() }
        } else if readySince == nil {
            if now >= startedAt + Self.connectTime { lost("the broker does not answer") }
        } else if outbox.isStuck(at: now) {
            lost("the broker does not acknowledge")
        }
    }

    private func wait(until deadline: Int64) {
        let active = isConnecting ? nil : connection
        let descriptor = active?.descriptor ?? -1
        var wanted = Int16(POLLIN)
        if active?.wantsWrite == true { wanted |= Int16(POLLOUT) }
        var polled = [
            pollfd(fd: mailbox.descriptor, events: Int16(POLLIN), revents: 0),
            pollfd(fd: descriptor, events: wanted, revents: 0),
        ]
        let time = max(0, min(deadline - Self.now, 3_600_000))
        _ = poll(&polled, 2, Int32(time))
        guard let active else { return }
        let bits = Int32(polled[1].revents)
        let (events, ending) = active.step(
            canRead: bits & (POLLIN | POLLHUP | POLLERR) != 0,
            canWrite: bits & POLLOUT != 0
        )
        for event in events where connection != nil { handle(event) }
        if let ending, connection != nil { lost(ending) }
    }

    private func deadline(_ now: Int64) -> Int64 {
        var deadline = outbox.deadline(at: now)
        if signInterval != nil { deadline = min(deadline, nextSign) }
        if connection == nil {
            deadline = min(deadline, nextTry)
        } else if readySince == nil {
            deadline = min(deadline, isConnecting ? .max : startedAt + Self.connectTime)
        } else {
            // The library sends its ping when it is called.
            deadline = min(deadline, now + Int64(configuration.keepAlive) * 500)
        }
        return max(deadline, now)
    }

    /// How long the broker may take for CONNACK.
    private static let connectTime: Int64 = 20_000

    // MARK: Connection

    private func connect() {
        session = Self.newSession()
        let will = BrokerConnection.Will(
            topic: configuration.topic(Document.state.rawValue),
            payload: outbox.offline(session, "connectionLost", at: nil)
        )
        do throws(StartError) {
            let new = try BrokerConnection(configuration, clientID: configuration.clientID, will: will)
            connection = new
            (isConnecting, startedAt) = (true, Self.now)
            let (host, port, keepAlive) = (configuration.host ?? "", configuration.port, configuration.keepAlive)
            // A look-up or a connection that hangs must not delay what is stored.
            let isStarted = startThread("badged-connect") { [mailbox] in
                mailbox.post(.connected(new.connect(to: host, port: port, keepAlive: keepAlive)))
            }
            if !isStarted { attemptEnded("no thread can be started") }
        } catch {
            failed(error.message)
        }
    }

    private func attemptEnded(_ reason: String?) {
        (isConnecting, startedAt) = (false, Self.now)
        if isAttemptVoid {
            (connection, isAttemptVoid, nextTry) = (nil, false, Self.now)
        } else if let reason {
            lost(reason)
        }
    }

    private static func newSession() -> String { Hex.encode(UInt64.random(in: .min ... .max)) }

    private func handle(_ event: BrokerConnection.Event) {
        let now = Self.now
        switch event {
        case .connected(let window):
            (readySince, fault, loggedFault) = (now, nil, nil)
            outbox.begin(session: session, window: window, at: now)
            Log.notice("connected to the broker \(configuration.host ?? "")")
            service?.status("connected to \(configuration.host ?? "")")
            writeStatus()
        case .refused(let reason): refusal = "the broker refuses the connection: \(reason)"
        case .acknowledged(let id, let reason): outbox.acknowledged(id, reason, at: now)
        case .message: lost("the broker sends messages that nobody has asked for")
        }
    }

    private func lost(_ reason: String) {
        let lasted = readySince.map { Self.now - $0 } ?? 0
        readySince = nil
        outbox.end()
        // Two hosts with one name disconnect each other at once, so the back-off must grow.
        if lasted >= 10_000 { failures = 0 }
        failed(refusal ?? reason)
    }

    private func failed(_ reason: String) {
        connection = nil
        fault = reason
        if loggedFault != reason { Log.warning("no connection to the broker: \(reason)") }
        loggedFault = reason
        service?.status("no connection to the broker: \(reason)")
        failures += 1
        let longest = min(Int64(configuration.longestPause) * 1000, Int64(1000) << min(failures, 20))
        nextTry = Self.now + Int64.random(in: 0...longest)
        refusal = nil
        writeStatus()
    }

    /// Disconnects, and connects again with the new settings.
    private func reload(_ new: MQTTConfiguration) {
        if new.folder != configuration.folder { Log.notice("[queue] folder: applies after a restart") }
        leave("restarting")
        // A connection that is being made belongs to its thread.
        if isConnecting { isAttemptVoid = true } else { connection = nil }
        readySince = nil
        outbox.end()
        configuration = new
        outbox.reload(new)
        (failures, nextTry) = (0, Self.now)
        warnOfVersion()
    }

    // MARK: Status and end

    /// Writes the file that `--status` reads.
    private func writeStatus() {
        shownFault = outbox.fault
        let queue = outbox.queue
        let members: [JSON.Member] = [
            .init("connected", .bool(readySince != nil)),
            .init("broker", .string("\(configuration.host ?? ""):\(configuration.port)")),
            .init("topic", .string("\(configuration.prefix)/\(configuration.name)")),
            .init("fault", (fault ?? shownFault).map { .string($0) } ?? .null),
            .init("badged", .bool(outbox.daemon.isConnected)), .init("watching", .bool(outbox.daemon.isWatching)),
            .init("waiting", .number(String(queue.waiting))),
            .init("lost", .number(String(EventStream.allCases.reduce(0) { $0 + queue.lost($1) }))),
            .init("epoch", .string(queue.epoch)), .init("time", .number(String(EventStore.now))),
        ]
        StatusFile(outbox.configuration).write(JSON.object(members).bytes)
    }

    /// Publishes the end and disconnects, so that the broker does not send the will.
    private func leave(_ reason: String) {
        outbox.settle()
        guard readySince != nil, let connection else { return }
        let payload = outbox.offline(session, reason, at: EventStore.now)
        let topic = configuration.topic(Document.state.rawValue)
        guard case .sent(let farewell) = connection.publish(topic, payload, retain: true) else { return }
        let end = Self.now + 2000
        var isAcknowledged = false
        while !isAcknowledged, Self.now < end {
            guard let events = turn(connection, until: end) else { return }
            for case .acknowledged(let id, let reason) in events {
                outbox.acknowledged(id, reason, at: Self.now)
                if id == farewell { isAcknowledged = true }
            }
        }
        outbox.queue.flush()
        connection.disconnect()
        // A close with unread bytes resets the connection, and the broker would not see DISCONNECT.
        let close = Self.now + 500
        while Self.now < close, turn(connection, until: close) != nil {}
    }

    /// Waits for the connection, and does one step; nil at its end.
    private func turn(_ connection: BrokerConnection, until deadline: Int64) -> [BrokerConnection.Event]? {
        var polled = pollfd(fd: connection.descriptor, events: Int16(POLLIN), revents: 0)
        guard polled.fd >= 0 else { return nil }
        if connection.wantsWrite { polled.events |= Int16(POLLOUT) }
        _ = poll(&polled, 1, Int32(max(0, deadline - Self.now)))
        let bits = Int32(polled.revents)
        let (events, ending) = connection.step(
            canRead: bits & (POLLIN | POLLHUP | POLLERR) != 0,
            canWrite: bits & POLLOUT != 0
        )
        return ending == nil ? events : nil
    }
}
