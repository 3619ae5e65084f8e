// SPDX-License-Identifier: GPL-3.0-or-later
import Concurrency
import Drivers
import Host
import ISO7816
import Readers
import ReadersRemote
import Text

/// The devices that lend readers: those that announce themselves, those that are paired, and the connections to them.
///
/// Nothing from the network is trusted. An announcement only says where a connection may be tried. Only a user can
/// remove a pairing.
@Loop final class Lenders {
    /// Where a connection to a device may be tried.
    struct Place: Sendable, Equatable {
        let address: RemoteAddress
        let interface: String?
    }

    /// A device that has announced itself.
    struct Sighting: Sendable {
        var offer: Offer
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

    /// Sends a message to badged.
    let report: BadgedSender
    var settings = RemoteLenders.Settings(name: "")
    /// Whether badged wants readers.
    private var isBorrowing = false
    private var sockets: [PortSocket] = []
    /// Why the port of announcements is not open, with the advice.
    private var fault: (cause: Phrase, advice: Phrase)?
    /// The datagrams since the start, and the announcements among them.
    private var datagrams = 0
    private var offers = 0
    private var budget = AnnouncementBudget()
    private lazy var resume = Loop.Alarm { [weak self] in
        for socket in self?.sockets ?? [] { socket.read(true) }
    }
    private lazy var expiry = Loop.Alarm { [weak self] in self?.forgetOld() }
    private var reported = LendersState()
    private var nextReport = Int64.min
    private lazy var reportAlarm = Loop.Alarm { [weak self] in self?.reportState() }
    private var reportedChecks: [HealthCheck] = []

    var seen: [String: Sighting] = [:]
    var paired: [String: RemoteDevice] = [:]
    /// The key of this host.
    var identity: RemoteIdentity?
    private var links: [String: LenderLink] = [:]
    private var connecting: [Attempt: Connecting] = [:]
    /// The time of the next attempt, and the pause after it.
    var pauses: [Attempt: (next: Int64, pause: Int64)] = [:]
    /// Where each device was connected last. An attempt to this address makes no room for others.
    private var lastHosts: [String: RemoteAddress.Host] = [:]
    /// For each paired device, the connections in a row that it has rejected although it is the paired device.
    private var rejections: [String: Int] = [:]
    private var readers: [String: LenderSlot] = [:]
    private var insertions: UInt64 = 0
    /// The requests of badged that have no answer yet.
    var requests: [UInt32: Task<Void, Never>] = [:]
    /// The pairings under way.
    var pairings: [UInt32: Task<Void, Never>] = [:]

    init(_ report: BadgedSender) { self.report = report }

    // MARK: Start and end

    /// Listens for announcements, and connects to these devices only.
    func borrow(_ settings: RemoteLenders.Settings, _ devices: [RemoteDevice]) {
        let old = paired
        self.settings = settings
        paired = Dictionary(devices.map { ($0.fingerprint, $0) }) { first, _ in first }
        for fingerprint in Set(old.keys).symmetricDifference(paired.keys) {
            if paired[fingerprint] == nil { links[fingerprint]?.close() }
            startAgain(fingerprint)
        }
        isBorrowing = true
        listen()
    }

    /// Closes all connections and the port of announcements, so that another program can use the port.
    func rest() {
        isBorrowing = false
        for socket in sockets { socket.close() }
        sockets = []
        seen = [:]
        rejections = [:]
        expiry.cancel()
        for link in Array(links.values) + connecting.values.map(\.link) { link.close() }
        reportHealth()
        changed()
    }

    /// Opens the port of announcements, unless it is open or badged wants no readers.
    func listen() {
        // An interface may have been added since the last look.
        for socket in sockets { socket.joinAnnouncements() }
        guard sockets.isEmpty, isBorrowing else { return }
        let names: [String?] = settings.interfaces.isEmpty ? [nil] : settings.interfaces
        do throws(SystemError) {
            for name in names {
                let socket = try PortSocket(.datagrams, port: settings.port, interface: name)
                try socket.whenReady { [weak self, weak socket] in
                    if let socket { self?.read(socket) }
                }
                sockets.append(socket)
                socket.joinAnnouncements()
            }
            fault = nil
        } catch {
            for socket in sockets { socket.close() }
            sockets = []
            fault = (
                "UDP port \(settings.port): \(error)",
                "UDP port \(settings.port) cannot be shared: end AusweisApp on this host, or set [remote] enabled = no"
            )
        }
        reportHealth()
        changed()
    }

    /// Sends the state of the devices after a change: at once, or the newest one when a short pause is over.
    func changed() {
        if Loop.now >= nextReport { reportState() } else { reportAlarm.set(after: nextReport - Loop.now) }
    }

    private func reportState() {
        var state = LendersState()
        state.port = sockets.first?.port ?? 0
        state.offers = UInt32(clamping: offers)
        state.sightings = sightings.map { sighting in
            let device = RemoteDevice(fingerprint: sighting.offer.fingerprint, name: sighting.offer.name)
            return LendersState.Sighting(
                device: device,
                port: sighting.offer.port,
                isPairing: sighting.offer.isPairing
            )
        }
        state.connected = links.keys.sorted().compactMap { paired[$0] }
        state.rejecting = paired.keys.filter(isRejecting).sorted()
        guard state != reported else { return }
        reported = state
        nextReport = Loop.now + AnnouncementBudget.round
        report(RemoteReport.lenders(state))
    }

    private func reportHealth() {
        let checks = [portCheck] + rejectionChecks
        guard checks != reportedChecks else { return }
        reportedChecks = checks
        report(DriverReport.event(.health(checks)))
    }

    private var portCheck: HealthCheck {
        guard let fault else { return HealthCheck("remote", ok: true) }
        return HealthCheck("remote", ok: false, cause: fault.cause, advice: fault.advice)
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

    func health() -> [HealthCheck] {
        // The program that held the port may have ended, which causes no event.
        listen()
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
                advice: NetworkInterface.advice(againstFloodFrom: flood.source, "--udp"),
                facts: facts
            )
        } else {
            let advice: Phrase? =
                datagrams > 0
                ? nil
                : "nothing was received: open the remote reader on the phone, and let the firewall pass "
                    + "UDP port \(settings.port)"
            announcements = HealthCheck(name, ok: fault == nil, advice: advice, facts: facts)
        }
        return [portCheck, announcements] + rejectionChecks
    }

    // MARK: Announcements

    private func read(_ socket: PortSocket) {
        while let (bytes, sender) = socket.receive(limit: Offer.maximumCount) {
            datagrams += 1
            let mayGoOn = budget.count(sender.host, at: Loop.now)
            // This host may share readers itself.
            if let fingerprint = Offer.identity(in: bytes), fingerprint != identity?.fingerprint,
                budget.admits(sender.host, paired: paired[fingerprint] == nil ? nil : fingerprint),
                let offer = Offer(bytes)
            {
                offers += 1
                heard(offer, sender, socket.interface)
                changed()
            }
            guard !mayGoOn else { continue }
            for socket in sockets { socket.read(false) }
            return resume.set(after: AnnouncementBudget.round)
        }
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
            if seen.isEmpty { expiry.set(after: settings.sightingTime) }
            seen[fingerprint] = sighting
            return
        }
        var new = old.source == sighting.source ? sighting : old
        let places = sighting.places + old.places.filter { !sighting.places.contains($0) }
        new.places = Array(places.prefix(Self.maximumPlaces))
        seen[fingerprint] = new
    }

    /// Forgets devices that have not announced themselves for some seconds.
    private func forgetOld() {
        seen = seen.filter { isFresh($0.value) }
        if let next = seen.values.map(\.time).min() { expiry.set(after: next + settings.sightingTime - Loop.now) }
        changed()
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
    private var sightings: [Sighting] {
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
        let link = RemoteLink.connect(
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
        changed()
        return true
    }

    private func ended(_ attempt: Attempt, _ lender: LenderLink, _ ending: RemoteLink.Ending?) {
        if connecting[attempt]?.link === lender { connecting[attempt] = nil }
        if links[attempt.fingerprint] === lender {
            links[attempt.fingerprint] = nil
            changed()
        }
        guard ending == .rejected, paired[attempt.fingerprint] != nil else { return }
        rejections[attempt.fingerprint, default: 0] += 1
        guard rejections[attempt.fingerprint] == Self.reportedRefusals else { return }
        reportHealth()
        changed()
    }

    /// Whether a paired device no longer accepts this host.
    private func isRejecting(_ fingerprint: String) -> Bool {
        rejections[fingerprint, default: 0] >= Self.reportedRefusals
    }

    /// Forgets what has happened with a device, because its pairing is new or was removed.
    func startAgain(_ fingerprint: String) {
        pauses = pauses.filter { $0.key.fingerprint != fingerprint }
        rejections[fingerprint] = nil
        lastHosts[fingerprint] = nil
        reportHealth()
        changed()
    }

    /// Shows the name that a connected device has reported, until the next start.
    func rename(_ fingerprint: String, _ name: String) {
        guard paired[fingerprint] != nil, paired[fingerprint]?.name != name else { return }
        paired[fingerprint]?.name = name
        changed()
    }

    // MARK: Readers

    func add(_ slot: LenderSlot) -> Bool {
        guard readers[slot.name] == nil else { return false }
        readers[slot.name] = slot
        report(DriverReport.event(.added(slot.description)))
        return true
    }

    func change(_ slot: LenderSlot) { report(DriverReport.event(.changed(slot.description))) }

    func remove(_ slot: LenderSlot) {
        withdraw(slot)
        guard readers[slot.name] === slot else { return }
        readers[slot.name] = nil
        report(DriverReport.event(.removed(reader: slot.name)))
    }

    func insert(_ slot: LenderSlot) {
        guard slot.insertion == nil else { return }
        insertions += 1
        let insertion = Insertion(reader: slot.name, number: insertions)
        slot.insertion = insertion
        report(DriverReport.event(.inserted(insertion, answerToReset: [])))
    }

    func withdraw(_ slot: LenderSlot) {
        guard let insertion = slot.insertion else { return }
        slot.insertion = nil
        slot.handle = nil
        report(DriverReport.event(.withdrawn(insertion)))
    }

    private func slot(_ insertion: UInt64) -> LenderSlot? {
        readers.values.first { $0.insertion?.number == insertion }
    }

    // MARK: Requests of badged

    func handle(_ request: DriverRequest) {
        switch request {
        case .look: listen()
        case .card(let request, let number, let id):
            guard let slot = slot(number), let insertion = slot.insertion, let link = slot.link else {
                return report(DriverReport.answer(id: id, .failure(.removed)))
            }
            requests[id] = Task { @Loop in
                let result = await Result { () async throws(CardError) in
                    try await link.perform(request, slot, insertion)
                }
                requests[id] = nil
                report(DriverReport.answer(id: id, result))
            }
        // The device shows the text from the next command on. AusweisApp takes the number for its progress bar.
        case .progress(let percent, let number): slot(number)?.text = "\(percent) %"
        case .cancel(let id): requests[id]?.cancel()
        case .health(let id): report(DriverReport.health(id: id, health()))
        case .record(_, let id): report(DriverReport.answer(id: id, .failure(.other(BoardRecording.noBoard))))
        }
    }
}
