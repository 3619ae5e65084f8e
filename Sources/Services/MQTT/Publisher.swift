// SPDX-License-Identifier: GPL-3.0-or-later
import Concurrency
import Glibc
package import Host
import Text

/// Keeps a connection to the broker: connects, lets the `EventOutbox` publish, and connects again after random pauses.
/// All of it runs on one thread, which waits in poll(2).
///
/// New settings get a connection of their own. The old one stays until the broker has accepted the new one.
package final class Publisher {
    package enum End {
        case stopped
        /// The queue was damaged while it was open.
        case damaged
    }

    /// Called when new settings are in force, or with the reason why they do not connect.
    package typealias Reloaded = @Sendable (_ new: MQTTConfiguration, _ fault: String?) -> Void

    private let mailbox: EventMailbox
    private let outbox: EventOutbox
    private let service: ServiceNotification?
    /// The milliseconds between two signs of life for the service manager; nil: it does not watch.
    private let signInterval: Int64?
    private var nextSign = Int64.min
    private let reloaded: Reloaded

    /// The settings in force, and those that are to replace them.
    private var routes: [Route]
    private var route: Route { routes[0] }
    private var attempts = 0
    /// The threads that connect. One whose look-up hangs stays when nobody waits for it any more.
    private var diallers = 0
    private static let mostDiallers = 4
    private var status: StatusFile
    /// Whether somebody has asked for the status, and the other thread has not answered yet.
    private var isAnswering = false

    /// `service` gets the state for the service manager; nil without one.
    package init(
        _ configuration: MQTTConfiguration,
        _ mailbox: EventMailbox,
        _ outbox: EventOutbox,
        service: ServiceNotification?,
        status: StatusFile? = nil,
        reloaded: @escaping Reloaded = { _, _ in }
    ) {
        self.mailbox = mailbox
        self.outbox = outbox
        self.service = service
        self.reloaded = reloaded
        signInterval = service?.watchdogInterval.map { Int64($0 / .milliseconds(1)) }
        routes = [Route(configuration, firstTry: Self.now + Int64.random(in: 0...2000))]
        self.status = status ?? StatusFile(configuration)
        warnOfVersion(configuration)
    }

    private func warnOfVersion(_ configuration: MQTTConfiguration) {
        guard configuration.version == .three else { return }
        Log.notice("MQTT 3.1.1 has no expiry and no reasons: a broker can refuse messages without a sign")
    }

    private static var now: Int64 { Loop.clock / 1000 }

    /// Runs until `MailboxInput.stop`.
    package func run() -> End {
        while true {
            let inputs = mailbox.take()
            outbox.process(inputs, at: Self.now)
            for input in inputs {
                switch input {
                case .dialled(let attempt, let outcome): dialled(attempt, outcome)
                case .reload(let new): reload(new)
                case .alive: service?.watchdog()
                case .asked:
                    isAnswering = false
                    status.takeQuestions()
                case .stop:
                    service?.stopping()
                    leave("stopped")
                    outbox.queue.logLosses(isEnd: true)
                    writeStatus(isRunning: false)
                    return .stopped
                case .event, .gap, .document, .daemon: break
                }
            }
            let now = Self.now
            askForSign(now)
            outbox.tidy(at: now)
            for place in routes.indices.reversed() { keepConnection(place, now) }
            if let connection = route.ready {
                outbox.pump(at: now) { connection.publish($0, $1, retain: $2, expiry: $3, at: now) }
            }
            if outbox.queue.isDamaged { return .damaged }
            writeStatus(isRunning: true)
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

    private func keepConnection(_ place: Int, _ now: Int64) {
        if case .waiting(let time) = routes[place].state {
            if now >= time { connect(place) }
        } else if let reason = routes[place].delay(at: now) {
            lost(place, .fault(reason))
        } else if place == 0, route.ready != nil, outbox.isStuck(at: now) {
            lost(place, .fault("the broker does not acknowledge"))
        }
    }

    private func deadline(_ now: Int64) -> Int64 {
        let sign = signInterval == nil ? .max : nextSign
        return max(now, min(outbox.deadline(at: now), status.due ?? .max, sign, routes.map(\.deadline).min() ?? .max))
    }

    private func wait(until deadline: Int64) {
        let connections = routes.map(\.connection)
        var polled = [
            pollfd(fd: mailbox.descriptor, events: Int16(POLLIN), revents: 0),
            pollfd(fd: isAnswering ? -1 : status.questions, events: Int16(POLLIN), revents: 0),
        ]
        polled += connections.map { Self.interest(in: $0) }
        _ = poll(&polled, UInt(polled.count), Int32(max(0, min(deadline - Self.now, 3_600_000))))
        if polled[1].revents != 0 {
            isAnswering = true
            // The answer comes through the thread that watches badged, so it proves that both threads go on.
            Task { @Loop [mailbox] in mailbox.post(.asked) }
        }
        // A new connection comes before the one that it replaces.
        for place in connections.indices.reversed() {
            if let connection = connections[place] { step(connection) }
        }
    }

    private static func interest(in connection: BrokerConnection?) -> pollfd {
        let wantsWrite = connection?.wantsWrite ?? false
        return pollfd(
            fd: connection?.descriptor ?? -1,
            events: Int16(POLLIN | (wantsWrite ? POLLOUT : 0)),
            revents: 0
        )
    }

    private func step(_ connection: BrokerConnection) {
        let (events, ending) = connection.step(at: Self.now)
        for event in events {
            // A step may have ended the connection, or made it the first one.
            guard let place = routes.firstIndex(where: { $0.connection === connection }) else { return }
            handle(event, connection, place)
        }
        if let ending, let place = routes.firstIndex(where: { $0.connection === connection }) { lost(place, ending) }
    }

    // MARK: Connection

    private func connect(_ place: Int) {
        guard diallers < Self.mostDiallers else {
            let reason = "the look-ups of the name in earlier attempts hang: check the name service of this host"
            return lost(place, .fault(reason))
        }
        routes[place].session = Hex.encode(UInt64.random(in: .min ... .max))
        attempts += 1
        let configuration = routes[place].configuration
        let will = BrokerConnection.Will(
            topic: configuration.topic(Document.state.rawValue),
            payload: outbox.offline(routes[place].session, "connectionLost", at: nil)
        )
        do throws(StartError) {
            try routes[place].dial(attempts, will: will, mailbox, at: Self.now)
            diallers += 1
        } catch {
            lost(place, .fault(error.message))
        }
    }

    private func dialled(_ attempt: Int, _ outcome: Dialling.Outcome) {
        diallers -= 1
        guard let place = routes.firstIndex(where: { $0.attempt == attempt }),
            case .dialling(let connection, _) = routes[place].state
        else {
            if case .socket(let descriptor) = outcome { Glibc.close(descriptor) }
            return
        }
        switch outcome {
        case .failed(let reason): lost(place, .fault(reason))
        case .socket(let descriptor):
            routes[place].state = .connecting(connection, since: Self.now)
            connection.begin(descriptor)
            step(connection)
        }
    }

    private func handle(_ event: BrokerConnection.Event, _ connection: BrokerConnection, _ place: Int) {
        let now = Self.now
        switch event {
        case .open: connection.logIn(at: now)
        case .accepted(let limits): accepted(limits, place)
        case .refused(let reason):
            guard !routes[place].changesWill(after: reason, at: now) else { return }
            let text = reason.text(for: routes[place].configuration)
            lost(place, .fault("the broker refuses the connection: \(text)"))
        case .acknowledged(let id, let reason): if place == 0 { outbox.acknowledged(id, reason, at: now) }
        }
    }

    private func accepted(_ limits: BrokerLimits, _ place: Int) {
        routes[place].accepted(limits, at: Self.now)
        if place > 0 { replaceRoute() }
        let configuration = route.configuration
        outbox.begin(session: route.session, limits: limits, at: Self.now)
        Log.notice("connected to the broker \(configuration.host ?? "")")
        for note in limits.notes(keepAlive: configuration.keepAlive) { Log.notice("\(note)") }
        service?.status("connected to \(configuration.host ?? "")")
    }

    private func lost(_ place: Int, _ ending: BrokerEnding) {
        guard place == 0 else {
            if routes[place].failed(ending, at: Self.now, "the new settings do not connect") {
                let fault = "the new settings do not connect, and the old ones stay: \(ending.text)"
                reloaded(routes[place].configuration, fault)
            }
            return
        }
        outbox.end()
        if routes.count > 1, routes[1].connection?.isLoggingIn == true {
            // The broker has ended it for the new one, which is on its way.
            return routes[0].replaced(until: routes[1].deadline)
        }
        service?.status("no connection to the broker: \(ending.text)")
        routes[0].failed(ending, at: Self.now, "no connection to the broker")
    }

    // MARK: New settings

    private func reload(_ new: MQTTConfiguration) {
        if new.folder != route.configuration.folder { Log.notice("[queue] folder: applies after a restart") }
        warnOfVersion(new)
        routes = [route, Route(new, firstTry: Self.now)]
        // Without a connection there is nothing to keep.
        if route.ready == nil { replaceRoute() }
    }

    /// The new settings are in force from now on.
    private func replaceRoute() {
        let old = routes.removeFirst()
        var isTold = false
        if let connection = old.ready, farewell("restarting", of: old, over: connection) {
            close(connection)
            isTold = true
        }
        // The new connection has numbers of its own: its answers acknowledge nothing that went over the old one.
        outbox.end()
        // A broker with two connections of one name has ended the old one, and has sent its will.
        if !isTold, let connection = route.ready, !old.session.isEmpty {
            farewell("restarting", of: old, over: connection)
        }
        outbox.reload(route.configuration)
        reloaded(route.configuration, nil)
    }

    // MARK: Status and end

    /// Writes the file that `--status` reads, if it would change.
    private func writeStatus(isRunning: Bool) {
        let configuration = route.configuration
        let limits = isRunning ? route.limits : nil
        let pending = routes.count > 1 ? routes[1].fault : nil
        status.write(
            [
                .init("connected", .bool(limits != nil)),
                .init("broker", .string("\(configuration.host ?? ""):\(configuration.port)")),
                .init("topic", .string("\(configuration.prefix)/\(configuration.name)")),
                .init("fault", (route.fault ?? outbox.fault).map { .string($0) } ?? .null),
                .init("lastFault", route.lastFault.map { .string($0) } ?? .null),
                .init("newSettings", pending.map { .string($0) } ?? .null),
                .init("notes", .array((limits?.notes(keepAlive: configuration.keepAlive) ?? []).map(JSON.string))),
            ] + outbox.statusMembers,
            at: Self.now,
            isLast: !isRunning
        )
    }

    /// Publishes the end and disconnects, so that the broker does not send the will.
    private func leave(_ reason: String) {
        outbox.settle()
        guard let connection = route.ready, farewell(reason, of: route, over: connection) else { return }
        close(connection)
    }

    /// Publishes the end of a session, and waits for PUBACK.
    /// - Returns: whether the broker has it.
    @discardableResult private func farewell(
        _ reason: String,
        of route: Route,
        over connection: BrokerConnection
    ) -> Bool {
        let payload = outbox.offline(route.session, reason, at: EventStore.now)
        let topic = route.configuration.topic(Document.state.rawValue)
        guard case .sent(let id) = connection.publish(topic, payload, retain: true, at: Self.now) else { return false }
        let end = Self.now + 2000
        while Self.now < end {
            guard let events = turn(connection, until: end) else { return false }
            for case .acknowledged(let one, let reason) in events {
                outbox.acknowledged(one, reason, at: Self.now)
                if one == id { return true }
            }
        }
        return false
    }

    private func close(_ connection: BrokerConnection) {
        outbox.queue.flush()
        connection.disconnect()
        // A close with unread bytes resets the connection, and the broker would not see DISCONNECT.
        let end = Self.now + 500
        while Self.now < end, turn(connection, until: end) != nil {}
    }

    /// Waits for the connection, and does one step; nil at its end.
    private func turn(_ connection: BrokerConnection, until deadline: Int64) -> [BrokerConnection.Event]? {
        var polled = Self.interest(in: connection)
        guard polled.fd >= 0 else { return nil }
        _ = poll(&polled, 1, Int32(max(0, deadline - Self.now)))
        let (events, ending) = connection.step(at: Self.now)
        return ending == nil ? events : nil
    }
}
