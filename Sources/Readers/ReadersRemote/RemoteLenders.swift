// SPDX-License-Identifier: GPL-3.0-or-later
package import Concurrency
import Crypto
import Host
import ISO7816
import Readers
package import RemoteIFD
import Store
import Threads

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

    /// A device that has announced itself.
    package struct Sighting: Sendable {
        package var offer: Offer
        var address: RemoteAddress
        var interface: String?
        var time: Int64
    }

    struct Attempt: Hashable {
        let fingerprint: String
        let host: RemoteAddress.Host
    }

    private static let maximumSightings = 64
    private static let maximumAttempts = 64
    /// The maximum number of connections under way to places that claim to be the same device.
    private static let maximumParallel = 4
    /// The maximum number of datagrams that are read in a second. The others wait in the kernel, which drops them when
    /// its buffer is full.
    private static let maximumDatagrams = 200
    private static let longestPause: Int64 = 30_000

    let store: RemoteStore
    let settings: Settings
    private var events: AsyncStream<ReaderEvent>.Continuation?
    private var sockets: [NetworkSocket] = []
    private var fault: String?
    private var isStopped = false
    /// The clients that may see readers or use cards.
    private var clients = 0
    private lazy var restAlarm = Loop.Alarm { [weak self] in self?.rest() }
    /// The datagrams since the start, and the announcements among them.
    package private(set) var datagrams = 0
    package private(set) var offers = 0
    private var window = (start: Int64(0), count: 0)
    private lazy var resume = Loop.Alarm { [weak self] in
        for socket in self?.sockets ?? [] { socket.read(true) }
    }

    var seen: [String: Sighting] = [:]
    var paired: [String: RemoteDevice] = [:]
    var identity: RemoteIdentity?
    private(set) var links: [String: LenderLink] = [:]
    private var connecting: [Attempt: LenderLink] = [:]
    /// The time of the next attempt, and the pause after it.
    var pauses: [Attempt: (next: Int64, pause: Int64)] = [:]
    private var readers: [String: LenderSlot] = [:]
    private var insertions: UInt64 = 0
    let gate = ReaderGate()
    /// Called when a device comes, changes or goes, and when the port is opened.
    package var observer: @Loop () -> Void = {}

    package nonisolated init(_ store: RemoteStore, _ settings: Settings) {
        (self.store, self.settings) = (store, settings)
    }

    // MARK: Start and end

    func start(_ continuation: AsyncStream<ReaderEvent>.Continuation) async {
        events?.finish()
        events = continuation
        do throws(StoreError) {
            for device in try await store.devices(.lender) { paired[device.fingerprint] = device }
            if !paired.isEmpty { identity = try await store.identity() }
        } catch {
            fault = error.text
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
        (sockets, seen) = ([], [:])
        for link in Array(links.values) + connecting.values { link.close() }
        observer()
    }

    /// Opens the port of announcements, unless it is open or no client wants readers.
    func listen() {
        // An interface may have been added since the last client.
        for socket in sockets { socket.joinAnnouncements() }
        guard sockets.isEmpty, clients > 0, !isStopped, events != nil else { return }
        let names: [String?] = settings.interfaces.isEmpty ? [nil] : settings.interfaces
        do throws(SystemError) {
            for name in names {
                let socket = try NetworkSocket(.datagrams, port: settings.port, interface: name)
                try socket.whenReady { [weak self, weak socket] in
                    if let self, let socket { read(socket) }
                }
                socket.joinAnnouncements()
                sockets.append(socket)
            }
            fault = nil
        } catch {
            for socket in sockets { socket.close() }
            sockets = []
            fault = "UDP port \(settings.port): \(error.description)"
        }
        events?.yield(.health([portCheck]))
        observer()
    }

    /// The port of announcements; 0 while it is closed.
    package var port: UInt16 { sockets.first?.port ?? 0 }

    private var portCheck: HealthCheck {
        guard let fault else { return HealthCheck("remote", ok: true) }
        return HealthCheck(
            "remote",
            ok: false,
            cause: fault,
            advice:
                "UDP port \(settings.port) cannot be shared: end AusweisApp on this host, or set [remote] enabled = no"
        )
    }

    func health() -> [HealthCheck] {
        let advice =
            datagrams > 0
            ? nil
            : "nothing was received: open the remote reader on the phone, and let the firewall pass "
                + "UDP port \(settings.port)"
        return [
            portCheck,
            HealthCheck(
                "remote announcements",
                ok: fault == nil,
                advice: advice,
                facts: [.init("datagrams", datagrams), .init("announcements", offers), .init("devices", links.count)]
            ),
        ]
    }

    // MARK: Announcements

    private func read(_ socket: NetworkSocket) {
        while let (bytes, sender) = socket.receive(limit: Offer.maximumCount) {
            datagrams += 1
            if Loop.now - window.start >= 1000 { window = (Loop.now, 0) }
            window.count += 1
            if let offer = Offer(bytes) {
                offers += 1
                heard(offer, sender, socket.interface)
            }
            guard window.count < Self.maximumDatagrams else {
                for socket in sockets { socket.read(false) }
                return resume.set(after: 1000)
            }
        }
    }

    private func heard(_ offer: Offer, _ sender: RemoteAddress, _ interface: String?) {
        var address = sender
        address.port = offer.port
        let sighting = Sighting(offer: offer, address: address, interface: interface, time: Loop.now)
        remember(sighting)
        guard paired[offer.fingerprint] != nil, links[offer.fingerprint] == nil, !offer.isPairing else { return }
        connect(sighting)
    }

    /// Keeps an announcement. The first of several that claim to be the same device stays while it is renewed.
    private func remember(_ sighting: Sighting) {
        let fingerprint = sighting.offer.fingerprint
        if let old = seen[fingerprint], old.address.host != sighting.address.host, isFresh(old) { return }
        if seen[fingerprint] == nil, seen.count >= Self.maximumSightings {
            seen = seen.filter { isFresh($0.value) }
            guard seen.count < Self.maximumSightings else { return }
        }
        let old = seen.updateValue(sighting, forKey: fingerprint)
        if old?.offer != sighting.offer || !(old.map(isFresh) ?? false) { observer() }
    }

    func isFresh(_ sighting: Sighting) -> Bool { Loop.now - sighting.time < settings.sightingTime }

    /// The devices that announce themselves now, by name.
    package var sightings: [Sighting] {
        seen.values.filter(isFresh).sorted {
            ($0.offer.name, $0.offer.fingerprint) < ($1.offer.name, $1.offer.fingerprint)
        }
    }

    // MARK: Connections

    private func connect(_ sighting: Sighting) {
        let attempt = Attempt(fingerprint: sighting.offer.fingerprint, host: sighting.address.host)
        guard let identity, connecting[attempt] == nil,
            connecting.keys.count(where: { $0.fingerprint == attempt.fingerprint }) < Self.maximumParallel
        else { return }
        let (next, pause) = pauses[attempt] ?? (0, settings.firstPause)
        guard Loop.now >= next else { return }
        if pauses.count >= Self.maximumAttempts, pauses[attempt] == nil {
            pauses = pauses.filter { $0.value.next > Loop.now }
            guard pauses.count < Self.maximumAttempts else { return }
        }
        pauses[attempt] = (Loop.now + pause, min(pause * 2, Self.longestPause))
        let version: IFDVersion = sighting.offer.versions.contains(.two) ? .two : .zero
        let link = RemoteLink.connect(
            to: sighting.address,
            interface: sighting.interface,
            identity,
            .paired(trusted: [attempt.fingerprint]),
            times: settings.times
        )
        let lender = LenderLink(link, attempt.fingerprint, version, settings.name, self)
        connecting[attempt] = lender
        Task { @Loop [weak self] in
            await lender.run { [weak self] in
                self?.connecting[attempt] = nil
                guard let self, links[attempt.fingerprint] == nil, paired[attempt.fingerprint] != nil else {
                    return false
                }
                pauses[attempt] = nil
                links[attempt.fingerprint] = lender
                observer()
                return true
            }
            guard let self else { return }
            if connecting[attempt] === lender { connecting[attempt] = nil }
            if links[attempt.fingerprint] === lender {
                links[attempt.fingerprint] = nil
                observer()
            }
        }
    }

    /// The paired devices by name, and whether each one is connected.
    package var devices: [(device: RemoteDevice, isConnected: Bool)] {
        paired.values.sorted { ($0.name, $0.fingerprint) < ($1.name, $1.fingerprint) }
            .map { ($0, links[$0.fingerprint] != nil) }
    }

    /// Stores the name that a device has reported.
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
        guard await gate.enter(insertion.reader).value(whenCancelled: false) else { throw .other("cancelled") }
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
