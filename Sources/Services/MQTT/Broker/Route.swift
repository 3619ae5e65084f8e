// SPDX-License-Identifier: GPL-3.0-or-later
import Concurrency
import Host

/// The way to the broker of one configuration: a connection that is there or made, and when the next attempt begins.
struct Route {
    enum State {
        /// The next attempt begins at this time.
        case waiting(until: Int64)
        /// A thread looks up the name and connects.
        case dialling(BrokerConnection, since: Int64)
        /// The broker has to answer.
        case connecting(BrokerConnection, since: Int64)
        case ready(BrokerConnection, since: Int64)
    }

    let configuration: MQTTConfiguration
    var state: State
    /// Of the connection that is there or made.
    var session = ""
    var limits: BrokerLimits?
    /// The number of the attempt that a thread makes.
    private(set) var attempt = 0
    private var failures = 0
    /// Why there is no connection; nil while there is one.
    private(set) var fault: String?
    private var loggedFault: String?
    /// Why the last connection or attempt has ended; nil: none has.
    private(set) var lastFault: String?
    /// What the broker refuses in a will.
    private var refusesWillQoS = false
    private var refusesRetainedWill = false

    /// How long the broker may take until CONNACK.
    private static let connectTime: Int64 = 20_000

    init(_ configuration: MQTTConfiguration, firstTry: Int64) {
        self.configuration = configuration
        state = .waiting(until: firstTry)
    }

    var connection: BrokerConnection? {
        switch state {
        case .waiting, .dialling: nil
        case .connecting(let connection, _), .ready(let connection, _): connection
        }
    }

    var ready: BrokerConnection? { if case .ready(let connection, _) = state { connection } else { nil } }

    var deadline: Int64 {
        switch state {
        case .waiting(let time): time
        case .dialling(_, let since): since + Dialling.longest
        case .connecting(_, let since): since + Self.connectTime
        case .ready(let connection, _): connection.deadline
        }
    }

    /// Why an attempt has taken too long; nil: it has not.
    func delay(at now: Int64) -> String? {
        switch state {
        case .dialling where now >= deadline:
            "the look-up of its name, or the connection, takes more than \(Dialling.longest / 1000) s"
        case .connecting where now >= deadline: "the broker does not answer"
        case .waiting, .dialling, .connecting, .ready: nil
        }
    }

    /// Begins an attempt on a thread, because a look-up or a connection that hangs must not delay what is stored.
    /// - Throws: why none can begin.
    mutating func dial(
        _ number: Int,
        will: BrokerConnection.Will,
        _ mailbox: EventMailbox,
        at now: Int64
    ) throws(StartError) {
        var will = will
        if refusesWillQoS { will.qos = 0 }
        if refusesRetainedWill { will.isRetained = false }
        let new = try BrokerConnection(configuration, will: will)
        let (host, port) = (configuration.host ?? "", configuration.port)
        let isStarted = startThread("badged-connect") {
            mailbox.post(.dialled(attempt: number, Dialling.dial(host, port: port)))
        }
        guard isStarted else { throw StartError("no thread can be started", hint: "raise TasksMax=") }
        attempt = number
        state = .dialling(new, since: now)
    }

    /// The broker has accepted the connection.
    mutating func accepted(_ found: BrokerLimits, at now: Int64) {
        guard case .connecting(let connection, _) = state else { return }
        state = .ready(connection, since: now)
        limits = found
        fault = nil
        loggedFault = nil
    }

    /// There is no connection any more. `words` begin the line in the log.
    /// - Returns: whether the reason is new.
    @discardableResult mutating func failed(_ ending: BrokerEnding, at now: Int64, _ words: String) -> Bool {
        var lasted: Int64 = 0
        var reason = ending.text
        if case .ready(_, let since) = state {
            lasted = now - since
            // Not every broker says that another client has the same name.
            if ending == .closed, lasted < 10_000, failures > 0 {
                reason += " soon again: perhaps two hosts have one name ([publish] host)"
            }
        }
        // Two hosts with one name disconnect each other at once, so the back-off must grow.
        if lasted >= 10_000 { failures = 0 }
        let isNew = loggedFault != reason
        if isNew { Log.warning("\(words): \(reason)") }
        fault = reason
        loggedFault = reason
        lastFault = reason
        failures += 1
        let longest = min(Int64(configuration.longestPause) * 1000, Int64(1000) << min(failures, 20))
        state = .waiting(until: now + Int64.random(in: 0...longest))
        limits = nil
        return isNew
    }

    /// Tries again at once without what the broker refuses in the will.
    /// - Returns: false if the reason is another one.
    mutating func changesWill(after reason: BrokerPacket.Reason, at now: Int64) -> Bool {
        switch reason.code {
        case 0x9A where !refusesRetainedWill: refusesRetainedWill = true
        case 0x9B where !refusesWillQoS: refusesWillQoS = true
        default: return false
        }
        state = .waiting(until: now)
        return true
    }

    /// The broker has ended the connection because new settings have connected under the same name.
    mutating func replaced(until time: Int64) {
        state = .waiting(until: time)
        limits = nil
    }
}
