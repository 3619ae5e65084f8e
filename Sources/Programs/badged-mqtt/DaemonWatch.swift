// SPDX-License-Identifier: GPL-3.0-or-later
import BadgedClient
import Concurrency
import Host
import MQTT
import Text

/// Watches badged as a client of its socket, and posts what it reports. It sends only GET_, START_ and STOP_ commands.
@Loop final class DaemonWatch {
    /// The settings in force.
    private(set) var configuration: MQTTConfiguration
    private var content: EventContent
    private let mailbox: EventMailbox

    private var connection: DaemonConnection?
    private var readers: [String: Reader] = [:]
    private var sightings: [String: Sighting] = [:]
    private var scan: ScanStatus?
    private var checks: [BadgedClient.HealthCheck] = []
    /// What badged does not allow or does not do, by command.
    private var refusals: [String: ClientError] = [:]
    /// What was posted last of the connection to badged.
    private var daemon = DaemonState()
    /// The connection ends because of new settings.
    private var isReloading = false
    /// New settings that have not connected, the newest last. Earlier ones may have connected just now.
    private var pending: [(configuration: MQTTConfiguration, content: EventContent)] = []
    /// Why the last reload was refused.
    private var refusedReload: String?
    /// The end of the last connection that was watched, in milliseconds since 1970; nil: there was none.
    private var lastSeen: Int64?
    private var isSightingsUrgent = false
    private var areSightingsSet = false
    private lazy var sightingsAlarm = Loop.Alarm { [unowned self] in postSightings() }
    private lazy var healthAlarm = Loop.Alarm { [unowned self] in askForHealth() }

    private struct Sighting {
        let reader: DoorReader
        let lastSeen: Int?
    }

    /// Forged readers cannot fill the memory.
    private static let mostSightings = 1000
    private static let shownSightings = 32

    nonisolated init(_ configuration: MQTTConfiguration, _ content: EventContent, _ mailbox: EventMailbox) {
        self.configuration = configuration
        self.content = content
        self.mailbox = mailbox
    }

    /// Watches until the task is cancelled.
    func watch() async {
        var failures = 0
        var logged: String?
        while !Task.isCancelled {
            do throws(ClientError) {
                let connection = try await DaemonConnection.connect(to: configuration.socket ?? SocketPath.standard)
                Loop.shared.preconditionIsolated()
                self.connection = connection
                try await begin(connection)
                failures = 0
                logged = nil
                Log.notice("connected to badged")
                for await event in connection.events { handle(event) }
                Loop.shared.preconditionIsolated()
                end(isReloading ? nil : connection.ending?.text ?? "the connection has ended")
            } catch {
                end(logged == error.text ? nil : error.text)
                logged = error.text
            }
            failures += 1
            await Loop.sleep(milliseconds: min(5000, 300 << min(failures, 5)))
        }
    }

    private func begin(_ connection: DaemonConnection) async throws(ClientError) {
        let info = try await connection.info()
        var daemon = DaemonState()
        daemon.isConnected = true
        daemon.version = info.version
        if let metrics = try? await connection.metrics() {
            daemon.run = metrics.startTime
            daemon.settings = metrics.settings
        }
        daemon.packages = InstalledPackages.read()
        refusals = [:]
        let began = Loop.wallClock
        if configuration.credentials != .no {
            do throws(ClientError) {
                daemon.isWatching = try await connection.startCredentials().isWatching
            } catch {
                try refused("START_CREDENTIALS", error)
            }
        }
        if configuration.openings {
            do throws(ClientError) { try await connection.startOpenings() } catch {
                try refused("START_OPENINGS", error)
            }
        }
        if configuration.sightings {
            do throws(ClientError) {
                scan = try await connection.startScan(ScanOptions(lockServiceCodes: [], updates: .seconds(1)))
            } catch {
                try refused("START_SCAN", error)
            }
        }
        // Nobody watched until now. Without an earlier watch there is nothing to miss.
        let reason: Gap.Reason = lastSeen == nil || isReloading ? .notWatching : .daemonAway
        isReloading = false
        mailbox.post(.gap(nil, reason, since: lastSeen, until: began))
        self.daemon = daemon
        mailbox.post(.daemon(daemon))
        postReaders()
        postSightings()
        askForHealth()
    }

    /// New settings, which are in force as soon as they have connected to the broker.
    func prepareReload(_ new: MQTTConfiguration, _ content: EventContent) {
        pending.append((new, content))
        refusedReload = nil
        postHealth()
    }

    /// These new settings have connected, or there is a fault.
    func reloaded(_ new: MQTTConfiguration, _ fault: String?) {
        guard let index = pending.lastIndex(where: { $0.configuration == new }) else { return }
        // Those before are not tried any more.
        pending.removeFirst(index)
        if let fault {
            // With newer settings this fault says nothing about those that are tried.
            if pending.count == 1 { refuseReload(fault) }
            return
        }
        let content = pending.removeFirst().content
        Log.notice("the new settings are in force")
        reload(new, content)
    }

    /// Uses new settings. badged is left only for settings that it must receive.
    private func reload(_ new: MQTTConfiguration, _ content: EventContent) {
        let old = configuration
        configuration = new
        self.content = content
        refusedReload = nil
        func asked(_ one: MQTTConfiguration) -> [String?] {
            [one.socket, String(one.credentials != .no), String(one.openings), String(one.sightings)]
        }
        if asked(old) != asked(new), let connection {
            isReloading = true
            connection.close()
        }
        postHealth()
    }

    /// The new settings were refused; the old ones stay.
    func refuseReload(_ reason: String) {
        refusedReload = reason
        postHealth()
    }

    /// A refusal is reported, and the rest works.
    private func refused(_ command: String, _ error: ClientError) throws(ClientError) {
        switch error {
        case .accessDenied, .refused, .unknownCommand, .badState: break
        default: throw error
        }
        refusals[command] = error
        Log.warning("\(error.text); hint: \(error.advice)")
    }

    private func end(_ reason: String?) {
        if let reason { Log.warning("badged: \(reason)") }
        // A connection that did not get so far has watched nothing.
        if daemon.isConnected { lastSeen = Loop.wallClock }
        connection?.close()
        connection = nil
        readers = [:]
        sightings = [:]
        scan = nil
        checks = []
        healthAlarm.cancel()
        daemon.isConnected = false
        daemon.isWatching = false
        daemon.run = 0
        mailbox.post(.daemon(daemon))
        // What was seen is not left as it was.
        postReaders()
        postSightings()
        postHealth()
    }

    // MARK: Messages

    private func handle(_ event: Event) {
        switch event.message {
        case let tap as Credential:
            guard let members = content.members(of: tap) else { return }
            post(.credential, tap.number, tap.time, members)
        case let opening as DoorOpeningReport:
            post(.opening, opening.number, opening.time, content.members(of: opening))
        case let reader as Reader:
            readers[reader.name] = reader.isAttached ? reader : nil
            postReaders()
        case let status as ScanStatus:
            scan = status
            sightingsChanged(isUrgent: false)
        case let reader as DoorReader: saw(reader, event.json["lastSeen"]?.int)
        case let lost as DoorReaderLost:
            if let old = sightings.removeValue(forKey: lost.id) {
                sightingsChanged(isUrgent: !old.reader.inRange.isEmpty)
            }
        case let status as CredentialStatus: watchingChanged(status.isWatching)
        case let refusal as Refusal where refusal.name == "CREDENTIALS":
            refusals["START_CREDENTIALS"] = refusal.reason
            watchingChanged(false)
            postHealth()
        case let refusal as Refusal where refusal.name == "OPENINGS":
            refusals["START_OPENINGS"] = refusal.reason
            postHealth()
        default: break
        }
    }

    private func post(_ stream: EventStream, _ number: Int?, _ time: Int64?, _ members: [JSON.Member]) {
        let time = time ?? Loop.wallClock
        mailbox.post(.event(stream, number: number ?? 0, run: number == nil ? 0 : daemon.run, time: time, members))
    }

    private func watchingChanged(_ isWatching: Bool) {
        guard isWatching != daemon.isWatching else { return }
        daemon.isWatching = isWatching
        mailbox.post(.daemon(daemon))
    }

    private func postReaders() {
        let list = readers.values.sorted { $0.name < $1.name }.prefix(64)
        let members = [JSON.Member("readers", .array(list.map(EventContent.json)))]
        mailbox.post(.document(.readers, members, isUrgent: true))
    }

    // MARK: Sightings

    private func saw(_ reader: DoorReader, _ lastSeen: Int?) {
        // The device may be a person's.
        guard !reader.isPassing else { return }
        let old = sightings[reader.id]
        guard old != nil || sightings.count < Self.mostSightings else { return }
        sightings[reader.id] = Sighting(reader: reader, lastSeen: lastSeen)
        sightingsChanged(isUrgent: (old?.reader.inRange ?? []) != reader.inRange)
    }

    private func sightingsChanged(isUrgent: Bool) {
        isSightingsUrgent = isSightingsUrgent || isUrgent
        if !areSightingsSet { sightingsAlarm.set(after: 500) }
        areSightingsSet = true
    }

    private func postSightings() {
        areSightingsSet = false
        guard configuration.sightings else { return }
        let sorted = sightings.values.sorted { ($0.reader.level, $1.reader.id) > ($1.reader.level, $0.reader.id) }
        let list = sorted.prefix(Self.shownSightings).map { sighting in
            let reader = sighting.reader
            return JSON.object([
                .init("id", .string(EventContent.short(reader.id))), .init("profile", .string(reader.profile)),
                .init("name", reader.name.map { .string(EventContent.short($0)) } ?? .null),
                .init("inRange", .array(reader.inRange.map(JSON.string))),
                .init("level", .number(String(Int(reader.level.rounded())))),
                .init("lastSeen", sighting.lastSeen.map { .number(String($0)) } ?? .null),
            ])
        }
        var state: [JSON.Member] = [
            .init("wanted", .bool(scan?.isWanted ?? false)), .init("radio", .bool(scan?.isListening ?? false)),
            .init("backend", scan?.backend.map { .string($0) } ?? .null),
        ]
        if let error = scan?.error { state.append(.init("error", .string(EventContent.short(error)))) }
        let members: [JSON.Member] = [
            .init("scan", .object(state)), .init("readers", .array(Array(list))),
            .init("more", .number(String(sorted.count - list.count))),
        ]
        mailbox.post(.document(.sightings, members, isUrgent: isSightingsUrgent))
        isSightingsUrgent = false
    }

    // MARK: Health

    private func askForHealth() {
        guard let connection else { return }
        Task { @Loop in
            do throws(ClientError) {
                let found = try await connection.health()
                Loop.shared.preconditionIsolated()
                checks = found
                refusals["GET_HEALTH"] = nil
            } catch {
                Loop.shared.preconditionIsolated()
                refusals["GET_HEALTH"] = error
            }
            guard self.connection === connection else { return }
            postHealth()
            healthAlarm.set(after: Int64(configuration.healthInterval) * 1000)
        }
    }

    private func postHealth() {
        var list = checks.prefix(48).map(EventContent.json)
        list.append(EventContent.check("badged", isOK: connection != nil))
        if let refusedReload {
            let advice = "correct mqtt.conf, and reload badged-mqtt"
            list.append(EventContent.check("mqtt configuration", isOK: false, cause: refusedReload, advice: advice))
        }
        for (command, error) in refusals.sorted(by: { $0.key < $1.key }) {
            list.append(EventContent.check("mqtt \(command)", isOK: false, cause: error.text, advice: error.advice))
        }
        mailbox.post(.document(.health, [.init("checks", .array(list))], isUrgent: true))
    }
}

extension [MetricFamily] {
    private func sample(_ name: String) -> MetricFamily.Sample? { first { $0.name == name }?.samples.first }

    /// When badged was started, in milliseconds since 1970: it distinguishes one run of badged from another. 0: unknown.
    fileprivate var startTime: Int {
        guard case .number(let text) = sample("badged_start_time_seconds")?.value, let number = Double(text),
            (0..<1e12).contains(number)
        else { return 0 }
        return Int((number * 1000).rounded())
    }

    /// The hash of the settings of badged.
    fileprivate var settings: String? {
        sample("badged_configuration_info")?.labels.first { $0.name == "hash" }?.value
    }
}
