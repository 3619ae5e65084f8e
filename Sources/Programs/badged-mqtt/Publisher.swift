// SPDX-License-Identifier: GPL-3.0-or-later
import CLinux
import Concurrency
import Glibc
import Host
import Text

/// Keeps the broker informed: connects, publishes events from the queue and the newest documents, and connects again.
/// All of it runs on one thread, which waits in poll(2). docs/fleet.md has the rules.
final class Publisher {
    /// A message without PUBACK.
    private enum Sent {
        case event(EventStream, Int)
        case document(Document)
        case discovery
        case farewell
    }

    private struct Slot {
        var members: [JSON.Member]?
        var isDirty = false
        var isUrgent = false
        var isSending = false
        /// Milliseconds of CLOCK_MONOTONIC.
        var sentAt: Int64 = .min / 2
        var heldUntil: Int64 = .min / 2

        /// A new connection begins.
        mutating func begin() {
            (isSending, isDirty) = (false, members != nil)
            (sentAt, heldUntil) = (.min / 2, .min / 2)
        }
    }

    let configuration: MQTTConfiguration
    private let mailbox: Mailbox
    let queue: EventQueue
    private let service = ServiceNotification()
    let host = HostFacts()

    private var connection: BrokerConnection?
    private var isConnecting = false
    /// Since CONNACK; nil before.
    private var readySince: Int64?
    private var startedAt: Int64 = 0
    private(set) var session = ""
    private var window = BrokerConnection.window
    private var sent: [Int32: Sent] = [:]
    private var failures = 0
    private var nextTry: Int64
    /// Why there is no connection, or what the broker refuses.
    private(set) var fault: String?
    private var loggedFault: String?
    /// What CONNACK of this connection has said.
    private var refusal: String?

    /// The last event of each stream that was sent over this connection.
    private var cursors: [EventStream: Int] = [:]
    private var heldUntil: [EventStream: Int64] = [:]
    /// Streams of which the broker has refused an event: one at a time is tried.
    private var probing: Set<EventStream> = []
    private var slots: [Document: Slot] = [:]
    private var discovery: Discovery.Timer

    private(set) var daemon: (isConnected: Bool, isWatching: Bool, version: String?) = (false, false, nil)
    /// The start of badged.
    private var daemonRun = 0
    private var notedAt: Int64 = 0
    private var stateDue: Int64?
    /// When the file forgets what was acknowledged, unless an event is stored before: one commit for both.
    private var flushDue: Int64 = .max

    init(_ configuration: MQTTConfiguration, _ mailbox: Mailbox, _ queue: EventQueue) {
        (self.configuration, self.mailbox, self.queue) = (configuration, mailbox, queue)
        let now = Self.now
        nextTry = now + Int64.random(in: 0...2000)
        discovery = Discovery.Timer(isEnabled: configuration.isHomeAssistantEnabled)
        for document in Document.allCases { slots[document] = Slot() }
        slots[.state]?.members = []
        if configuration.version == .three {
            Log.notice("MQTT 3.1.1 has no expiry and no reasons: a broker can refuse messages without a sign")
        }
    }

    private static var now: Int64 { Loop.clock / 1000 }

    /// Runs until `Input.stop`.
    func run() {
        writeStatus()
        while true {
            let now = Self.now
            if handle(mailbox.take()) { return leave() }
            if connection == nil, !isConnecting, now >= nextTry { connect() }
            if readySince != nil { pump(now) }
            if queue.hasDone, now >= flushDue { queue.flush() }
            wait(until: deadline(now))
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
        for event in events { handle(event) }
        if let ending { lost(ending) }
    }

    private func deadline(_ now: Int64) -> Int64 {
        if isConnecting { return now + 3_600_000 }
        guard connection != nil else { return max(nextTry, now) }
        guard readySince != nil else { return startedAt + Self.connectTime }
        // The library sends its ping when it is called.
        var deadline = now + Int64(configuration.keepAlive) * 500
        if queue.hasDone { deadline = min(deadline, flushDue) }
        for (document, slot) in slots where !slot.isSending {
            if let due = due(document, slot) { deadline = min(deadline, due) }
        }
        for time in heldUntil.values where time > now { deadline = min(deadline, time) }
        if let due = discovery.due { deadline = min(deadline, due) }
        return max(deadline, now)
    }

    /// How long the broker may take for CONNACK.
    private static let connectTime: Int64 = 20_000

    // MARK: Inputs

    /// - Returns: whether the program ends.
    private func handle(_ inputs: [Input]) -> Bool {
        var batch: [(stream: EventStream, mark: EventQueue.Mark, content: (Int, [Gap]) -> [UInt8])] = []
        var marks: [EventStream: EventQueue.Mark] = [:]
        func commit() {
            guard !batch.isEmpty else { return }
            let wasDurable = queue.isDurable
            queue.append(batch)
            if wasDurable != queue.isDurable { changed(.state) }
            (batch, marks) = ([], [:])
            scheduleState()
        }
        var isOver = false
        for input in inputs {
            switch input {
            case .event(let stream, let number, let run, let time, let members):
                let mark = marks[stream] ?? queue.mark(stream)
                // A card that lay on the reader when this program began to watch was told before.
                if mark.run == run, run != 0, number <= mark.number { continue }
                if mark.run == run, run != 0, mark.number > 0, number > mark.number + 1 {
                    commit()
                    let missed = number - mark.number - 1
                    queue.add(Gap(reason: .notWatching, missed: missed, since: mark.time, until: time), to: stream)
                }
                let new = EventQueue.Mark(run: run, number: number, time: time)
                marks[stream] = new
                let place = host.place(time)
                batch.append(
                    (stream, new, { [epoch = queue.epoch] in Self.event(epoch, $0, place, members, $1) })
                )
            case .gap(let stream, let reason, let since, let until):
                commit()
                for one in stream.map({ [$0] }) ?? EventStream.allCases {
                    let begin = since ?? queue.mark(one).time
                    guard begin > 0 else { continue }
                    queue.add(Gap(reason: reason, since: begin, until: until), to: one)
                }
            case .document(let document, let members, let isUrgent):
                guard slots[document]?.members != members else { continue }
                slots[document]?.members = members
                slots[document]?.isDirty = true
                if isUrgent { slots[document]?.isUrgent = true }
                if document == .readers { discovery.changed(at: Self.now) }
            case .daemon(let isConnected, let isWatching, let version, let run):
                daemon = (isConnected, isWatching, version ?? daemon.version)
                if isConnected { daemonRun = run }
                changed(.state)
            case .connected(let reason): attemptEnded(reason)
            case .stop: isOver = true
            }
        }
        commit()
        // The C library keeps the memory of a burst.
        if inputs.count > 100 { clinux_give_back_memory() }
        return isOver
    }

    private static func event(
        _ epoch: String,
        _ number: Int,
        _ place: [JSON.Member],
        _ members: [JSON.Member],
        _ gaps: [Gap]
    ) -> [UInt8] {
        var all: [JSON.Member] = [.init("epoch", .string(epoch)), .init("sequence", .number(String(number)))]
        all += place + members
        if !gaps.isEmpty { all.append(.init("gap", .array(gaps.map(\.json)))) }
        return JSON.object(all).bytes
    }

    private func changed(_ document: Document) { slots[document]?.isDirty = true }

    /// The last number is told a little later, so that the documents are few while many people pass.
    private func scheduleState() { if stateDue == nil { stateDue = Self.now + 5000 } }

    // MARK: Connection

    private func connect() {
        session = Self.newSession()
        let will = BrokerConnection.Will(
            topic: configuration.topic(Document.state.rawValue),
            payload: host.offline(session, "connectionLost", at: nil)
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
        if let reason { lost(reason) }
    }

    private static func newSession() -> String {
        let number = UInt64.random(in: .min ... .max)
        let text = String(number, radix: 16)
        return String(repeating: "0", count: 16 - text.count) + text
    }

    private func handle(_ event: BrokerConnection.Event) {
        let now = Self.now
        switch event {
        case .connected(let window):
            self.window = window
            (readySince, fault, loggedFault) = (now, nil, nil)
            (sent, cursors, heldUntil, probing) = ([:], [:], [:], [])
            for document in Document.allCases {
                slots[document]?.begin()
            }
            discovery.connected(at: now)
            Log.notice("connected to the broker \(configuration.host ?? "")")
            service.status("connected to \(configuration.host ?? "")")
            publish(.state, now)
            writeStatus()
        case .refused(let reason): refusal = "the broker refuses the connection: \(reason)"
        case .acknowledged(let id, let reason): acknowledged(id, reason)
        case .message:
            Log.warning("the broker sends messages that nobody has asked for; the connection is ended")
            lost("the broker sends messages")
        }
    }

    private func lost(_ reason: String) {
        let lasted = readySince.map { Self.now - $0 } ?? 0
        connection = nil
        (readySince, sent) = (nil, [:])
        // Two hosts with one name throw each other out at once.
        if lasted >= 10_000 { failures = 0 }
        failed(refusal ?? reason)
    }

    private func failed(_ reason: String) {
        connection = nil
        fault = reason
        if loggedFault != reason { Log.warning("no connection to the broker: \(reason)") }
        loggedFault = reason
        service.status("no connection to the broker: \(reason)")
        failures += 1
        let longest = min(Int64(configuration.longestPause) * 1000, Int64(1000) << min(failures, 20))
        nextTry = Self.now + Int64.random(in: 0...longest)
        for document in Document.allCases { slots[document]?.isSending = false }
        refusal = nil
        writeStatus()
    }

    private func acknowledged(_ id: Int32, _ reason: Int32) {
        let now = Self.now
        guard let message = sent.removeValue(forKey: id) else { return }
        let isRefused = reason >= 0x80
        switch message {
        case .event(let stream, let sequence):
            if reason == 0x95 {
                Log.error("the broker takes no message as large as event \(sequence) of \(stream.word); it is dropped")
                queue.refused(stream, sequence)
            } else if isRefused {
                note("the broker refuses events of \(stream.word): reason \(reason)")
                heldUntil[stream] = now + 1000
                cursors[stream] = min(cursors[stream] ?? 0, sequence - 1)
                probing.insert(stream)
            } else {
                queue.acknowledged(stream, sequence)
                flushDue = now + 1000
                if probing.remove(stream) != nil, probing.isEmpty { fault = nil }
                scheduleState()
            }
        case .document(let document):
            slots[document]?.isSending = false
            guard isRefused else { break }
            note("the broker refuses the document \(document.rawValue): reason \(reason)")
            slots[document]?.isDirty = true
            slots[document]?.heldUntil = now + 60_000
        case .discovery: if isRefused { note("the broker refuses the discovery of Home Assistant: reason \(reason)") }
        case .farewell: break
        }
    }

    private func note(_ fault: String) {
        if self.fault != fault { Log.warning("\(fault)") }
        self.fault = fault
        writeStatus()
    }

    // MARK: Publishing

    private func pump(_ now: Int64) {
        if let due = stateDue, due <= now {
            stateDue = nil
            changed(.state)
        }
        for document in Document.allCases {
            guard sent.count < window else { return }
            if let slot = slots[document], !slot.isSending, let due = due(document, slot), due <= now {
                publish(document, now)
            }
        }
        if now - notedAt > Int64(configuration.heartbeat) * 1000, daemon.isConnected {
            notedAt = now
            queue.note(EventQueue.now, run: daemonRun)
        }
        if let due = discovery.due, due <= now, sent.count < window { publishDiscovery(now) }
        for stream in EventStream.allCases { pump(stream, now) }
    }

    private func pump(_ stream: EventStream, _ now: Int64) {
        guard (heldUntil[stream] ?? 0) <= now else { return }
        var room = window - sent.count
        if probing.contains(stream) {
            let isBusy = sent.values.contains { if case .event(stream, _) = $0 { true } else { false } }
            room = isBusy ? 0 : min(room, 1)
        }
        guard room > 0 else { return }
        for entry in queue.events(stream, after: cursors[stream] ?? 0, count: room) {
            switch connection?.publish(configuration.topic(stream.word), entry.payload, retain: false) {
            case .sent(let id):
                sent[id] = .event(stream, entry.sequence)
                cursors[stream] = entry.sequence
            case .tooLarge:
                queue.refused(stream, entry.sequence)
                cursors[stream] = entry.sequence
            case .failed, nil: return
            }
        }
    }

    /// When a document must be sent; nil: it has no content.
    private func due(_ document: Document, _ slot: Slot) -> Int64? {
        guard slot.members != nil else { return nil }
        let heartbeat = slot.sentAt + Int64(configuration.heartbeat) * 1000
        var due = heartbeat
        if slot.isDirty {
            let pause =
                document == .sightings ? (slot.isUrgent ? 1000 : Int64(configuration.sightingsInterval) * 1000) : 500
            due = min(due, slot.sentAt + pause)
        } else if document == .state, let stateDue {
            due = min(due, max(stateDue, slot.sentAt + 500))
        }
        return max(due, slot.heldUntil)
    }

    private func publish(_ document: Document, _ now: Int64) {
        guard let members = slots[document]?.members else { return }
        let content =
            document == .state
            ? stateMembers : [.init("session", .string(session)), .init("time", host.wallTime)] + members
        let result = connection?.publish(
            configuration.topic(document.rawValue),
            JSON.object(content).bytes,
            retain: true,
            expiry: configuration.heartbeat * 5 / 2
        )
        slots[document]?.sentAt = now
        switch result {
        case .sent(let id):
            sent[id] = .document(document)
            slots[document]?.isDirty = false
            slots[document]?.isUrgent = false
            slots[document]?.isSending = true
        case .tooLarge, .failed, nil: slots[document]?.heldUntil = now + 60_000
        }
    }

    private func publishDiscovery(_ now: Int64) {
        let readers = slots[.readers]?.members?.first { $0.key == "readers" }?.value.array ?? []
        let content = Discovery.content(configuration, readers.compactMap { $0["name"]?.string })
        discovery.sent(at: now, heartbeat: configuration.heartbeat)
        let result = connection?.publish(
            configuration.discoveryTopic,
            JSON.object(content).bytes,
            retain: true,
            expiry: configuration.heartbeat * 5 / 2
        )
        if case .sent(let id) = result { sent[id] = .discovery }
    }

    private var stateMembers: [JSON.Member] {
        host.online(
            session,
            heartbeat: configuration.heartbeat,
            badged: daemon.isConnected,
            badgedVersion: daemon.version,
            watching: daemon.isWatching,
            privacy: configuration.credentials.rawValue,
            queue,
            limit: configuration.limit
        )
    }

    // MARK: Status and end

    /// Writes the file that `--status` reads.
    private func writeStatus() {
        let members: [JSON.Member] = [
            .init("connected", .bool(readySince != nil)),
            .init("broker", .string("\(configuration.host ?? ""):\(configuration.port)")),
            .init("topic", .string("\(configuration.prefix)/\(configuration.name)")),
            .init("fault", fault.map { .string($0) } ?? .null), .init("badged", .bool(daemon.isConnected)),
            .init("watching", .bool(daemon.isWatching)), .init("waiting", .number(String(queue.waiting))),
            .init("lost", .number(String(EventStream.allCases.reduce(0) { $0 + queue.lost($1) }))),
            .init("epoch", .string(queue.epoch)), .init("time", host.wallTime),
        ]
        StatusFile(configuration).write(JSON.object(members).bytes)
    }

    /// Says good-bye, so that the broker does not send the will.
    private func leave() {
        service.stopping()
        if daemon.isConnected { queue.note(EventQueue.now, run: daemonRun) }
        queue.flush()
        guard readySince != nil, let connection else { return }
        let payload = host.offline(session, "stopped", at: EventQueue.now)
        var farewell: Int32?
        let topic = configuration.topic(Document.state.rawValue)
        if case .sent(let id) = connection.publish(topic, payload, retain: true) { farewell = id }
        let end = Self.now + 2000
        var isAcknowledged = farewell == nil
        while !isAcknowledged, Self.now < end {
            guard let events = turn(connection, until: end) else { return }
            for case .acknowledged(let id, let reason) in events {
                acknowledged(id, reason)
                if id == farewell { isAcknowledged = true }
            }
        }
        queue.flush()
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
