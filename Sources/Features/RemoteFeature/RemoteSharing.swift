// SPDX-License-Identifier: GPL-3.0-or-later
package import Cards
package import Concurrency
import Crypto
import Glibc
package import Host
import Readers
package import ReadersRemote
package import RemoteIFD
import Store
import Text

/// Lends readers of this host to paired devices: announcements, connections, and the pairing mode.
///
/// A device gets APDUs of the shared readers and nothing else. One device at a time is connected.
@Loop package final class RemoteSharing {
    package struct Settings: Sendable {
        /// The names of the readers that are lent.
        package var readers: [String]
        /// The names of the network interfaces; empty: all with a broadcast address.
        package var interfaces: [String]
        /// The port to which announcements are sent.
        package var offerPort = Offer.port
        /// The name of this host for other devices.
        package var name: String
        package var times = RemoteLink.Times()
        /// Milliseconds between two announcements.
        package var offerTime: Int64 = 1000
        /// Milliseconds after which the pairing mode ends.
        package var pairingTime: Int64 = 120_000
        /// Milliseconds after which a device that does not use its card loses it. `[server] prompt_timeout`.
        package var cardTime: Int64 = 600_000
        /// Milliseconds after which a handshake makes room for others.
        package var handshakeTime: Int64 = 1000

        package init(readers: [String], interfaces: [String] = [], name: String) {
            self.readers = readers
            self.interfaces = interfaces
            self.name = name
        }
    }

    /// The end of a pairing mode.
    package enum PairingEnd: Sendable, Equatable {
        case paired(RemoteDevice)
        case wrongCodes
        case timedOut
        case cancelled
        case failed(String)
    }

    private final class OpenPairing {
        let code: Secret
        var triesLeft = 3
        let end = OneShot<PairingEnd>()

        init(_ code: consuming Secret) { self.code = code }
    }

    private struct Handshake {
        let guest: RemoteGuest
        let source: RemoteAddress.Host
        let start: Int64
        /// Whether it was closed to make room. It ends in a moment.
        var isDropped = false
        /// Whether the device is authenticated; its first message is still to come.
        var isOpen = false
    }

    /// The maximum numbers of handshakes under way, in total and of one source.
    private static let maximumHandshakes = 16
    private static let maximumOfSource = 8
    /// Milliseconds after which dropped connections are no longer reported.
    private static let reportTime: Int64 = 10_000

    let registry: ReaderRegistry
    let settings: Settings
    private let store: RemoteStore
    package let network: RemoteNetwork
    private let log: @Loop (Log.Level, String) -> Void
    private var identity: RemoteIdentity?
    private var borrowers: [String: RemoteDevice] = [:]
    private var sockets: [NetworkSocket] = []
    private let queue: ConnectionQueue
    private var handshakes: [ObjectIdentifier: Handshake] = [:]
    /// Tries again when the oldest handshake may be dropped.
    private lazy var admission = Loop.Alarm { [weak self] in self?.admit() }
    private var (dropped, dropTime) = (0, Int64.min)
    /// The device that is connected.
    private(set) var guest: RemoteGuest?
    private var pairing: OpenPairing?
    private var offer: Loop.Alarm?
    private var pairingLimit: Loop.Alarm?
    private var starting: Task<Void, Never>?
    /// Waits for the ports to be open.
    private let opening = Waiters()
    /// Opens the ports again after badged-network has ended.
    private lazy var reopening = Loop.Alarm { [weak self] in
        Task { @Loop in await self?.listen() }
    }
    private var backOff = BackOff()
    private var isStopped = false
    private(set) var fault: (cause: String, advice: String)?
    /// Called when something has changed that clients see.
    var observer: @Loop () -> Void = {}

    package nonisolated init(
        _ registry: ReaderRegistry,
        _ store: RemoteStore,
        _ settings: Settings,
        _ network: RemoteNetwork,
        log: @escaping @Loop (Log.Level, String) -> Void
    ) {
        self.registry = registry
        self.store = store
        self.settings = settings
        self.log = log
        self.network = network
        queue = ConnectionQueue(timeout: settings.times.setUp, network)
    }

    /// Opens a TCP port on each interface and begins to announce, when the own key is there. The first start makes the
    /// key, which takes up to some seconds.
    package func start() { starting = Task { @Loop in await open() } }

    /// Returns when the start is over; `fault` says whether it has failed.
    package func waitForStart() async { await starting?.value }

    private func open() async {
        do throws(Failure) {
            identity = try await store.identity()
            for device in try await store.devices(.borrower) { borrowers[device.fingerprint] = device }
        } catch {
            fault = (error.message, error.advice ?? "see the log of badged, then restart it")
            return log(.error, "readers are not shared: \(error.logText)")
        }
        guard !isStopped else { return }
        queue.observer = { [weak self] in self?.admit() }
        await listen()
    }

    /// Opens the ports, and returns when they are open or `fault` is set.
    private func listen() async {
        let names: [String?] = settings.interfaces.isEmpty ? [nil] : settings.interfaces
        sockets = names.map { name in
            network.open(.connections, port: 0, interface: name) { [weak self] in self?.handle($1, of: $0) }
        }
        await opening.wait { !self.sockets.contains { $0.port == 0 } }
        guard !sockets.isEmpty, !isStopped else { return }
        fault = nil
        backOff.started()
        let alarm = Loop.Alarm { [weak self] in self?.announce() }
        offer = alarm
        announce()
        observer()
    }

    private func handle(_ event: NetworkSocket.Event, of socket: NetworkSocket) {
        guard sockets.contains(where: { $0 === socket }) else { return }
        switch event {
        case .opened: break
        case .failed(let text): reopen(text, "correct [remote] in badged.conf(5)")
        case .ended(let text): reopen(text, "see the log of badged and badged-network")
        case .connection(let connection, let sender):
            queue.add(connection, sender.host)
            // Further connections wait in the backlog of the kernel. A timeout is not a refusal.
            if queue.isFull { for socket in sockets { socket.read(false) } }
        case .datagram: break
        }
        opening.check()
    }

    private func closeSockets() {
        offer?.cancel()
        offer = nil
        for socket in sockets { socket.close() }
        sockets = []
    }

    /// Closes the ports, and opens them again after a pause.
    private func reopen(_ cause: String, _ advice: String) {
        closeSockets()
        let pause = backOff.next()
        reopening.set(after: pause)
        fault = (cause, "\(advice); the ports are opened again in \(pause / 1000) s")
        log(.error, "readers are not shared now: \(cause); the ports are opened again in \(pause / 1000) s")
        observer()
    }

    package func stop() {
        isStopped = true
        reopening.cancel()
        closeSockets()
        opening.check()
        queue.closeAll()
        admission.cancel()
        for handshake in handshakes.values { handshake.guest.close() }
        guest?.close()
        endPairing(.cancelled)
    }

    // MARK: Announcements

    /// Announces this host, unless a device is connected.
    private func announce() {
        guard let offer, let identity else { return }
        offer.set(after: settings.offerTime)
        guard guest == nil || pairing != nil else { return }
        let interfaces = NetworkInterface.all(named: settings.interfaces)
        for socket in sockets {
            let own = interfaces.filter { socket.interface == nil || socket.interface == $0.name }
            let bytes = Offer.encode(
                name: settings.name,
                certificate: identity.encodedCertificate,
                port: socket.port,
                isPairing: pairing != nil,
                hosts: own.flatMap(\.addresses)
            )
            for interface in own {
                let targets = interface.targets.map { RemoteAddress(host: $0, port: settings.offerPort) }
                network.announce(bytes, on: interface.name, to: targets)
            }
        }
    }

    // MARK: Connections

    /// Begins the handshakes for which there is room.
    private func admit() {
        guard let identity, !isStopped else { return }
        while let security, running.count < limit, let next = queue.next(runningHandshakes) {
            let link = network.serve(next.connection, identity, security, times: settings.times)
            let new = RemoteGuest(link, pairing: pairing?.end, self)
            handshakes[ObjectIdentifier(new)] = Handshake(guest: new, source: next.source, start: Loop.now)
            new.start { [weak self] in self?.ended(new, $0) }
        }
        if pairing == nil, borrowers.isEmpty { queue.closeAll() }
        if queue.hasNext { dropOldest() }
        if !queue.isFull { for socket in sockets { socket.read(true) } }
    }

    /// The handshakes under way.
    private var running: [ObjectIdentifier: Handshake] { handshakes.filter { !$0.value.isOpen } }

    /// The number of handshakes of a source; nil if they are the maximum.
    private func runningHandshakes(_ source: RemoteAddress.Host) -> Int? {
        let count = running.values.count { $0.source == source }
        return count < Self.maximumOfSource ? count : nil
    }

    /// Ends the oldest handshake, when others wait and it has taken longer than one takes.
    private func dropOldest() {
        let running = running
        let isFull = running.count >= limit
        let others = running.filter { isFull || runningHandshakes($0.value.source) == nil }
        // A dropped connection frees its place when its thread has ended.
        guard !running.values.contains(where: \.isDropped),
            let oldest = others.min(by: { $0.value.start < $1.value.start })
        else { return }
        let left = oldest.value.start + settings.handshakeTime - Loop.now
        guard left <= 0 else { return admission.set(after: left) }
        handshakes[oldest.key]?.isDropped = true
        dropped = dropped + 1
        dropTime = Loop.now
        oldest.value.guest.close()
    }

    /// The connections that were closed to make room, while this goes on; nil: none.
    var flood: Int? {
        let count = dropped + queue.dropped
        guard count > 0, Loop.now - max(dropTime, queue.dropTime) < Self.reportTime else { return nil }
        return count
    }

    /// The maximum number of handshakes. While a pairing is open there are never more than tries left, so a code is
    /// tried three times at most.
    private var limit: Int { pairing?.triesLeft ?? Self.maximumHandshakes }

    /// How the next connection is authenticated; nil: nobody may connect.
    private var security: LinkSecurity? {
        if let pairing { return .pairing(code: SecretBox(pairing.code.clone())) }
        return borrowers.isEmpty ? nil : .paired(trusted: Set(borrowers.keys))
    }

    /// Handles a connection that a device has opened. Returns nil if the connection is no longer accepted.
    func opened(_ new: RemoteGuest, _ fingerprint: String) -> RemoteDevice? {
        handshakes[ObjectIdentifier(new)]?.isOpen = true
        admit()
        if let end = new.pairing {
            return pairing?.end === end ? RemoteDevice(fingerprint: fingerprint, name: "?") : nil
        }
        guard guest == nil || guest?.device?.fingerprint == fingerprint else { return nil }
        return borrowers[fingerprint]
    }

    /// Handles the first message of a device. A device that connects again, because its old connection is cut, takes
    /// the place of the old one.
    /// - Returns: false if another device is connected.
    func begin(_ new: RemoteGuest) async -> Bool {
        guard let device = new.device, borrowers[device.fingerprint] != nil else { return false }
        if let old = guest, old !== new, old.device?.fingerprint == device.fingerprint { await old.end() }
        guard guest == nil, !new.isClosed else { return false }
        handshakes[ObjectIdentifier(new)] = nil
        guest = new
        borrowers[device.fingerprint]?.name = device.name
        log(.notice, "device '\(device.name)' is connected and may use the shared readers")
        observer()
        return true
    }

    private func ended(_ old: RemoteGuest, _ ending: RemoteLink.Ending?) {
        handshakes[ObjectIdentifier(old)] = nil
        defer { admit() }
        if guest === old {
            guest = nil
            log(.notice, "device '\(old.device?.name ?? "?")' is disconnected")
            observer()
            announce()
        }
        guard let pairing, old.pairing === pairing.end else { return }
        if let device = old.device {
            // The code was right, although the device did not send its name.
            Task { @Loop in await complete(device, old.pairing) }
        }
        guard old.device == nil, ending == .wrongCode else { return }
        pairing.triesLeft -= 1
        log(.notice, "a device has tried a wrong code, \(pairing.triesLeft) tries left")
        if pairing.triesLeft == 0 { endPairing(.wrongCodes) }
    }

    /// The state of the shared readers that are present, for a device.
    func statuses(for owner: RemoteGuest) -> [IFDStatus] {
        settings.readers.compactMap { name in
            guard let reader = registry[name] else { return nil }
            return IFDStatus(
                slot: name,
                hasKeypad: reader.description.hasKeypad,
                maximumAPDU: reader.description.hasExtendedLength ? 500 : 261,
                hasCard: registry.hasCard(in: name, for: ObjectIdentifier(owner))
            )
        }
    }

    func usesChanged() { observer() }

    // MARK: Pairing

    var isPairing: Bool { pairing != nil }

    /// Opens the pairing mode; nil if it is open already or readers are not shared.
    /// - Returns: the four digits, which the user types at the other device.
    func openPairing() throws(CryptoError) -> Secret? {
        guard pairing == nil, fault == nil, identity != nil else { return nil }
        let code = try Self.makeCode()
        pairing = OpenPairing(code.clone())
        let limit = Loop.Alarm { [weak self] in self?.endPairing(.timedOut) }
        limit.set(after: settings.pairingTime)
        pairingLimit = limit
        observer()
        announce()
        return code
    }

    /// The end of the open pairing mode, for one task.
    var pairingEnd: OneShot<PairingEnd>? { pairing?.end }

    /// Returns when a pairing mode is over. A cancelled task closes it, unless a pairing is being stored.
    func wait(for end: OneShot<PairingEnd>) async -> PairingEnd {
        await withTaskCancellationHandler {
            if Task.isCancelled { cancelPairing(end) }
            return await Task { await end.value(whenCancelled: .cancelled) }.value
        } onCancel: {
            Task { @Loop in cancelPairing(end) }
        }
    }

    private func cancelPairing(_ end: OneShot<PairingEnd>) {
        if pairing?.end === end { endPairing(.cancelled) }
    }

    /// Stores the pairing with a device that knows the code.
    /// - Returns: whether the pairing is stored, so that the client can be notified.
    @discardableResult
    func complete(_ device: RemoteDevice, _ end: OneShot<PairingEnd>?) async -> Bool {
        guard let pairing, pairing.end === end else { return false }
        guard borrowers[device.fingerprint] != nil || borrowers.count < RemoteStore.maximumDevices else {
            endPairing(.failed("too many devices are paired: remove one"))
            return false
        }
        // The code is spent, even if the store fails.
        close(pairing)
        do throws(Failure) {
            try await store.add(device, .borrower)
        } catch {
            log(.error, "the pairing with '\(device.name)' cannot be stored: \(error.logText)")
            pairing.end.fill(.failed("\(error.message); remove the pairing at the other device, too"))
            return false
        }
        borrowers[device.fingerprint] = device
        pairing.end.fill(.paired(device))
        observer()
        return true
    }

    private func endPairing(_ end: PairingEnd) {
        guard let pairing else { return }
        close(pairing)
        pairing.end.fill(end)
    }

    private func close(_ old: OpenPairing) {
        pairing = nil
        pairingLimit?.cancel()
        // Handshakes with this code can no longer succeed.
        for handshake in handshakes.values where handshake.guest.pairing === old.end && !handshake.isOpen {
            handshake.guest.close()
        }
        observer()
    }

    /// Four digits, each number equally likely.
    private static func makeCode() throws(CryptoError) -> Secret {
        while true {
            let bytes = try Random.bytes(2)
            let number = Int(bytes[0]) << 8 | Int(bytes[1])
            guard number < 60_000 else { continue }
            return Secret([1000, 100, 10, 1].map { UInt8(0x30 + number % 10_000 / $0 % 10) })
        }
    }

    // MARK: Devices

    /// The paired devices by name, and whether each one is connected.
    var devices: [(device: RemoteDevice, isConnected: Bool)] {
        borrowers.values.sorted { ($0.name, $0.fingerprint) < ($1.name, $1.fingerprint) }
            .map { ($0, guest?.device?.fingerprint == $0.fingerprint) }
    }

    /// Forgets a device whose pairing was removed from the store, and ends its connection.
    func removed(_ fingerprint: String) {
        borrowers[fingerprint] = nil
        if guest?.device?.fingerprint == fingerprint { guest?.close() }
        observer()
    }

    /// The own fingerprint; nil before the start.
    var fingerprint: String? { identity?.fingerprint }

    func write(_ level: Log.Level, _ text: String) { log(level, text) }
}
