// SPDX-License-Identifier: GPL-3.0-or-later
package import Cards
package import Concurrency
import Crypto
import Glibc
package import Host
import Readers
package import RemoteIFD
import Secrets
import Store
import Threads

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

        package init(readers: [String], interfaces: [String] = [], name: String) {
            (self.readers, self.interfaces, self.name) = (readers, interfaces, name)
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

    /// The maximum number of connections that are not established yet.
    private static let maximumHandshakes = 4

    let registry: ReaderRegistry
    let settings: Settings
    private let store: RemoteStore
    private let log: @Loop (Log.Level, String) -> Void
    private var identity: RemoteIdentity?
    private var borrowers: [String: RemoteDevice] = [:]
    private var sockets: [NetworkSocket] = []
    private var handshakes: [ObjectIdentifier: RemoteGuest] = [:]
    /// The device that is connected.
    private(set) var guest: RemoteGuest?
    private var pairing: OpenPairing?
    private var offer: Loop.Alarm?
    private var pairingLimit: Loop.Alarm?
    private var starting: Task<Void, Never>?
    private var isStopped = false
    private(set) var fault: String?
    /// Called when something has changed that clients see.
    var observer: @Loop () -> Void = {}

    package nonisolated init(
        _ registry: ReaderRegistry,
        _ store: RemoteStore,
        _ settings: Settings,
        log: @escaping @Loop (Log.Level, String) -> Void
    ) {
        (self.registry, self.store, self.settings, self.log) = (registry, store, settings, log)
    }

    /// Opens a TCP port on each interface and begins to announce, when the own key is there. The first start makes the
    /// key, which takes up to some seconds.
    package func start() { starting = Task { @Loop in await open() } }

    /// Returns when the start is over; `fault` says whether it has failed.
    package func waitForStart() async { await starting?.value }

    private func open() async {
        do throws(StoreError) {
            identity = try await store.identity()
            for device in try await store.devices(.borrower) { borrowers[device.fingerprint] = device }
        } catch {
            return fail(error.text)
        }
        guard !isStopped else { return }
        let names: [String?] = settings.interfaces.isEmpty ? [nil] : settings.interfaces
        do throws(SystemError) {
            for name in names {
                let socket = try NetworkSocket(.connections, port: 0, interface: name)
                try socket.whenReady { [weak self, weak socket] in
                    if let self, let socket { accept(socket) }
                }
                sockets.append(socket)
            }
        } catch {
            return fail(error.description)
        }
        let alarm = Loop.Alarm { [weak self] in self?.announce() }
        offer = alarm
        announce()
        observer()
    }

    private func fail(_ reason: String) {
        fault = reason
        log(.error, "readers are not shared: \(reason)")
    }

    package func stop() {
        isStopped = true
        offer?.cancel()
        offer = nil
        for socket in sockets { socket.close() }
        sockets = []
        for link in handshakes.values { link.close() }
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
            let bytes = Offer.encode(
                name: settings.name,
                certificate: identity.encodedCertificate,
                port: socket.port,
                isPairing: pairing != nil
            )
            for interface in interfaces where socket.interface == nil || socket.interface == interface.name {
                guard let sender = try? NetworkSocket(.datagrams, port: 0, interface: interface.name) else { continue }
                for target in interface.targets {
                    sender.send(bytes, to: RemoteAddress(host: target, port: settings.offerPort))
                }
                sender.close()
            }
        }
    }

    // MARK: Connections

    private func accept(_ socket: NetworkSocket) {
        while let (connection, _) = socket.accept() {
            guard let identity, let security = security else {
                close(connection)
                continue
            }
            let link = RemoteLink.serve(connection, identity, security, times: settings.times)
            let isPairing = pairing != nil
            let new = RemoteGuest(link, isPairing: isPairing, self)
            handshakes[ObjectIdentifier(new)] = new
            Task { @Loop [weak self] in
                let ending = await new.run()
                self?.ended(new, ending)
            }
        }
    }

    /// How the next connection is authenticated; nil: the connection is closed.
    ///
    /// While a pairing is open there are never more handshakes than tries left, so a code is tried three times at most.
    private var security: LinkSecurity? {
        if let pairing {
            guard handshakes.count < pairing.triesLeft else { return nil }
            return .pairing(code: SecretBox(pairing.code.clone()))
        }
        guard guest == nil, handshakes.count < Self.maximumHandshakes, !borrowers.isEmpty else { return nil }
        return .paired(trusted: Set(borrowers.keys))
    }

    /// Handles a connection that a device has opened. Returns nil if the connection is no longer accepted.
    func opened(_ new: RemoteGuest, _ fingerprint: String) -> RemoteDevice? {
        if new.isPairing {
            return pairing == nil ? nil : RemoteDevice(fingerprint: fingerprint, name: "?")
        }
        guard guest == nil, let device = borrowers[fingerprint] else { return nil }
        handshakes[ObjectIdentifier(new)] = nil
        guest = new
        log(.notice, "device '\(device.name)' is connected and may use the shared readers")
        observer()
        return device
    }

    private func ended(_ old: RemoteGuest, _ ending: RemoteLink.Ending?) {
        handshakes[ObjectIdentifier(old)] = nil
        if guest === old {
            guest = nil
            log(.notice, "device '\(old.device?.name ?? "?")' is disconnected")
            observer()
            announce()
        }
        guard old.isPairing, let pairing else { return }
        if let device = old.device { return complete(device) }
        guard ending == .wrongCode else { return }
        pairing.triesLeft -= 1
        log(.notice, "a device has tried a wrong code, \(pairing.triesLeft) tries left")
        if pairing.triesLeft == 0 { endPairing(.wrongCodes) }
    }

    /// Stores the name that a connected device has reported.
    func renamed(_ fingerprint: String, _ name: String) {
        guard borrowers[fingerprint] != nil else { return }
        borrowers[fingerprint]?.name = name
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

    /// Returns when a pairing mode is over. A cancelled task closes it.
    func wait(for end: OneShot<PairingEnd>) async -> PairingEnd {
        let value = await end.value(whenCancelled: .cancelled)
        if pairing?.end === end { endPairing(value) }
        return value
    }

    private func complete(_ device: RemoteDevice) {
        guard borrowers[device.fingerprint] != nil || borrowers.count < RemoteStore.maximumDevices else {
            return endPairing(.failed("too many devices are paired: remove one"))
        }
        borrowers[device.fingerprint] = device
        Task { @Loop [store] in
            do throws(StoreError) {
                try await store.add(device, .borrower)
            } catch {
                log(
                    .error,
                    "the pairing with '\(device.name)' cannot be stored, and is lost at the next start: \(error.text)"
                )
            }
        }
        endPairing(.paired(device))
    }

    private func endPairing(_ end: PairingEnd) {
        guard let pairing else { return }
        self.pairing = nil
        pairingLimit?.cancel()
        // Handshakes with the code are useless now.
        for handshake in handshakes.values where handshake.isPairing { handshake.close() }
        pairing.end.fill(end)
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

    /// Removes a pairing and ends its connection.
    /// - Returns: false if there is no such pairing.
    func remove(_ fingerprint: String) async throws(StoreError) -> Bool {
        guard borrowers[fingerprint] != nil else { return false }
        try await store.remove(fingerprint, .borrower)
        borrowers[fingerprint] = nil
        if guest?.device?.fingerprint == fingerprint { guest?.close() }
        observer()
        return true
    }

    /// The own fingerprint; nil before the start.
    var fingerprint: String? { identity?.fingerprint }

    func write(_ level: Log.Level, _ text: String) { log(level, text) }
}
