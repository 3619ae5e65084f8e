// SPDX-License-Identifier: GPL-3.0-or-later
import Concurrency
import Drivers
import Glibc
import Host
import ReadersRemote
import Text

/// The devices that borrow readers of this host: announcements, connections, and the pairing mode.
///
/// A device gets APDUs of the shared readers and nothing else. One device at a time is connected.
@Loop final class Borrowers {
    final class OpenPairing {
        let code: Secret
        var triesLeft = 3

        init(_ code: consuming Secret) { self.code = code }
    }

    private struct Handshake {
        let guest: Guest
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
    /// The number of connections that are accepted in a turn of the loop.
    private static let accepted = 64
    /// Milliseconds between two reports of one flood.
    private static let reportPause: Int64 = 1000

    /// Sends a message to badged.
    let report: BadgedSender
    private(set) var settings = LendingSettings(readers: [], name: "")
    /// The key of this host.
    var identity: RemoteIdentity?
    private var borrowers: [String: RemoteDevice] = [:]
    private var sockets: [PortSocket] = []
    private lazy var queue = ConnectionQueue(timeout: settings.times.setUp) { [weak self] in
        self?.admit()
    } refused: { [weak self] in
        self?.refused($0, isFlood: $1)
    }
    private var handshakes: [ObjectIdentifier: Handshake] = [:]
    /// Tries again when the oldest handshake may be dropped.
    private lazy var admission = Loop.Alarm { [weak self] in self?.admit() }
    private var flood = ConnectionFlood()
    private var floodLines = FloodLines()
    /// The device that is connected.
    private(set) var guest: Guest?
    private var pairing: OpenPairing?
    /// The pairings for whose storage devices wait.
    private var completions: [OneShot<Bool>] = []
    private lazy var offer = Loop.Alarm { [weak self] in self?.announce() }
    /// Opens the ports again after a failure.
    private lazy var reopening = Loop.Alarm { [weak self] in self?.listen() }
    private lazy var floodAlarm = Loop.Alarm { [weak self] in self?.reportFlood() }
    private var backOff = BackOff()
    private var state = LendingState()

    init(_ report: BadgedSender) { self.report = report }

    /// Announces this host, and serves these devices only.
    func lend(_ settings: LendingSettings, _ devices: [RemoteDevice]) {
        self.settings = settings
        borrowers = Dictionary(devices.map { ($0.fingerprint, $0) }) { first, _ in first }
        if let device = guest?.device, borrowers[device.fingerprint] == nil { guest?.close() }
        if sockets.isEmpty { listen() } else { admit() }
    }

    /// Handles a message of badged about the shared readers.
    func handle(_ report: DriverReport) { guest?.handle(report) }

    // MARK: Ports

    /// Opens a TCP port on each interface, and begins to announce.
    private func listen() {
        guard sockets.isEmpty else { return }
        reopening.cancel()
        let names: [String?] = settings.interfaces.isEmpty ? [nil] : settings.interfaces
        do throws(SystemError) {
            for name in names {
                let socket = try PortSocket(.connections, port: 0, interface: name)
                try socket.whenReady { [weak self, weak socket] in
                    if let socket { self?.accept(socket) }
                }
                sockets.append(socket)
            }
        } catch {
            return reopen("\(error)", "correct [remote] in badged.conf(5)")
        }
        backOff.started()
        state.isOpen = true
        state.cause = nil
        state.advice = nil
        report(RemoteReport.lending(state))
        announce()
    }

    /// Closes the ports, and opens them again after a pause.
    private func reopen(_ cause: Phrase, _ advice: Phrase) {
        offer.cancel()
        for socket in sockets { socket.close() }
        sockets = []
        let pause = backOff.next()
        reopening.set(after: pause)
        state.isOpen = false
        state.cause = cause
        state.advice = "\(advice); the ports are opened again in \(pause / 1000) s"
        report(RemoteReport.lending(state))
        Log.error("readers are not shared now: \(cause); the ports are opened again in \(pause / 1000) s")
    }

    private func accept(_ socket: PortSocket) {
        // Bounded, so that a flood of connections cannot delay the device that is connected.
        for _ in 0..<Self.accepted where !queue.isFull {
            guard let (connection, sender) = socket.accept() else { return }
            queue.add(connection, sender.host)
        }
        // Further connections wait in the backlog of the kernel. A timeout is not a refusal.
        if queue.isFull { for socket in sockets { socket.read(false) } }
    }

    /// Announces this host, unless a device is connected.
    private func announce() {
        guard let identity, !sockets.isEmpty else { return }
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
                guard let sender = try? PortSocket(.datagrams, port: 0, interface: interface.name) else { continue }
                for target in interface.targets {
                    sender.send(bytes, to: RemoteAddress(host: target, port: settings.offerPort))
                }
                sender.close()
            }
        }
    }

    // MARK: Connections

    /// Begins the handshakes for which there is room.
    private func admit() {
        guard let identity else { return }
        while let security, running.count < limit, let next = queue.next(runningHandshakes) {
            let link = RemoteLink.serve(next.socket, identity, security, times: settings.times)
            let new = Guest(link, pairing: pairing, self)
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
        oldest.value.guest.close()
        refused(oldest.value.source, isFlood: true)
    }

    /// Counts a connection that came to nothing.
    private func refused(_ source: RemoteAddress.Host, isFlood: Bool = false) {
        flood.add(source, isFlood: isFlood, at: Loop.now)
        // A flood that is known is reported by the alarm.
        if state.flood == 0 { reportFlood() }
    }

    /// Reports a flood of connections at its beginning, while it goes on, and at its end.
    private func reportFlood() {
        let now = flood.state(at: Loop.now)
        if now != nil { floodAlarm.set(after: Self.reportPause) }
        let count = UInt32(clamping: now?.connections ?? 0)
        guard count != state.flood else { return }
        let before = state.flood
        state.flood = count
        state.floodSource = now.map { "\($0.source)" }
        state.floodAdvice = now.map { NetworkInterface.advice(againstFloodFrom: $0.source, "--tcp") }
        report(RemoteReport.lending(state))
        let advice = state.floodAdvice?.description ?? ""
        if let line = floodLines.line(from: before, to: now, advice: advice, at: Loop.now) {
            Log.write(line.level) { "\(line.text)" }
        }
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
    func opened(_ new: Guest, _ fingerprint: String) -> RemoteDevice? {
        handshakes[ObjectIdentifier(new)]?.isOpen = true
        admit()
        if let open = new.pairing {
            return pairing === open ? RemoteDevice(fingerprint: fingerprint, name: "?") : nil
        }
        guard guest == nil || guest?.device?.fingerprint == fingerprint else { return nil }
        return borrowers[fingerprint]
    }

    /// Handles the first message of a device. A device that connects again, because its old connection is cut, takes
    /// the place of the old one.
    /// - Returns: false if another device is connected.
    func begin(_ new: Guest) async -> Bool {
        guard let device = new.device, borrowers[device.fingerprint] != nil else { return false }
        if let old = guest, old !== new, old.device?.fingerprint == device.fingerprint { await old.end() }
        // badged may have removed the pairing meanwhile.
        guard guest == nil, !new.isClosed, borrowers[device.fingerprint] != nil else { return false }
        handshakes[ObjectIdentifier(new)] = nil
        guest = new
        borrowers[device.fingerprint]?.name = device.name
        Log.notice("device '\(device.name)' is connected and may use the shared readers")
        report(RemoteReport.guest(device))
        return true
    }

    private func ended(_ old: Guest, _ ending: RemoteLink.Ending?) {
        let handshake = handshakes.removeValue(forKey: ObjectIdentifier(old))
        if let handshake, !handshake.isOpen, !handshake.isDropped { refused(handshake.source) }
        defer { admit() }
        if guest === old {
            guest = nil
            Log.notice("device '\(old.device?.name ?? "?")' is disconnected")
            report(RemoteReport.guest(nil))
            announce()
        }
        guard let pairing, old.pairing === pairing else { return }
        if let device = old.device {
            // The code was right, although the device did not send its name.
            Task { @Loop in await complete(device, old.pairing) }
        }
        guard old.device == nil, ending == .wrongCode else { return }
        pairing.triesLeft -= 1
        Log.notice("a device has tried a wrong code, \(pairing.triesLeft) tries left")
        guard pairing.triesLeft == 0 else { return }
        closePairing()
        report(RemoteReport.wrongCodes)
    }

    // MARK: Pairing

    func openPairing(_ code: consuming Secret) {
        pairing = OpenPairing(code)
        announce()
        admit()
    }

    /// Ends the pairing mode, if it is open.
    func closePairing() {
        guard let old = pairing else { return }
        pairing = nil
        // Handshakes with this code can no longer succeed.
        for handshake in handshakes.values where handshake.guest.pairing === old && !handshake.isOpen {
            handshake.guest.close()
        }
    }

    /// Has badged keep the pairing with a device that knows the code.
    /// - Returns: whether the pairing is stored, so that the device can be told.
    @discardableResult
    func complete(_ device: RemoteDevice, _ open: OpenPairing?) async -> Bool {
        guard let pairing, pairing === open else { return false }
        // The code is spent, even if badged cannot keep the pairing.
        closePairing()
        let isKept = OneShot<Bool>()
        completions.append(isKept)
        report(RemoteReport.knowsCode(device))
        return await isKept.value(whenCancelled: false)
    }

    /// The answer of badged to the oldest pairing that waits.
    func kept(_ isKept: Bool) {
        if !completions.isEmpty { completions.removeFirst().fill(isKept) }
    }
}
