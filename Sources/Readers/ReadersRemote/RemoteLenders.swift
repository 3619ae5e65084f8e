// SPDX-License-Identifier: GPL-3.0-or-later
package import Concurrency
import Crypto
import Host
import ISO7816
import Readers
package import RemoteIFD
import Store
import Text

/// The devices that lend readers: those that announce themselves, those that are paired, and the connections to them.
///
/// Nothing from the network is trusted. An announcement only says where a connection may be tried. Only a user can
/// remove a pairing.
@Loop package final class RemoteLenders {
    package struct Settings: Sendable {
        /// The names of the network interfaces; empty: all with a broadcast address.
        package var interfaces: [String]
        package var port = Offer.port
        /// The name of this host for other devices.
        package var name: String
        package var times = RemoteLink.Times()
        /// Milliseconds to wait for an answer of a device.
        package var answerTime: Int64 = 5000
        /// Milliseconds after which an announcement is forgotten.
        package var sightingTime: Int64 = 5000
        /// Milliseconds after the first failed connection to a place until the next one; each further pause is longer.
        package var firstPause: Int64 = 1000
        /// Milliseconds after the last client until the connections to devices are closed.
        package var restTime: Int64 = 10_000

        package init(interfaces: [String] = [], name: String) { (self.interfaces, self.name) = (interfaces, name) }
    }

    /// Where a connection to a device may be tried.
    struct Place: Sendable, Equatable {
        let address: RemoteAddress
        let interface: String?
    }

    /// A device that has announced itself.
    package struct Sighting: Sendable {
        package var offer: Offer
        /// The sender of the announcement.
        let source: RemoteAddress.Host
        /// The newest first.
        var places: [Place]
        var time: Int64
    }

    struct Attempt: Hashable {
        let fingerprint: String
        let address: RemoteAddress
    }

    private struct Connecting {
        let link: LenderLink
        let start: Int64
        /// Whether the WebSocket is open, so that no other place is tried.
        var isOpen = false
    }

    /// The maximum numbers of strangers among the announced devices, in total and of one source. Paired devices are not
    /// counted.
    private static let maximumSightings = 64
    private static let maximumOfSource = 16
    private static let maximumPlaces = 8
    private static let maximumPauses = 512
    /// The maximum numbers of connections under way, in total and to places that claim to be the same device.
    private static let maximumAttempts = 32
    private static let maximumParallel = 8
    /// Milliseconds after which an attempt makes room for one to another place.
    private static let attemptTime: Int64 = 1000
    private static let longestPause: Int64 = 10_000
    /// The number of refusals in a row after which a device is reported. A single one may be a lost connection.
    private static let reportedRefusals = 2

    let store: RemoteStore
    let settings: Settings
    package let network: RemoteNetwork
    private var events: AsyncStream<ReaderEvent>.Continuation?
    private var sockets: [NetworkSocket] = []
    /// Why the port of announcements is not open, with the advice, and why the pairings could not be read.
    private var fault: (cause: String, advice: String)?
    private var storeFault: Failure?
    private var isStopped = false
    /// The clients that may see readers or use cards.
    private var clients = 0
    private lazy var restAlarm = Loop.Alarm { [weak self] in self?.rest() }
    /// The datagrams since the start, and the announcements among them.
    package private(set) var datagrams = 0
    package private(set) var offers = 0
    private var budget = AnnouncementBudget()
    private lazy var reopening = Loop.Alarm { [weak self] in self?.listen() }
    private var backOff = BackOff()
    /// Whether the port was open since `rest`: then an end of badged-network has closed it.
    private var wasOpen = false
    private lazy var resume = Loop.Alarm { [weak self] in
        for socket in self?.sockets ?? [] { socket.read(true) }
    }

    var seen: [String: Sighting] = [:]
    var paired: [String: RemoteDevice] = [:]
    var identity: RemoteIdentity?
    private(set) var links: [String: LenderLink] = [:]
    private var connecting: [Attempt: Connecting] = [:]
    /// The time of the next attempt, and the pause after it.
    var pauses: [Attempt: (next: Int64, pause: Int64)] = [:]
    /// Where each device was connected last. An attempt to this address makes no room for others.
    private var lastHosts: [String: RemoteAddress.Host] = [:]
    /// For each paired device, the connections in a row that it has rejected although it is the paired device.
    private var rejections: [String: Int] = [:]
    private var readers: [String: LenderSlot] = [:]
    private var insertions: UInt64 = 0
    let gate = ReaderGate()
    /// Called when a device comes, changes or goes, and when the port is opened.
    package var observer: @Loop () -> Void = {}

    package nonisolated init(_ store: RemoteStore, _ settings: Settings, _ network: RemoteNetwork) {
        self.store = store
        self.settings = settings
        self.network = network
    }

    // MARK: Start and end

    func start(_ continuation: AsyncStream<ReaderEvent>.Continuation) async {
        events?.finish()
        events = continuation
        do throws(Failure) {
            for device in try await store.devices(.lender) { paired[device.fingerprint] = device }
            if !paired.isEmpty { identity = try await store.identity() }
        } catch {
            Log.error("the pairings of remote readers cannot be read: \(error.logText)")
            storeFault = error
        }
        listen()
    }

    func stop() {
        isStopped = true
        rest()
        events?.finish()
    }

    /// Counts a new client that may see readers or use cards. Devices are connected only while there is such a client,
    /// because a connection keeps a phone awake.
    package func clientCame() {
        clients += 1
        restAlarm.cancel()
        listen()
    }

    /// Counts out such a client. `restTime` after the last one, the connections to devices are closed.
    package func clientLeft() {
        clients -= 1
        if clients == 0 { restAlarm.set(after: settings.restTime) }
    }

    /// Closes all connections and the port of announcements, so that another program can use the port.
    private func rest() {
        for socket in sockets { socket.close() }
        sockets = []
        seen = [:]
        rejections = [:]
        wasOpen = false
        for link in Array(links.values) + connecting.values.map(\.link) { link.close() }
        reportHealth()
        observer()
    }

    /// Opens the port of announcements, unless it is open or no client wants readers.
    func listen() {
        // An interface may have been added since the last client.
        for socket in sockets { socket.joinAnnouncements() }
        guard sockets.isEmpty, clients > 0, !isStopped, events != nil else { return }
        let names: [String?] = settings.interfaces.isEmpty ? [nil] : settings.interfaces
        for name in names {
            let socket = network.open(.datagrams, port: settings.port, interface: name) { [weak self] in
                self?.handle($1, of: $0)
            }
            sockets.append(socket)
        }
    }

    private func handle(_ event: NetworkSocket.Event, of socket: NetworkSocket) {
        guard sockets.contains(where: { $0 === socket }) else { return }
        switch event {
        case .opened:
            socket.joinAnnouncements()
            fault = nil
            wasOpen = true
            backOff.started()
        case .failed(let text):
            // A port that is taken is tried for the next client.
            if wasOpen { reopening.set(after: backOff.next()) }
            let port = "UDP port \(settings.port)"
            let advice = "end AusweisApp on this host, or set [remote] enabled = no"
            closeSockets("\(port): \(text)", "\(port) cannot be shared: \(advice)")
        case .ended(let text):
            let pause = backOff.next()
            reopening.set(after: pause)
            closeSockets(
                text,
                "the network is tried again in \(pause / 1000) s: see the log of badged and badged-network"
            )
        case .datagram(let bytes, let sender): return read(bytes, sender, socket.interface)
        case .connection: return
        }
        reportHealth()
        observer()
    }

    private func closeSockets(_ cause: String, _ advice: String) {
        for socket in sockets { socket.close() }
        sockets = []
        fault = (cause, advice)
    }

    private func reportHealth() { events?.yield(.health([portCheck] + storeChecks + rejectionChecks)) }

    /// The port of announcements; 0 while it is closed.
    package var port: UInt16 { sockets.first?.port ?? 0 }

    private var portCheck: HealthCheck {
        guard let fault else { return HealthCheck("remote", ok: true) }
        return HealthCheck("remote", ok: false, cause: fault.cause, advice: fault.advice)
    }

    private var storeChecks: [HealthCheck] {
        guard let storeFault else { return [] }
        let advice = storeFault.advice ?? "see the log of badged, then restart it"
        return [HealthCheck("remote pairings", ok: false, cause: storeFault.text, advice: advice)]
    }

    /// The paired devices that no longer accept this host.
    private var rejectionChecks: [HealthCheck] {
        paired.values.filter { isRejecting($0.fingerprint) }.sorted { $0.fingerprint < $1.fingerprint }.map { device in
            HealthCheck(
                "remote \(device.name) (\(device.fingerprint.prefix(8)))",
                ok: false,
                cause: "the device refuses this host: it has probably removed the pairing",
                advice: "'\(device.name)' refuses this host: remove the pairing (badgectl remote forget "
                    + "\(device.fingerprint.prefix(8))), then pair again (badgectl remote pair)",
                reader: device.name
            )
        }
    }

    func health() async -> [HealthCheck] {
        // A run that does not answer ends, which is reported below.
        _ = await network.answers()
        let facts: [HealthCheck.Fact] = [
            .init("datagrams", datagrams), .init("announcements", offers), .init("devices", links.count),
        ]
        let name = "remote announcements"
        let announcements: HealthCheck
        if let flood = budget.flood(at: Loop.now) {
            announcements = HealthCheck(
                name,
                ok: false,
                cause: "a flood of \(flood.datagrams) datagrams a second or more, most of them from \(flood.source)",
                advice: "find the host with the address \(flood.source) in this network, or block it in the firewall",
                facts: facts
            )
        } else {
            let advice =
                datagrams > 0
                ? nil
                : "nothing was received: open the remote reader on the phone, and let the firewall pass "
                    + "UDP port \(settings.port)"
            announcements = HealthCheck(name, ok: fault == nil, advice: advice, facts: facts)
        }
        return [portCheck, announcements] + storeChecks + rejectionChecks
    }

    // MARK: Announcements

    private func read(_ bytes: [UInt8], _ sender: RemoteAddress, _ interface: String?) {
        datagrams += 1
        let mayGoOn = budget.count(sender.host, at: Loop.now)
        if let fingerprint = Offer.identity(in: bytes),
            budget.admits(sender.host, paired: paired[fingerprint] == nil ? nil : fingerprint),
            let offer = Offer(bytes)
        {
            offers += 1
            heard(offer, sender, interface)
        }
        guard !mayGoOn else { return }
        for socket in sockets { socket.read(false) }
        resume.set(after: AnnouncementBudget.round)
    }

    private func heard(_ offer: Offer, _ sender: RemoteAddress, _ interface: String?) {
        let own = RemoteAddress(host: sender.host, port: offer.port)
        // No other host may send this one to its own loopback interface.
        let others = offer.addresses.filter { $0 != own && (!$0.host.isLoopback || sender.host.isLoopback) }
        let places = ([own] + others).prefix(Self.maximumPlaces).map { Place(address: $0, interface: interface) }
        remember(Sighting(offer: offer, source: sender.host, places: places, time: Loop.now))
        guard paired[offer.fingerprint] != nil, !offer.isPairing else { return }
        for place in places { connect(offer, place) }
    }

    /// Keeps an announcement. Of several that claim to be the same device, the first one stays while it is renewed, and
    /// the others add places.
    private func remember(_ sighting: Sighting) {
        let fingerprint = sighting.offer.fingerprint
        guard let old = seen[fingerprint], isFresh(old) else {
            guard paired[fingerprint] != nil || hasRoom(for: sighting) else { return }
            seen[fingerprint] = sighting
            return observer()
        }
        var new = old.source == sighting.source ? sighting : old
        let places = sighting.places + old.places.filter { !sighting.places.contains($0) }
        new.places = Array(places.prefix(Self.maximumPlaces))
        seen[fingerprint] = new
        if old.offer != new.offer { observer() }
    }

    /// Whether there is room for an announcement of a device that is not paired.
    private func hasRoom(for sighting: Sighting) -> Bool {
        func others() -> [Sighting] {
            seen.values.filter {
                paired[$0.offer.fingerprint] == nil && $0.offer.fingerprint != sighting.offer.fingerprint
            }
        }
        if others().count >= Self.maximumSightings { seen = seen.filter { isFresh($0.value) } }
        let rest = others()
        return rest.count < Self.maximumSightings
            && rest.count { $0.source == sighting.source && isFresh($0) } < Self.maximumOfSource
    }

    func isFresh(_ sighting: Sighting) -> Bool { Loop.now - sighting.time < settings.sightingTime }

    /// The devices that announce themselves now, by name.
    package var sightings: [Sighting] {
        seen.values.filter(isFresh).sorted {
            ($0.offer.name, $0.offer.fingerprint) < ($1.offer.name, $1.offer.fingerprint)
        }
    }

    // MARK: Connections

    /// Tries a place where a paired device may be.
    private func connect(_ offer: Offer, _ place: Place) {
        let attempt = Attempt(fingerprint: offer.fingerprint, address: place.address)
        let (next, pause) = pauses[attempt] ?? (0, settings.firstPause)
        guard let identity, links[attempt.fingerprint] == nil, Loop.now >= next, makeRoom(for: attempt) else { return }
        if pauses.count >= Self.maximumPauses, let soonest = pauses.min(by: { $0.value.next < $1.value.next }) {
            pauses[soonest.key] = nil
        }
        pauses[attempt] = (Loop.now + pause, min(pause * 2, Self.longestPause))
        let version: IFDVersion = offer.versions.contains(.two) ? .two : .zero
        let link = network.connect(
            to: place.address,
            interface: place.interface,
            identity,
            .paired(trusted: [attempt.fingerprint]),
            times: settings.times
        )
        let lender = LenderLink(link, attempt.fingerprint, version, settings.name, self)
        connecting[attempt] = Connecting(link: lender, start: Loop.now)
        Task { @Loop [weak self] in
            let ending = await lender.run { [weak self] in
                self?.opened(attempt, lender) ?? false
            } isWanted: { [weak self] in
                self?.established(attempt, lender) ?? false
            }
            self?.ended(attempt, lender, ending)
        }
    }

    /// Whether an attempt may begin. When all are taken, the oldest one to another place ends.
    private func makeRoom(for attempt: Attempt) -> Bool {
        let own = connecting.filter { $0.key.fingerprint == attempt.fingerprint }
        guard own[attempt] == nil, !own.values.contains(where: \.isOpen) else { return false }
        let isFull = own.count >= Self.maximumParallel
        guard isFull || connecting.count >= Self.maximumAttempts else { return true }
        let others = (isFull ? own : connecting).filter { other in
            lastHosts[other.key.fingerprint] != other.key.address.host && !other.value.isOpen
                && Loop.now - other.value.start >= Self.attemptTime
        }
        if let oldest = others.min(by: { $0.value.start < $1.value.start }) {
            oldest.value.link.close()
            connecting[oldest.key] = nil
            return true
        }
        // The place that has worked has room of its own.
        return lastHosts[attempt.fingerprint] == attempt.address.host && own.count < 2 * Self.maximumParallel
    }

    /// Decides which of several connections to one device goes on: the first that is open.
    private func opened(_ attempt: Attempt, _ lender: LenderLink) -> Bool {
        guard links[attempt.fingerprint] == nil, paired[attempt.fingerprint] != nil,
            connecting[attempt]?.link === lender
        else { return false }
        for (other, connection) in connecting where other.fingerprint == attempt.fingerprint && other != attempt {
            connection.link.close()
            connecting[other] = nil
        }
        connecting[attempt]?.isOpen = true
        return true
    }

    private func established(_ attempt: Attempt, _ lender: LenderLink) -> Bool {
        connecting[attempt] = nil
        guard links[attempt.fingerprint] == nil, paired[attempt.fingerprint] != nil else { return false }
        pauses[attempt] = nil
        links[attempt.fingerprint] = lender
        lastHosts[attempt.fingerprint] = attempt.address.host
        if rejections.removeValue(forKey: attempt.fingerprint) != nil { reportHealth() }
        observer()
        return true
    }

    private func ended(_ attempt: Attempt, _ lender: LenderLink, _ ending: RemoteLink.Ending?) {
        if connecting[attempt]?.link === lender { connecting[attempt] = nil }
        if links[attempt.fingerprint] === lender {
            links[attempt.fingerprint] = nil
            observer()
        }
        guard ending == .rejected, paired[attempt.fingerprint] != nil else { return }
        rejections[attempt.fingerprint, default: 0] += 1
        guard rejections[attempt.fingerprint] == Self.reportedRefusals else { return }
        reportHealth()
        observer()
    }

    /// Whether a paired device no longer accepts this host.
    package func isRejecting(_ fingerprint: String) -> Bool {
        rejections[fingerprint, default: 0] >= Self.reportedRefusals
    }

    /// Forgets what has happened with a device, because its pairing is new or was removed.
    func startAgain(_ fingerprint: String) {
        pauses = pauses.filter { $0.key.fingerprint != fingerprint }
        rejections[fingerprint] = nil
        lastHosts[fingerprint] = nil
        reportHealth()
        observer()
    }

    /// The paired devices by name, and whether each one is connected.
    package var devices: [(device: RemoteDevice, isConnected: Bool)] {
        paired.values.sorted { ($0.name, $0.fingerprint) < ($1.name, $1.fingerprint) }
            .map { ($0, links[$0.fingerprint] != nil) }
    }

    /// Shows the name that a connected device has reported, until the next start.
    func rename(_ fingerprint: String, _ name: String) {
        guard paired[fingerprint] != nil, paired[fingerprint]?.name != name else { return }
        paired[fingerprint]?.name = name
        observer()
    }

    // MARK: Readers

    func add(_ slot: LenderSlot) -> Bool {
        guard readers[slot.name] == nil else { return false }
        readers[slot.name] = slot
        events?.yield(.added(slot.description))
        return true
    }

    func change(_ slot: LenderSlot) { events?.yield(.changed(slot.description)) }

    func remove(_ slot: LenderSlot) {
        withdraw(slot)
        guard readers[slot.name] === slot else { return }
        readers[slot.name] = nil
        events?.yield(.removed(reader: slot.name))
    }

    func insert(_ slot: LenderSlot) {
        guard slot.insertion == nil else { return }
        insertions += 1
        let insertion = Insertion(reader: slot.name, number: insertions)
        slot.insertion = insertion
        events?.yield(.inserted(insertion, answerToReset: []))
    }

    func withdraw(_ slot: LenderSlot) {
        guard let insertion = slot.insertion else { return }
        slot.insertion = nil
        events?.yield(.withdrawn(insertion))
    }

    func connect(_ insertion: Insertion) async throws(CardError) -> any CardConnection {
        guard await gate.enter(insertion.reader).value(whenCancelled: false) else { throw .cancelled }
        guard let slot = readers[insertion.reader], slot.insertion == insertion, let link = slot.link else {
            gate.leave(insertion.reader)
            throw .removed
        }
        do throws(CardError) {
            return try await link.connect(slot, insertion)
        } catch {
            gate.leave(insertion.reader)
            throw error
        }
    }
}
