// SPDX-License-Identifier: GPL-3.0-or-later
import CLinux
import Host
import Text

/// Decides what is published and when: events from the queue in order, and of each document the newest content.
///
/// It has no clock and no socket. Times are milliseconds of a clock that is never set. docs/fleet.md has the rules.
package final class EventOutbox {
    /// Publishes a message with QoS 1. An expiry is in seconds.
    package typealias Publish = (
        _ topic: String, _ payload: [UInt8], _ retain: Bool, _ expiry: Int?
    ) -> BrokerConnection.Sent

    /// A message without PUBACK.
    private enum Sent {
        case event(EventStore.Entry)
        case document(Document)
        case discovery
    }

    private struct Slot {
        var members: [JSON.Member]?
        var isDirty = false
        var isUrgent = false
        var isSending = false
        var sentAt: Int64 = .min / 2
        var heldUntil: Int64 = .min / 2

        /// A new connection begins.
        mutating func begin() {
            isSending = false
            isDirty = members != nil
            sentAt = .min / 2
            heldUntil = .min / 2
        }
    }

    package private(set) var configuration: MQTTConfiguration
    package let queue: EventStore
    private let host: HostFacts
    private var journal: EventJournal

    /// Of this connection; empty without one.
    private var session = ""
    private var limits = BrokerLimits()
    private var window = 0
    private var sent: [Int32: Sent] = [:]
    /// When the broker has answered last, while an answer is outstanding.
    private var answeredAt: Int64 = 0
    /// What the broker refuses.
    package private(set) var fault: String?

    /// The last event of each stream that was sent over this connection.
    private var cursors: [EventStream: Int] = [:]
    private var heldUntil: [EventStream: Int64] = [:]
    /// The stream that was served longest ago comes first.
    private var turns = EventStream.allCases
    /// Streams of which the broker has refused an event: one at a time is tried.
    private var probing: Set<EventStream> = []
    /// Whether the last `pump` has left events that could be sent.
    private var isInterrupted = false
    /// How many events one `pump` sends or drops.
    private static let mostEvents = 100
    private var slots: [Document: Slot] = [:]
    private var discovery: Discovery.Timer

    package private(set) var daemon = DaemonState()
    /// The start of the badged that was connected last.
    private var daemonRun = 0
    private var notedAt: Int64 = 0
    private var stateDue: Int64?
    /// When the file forgets what was acknowledged, unless an event is stored before: one commit for both.
    private var flushDue: Int64 = .max

    package init(_ configuration: MQTTConfiguration, _ queue: EventStore) {
        self.configuration = configuration
        self.queue = queue
        host = HostFacts()
        discovery = Discovery.Timer(isEnabled: configuration.isHomeAssistantEnabled)
        journal = EventJournal(folder: configuration.folder, days: configuration.keptDays)
        for document in Document.allCases { slots[document] = Slot() }
        slots[.state]?.members = []
        journal.prune()
    }

    /// Uses new settings from the next connection on. The folder of the queue stays.
    func reload(_ new: MQTTConfiguration) {
        let folder = configuration.folder
        configuration = new
        configuration.folder = folder
        queue.limit = new.limit
        discovery = Discovery.Timer(isEnabled: new.isHomeAssistantEnabled)
        journal = EventJournal(folder: folder, days: new.keptDays)
        journal.prune()
    }

    // MARK: Inputs

    /// Takes messages of badged, and stores their events.
    package func process(_ inputs: [MailboxInput], at now: Int64) {
        var batch: [EventStore.Addition] = []
        var marks: [EventStream: EventStore.Mark] = [:]
        func commit() {
            guard !batch.isEmpty else { return }
            let wasDurable = queue.isDurable
            queue.append(batch)
            if wasDurable != queue.isDurable { slots[.state]?.isDirty = true }
            batch = []
            marks = [:]
            // The document `state` follows later, so that there are few documents while many people pass.
            if stateDue == nil { stateDue = now + 5000 }
        }
        for input in inputs {
            switch input {
            case .event(let stream, let number, let run, let time, let members):
                let mark = marks[stream] ?? queue.mark(stream)
                // A card that was on the reader before this program began to watch has an event already.
                if mark.run == run, run != 0, number <= mark.number { continue }
                if mark.run == run, run != 0, mark.number > 0, number - mark.number > 1 {
                    commit()
                    let missed = number - mark.number - 1
                    queue.add(Gap(reason: .notWatching, missed: missed, since: mark.time, until: time), to: stream)
                    queue.lost(stream, "badged-mqtt did not watch, or could not keep up", missed)
                }
                let new = EventStore.Mark(run: run, number: number, time: time)
                marks[stream] = new
                let place = host.place(time)
                batch.append(
                    EventStore.Addition(stream, new) { [epoch = queue.epoch] in
                        Self.event(epoch, $0, place, members, $1)
                    }
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
                if document == .readers { discovery.changed(at: now) }
            case .daemon(let state):
                daemon = state
                if state.isConnected { daemonRun = state.run }
                slots[.state]?.isDirty = true
            case .dialled, .reload, .alive, .asked, .stop: break
            }
        }
        commit()
        // The C library keeps the memory of a burst.
        if inputs.count > 100 { clinux_give_back_memory() }
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
        if !gaps.isEmpty { all.append(.init("gap", gaps.json)) }
        return JSON.object(all).bytes
    }

    // MARK: Connection

    /// The broker has accepted a connection.
    package func begin(session: String, limits: BrokerLimits, at now: Int64) {
        self.session = session
        self.limits = limits
        window = min(limits.receiveMaximum, BrokerConnection.window)
        fault = nil
        sent = [:]
        cursors = [:]
        heldUntil = [:]
        probing = []
        for document in Document.allCases { slots[document]?.begin() }
        discovery.connected(at: now)
    }

    /// The connection has ended. What was not acknowledged is sent again over the next one.
    package func end() {
        sent = [:]
        window = 0
        for document in Document.allCases { slots[document]?.isSending = false }
    }

    /// The broker has answered to a message.
    package func acknowledged(_ id: Int32, _ reason: BrokerPacket.Reason, at now: Int64) {
        guard let message = sent.removeValue(forKey: id) else { return }
        answeredAt = now
        let isRefused = reason.code >= 0x80
        let words = reason.text(for: configuration)
        switch message {
        case .event(let event):
            let (stream, sequence) = (event.stream, event.sequence)
            if reason.code == 0x95 {
                drop(event, at: now)
            } else if isRefused {
                note("the broker refuses events of \(stream.word): \(words)")
                heldUntil[stream] = now + 1000
                cursors[stream] = min(cursors[stream] ?? 0, sequence - 1)
                probing.insert(stream)
            } else {
                journal.add(configuration.topic(stream.word), event.payload)
                queue.acknowledged(stream, sequence)
                if flushDue == .max { flushDue = now + 1000 }
                if probing.remove(stream) != nil, probing.isEmpty { fault = nil }
                if stateDue == nil { stateDue = now + 5000 }
            }
        case .document(let document):
            slots[document]?.isSending = false
            guard isRefused else { break }
            note("the broker refuses the document \(document.rawValue): \(words)")
            slots[document]?.isDirty = true
            slots[document]?.heldUntil = now + 60_000
        case .discovery: if isRefused { note("the broker refuses the discovery of Home Assistant: \(words)") }
        }
    }

    private func drop(_ event: EventStore.Entry, at now: Int64) {
        queue.refused(event)
        if flushDue == .max { flushDue = now + 1000 }
    }

    private func note(_ fault: String) {
        if self.fault != fault { Log.warning("\(fault)") }
        self.fault = fault
    }

    /// How long the broker may take for an answer, in milliseconds.
    private static let answerTime: Int64 = 120_000

    /// Whether an answer of the broker is overdue.
    package func isStuck(at now: Int64) -> Bool { !sent.isEmpty && now - answeredAt > Self.answerTime }

    // MARK: Publishing

    /// Forgets acknowledged events when it is time; with and without a connection.
    package func tidy(at now: Int64) {
        queue.logLosses()
        guard queue.hasDone else { return flushDue = .max }
        guard now >= flushDue else { return }
        let wasDurable = queue.isDurable
        queue.flush()
        flushDue = queue.hasDone ? now + 10_000 : .max
        if wasDurable != queue.isDurable { slots[.state]?.isDirty = true }
    }

    /// Publishes what is due. Of a long queue of events too large for the broker it drops a part: `deadline` is then now.
    package func pump(at now: Int64, _ publish: Publish) {
        if let due = stateDue, due <= now {
            stateDue = nil
            slots[.state]?.isDirty = true
        }
        if sent.isEmpty { answeredAt = now }
        for document in Document.allCases {
            guard sent.count < window else { return }
            if let slot = slots[document], !slot.isSending, let due = due(document, slot), due <= now {
                send(document, now, publish)
            }
        }
        if now - notedAt > Int64(configuration.heartbeat) * 1000, daemon.isConnected {
            notedAt = now
            queue.note(EventStore.now, run: daemonRun)
        }
        if let due = discovery.due, due <= now, sent.count < window { sendDiscovery(now, publish) }
        // The streams take turns, so that none waits for all events of another.
        isInterrupted = false
        var count = 0
        while sent.count < window, let stream = turns.first(where: { send($0, now, publish) }) {
            turns.removeAll { $0 == stream }
            turns.append(stream)
            count += 1
            if count == Self.mostEvents {
                isInterrupted = true
                return
            }
        }
    }

    /// Sends the next event of a stream.
    /// - Returns: false if there is none, or if it cannot be sent now.
    private func send(_ stream: EventStream, _ now: Int64, _ publish: Publish) -> Bool {
        guard (heldUntil[stream] ?? 0) <= now else { return false }
        if probing.contains(stream),
            sent.values.contains(where: { if case .event(let one) = $0 { one.stream == stream } else { false } })
        {
            return false
        }
        guard let entry = queue.events(stream, after: cursors[stream] ?? 0, count: 1).first else { return false }
        switch publish(configuration.topic(stream.word), entry.payload, false, nil) {
        case .sent(let id):
            sent[id] = .event(entry)
            queue.sent(stream, upTo: entry.sequence)
        case .tooLarge: drop(entry, at: now)
        case .failed: return false
        }
        cursors[stream] = entry.sequence
        return true
    }

    /// When something must be published although nothing arrives.
    package func deadline(at now: Int64) -> Int64 {
        var deadline = min(queue.hasDone ? flushDue : .max, queue.logDue)
        guard window > 0 else { return deadline }
        if isInterrupted, sent.count < window { return now }
        // While the window is full, nothing is sent before an answer.
        if sent.count < window {
            for (document, slot) in slots where !slot.isSending {
                if let due = due(document, slot) { deadline = min(deadline, due) }
            }
            for time in heldUntil.values where time > now { deadline = min(deadline, time) }
            if let due = discovery.due { deadline = min(deadline, due) }
        }
        if !sent.isEmpty { deadline = min(deadline, answeredAt + Self.answerTime + 1) }
        return deadline
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

    private func send(_ document: Document, _ now: Int64, _ publish: Publish) {
        guard let members = slots[document]?.members else { return }
        let content =
            document == .state
            ? stateMembers : [.init("session", .string(session)), .init("time", host.wallTime)] + members
        let expiry = configuration.heartbeat * 5 / 2
        let result = publish(configuration.topic(document.rawValue), JSON.object(content).bytes, true, expiry)
        slots[document]?.sentAt = now
        switch result {
        case .sent(let id):
            sent[id] = .document(document)
            slots[document]?.isDirty = false
            slots[document]?.isUrgent = false
            slots[document]?.isSending = true
        case .tooLarge:
            note("the document \(document.rawValue) is larger than the broker allows")
            slots[document]?.heldUntil = now + 60_000
        case .failed: slots[document]?.heldUntil = now + 60_000
        }
    }

    private func sendDiscovery(_ now: Int64, _ publish: Publish) {
        let readers = slots[.readers]?.members?.first { $0.key == "readers" }?.value.array ?? []
        let names = Discovery.shown(readers.compactMap { $0["name"]?.string })
        let content = Discovery.content(configuration, names)
        discovery.sent(at: now, heartbeat: configuration.heartbeat)
        let expiry = configuration.heartbeat * 5 / 2
        switch publish(configuration.discoveryTopic, JSON.object(content).bytes, true, expiry) {
        case .sent(let id): sent[id] = .discovery
        case .tooLarge: note("the discovery of Home Assistant is larger than the broker allows")
        case .failed: break
        }
    }

    private var stateMembers: [JSON.Member] {
        host.online(
            session,
            configuration,
            queue,
            daemon,
            limits
        )
    }

    /// What the file for `--status` has of the queue and of badged.
    var statusMembers: [JSON.Member] {
        func number(_ value: Int) -> JSON { .number(String(value)) }
        let streams = EventStream.allCases.map { stream in
            JSON.Member(
                stream.word,
                .object([
                    .init("waiting", number(queue.waiting(stream))), .init("lost", number(queue.lost(stream))),
                ])
            )
        }
        return [
            .init("badged", .bool(daemon.isConnected)), .init("watching", .bool(daemon.isWatching)),
            .init("waiting", number(queue.waiting)),
            .init("lost", number(EventStream.allCases.reduce(0) { $0 + queue.lost($1) })),
            .init("streams", .object(streams)), .init("durable", .bool(queue.isDurable)),
            .init("epoch", .string(queue.epoch)),
            .init("lastLoss", queue.lastLoss.map { .string($0) } ?? .null),
        ]
    }

    /// The document `state` for the will, and for the end.
    package func offline(_ session: String, _ reason: String, at time: Int64?) -> [UInt8] {
        host.offline(session, reason, at: time)
    }

    /// Stores up to when badged was watched, and what the broker has acknowledged.
    func settle() {
        if daemon.isConnected { queue.note(EventStore.now, run: daemonRun) } else { queue.flush() }
    }
}
