// SPDX-License-Identifier: GPL-3.0-or-later
package import Concurrency
package import Drivers
package import Host
import Store
package import Text

/// The devices that lend readers: which ones are paired, and what badged-remote knows of them.
///
/// badged-remote runs while a client may see readers or use cards, because a connection keeps a phone awake.
@Loop package final class RemoteLenders {
    package struct Settings: Sendable {
        /// The UDP port of announcements.
        package static let announcementPort: UInt16 = 24727
        /// The names of the network interfaces; empty: all with a broadcast address.
        package var interfaces: [String]
        package var port = announcementPort
        /// The name of this host for other devices.
        package var name: String
        package var times = LinkTimes()
        /// Milliseconds to wait for an answer of a device.
        package var answerTime: Int64 = 5000
        /// Milliseconds to wait while a device handles other requests, with questions to its user. With `answerTime` it is
        /// less than badged waits for the answer to a command.
        package var turnTime: Int64 = 100_000
        /// Milliseconds after which an announcement is forgotten.
        package var sightingTime: Int64 = 5000
        /// Milliseconds after the first failed connection to a place until the next one; each further pause is longer.
        package var firstPause: Int64 = 1000
        /// Milliseconds after the last client until the connections to devices are closed.
        package var restTime: Int64 = 10_000

        package init(interfaces: [String] = [], name: String) {
            self.interfaces = interfaces
            self.name = name
        }
    }

    /// The backend for readers that other devices lend over the network, such as a phone with AusweisApp.
    package nonisolated let backend: DriverBackend
    package nonisolated let driver: RemoteDriver
    private let store: RemoteStore
    private let settings: Settings
    /// Why the pairings or the own key could not be read.
    private var storeFault: Failure?
    /// The attempt to read them.
    private var loading: Task<Void, Never>?
    private var isLoaded = false
    /// The clients that may see readers or use cards.
    private var clients = 0
    /// Whether the devices are to be connected.
    private(set) var isBorrowing = false
    private lazy var restAlarm = Loop.Alarm { [weak self] in self?.setBorrowing(false) }
    private var paired: [String: RemoteDevice] = [:]
    /// The devices that were removed since badged-remote has started: a message about their readers may still be under way.
    private var removed: Set<String> = []
    private var state = LendersState()
    private var lastPairing: UInt32 = 0
    private var pairings: [UInt32: (fingerprint: String, end: OneShot<RemotePairing>)] = [:]
    /// The devices of all calls of `pair` that have not returned.
    private var underWay: [String] = []
    /// Called when a device comes, changes or goes, and when the port is opened.
    package var observer: @Loop () -> Void = {}

    package init(_ store: RemoteStore, _ settings: Settings, _ driver: RemoteDriver) {
        self.store = store
        self.settings = settings
        self.driver = driver
        backend = DriverBackend(driver, heartbeat: driver.heartbeat)
        driver.lenders = self
    }

    // MARK: Start and end

    func start() {
        guard loading == nil else { return }
        loading = Task { @Loop in
            await load()
            loading = nil
        }
    }

    /// Begins again what has failed because of the store.
    /// - Returns: the attempt; nil if nothing has failed.
    @discardableResult package func tryAgain() -> Task<Void, Never>? {
        guard storeFault != nil else { return nil }
        start()
        return loading
    }

    private func load() async {
        do throws(Failure) {
            try await store.changes.run { () throws(Failure) in
                for device in try await store.devices(.lender) { paired[device.fingerprint] = device }
            }
            if !paired.isEmpty { driver.introduce(try await store.identity()) }
            storeFault = nil
        } catch {
            if storeFault != error {
                Log.error("the pairings of remote readers cannot be read: \(error.logText)")
            }
            storeFault = error
        }
        guard isLoaded else {
            isLoaded = true
            return setBorrowing(clients > 0)
        }
        if isBorrowing { sendDevices() }
        observer()
    }

    /// Counts a new client that may see readers or use cards.
    package func clientCame() {
        clients += 1
        tryAgain()
        restAlarm.cancel()
        // A port that was taken is tried again.
        if isBorrowing { driver.update() } else { setBorrowing(true) }
    }

    /// Counts out such a client. `restTime` after the last one, the connections to devices are closed.
    package func clientLeft() {
        clients -= 1
        if clients == 0 { restAlarm.set(after: settings.restTime) }
    }

    private func setBorrowing(_ isOn: Bool) {
        guard isLoaded, isBorrowing != isOn else { return }
        isBorrowing = isOn
        if isOn { sendDevices() } else { driver.send(.rest) }
        driver.update()
        if !isOn { set(LendersState()) }
    }

    func began() { if isBorrowing { sendDevices() } }

    func ended() {
        removed = []
        let open = pairings
        pairings = [:]
        for pairing in open.values { pairing.end.fill(.failed("badged-remote has ended: try again")) }
        set(LendersState())
    }

    private func sendDevices() { driver.send(.borrow(settings, Array(paired.values))) }

    // MARK: Devices

    private func set(_ new: LendersState) {
        guard new != state else { return }
        state = new
        for device in new.connected where paired[device.fingerprint] != nil { paired[device.fingerprint] = device }
        observer()
    }

    func handle(_ report: RemoteReport) -> Bool {
        switch report {
        case .lenders(let new):
            // A device may have been removed meanwhile, but no other one is connected.
            set(new)
        case .paired(let id, let outcome):
            guard let pairing = pairings[id] else { break }
            if case .paired(let device) = outcome, device.fingerprint != pairing.fingerprint { return false }
            pairings[id] = nil
            pairing.end.fill(outcome)
        case .lending, .guest, .knowsCode, .wrongCodes: return false
        }
        return true
    }

    /// Whether a reader is named after a paired device, or after one that was paired a moment ago.
    func owns(readerNamed name: String) -> Bool {
        (Array(paired.keys) + removed).contains { name.utf8.suffix(10).elementsEqual("(\($0.prefix(8)))".utf8) }
    }

    /// The port of announcements; 0 while it is closed.
    package var port: UInt16 { state.port }

    /// The announcements since the start.
    package var offers: Int { Int(state.offers) }

    /// The devices that announce themselves now, by name.
    package var sightings: [LendersState.Sighting] { state.sightings }

    /// The paired devices by name, and whether each one is connected.
    package var devices: [(device: RemoteDevice, isConnected: Bool)] {
        paired.values.sorted { ($0.name, $0.fingerprint) < ($1.name, $1.fingerprint) }.map { device in
            (device, state.connected.contains { $0.fingerprint == device.fingerprint })
        }
    }

    /// Whether a paired device no longer accepts this host.
    package func isRejecting(_ fingerprint: String) -> Bool { state.rejecting.contains(fingerprint) }

    /// Forgets a device whose pairing was removed from the store, and ends its connection.
    package func removed(_ fingerprint: String) {
        if paired.removeValue(forKey: fingerprint) != nil { removed.insert(fingerprint) }
        sendDevices()
        observer()
    }

    /// Whether the pairings could be read.
    package var health: [HealthCheck] {
        guard let storeFault else { return [] }
        let advice = storeFault.advice ?? "see the log of badged, then restart it"
        return [HealthCheck("remote pairings", ok: false, cause: storeFault.text, advice: advice)]
    }

    // MARK: Pairing

    /// Pairs with a device that announces itself. The code is that on its screen.
    package func pair(_ fingerprint: String, code: SecretBox) async -> RemotePairing {
        await tryAgain()?.value
        // Each pairing under way has its place.
        let places = Set(paired.keys).union(underWay).union([fingerprint])
        guard places.count <= RemoteMessage.maximumDevices else {
            return .failed("too many devices are paired: remove one")
        }
        underWay.append(fingerprint)
        defer { if let index = underWay.firstIndex(of: fingerprint) { underWay.remove(at: index) } }
        do throws(Failure) {
            driver.introduce(try await store.identity())
        } catch {
            return .failed(error.message)
        }
        guard driver.isRunning else { return .failed("badged-remote does not run: try again in some seconds") }
        lastPairing &+= 1
        let id = lastPairing
        let end = OneShot<RemotePairing>()
        pairings[id] = (fingerprint, end)
        driver.send(.pair(id: id, fingerprint: fingerprint, code: code))
        let outcome = await end.value(whenCancelled: .failed("the pairing was cancelled"))
        if pairings.removeValue(forKey: id) != nil { driver.send(.stopPairing(id: id)) }
        guard case .paired(let device) = outcome else { return outcome }
        do throws(Failure) {
            try await store.changes.run { () throws(Failure) in
                try await store.add(device, .lender)
                paired[device.fingerprint] = device
            }
        } catch {
            return .failed("\(error.message); remove the pairing at the device, too")
        }
        sendDevices()
        observer()
        return .paired(device)
    }
}
