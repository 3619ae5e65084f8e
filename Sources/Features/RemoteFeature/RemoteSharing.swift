// SPDX-License-Identifier: GPL-3.0-or-later
package import Cards
package import Concurrency
import Crypto
package import Drivers
import Host
import ISO7816
package import ReadersRemote
package import Text

/// Lends readers of this host to paired devices: who may use them, and the pairing mode. badged-remote has the network.
///
/// A device gets APDUs of the shared readers and nothing else. One device at a time is connected.
@Loop package final class RemoteSharing: RemoteLending {
    /// The end of a pairing mode.
    package enum PairingEnd: Sendable, Equatable {
        case paired(RemoteDevice)
        case wrongCodes
        case timedOut
        case cancelled
        case failed(Phrase)
    }

    private let registry: ReaderRegistry
    let settings: LendingSettings
    private let store: RemoteStore
    package let driver: RemoteDriver
    /// The backend that nobody else has, when no readers are borrowed.
    private let backend: DriverBackend?
    private var running: Task<Void, Never>?
    private var identity: RemoteIdentity?
    private var borrowers: [String: RemoteDevice] = [:]
    private var state = LendingState()
    /// Why there are no ports, if badged-remote does not say it.
    private var ownFault: (cause: Phrase, advice: Phrase)?
    /// The device that is connected, and what it has.
    private var guest: LentReaders?
    /// The devices before that still release cards, and the requests that wait for that.
    private var leaving = 0
    private var waiting: [DriverRequest] = []
    /// The pairing mode.
    private var pairing: OneShot<PairingEnd>?
    private var pairingLimit: Loop.Alarm?
    private var starting: Task<Void, Never>?
    /// Why the pairings or the own key could not be read.
    private var storeFault: Failure?
    /// Waits for the ports to be open.
    private let opening = Waiters()
    package private(set) var isLending = false
    private var isStopped = false
    /// Called when something has changed that clients see.
    var observer: @Loop () -> Void = {}

    /// The backend belongs to `lenders`; nil: no readers are borrowed.
    package init(
        _ registry: ReaderRegistry,
        _ store: RemoteStore,
        _ settings: LendingSettings,
        _ driver: RemoteDriver,
        besides lenders: RemoteLenders? = nil
    ) {
        self.registry = registry
        self.store = store
        self.settings = settings
        self.driver = driver
        backend = lenders == nil ? DriverBackend(driver, heartbeat: driver.heartbeat) : nil
        driver.lending = self
    }

    // MARK: Start and end

    /// Has badged-remote open its ports and announce this host, when the own key is there. The first start makes the key,
    /// which takes up to some seconds.
    package func start() {
        guard starting == nil else { return }
        starting = Task { @Loop in
            await open()
            starting = nil
        }
    }

    /// Begins again what has failed because of the store.
    /// - Returns: the attempt; nil if nothing has failed.
    @discardableResult func tryAgain() -> Task<Void, Never>? {
        guard storeFault != nil, !isStopped else { return nil }
        start()
        return starting
    }

    /// Returns when the start is over; `fault` says whether it has failed.
    package func waitForStart() async { await starting?.value }

    private func open() async {
        do throws(Failure) {
            // Before the key: pairings with a key that is damaged can be removed.
            try await store.changes.run { () throws(Failure) in
                for device in try await store.devices(.borrower) { borrowers[device.fingerprint] = device }
            }
            // badged may have ended meanwhile.
            guard !isStopped else { return }
            let identity = try await store.identity()
            guard !isStopped else { return }
            self.identity = identity
            storeFault = nil
            driver.introduce(identity)
        } catch {
            if storeFault != error { Log.error("readers are not shared: \(error.logText)") }
            storeFault = error
            return observer()
        }
        isLending = true
        if let events = backend?.events {
            running = Task { for await _ in events {} }
        } else {
            sendDevices()
            driver.update()
        }
        await opening.wait { self.state.isOpen || self.fault != nil || !self.isLending }
        observer()
    }

    package func began() { if isLending { sendDevices() } }

    package func ended(_ ending: ProgramChannel.Ending) {
        state = LendingState()
        if isLending {
            ownFault = (
                ending == .silent ? "badged-remote does not answer" : "badged-remote has ended unexpectedly",
                "see the log of badged and badged-remote"
            )
        }
        setGuest(nil)
        endPairing(.failed("badged-remote has ended: try again"))
        opening.check()
        observer()
    }

    package func stop() {
        isStopped = true
        isLending = false
        setGuest(nil)
        endPairing(.cancelled)
        opening.check()
        running?.cancel()
        driver.update()
    }

    private func sendDevices() { driver.send(.lend(settings, Array(borrowers.values))) }

    // MARK: Messages

    /// Why no readers are lent.
    var fault: (cause: Phrase, advice: Phrase)? {
        if let cause = state.cause { return (cause, state.advice ?? "") }
        if let storeFault {
            return (storeFault.text, storeFault.advice ?? "see the log of badged, then restart it")
        }
        return ownFault
    }

    /// A flood of connections that came to nothing, and the source of most of them; nil: there is none.
    var flood: (connections: Int, source: String, advice: Phrase?)? {
        state.flood == 0 ? nil : (Int(state.flood), state.floodSource ?? "an unknown address", state.floodAdvice)
    }

    package func handle(_ report: RemoteReport) -> Bool {
        switch report {
        case .lending(let new):
            state = new
            if new.isOpen { ownFault = nil }
            opening.check()
            observer()
        case .guest(let device):
            if let device {
                // A device may have been removed meanwhile; then badged-remote closes its connection.
                guard borrowers[device.fingerprint] != nil else { break }
                borrowers[device.fingerprint]?.name = device.name
            }
            setGuest(device)
            observer()
        case .knowsCode(let device):
            guard pairing != nil else {
                driver.send(.kept(false))
                break
            }
            Task { @Loop in driver.send(.kept(await complete(device))) }
        case .wrongCodes: endPairing(.wrongCodes)
        case .lenders, .paired: return false
        }
        return true
    }

    package func handle(_ request: DriverRequest) {
        guard let guest else { return refuse(request) }
        if leaving == 0 { guest.handle(request) } else { waiting.append(request) }
    }

    /// Answers a request of a device that is not connected any more, because badged-remote waits for each answer.
    private func refuse(_ request: DriverRequest) {
        switch request {
        case .card(_, _, let id), .record(_, let id): driver.send(.answer(id: id, .failure(.removed)))
        case .health(let id): driver.send(.health(id: id, []))
        case .look, .progress, .cancel: break
        }
    }

    private func setGuest(_ device: RemoteDevice?) {
        for request in waiting { refuse(request) }
        waiting = []
        if let old = guest {
            leaving += 1
            Task { @Loop in
                await old.end()
                leaving -= 1
                observer()
                guard leaving == 0 else { return }
                for request in waiting { guest?.handle(request) }
                waiting = []
            }
        }
        guest = device.map { device in
            LentReaders(to: device, registry, settings) { [weak driver] in
                driver?.send($0)
            } usesChanged: { [weak self] in
                self?.observer()
            }
        }
    }

    // MARK: Pairing

    var isPairing: Bool { pairing != nil }

    /// Opens the pairing mode; nil if it is open already or readers are not shared.
    /// - Returns: the four digits, which the user types at the other device.
    func openPairing() throws(CryptoError) -> Secret? {
        guard pairing == nil, fault == nil, identity != nil else { return nil }
        let code = try Self.makeCode()
        pairing = OneShot()
        driver.send(.openPairing(code: SecretBox(code.clone())))
        let limit = Loop.Alarm { [weak self] in self?.endPairing(.timedOut) }
        limit.set(after: settings.pairingTime)
        pairingLimit = limit
        observer()
        return code
    }

    /// The end of the open pairing mode, for one task.
    var pairingEnd: OneShot<PairingEnd>? { pairing }

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
        if pairing === end { endPairing(.cancelled) }
    }

    /// Stores the pairing with a device that knows the code.
    /// - Returns: whether the pairing is stored, so that the device can be told.
    private func complete(_ device: RemoteDevice) async -> Bool {
        guard let pairing else { return false }
        guard borrowers[device.fingerprint] != nil || borrowers.count < RemoteMessage.maximumDevices else {
            endPairing(.failed("too many devices are paired: remove one"))
            return false
        }
        // The code is spent, even if the store fails.
        close()
        do throws(Failure) {
            try await store.changes.run { () throws(Failure) in
                try await store.add(device, .borrower)
                borrowers[device.fingerprint] = device
            }
        } catch {
            Log.error("the pairing with '\(device.name)' cannot be stored: \(error.logText)")
            pairing.fill(.failed("\(error.message); remove the pairing at the other device, too"))
            return false
        }
        sendDevices()
        pairing.fill(.paired(device))
        observer()
        return true
    }

    private func endPairing(_ end: PairingEnd) {
        guard let pairing else { return }
        close()
        driver.send(.closePairing)
        pairing.fill(end)
    }

    private func close() {
        pairing = nil
        pairingLimit?.cancel()
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
            .map { ($0, guest?.device.fingerprint == $0.fingerprint) }
    }

    /// The readers that the connected device uses.
    var usedReaders: [String] { guest?.usedReaders ?? [] }

    /// Forgets a device whose pairing was removed from the store, and ends its connection.
    package func removed(_ fingerprint: String) {
        borrowers[fingerprint] = nil
        sendDevices()
        if guest?.device.fingerprint == fingerprint { setGuest(nil) }
        observer()
    }

    /// The own fingerprint; nil before the start.
    var fingerprint: String? { identity?.fingerprint }

    /// Whether badged-remote answers. One that does not is ended, which is a fault.
    func check() async { _ = await backend?.currentHealth() }
}
