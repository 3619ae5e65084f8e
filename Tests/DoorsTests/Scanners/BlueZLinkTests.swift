// SPDX-License-Identifier: GPL-3.0-or-later
import Concurrency
import Crypto
import DoorOpening
import DoorReaders
import DoorTestSupport
import Testing
import Text

@testable import Bluetooth
@testable import Scanners

@Suite("Opening a reader with an emulated bluetoothd on a real bus", .timeLimit(.minutes(5)))
@Loop struct BlueZLinkTests {
    private let stage: Stage

    init() async throws { stage = try await Stage() }

    private static let siteScalar = [UInt8](repeating: 5, count: 32)

    /// A scan that leaves the radio to connections.
    private final class Scan: RadioScan {
        var readsDevices = false
        /// Which adapters connections wait for, and until when.
        var left: [Int] = []
        var leaving: OneShot<Void>?
        let waiters = Waiters()
        nonisolated init() {}
        func reserve(_ adapter: Int, _ isReserved: Bool) {}
        func waitUntilLeft(_ adapter: Int, within limit: Milliseconds) async {
            left.append(adapter)
            waiters.check()
            await leaving?.value(whenCancelled: ())
        }
        func searches(_ adapter: Int) -> Bool { false }
        func beginConnection(to address: DeviceAddress, adapter: Int) async -> Bool { false }
        func endConnection(to address: DeviceAddress, adapter: Int) {}
    }

    /// A bus with a bluetoothd and a reader.
    @Loop private struct Stage {
        let bus: PrivateBus
        let service: FakeGATT
        let owner = RadioOwner()
        let scan = Scan()
        let connector: BlueZConnector
        let opener: DoorOpener

        init() async throws {
            bus = try await PrivateBus.start()
            service = try await FakeGATT(bus.address, ModelReader(signer: siteScalar))
            owner.scan = scan
            connector = BlueZConnector(address: bus.address, owner: owner)
            connector.answerTime = 120_000
            opener = DoorOpener(connector)
        }

        /// Opens the reader, and returns when it is disconnected. The limits are generous, because the machine may be busy.
        func open(_ change: (inout OpeningTimeouts) -> Void = { _ in }) async throws -> OpeningResult {
            var timeouts = OpeningTimeouts()
            (timeouts.fragment, timeouts.apdu, timeouts.connect) = (120_000, 120_000, 120_000)
            change(&timeouts)
            let site = try DoorSite(
                identifier: Array(repeating: 0x51, count: 16),
                siteKey: ModelReader.key(siteScalar).publicKey.uncompressed
            )
            let credential = DoorCredential(id: "door", key: try ModelKey(), sites: [site], lastUpdate: 1)
            let result = await opener.open(FakeGATT.address, adapter: 0, [credential], timeouts)
            await opener.waitUntilIdle()
            return result
        }
    }

    @Test("a reader is connected, opened and disconnected", arguments: [23, 517] as [UInt16])
    func opens(_ mtu: UInt16) async throws {
        stage.service.mtu = mtu
        let result = try await stage.open()
        #expect(result == OpeningResult(.success, decision: .granted, payload: [3], key: "door"))
        #expect(stage.service.reader.visitors == [try ModelKey().publicKey])
        #expect(stage.service.calls.last == "Disconnect")
        #expect(!stage.service.calls.contains("StartDiscovery"))
        // The adapter is free again.
        #expect(try await stage.open().status == .success)
    }

    @Test(
        "bluetoothd forgets a reader after the opening if the scan reads advertisements from it, unless a person trusts it",
        arguments: [(true, false, true), (true, true, false), (false, false, false)]
    )
    func forgets(_ readsDevices: Bool, _ isTrusted: Bool, _ forgets: Bool) async throws {
        stage.scan.readsDevices = readsDevices
        stage.service.isTrusted = isTrusted
        #expect(try await stage.open().status == .success)
        #expect(
            stage.service.calls.suffix(2) == (forgets ? ["Disconnect", "RemoveDevice"] : ["WriteValue", "Disconnect"])
        )
    }

    @Test("a reader that bluetoothd does not know is searched, and the search ends before the connection")
    func unknown() async throws {
        stage.service.isKnown = false
        #expect(try await stage.open().status == .success)
        let expected = ["ConnectDevice", "SetDiscoveryFilter", "StartDiscovery", "StopDiscovery", "Connect"]
        #expect(stage.service.calls.filter(expected.contains) == expected)
    }

    @Test("the search for a reader begins when the scan has left the adapter")
    func waitsForTheScan() async throws {
        stage.service.isKnown = false
        let (scan, leaving) = (stage.scan, OneShot<Void>())
        scan.leaving = leaving
        let opening = Task { @Loop in try await stage.open() }
        await scan.waiters.wait { !scan.left.isEmpty }
        #expect(scan.left == [0])
        #expect(!stage.service.calls.contains("StartDiscovery"))
        leaving.fill(())
        #expect(try await opening.value.status == .success)
        #expect(stage.service.calls.count { $0 == "StartDiscovery" } == 1)
        #expect(scan.left == [0])
    }

    @Test("a bluetoothd with option -E connects to a reader that it does not know without a search")
    func directly() async throws {
        stage.service.isKnown = false
        stage.service.isExperimental = true
        #expect(try await stage.open().status == .success)
        #expect(!stage.service.calls.contains("StartDiscovery"))
        #expect(!stage.service.calls.contains("Connect"))
        #expect(stage.service.calls.last == "Disconnect")
    }

    @Test(
        "a connection that fails before the dialogue is tried again, up to nine times",
        arguments: [(1, 0, true), (0, 1, true), (3, 5, true), (9, 0, false), (0, 9, false)]
    )
    func failedConnections(_ refused: Int, _ lost: Int, _ opens: Bool) async throws {
        stage.service.refusedConnections = refused
        stage.service.lostConnections = lost
        let result = try await stage.open()
        #expect(result.status == (opens ? .success : .bluetoothCommunicationFailed))
        #expect(stage.service.calls.filter { $0 == "Connect" }.count == min(refused + lost + 1, 9))
        guard !opens else { return }
        // The reason that bluetoothd gives, in its words.
        let reason = lost > 0 ? "the reader has ended the connection" : "org.bluez.Error.Failed: refused"
        #expect(result.reason?.description.contains(reason) == true)
    }

    @Test("an opening that ends at its limit names what bluetoothd has answered before")
    func lateAfterRefusal() async throws {
        stage.service.silentAfterRefusals = ["Connect"]
        var result: OpeningResult?
        var limit: Milliseconds = 1000
        // On a slow machine the limit may be over before the second attempt: then a longer one is tried.
        while result == nil, limit < 200_000 {
            stage.service.refusedConnections = 1
            let before = stage.service.calls.count
            let ended = try await stage.open { $0.connect = limit }
            let attempts = stage.service.calls.dropFirst(before).count { $0 == "Connect" }
            if attempts == 2 { result = ended }
            limit *= 4
        }
        #expect(result?.status == .timedOut)
        let words = "in time; before, bluetoothd has answered Connect with org.bluez."
        #expect(result?.reason?.description.contains(words) == true)
    }

    @Test("the result does not wait for the end of a connection that was not established")
    func lateEnd() async throws {
        stage.service.silent = ["Connect", "Disconnect"]
        let site = try DoorSite(identifier: Array(repeating: 0x51, count: 16))
        let credential = DoorCredential(id: "door", key: try ModelKey(), sites: [site], lastUpdate: 1)
        var timeouts = OpeningTimeouts()
        timeouts.connect = 500
        var isPrompt = false
        // bluetoothd may take five seconds to disconnect. On a slow machine the limit of the opening takes as long: then it is
        // tried again.
        for _ in 0..<10 where !isPrompt {
            await stage.opener.waitUntilIdle()
            let before = stage.service.calls.count
            let begun = ContinuousClock.now
            let result = await stage.opener.open(FakeGATT.address, adapter: 0, [credential], timeouts)
            #expect(result.status == .timedOut)
            let isEnding = stage.service.calls.dropFirst(before).contains("Disconnect")
            isPrompt = !isEnding || ContinuousClock.now - begun < .seconds(5)
        }
        #expect(isPrompt)
        // On a slow machine the call may not have been sent, so there is nothing to disconnect.
        guard stage.service.calls.contains("Connect") else { return }
        await stage.service.wait { stage.service.calls.contains("Disconnect") }
    }

    @Test("a connection that an earlier badged has left behind is named, and ended unless a program uses it")
    func leftBehind() async throws {
        #expect(await stage.connector.strangers(endsUnused: true).isEmpty)
        #expect(!stage.service.calls.contains("Disconnect"))
        stage.service.isConnectedBefore = true
        func reader(isEnded: Bool) -> [ConnectedReader] {
            [ConnectedReader(address: "C0:00:00:00:00:01", adapter: "hci0", isEnded: isEnded)]
        }
        #expect(await stage.connector.strangers(endsUnused: false) == reader(isEnded: false))
        stage.service.listeners = 1
        #expect(await stage.connector.strangers(endsUnused: true) == reader(isEnded: false))
        #expect(!stage.service.calls.contains("Disconnect"))
        stage.service.listeners = 0
        #expect(await stage.connector.strangers(endsUnused: true) == reader(isEnded: true))
        #expect(stage.service.calls.last == "Disconnect")
        // The scan shall see again what the reader advertises.
        for (isTrusted, last) in [(true, "Disconnect"), (false, "RemoveDevice")] {
            stage.scan.readsDevices = true
            stage.service.isTrusted = isTrusted
            stage.service.isConnectedBefore = true
            #expect(await stage.connector.strangers(endsUnused: true) == reader(isEnded: true))
            #expect(stage.service.calls.last == last)
        }
        #expect(await stage.connector.strangers(endsUnused: true).isEmpty)
        await stage.service.end()
        #expect(await stage.connector.strangers(endsUnused: true).isEmpty)
    }

    @Test("a reader with a wrong site key gets no key and is disconnected")
    func wrongKey() async throws {
        stage.service.reader.fault = .wrongSiteKey
        let result = try await stage.open()
        #expect(result.status == .readerFailure)
        #expect(stage.service.reader.visitors.isEmpty)
        #expect(stage.service.calls.last == "Disconnect")
    }

    @Test("a reader that ends the connection during the dialogue ends the opening", arguments: [1, 2])
    func lost(_ messages: Int) async throws {
        stage.service.disconnectsAfter = messages
        let result = try await stage.open()
        #expect(result.status == .bluetoothCommunicationFailed)
        #expect(result.reason == "the reader has ended the connection")
    }

    @Test(
        "errors of bluetoothd end the opening with the reason",
        arguments: [
            ("Connect", "org.bluez.Error.Failed"), ("StartNotify", "org.bluez.Error.Failed"),
            ("WriteValue", "org.bluez.Error.Failed"), ("GetManagedObjects", "bluetoothd does not list its objects"),
        ]
    )
    func refusals(_ method: String, _ reason: String) async throws {
        stage.service.refusals[method] = "org.bluez.Error.Failed"
        let result = try await stage.open()
        #expect(result.status == .bluetoothCommunicationFailed)
        #expect(result.reason?.description.contains(reason) == true)
        #expect(stage.service.calls.contains("Disconnect") == (method != "GetManagedObjects"))
    }

    @Test("an adapter that is off, a reader without PKOC and a flood of notifications end the opening")
    func hostile() async throws {
        stage.service.isPowered = false
        #expect(try await stage.open().reason == "hci0 is switched off")
        stage.service.isPowered = true
        stage.service.offersPKOC = false
        #expect(try await stage.open().reason == "the reader does not offer PKOC")
        stage.service.offersPKOC = true
        stage.service.flood = 200
        let result = try await stage.open()
        #expect(result.status == .readerFailure || result.status == .bluetoothCommunicationFailed)
        #expect(stage.service.calls.last == "Disconnect")
        await stage.service.wait { stage.service.callerWaited != nil }
        #expect(stage.service.callerWaited == true)
    }

    @Test(
        "a reader to which other programs listen is opened, and bluetoothd does not forget it",
        arguments: [1, 2],
        [23, 517] as [UInt16]
    )
    func shared(_ listeners: Int, _ mtu: UInt16) async throws {
        stage.scan.readsDevices = true
        (stage.service.listeners, stage.service.mtu) = (listeners, mtu)
        for _ in 0..<2 {
            #expect(try await stage.open() == OpeningResult(.success, decision: .granted, payload: [3], key: "door"))
        }
        #expect(stage.service.calls.last == "Disconnect")
    }

    @Test("a reader that another program uses is busy, and stays connected")
    func inUse() async throws {
        (stage.service.listeners, stage.service.isConnectedBefore) = (1, true)
        #expect(
            try await stage.open() == OpeningResult(.busy, reason: "another program is connected to the reader")
        )
        #expect(stage.service.calls == ["GetManagedObjects"])
        // A connection without notifications for other programs can be used.
        stage.service.listeners = 0
        #expect(try await stage.open().status == .success)
        stage.service.refusals["StartNotify"] = "org.bluez.Error.NotPermitted"
        let acquired = try await stage.open()
        #expect((acquired.status, acquired.decision) == (.busy, .unknown))
        #expect(acquired.reason == "another program has acquired the notifications of the reader")
        // The name of the device has its own translation.
        #expect(acquired.reason?.text { $0 == "the reader" ? "R" : nil }.hasSuffix("the notifications of R") == true)
    }

    @Test("a connection that takes too long is cancelled")
    func slow() async throws {
        stage.service.silent = ["Connect"]
        let result = try await stage.open { $0.connect = 500 }
        #expect(result.status == .timedOut)
        // On a slow machine the call may not have been sent, so there is nothing to disconnect.
        #expect(stage.service.calls.contains("Disconnect") == stage.service.calls.contains("Connect"))
    }

    @Test("an opening of a silent reader ends at its limit")
    func silent() async throws {
        stage.service.reader.fault = .silentAtEnd
        #expect(try await stage.open { $0.apdu = 2000 }.status == .readerTimedOutAPDU)
        #expect(stage.service.calls.last == "Disconnect")
    }

    @Test("without bluetoothd the opening fails at its time limit, and bluetoothd is not started")
    func noService() async throws {
        await stage.service.end()
        let result = try await stage.open { $0.connect = 2000 }
        // On a slow machine the bus may not have answered.
        let reasons: [Phrase?] = ["bluetoothd is not running", "the reader was not connected in time"]
        #expect(reasons.contains(result.reason))
    }

    @Test("an opening after a crash of bluetoothd waits for the next one and its adapter", arguments: [true, false])
    func restarts(_ hasAdapter: Bool) async throws {
        await stage.service.end()
        let opening = Task { @Loop in try await stage.open() }
        let bus = try SystemBus(address: stage.bus.address)
        defer { bus.close() }
        // As many answers of the bus as let the opening hear that there is no bluetoothd.
        for _ in 0..<50 {
            _ = await bus.result(of: .nameOwner, within: 120_000, arguments: { $0.append(BlueZName.bus) }) { _ in true }
        }
        let reader = ModelReader(signer: Self.siteScalar)
        let service = try await FakeGATT(stage.bus.address, reader, isPowered: hasAdapter)
        if !hasAdapter {
            await service.wait { service.calls.contains("GetManagedObjects") }
            service.switchOn()
        }
        #expect(try await opening.value.status == .success)
    }

    @Test("a discovery that bluetoothd refuses for a while is tried again")
    func refusedDiscovery() async throws {
        stage.service.isKnown = false
        stage.service.refusedDiscoveries = 3
        #expect(try await stage.open().status == .success)
        #expect(stage.service.calls.count { $0 == "StartDiscovery" } == 4)
    }

    @Test("a cancelled opening disconnects the reader")
    func cancelled() async throws {
        stage.service.reader.fault = .silentAtEnd
        let opening = Task { @Loop in try await stage.open() }
        await stage.service.wait { stage.service.reader.visitors.count == 1 }
        opening.cancel()
        #expect(try await opening.value.status == .bluetoothCommunicationFailed)
        #expect(stage.service.calls.last == "Disconnect")
    }
}
