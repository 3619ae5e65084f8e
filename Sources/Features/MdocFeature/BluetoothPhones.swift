// SPDX-License-Identifier: GPL-3.0-or-later
package import Bluetooth
package import Concurrency
package import DoorReaders
package import Host
package import Scanners
import Text

/// Connects to phones through bluetoothd. An adapter serves one phone at a time; nothing is advertised or searched while nobody
/// waits for a phone.
@Loop package final class BluetoothPhones: MdocBluetooth {
    /// How long the steps may take, in milliseconds.
    package struct Limits: Sendable {
        /// The answer of bluetoothd about its adapters.
        package var answer: Milliseconds = 1000
        /// Until the adapter is free.
        package var line: Milliseconds = 10_000
        /// Until the phone connects; while it is also searched for afterwards; after somebody else has connected.
        package var central: Milliseconds = 30_000
        package var centralFirst: Milliseconds = 5000
        package var centralAgain: Milliseconds = 5000
        /// Until the phone is found, and until it is connected.
        package var peripheral: Milliseconds = 15_000
        /// Until the next part of a message has come or is taken.
        package var part: Milliseconds = 5000

        package init() {}
    }

    /// One attempt to connect.
    private enum Attempt {
        case central(uuid: [UInt8], limit: Milliseconds)
        case peripheral(uuid: [UInt8], limit: Milliseconds)
    }

    private let place: String
    private let owner: RadioOwner
    private let limits: Limits
    private let hasAdapter: () -> Bool
    private let settingsFile: String
    /// The connections that are being ended. bluetoothd takes two seconds for this. Neither the result nor other phones wait
    /// for it.
    private var leaving = 0 { didSet { waiters.check() } }
    private let waiters = Waiters()

    /// - Parameters:
    ///   - address: the bus; nil: the system's bus.
    ///   - owner: the owner of the adapters.
    ///   - limits: how long the steps may take.
    ///   - settingsFile: the settings of bluetoothd.
    ///   - hasAdapter: whether the host has an adapter. Without one bluetoothd is not asked.
    package init(
        address: String? = nil,
        owner: RadioOwner,
        limits: Limits = Limits(),
        settingsFile: String = BluetoothdSettings.standardFile,
        hasAdapter: @escaping () -> Bool = { true }
    ) {
        place = address ?? SystemBus.standardAddress
        self.owner = owner
        self.limits = limits
        self.settingsFile = settingsFile
        self.hasAdapter = hasAdapter
    }

    /// Returns when no phone is connected any more.
    package func waitUntilIdle() async { await waiters.wait { self.leaving == 0 } }

    // MARK: The host

    /// The adapters that bluetoothd has; nil: it does not run.
    private func allAdapters() async -> [BlueZAdapter]? {
        guard hasAdapter(), let bus = try? SystemBus(address: place) else { return nil }
        defer { bus.close() }
        return await BlueZHost.ask(bus, within: limits.answer)?.adapters
    }

    /// The adapters that are switched on; nil: bluetoothd does not run.
    private func adapters() async -> [BlueZAdapter]? { await allAdapters()?.filter(\.isPowered) }

    package func ways() async -> Set<MdocWay> {
        guard let adapters = await adapters(), !adapters.isEmpty else { return [] }
        return adapters.contains(where: \.advertises) ? [.bleCentral, .blePeripheral] : [.blePeripheral]
    }

    package func fault() async -> ScannerFault {
        guard hasAdapter() else { return .noAdapter }
        guard let adapters = await allAdapters() else { return .noService }
        guard !adapters.isEmpty else { return .noAdapter }
        return adapters.contains(where: \.isPowered) ? .noAdvertising : .adapterOff
    }

    package func checks() async -> [HealthCheck] {
        guard let adapters = await adapters(), let adapter = adapters.first else { return [] }
        return [BluetoothdSettings(settingsFile).check(adapter)]
    }

    // MARK: Connecting

    package func open(_ offer: MdocBluetoothOffer) async throws(MdocTransportError) -> any MdocTransport {
        guard let adapters = await adapters() else {
            throw Task.isCancelled ? .cancelled : .connectionFailed("bluetoothd is not running")
        }
        guard !adapters.isEmpty else { throw .connectionFailed("no Bluetooth adapter is switched on") }
        let number = await owner.wait(for: .session, onOneOf: adapters.map(\.number), within: limits.line)
        guard let adapter = adapters.first(where: { $0.number == number }) else {
            throw Task.isCancelled ? .cancelled : .connectionFailed("the Bluetooth adapter serves another connection")
        }
        let losesValues = BluetoothdSettings(settingsFile).losesValues(adapter)
        var failure = LinkFailure.failed(
            Phrase("\(adapter.name) cannot advertise, and the phone cannot either")
        )
        var attempts = attempts(offer, adapter, losesValues: losesValues)[...]
        var isAgain = offer.isAgain
        while let attempt = attempts.popFirst(), !Task.isCancelled {
            do throws(LinkFailure) {
                return try await connect(attempt, offer.ident, adapter, losesValues: losesValues)
            } catch {
                failure = error
            }
            // Somebody has connected who is not the phone, or the phone has left at once.
            guard case .failed = failure, !isAgain else { continue }
            isAgain = true
            if case .central(let uuid, _) = attempt {
                attempts = [.central(uuid: uuid, limit: limits.centralAgain)] + attempts
            } else {
                attempts = [attempt] + attempts
            }
        }
        owner.end(on: adapter.number)
        if Task.isCancelled { throw .cancelled }
        switch failure {
        case .timedOut: throw .connectionFailed("bluetoothd does not answer")
        case .late(let reason), .inUse(let reason), .failed(let reason): throw .connectionFailed(reason)
        }
    }

    /// Advertising is the better way if both are there: the phone does the hard part, and badged reveals less.
    private func attempts(_ offer: MdocBluetoothOffer, _ adapter: BlueZAdapter, losesValues: Bool) -> [Attempt] {
        let search = offer.peripheral.map { Attempt.peripheral(uuid: $0, limit: limits.peripheral) }
        guard adapter.advertises, let uuid = offer.central else { return search.map { [$0] } ?? [] }
        let again = Attempt.central(uuid: uuid, limit: limits.centralAgain)
        if offer.isAgain { return [again] }
        let long = Attempt.central(uuid: uuid, limit: limits.central)
        guard let search else { return [long] }
        return losesValues ? [search, long] : [.central(uuid: uuid, limit: limits.centralFirst), search, again]
    }

    private func connect(
        _ attempt: Attempt,
        _ ident: [UInt8],
        _ adapter: BlueZAdapter,
        losesValues: Bool
    ) async throws(LinkFailure) -> BluetoothTransport {
        switch attempt {
        case .central(let uuid, let limit):
            let server = GATTServer(try bus(), adapter: adapter.number, PhoneService.offer(uuid, ident: ident))
            try await begin(server) { () async throws(LinkFailure) in
                try await server.establish(within: limit)
                let first = try await server.value(within: 0)
                guard first == GATTValue(PhoneService.central.state, PhoneService.start) else {
                    throw .failed(Phrase("what has connected does not begin a session"))
                }
            }
            let isCut = losesValues && server.mtu > BluetoothdSettings.safeMTU
            return transport(.central, server, adapter, caution: isCut ? BluetoothdSettings.lostValues : nil)
        case .peripheral(let uuid, let limit):
            owner.reserve(adapter.number)
            defer { owner.release(adapter.number) }
            await owner.waitUntilLeft(adapter.number, within: limit)
            let found = try await GATTSearch.find(
                UUIDText.encode(uuid),
                try bus(),
                adapter: adapter.number,
                within: limit
            )
            let profile = PhoneService.profile(uuid)
            let client = GATTClient(try bus(), found, adapter: adapter.number, profile, owner: owner)
            try await begin(client) { () async throws(LinkFailure) in
                try await client.establish(within: limit)
                try await client.send(PhoneService.start, on: PhoneService.peripheral.state, within: limit)
            }
            return transport(.peripheral, client, adapter, caution: nil)
        }
    }

    private func bus() throws(LinkFailure) -> SystemBus {
        try translating({ (error: BusFailure) in LinkFailure.failed(error.text) }, SystemBus(address: place))
    }

    /// Runs the first steps of a connection, which is ended if they fail.
    private func begin(
        _ peer: any GATTPeer,
        _ body: () async throws(LinkFailure) -> Void
    ) async throws(LinkFailure) {
        do throws(LinkFailure) {
            try await body()
        } catch {
            // The next attempt finds nothing of this one; a reading that is cancelled does not wait.
            await leave(peer).value(whenCancelled: ())
            throw error
        }
    }

    private func transport(
        _ service: PhoneService,
        _ peer: any GATTPeer,
        _ adapter: BlueZAdapter,
        caution: String?
    ) -> BluetoothTransport {
        BluetoothTransport(service, peer, partLimit: limits.part, caution: caution) { [self] in
            owner.end(on: adapter.number)
            _ = leave(peer)
        }
    }

    private func leave(_ peer: any GATTPeer) -> OneShot<Void> {
        let end = OneShot<Void>()
        leaving += 1
        Task { @Loop in
            await peer.disconnect()
            leaving -= 1
            end.fill(())
        }
        return end
    }
}
