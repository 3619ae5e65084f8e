// SPDX-License-Identifier: GPL-3.0-or-later
import Concurrency
import DoorReaders
import DoorTestSupport
import TestSupport
import Testing

@testable import Bluetooth
@testable import Host
@testable import Scanners

/// The emulated service on a real dbus-daemon.
@Loop struct EmulatedBlueZ {
    let bus: PrivateBus
    let service: FakeBlueZ
}

typealias BlueZFixture = ScannerFixture<BlueZScanner, EmulatedBlueZ>

extension ScannerFixture where Subject == BlueZScanner, Other == EmulatedBlueZ {
    init(
        _ configure: (FakeBlueZ) -> Void = { _ in },
        mayDisconnect: Bool = false,
        _ configuration: RadioConfiguration = RadioConfiguration(),
        timing: BlueZScanner.Timing = .init()
    ) async throws {
        var configuration = configuration
        configuration.mayDisconnect = mayDisconnect
        let bus = try await PrivateBus.start()
        let service = try await FakeBlueZ(bus.address)
        configure(service)
        let scanner = BlueZScanner(address: bus.address, configuration, timing: timing)
        self.init(scanner, EmulatedBlueZ(bus: bus, service: service))
    }

    var bus: PrivateBus { other.bus }
    var service: FakeBlueZ { other.service }

    static var door: String { "/org/bluez/hci0/dev_C0_00_00_00_00_01" }
}

extension ScanDemand {
    static let performance = ScanDemand(mode: .performance)
    static let powerSaving = ScanDemand(mode: .powerSaving)
}

@Suite("BlueZScanner with an emulated bluetoothd on a real bus", .timeLimit(.minutes(5)))
@Loop struct BlueZScannerTests {
    private let fixture: BlueZFixture

    init() async throws { fixture = try await BlueZFixture() }

    @Test(
        "only the adapters that badged.conf lets scan are used, by number or address, also when they come later",
        arguments: ["hci1", "00:11:22:33:44:56"]
    )
    func chosenAdapters(_ name: String) async throws {
        let lines = "[ble]\nadapters = \(name), hci0 open\ncoded_phy = yes"
        let rules = try Configuration(bytes: Array(lines.utf8), file: "").radio
        let fixture = try await BlueZFixture({ $0.adapters["/org/bluez/hci1"] = .init(number: 1) }, rules)
        await fixture.listen(.performance)
        #expect(fixture.observer.status.adapters.map(\.name) == ["hci1"])
        #expect(fixture.observer.status.unused.map(\.name) == ["hci0"])
        #expect(fixture.observer.status.withoutCodedPHY == ["hci1"])
        // Another program's discovery on the other adapter.
        fixture.service.found(BlueZFixture.door, FakeBlueZ.seos("C0:00:00:00:00:01", -50))
        let own = BlueZFixture.door.replacing("hci0", with: "hci1")
        fixture.service.found(own, FakeBlueZ.seos("C0:00:00:00:00:01", -60))
        await fixture.observer.wait { !$0.advertisements.isEmpty }
        #expect(fixture.observer.advertisements.map(\.adapter) == [1])
        #expect(!fixture.service.calls.contains("StartDiscovery hci0"))
        fixture.service.remove("/org/bluez/hci1", "org.bluez.Adapter1")
        await fixture.observer.wait { $0.status.fault?.isConfigured == true }
        fixture.service.addAdapter("/org/bluez/hci1", .init(number: 1))
        await fixture.observer.wait { $0.status.isListening && $0.status.fault == nil }
    }

    @Test("a discovery with a filter starts, and devices and their signal strengths are received as advertisements")
    func receives() async throws {
        await fixture.listen(.performance)
        #expect(fixture.service.filter == ["Transport": "le", "RSSI": "-127", "DuplicateData": "true"])
        #expect(
            fixture.observer.status.adapters == [
                RadioAdapter(name: "hci0", address: "00:11:22:33:44:55", isPowered: true, isListening: true)
            ]
        )
        fixture.service.found(BlueZFixture.door, FakeBlueZ.seos("C0:00:00:00:00:01", -60))
        fixture.service.changed(BlueZFixture.door, FakeBlueZ.strength(-61))
        await fixture.observer.wait { $0.advertisements.count == 2 }
        #expect(fixture.service.calls.filter { $0.hasPrefix("GetManagedObjects") }.count == 1)
        #expect(fixture.observer.advertisements.map(\.report.rssi) == [-60, -61])
        for entry in fixture.observer.advertisements {
            #expect(entry.report.address == DeviceAddress("C0:00:00:00:00:01", isRandom: true))
            #expect((entry.facts.profile, entry.facts.lockServiceCode) == (.seos, 2))
            #expect(entry.facts.openingTypes == .motion)
            #expect(entry.facts.limits == .init(proximity: -50, motion: -75, seamless: -70))
            #expect(entry.facts.name != nil)
            #expect(entry.adapter == 0)
        }
        fixture.scanner.stop()
    }

    @Test("the radio of a scan that was stopped is left when bluetoothd has ended the discovery")
    func stops() async throws {
        await fixture.listen(.performance)
        #expect(await isLeftWithAnswer { fixture.scanner.stop() })
    }

    /// Ends a scan whose end bluetoothd confirms late: whether the radio is left only then.
    private func isLeftWithAnswer(_ end: () -> Void) async -> Bool {
        let (scanner, service) = (fixture.scanner, fixture.service)
        service.held = ["StopDiscovery"]
        end()
        let left = Task { @Loop in
            await scanner.waitUntilLeft(0, within: 120_000)
            return service.held.isEmpty
        }
        await service.wait(for: "StopDiscovery hci0")
        service.release()
        return await left.value
    }

    @Test("the radio is left to a connection when bluetoothd has ended the discovery")
    func leaves() async throws {
        let (scanner, service) = (fixture.scanner, fixture.service)
        await fixture.listen(.performance)
        await scanner.waitUntilLeft(0, within: 120_000)
        #expect(await isLeftWithAnswer { scanner.reserve(0, true) })
        // A bluetoothd that does not answer is not waited for.
        scanner.reserve(0, false)
        await service.wait(for: "StartDiscovery hci0", times: 2)
        service.held = ["StopDiscovery"]
        await fixture.observer.wait { $0.status.adapters.first?.isListening == true }
        scanner.reserve(0, true)
        await scanner.waitUntilLeft(0, within: 1)
    }

    @Test("a device from before the scan is received when its signal strength changes")
    func cached() async throws {
        fixture.service.devices[BlueZFixture.door] = FakeBlueZ.seos("C0:00:00:00:00:01", -60)
        await fixture.listen(.performance)
        #expect(fixture.observer.advertisements.isEmpty)
        fixture.service.changed(BlueZFixture.door, FakeBlueZ.strength(-70))
        await fixture.observer.wait { !$0.advertisements.isEmpty }
        #expect(fixture.observer.advertisements.first?.facts.profile == .seos)
        #expect(fixture.observer.advertisements.first?.report.rssi == -70)
    }

    @Test(
        "what bluetoothd says of a device is kept from the first signal on, before it is known as a reader"
    )
    func lateMark() async throws {
        await fixture.listen(.performance)
        let path = "/org/bluez/hci0/dev_5B_00_00_00_00_01"
        fixture.service.found(path) { message in
            message.property("Address", "s") { message.append("5B:00:00:00:00:01") }
            message.property("AddressType", "s") { message.append("random") }
            message.property("Name", "s") { message.append("Lobby") }
            message.property("RSSI", "n") { message.append(Int16(-60), "n") }
        }
        fixture.service.changed(path) { message in
            message.property("TxPower", "n") { message.append(Int16(4), "n") }
            message.property("RSSI", "n") { message.append(Int16(-61), "n") }
        }
        fixture.service.changed(path) { message in
            message.property("UUIDs", "as") {
                message.container("a", "s") { message.append("00009800-0000-1000-8000-00177a000021") }
            }
            message.property("RSSI", "n") { message.append(Int16(-62), "n") }
        }
        await fixture.observer.wait { $0.advertisements.count == 3 }
        #expect(fixture.observer.advertisements.map(\.report.address.kind) == [.resolvable, .resolvable, .resolvable])
        let facts = try #require(fixture.observer.advertisements.last).facts
        #expect((facts.profile, facts.lockServiceCode, facts.name, facts.txPower) == (.seos, 33, "Lobby", 4))
        fixture.scanner.stop()
    }

    @Test("the properties of a device that is not stored are read when it is received")
    func forgotten() async throws {
        await fixture.listen(.performance)
        fixture.service.devices[BlueZFixture.door] = FakeBlueZ.seos("C0:00:00:00:00:01", -70)
        fixture.service.changed(BlueZFixture.door, FakeBlueZ.strength(-70))
        await fixture.observer.wait { !$0.advertisements.isEmpty }
        let entry = try #require(fixture.observer.advertisements.first)
        #expect((entry.report.address.kind, entry.facts.profile, entry.report.rssi) == (.static, .seos, -70))
        // A device that bluetoothd does not know any more is not reported, and nothing is assumed about its address.
        fixture.service.changed("/org/bluez/hci0/dev_C0_00_00_00_00_02", FakeBlueZ.strength(-50))
        fixture.service.changed(BlueZFixture.door, FakeBlueZ.strength(-71))
        await fixture.service.wait(for: "GetAll dev_C0_00_00_00_00_02")
        await fixture.observer.wait { $0.advertisements.last?.report.rssi == -71 }
        #expect(fixture.observer.advertisements.count == 2)
        #expect(fixture.service.calls.filter { $0.hasPrefix("GetAll") }.count == 2)
        fixture.scanner.stop()
    }

    @Test("a controller that drops repeated advertisements is a fault with advice, until monitors are active")
    func repeats() async throws {
        let clock = ManualClock()
        fixture.scanner.now = { clock.now }
        await fixture.listen(.performance)
        #expect(fixture.observer.status.repeatInterval == 10_900)
        for round in 0..<4 {
            #expect(fixture.observer.status.fault == nil)
            clock.advance(10_500)
            let fill = FakeBlueZ.seos("C0:00:00:00:00:01", Int16(-60 - round))
            if round == 0 {
                fixture.service.found(BlueZFixture.door, fill)
            } else {
                fixture.service.changed(BlueZFixture.door, fill)
            }
            await fixture.observer.wait { $0.advertisements.count == round + 1 }
        }
        // The scanner starts the discovery again, and such a controller then reports the reader at once.
        for round in 0..<2 {
            #expect(fixture.observer.status.fault == nil)
            await fixture.service.wait(for: "StartDiscovery hci0", times: 2 + round)
            await fixture.observer.wait { $0.listening.last == true }
            clock.advance(300)
            fixture.service.changed(BlueZFixture.door, FakeBlueZ.strength(Int16(-70 - round)))
            await fixture.observer.wait { $0.advertisements.count == 5 + round }
        }
        #expect(fixture.observer.status.fault?.kind == .scan)
        #expect(fixture.observer.status.fault?.text.contains("hci0 reports each sender only once") == true)
        #expect(fixture.observer.status.fault?.advice.contains("-E") == true)
        #expect(fixture.observer.status.isListening)
        for round in 1...3 {
            clock.advance(1000)
            fixture.service.changed(BlueZFixture.door, FakeBlueZ.strength(Int16(-80 - round)))
            await fixture.observer.wait { $0.advertisements.count == 6 + round }
        }
        #expect(fixture.observer.status.fault == nil)
        #expect(fixture.observer.status.repeatInterval == nil)
        fixture.scanner.stop()
    }

    @Test("monitors are registered where the service supports them, and then the discovery is restarted")
    func monitors() async throws {
        fixture.service.adapters["/org/bluez/hci0"]?.hasMonitors = true
        await fixture.listen(.performance)
        await fixture.service.wait(for: "StartDiscovery hci0", times: 2)
        #expect(fixture.service.patterns.values.reduce(0, +) == AdvertisementPattern.doors.count)
        // With eight patterns in one monitor bluetoothd 5.66 crashes.
        #expect(fixture.service.patterns.values.allSatisfy { (1...7).contains($0) })
        #expect(fixture.service.calls.filter { $0.hasPrefix("RegisterMonitor") }.count == 1)
        // Beacons have further patterns.
        let all = Set(ReaderProfile.allCases)
        fixture.scanner.scan(ScanDemand(mode: .performance, profiles: all))
        await fixture.service.wait(for: "UnregisterMonitor hci0")
        await fixture.service.wait(for: "patterns", times: 2)
        #expect(fixture.service.patterns.values.reduce(0, +) == AdvertisementPattern.patterns(for: all).count)
        await fixture.service.wait(for: "StartDiscovery hci0", times: 3)
        fixture.scanner.stop()
    }

    @Test("an adapter that is off or missing is a fault, and the scan continues when the adapter is back")
    func power() async throws {
        fixture.service.adapters["/org/bluez/hci0"]?.isPowered = false
        fixture.scanner.scan(ScanDemand())
        await fixture.observer.wait { $0.status.fault?.kind == .adapter }
        fixture.service.power("/org/bluez/hci0", true)
        await fixture.observer.wait { $0.status.isListening && $0.status.fault == nil }
        fixture.service.power("/org/bluez/hci0", false)
        await fixture.observer.wait { !$0.status.isListening && $0.status.fault?.text.contains("switched off") == true }
        fixture.service.remove("/org/bluez/hci0", "org.bluez.Adapter1")
        await fixture.observer.wait {
            $0.status.adapters.isEmpty && $0.status.fault?.text.contains("no Bluetooth") == true
        }
        #expect(fixture.observer.removedAdapters == [0])
        fixture.service.addAdapter("/org/bluez/hci1")
        await fixture.observer.wait { $0.status.isListening && $0.status.adapters.map(\.name) == ["hci1"] }
    }

    @Test("the end of bluetoothd is a fault, and the scan continues with a new bluetoothd")
    func restart() async throws {
        await fixture.listen(.performance)
        fixture.service.end()
        await fixture.observer.wait { $0.status.fault?.kind == .service }
        #expect(fixture.observer.removedAdapters == [0])
        #expect(!fixture.observer.status.isListening)
        try await fixture.service.restart()
        await fixture.observer.wait { $0.status.isListening && $0.status.fault == nil }
        #expect(fixture.service.calls.filter { $0 == "StartDiscovery hci0" }.count == 2)
    }

    @Test("the end of the bus is a fault")
    func busEnds() async throws {
        await fixture.listen(.performance)
        fixture.bus.stop()
        await fixture.observer.wait { $0.status.fault?.text.contains("D-Bus") == true }
        #expect(!fixture.observer.status.isListening)
        fixture.scanner.stop()
        #expect(fixture.scanner.status == ScannerStatus())
    }

    @Test("each recovery step is taken, without a power cycle when there are connections")
    func recovery() async throws {
        await fixture.listen(.performance)
        #expect(fixture.scanner.recover(.renew, adapter: nil))
        await fixture.service.wait(for: "SetDiscoveryFilter hci0", times: 2)
        #expect(fixture.scanner.recover(.restart, adapter: nil))
        await fixture.service.wait(for: "StartDiscovery hci0", times: 2)
        #expect(fixture.scanner.recover(.powerCycle, adapter: nil))
        await fixture.scanner.cycles.waitUntilIdle()
        #expect(fixture.service.calls.filter { $0 == "Set hci0" }.count == 2)
        await fixture.service.wait(for: "StartDiscovery hci0", times: 3)
        #expect(fixture.scanner.recover(.reopen, adapter: nil))
        await fixture.service.wait(for: "StartDiscovery hci0", times: 4)
        await fixture.observer.wait { $0.status.isListening }

        fixture.service.devices[BlueZFixture.door] = { message in
            message.property("Connected", "b") { message.append(true) }
        }
        #expect(fixture.scanner.recover(.powerCycle, adapter: nil))
        await fixture.scanner.cycles.waitUntilIdle()
        #expect(fixture.service.calls.filter { $0 == "Set hci0" }.count == 2)
    }

    @Test("each recovery step can be taken for one adapter without an effect on the other")
    func oneAdapter() async throws {
        fixture.service.adapters["/org/bluez/hci1"] = .init()
        await fixture.listen(.performance)
        await fixture.observer.wait { $0.status.adapters.filter(\.isListening).count == 2 }
        let before = fixture.service.calls.filter { $0.hasSuffix("hci0") }
        #expect(fixture.scanner.recover(.probe, adapter: 1))
        await fixture.service.wait(for: "SetDiscoveryFilter hci1", times: 2)
        #expect(fixture.scanner.recover(.restart, adapter: 1))
        await fixture.service.wait(for: "StartDiscovery hci1", times: 2)
        #expect(fixture.scanner.recover(.powerCycle, adapter: 1))
        await fixture.service.wait(for: "Set hci1", times: 2)
        #expect(!fixture.scanner.recover(.reopen, adapter: 1))
        #expect(!fixture.scanner.recover(.renew, adapter: 7))
        #expect(fixture.service.calls.filter { $0.hasSuffix("hci0") } == before)
    }

    @Test("an inspection without a scan reports adapters and faults and starts nothing")
    func inspection() async throws {
        func inspect(hasAdapter: Bool = true) async -> ScannerStatus {
            await BlueZInspection.status(.address(fixture.bus.address), hasAdapter: hasAdapter, timeout: 600_000)
        }
        #expect(await inspect().fault == nil)
        #expect(await inspect().adapters.map(\.name) == ["hci0"])
        fixture.service.power("/org/bluez/hci0", false)
        #expect(await inspect().fault == .adapterOff)
        fixture.service.remove("/org/bluez/hci0", "org.bluez.Adapter1")
        #expect(await inspect().fault == .noAdapter)
        #expect(fixture.service.calls.allSatisfy { $0.hasPrefix("GetManagedObjects") })
        fixture.service.end()
        // After this answer the bus has processed the end of the service.
        let other = try SystemBus(address: fixture.bus.address)
        await withCheckedContinuation { continuation in
            other.call(
                BusMethod("/org/freedesktop/DBus", "org.freedesktop.DBus", "GetId", of: "org.freedesktop.DBus"),
                answer: { _ in continuation.resume() }
            )
        }
        #expect(await inspect().fault == ScannerFault.noService)
        #expect(await inspect(hasAdapter: false).fault == .noAdapter)
        fixture.bus.stop()
        #expect(await inspect().fault == BlueZFault.bus(.noBus))
    }

    @Test("signals with wrong types are counted and ignored, and those of other programs are ignored")
    func malformed() async throws {
        await fixture.listen(.performance)
        let service = fixture.service
        let properties = "org.freedesktop.DBus.Properties"
        service.signal(BlueZFixture.door, properties, "PropertiesChanged") { $0.append(UInt32(7), "u") }
        service.signal(BlueZFixture.door, properties, "PropertiesChanged") { $0.append("org.bluez.Device1") }
        service.signal("/", "org.freedesktop.DBus.ObjectManager", "InterfacesAdded") { $0.append("not a path") }
        service.signal("/", "org.freedesktop.DBus.ObjectManager", "InterfacesRemoved") { _ in }
        service.changed(BlueZFixture.door) { message in
            message.property("RSSI", "s") { message.append("-60") }
            message.property("UUIDs", "s") { message.append("00009800-0000-1000-8000-00177a000002") }
        }
        service.found(BlueZFixture.door) { message in
            message.property("Address", "s") { message.append("no address") }
            message.property("RSSI", "n") { message.append(Int16(-60), "n") }
        }
        service.found("/org/bluez/hci0/dev_C0_00_00_00_00_02") { message in
            message.property("Address", "s") { message.append("C0:00:00:00:00:02") }
            message.property("AddressType", "s") { message.append("random") }
            message.property("UUIDs", "as") {
                message.container("a", "s") {
                    message.append("zz")
                    message.append("00009800-0000-1000-8000-00177a000009")
                }
            }
            message.property("ServiceData", "a{sv}") {
                message.container("a", "{sv}") {
                    message.container("e", "sv") {
                        message.append("0000fff2-0000-1000-8000-00805f9b34fb")
                        message.container("v", "s") { message.append("no bytes") }
                    }
                }
            }
            message.property("RSSI", "n") { message.append(Int16(-3000), "n") }
        }
        // Another program sends a signal of the service.
        let other = try SystemBus(address: fixture.bus.address)
        other.changed(BlueZFixture.door, of: BlueZName.device, FakeBlueZ.strength(-1))
        service.changed("/org/bluez/hci0/dev_C0_00_00_00_00_02", FakeBlueZ.strength(-60))
        await fixture.observer.wait { $0.advertisements.last?.report.rssi == -60 }
        #expect(fixture.observer.advertisements.map(\.report.rssi) == [-128, -60])
        #expect(fixture.observer.advertisements.last?.facts.lockServiceCode == 9)
        #expect(fixture.scanner.status.malformed == 4)
    }
}

@Suite("BlueZScanner with other times and settings", .timeLimit(.minutes(5)))
@Loop struct BlueZTimingTests {
    @Test(
        "after the error InProgress the discovery is stopped and started again; the seventh one is a fault",
        arguments: [6, 8]
    )
    func inProgress(refusals: Int) async throws {
        var timing = BlueZScanner.Timing()
        timing.retry = 1
        let fixture = try await BlueZFixture(
            { $0.refusals = Array(repeating: "org.bluez.Error.InProgress", count: refusals) },
            timing: timing
        )
        fixture.scanner.scan(.performance)
        // The kernel lets a bluetoothd that has just started discover when the discovery of one that crashed is over.
        await fixture.observer.wait { $0.status.isListening }
        #expect(fixture.observer.faults.contains { $0.kind == .scan } == (refusals > 6))
        #expect(fixture.observer.status.fault == nil)
        let calls = fixture.service.calls.filter { $0.contains("Discovery ") }
        #expect(
            calls == (0..<refusals).flatMap { _ in ["StartDiscovery hci0", "StopDiscovery hci0"] }
                + ["StartDiscovery hci0"]
        )
    }

    @Test(
        "one of two adapters that bluetoothd does not let scan is named, while the other one scans, in each mode",
        arguments: [ScanDemand.performance, .powerSaving]
    )
    func oneRefusedAdapter(_ demand: ScanDemand) async throws {
        var timing = BlueZScanner.Timing()
        (timing.retry, timing.on, timing.off) = (1, 50, 1)
        let second = "/org/bluez/hci1"
        let fixture = try await BlueZFixture({ $0.adapters[second] = .init(number: 1) }, timing: timing)
        fixture.service.refusing = [second]
        await fixture.listen(demand)
        await fixture.observer.wait { $0.status.fault?.text.hasSuffix("with hci1") == true }
        let starts = fixture.service.calls.count { $0 == "StartDiscovery hci1" }
        // Further attempts change nothing.
        await fixture.service.wait(for: "StartDiscovery hci1", times: starts + 2)
        #expect(fixture.observer.status.fault?.text.hasSuffix("with hci1") == true)
        #expect(fixture.observer.status.isListening)
        fixture.service.refusing = []
        await fixture.observer.wait { $0.status.fault == nil && $0.status.adapters.allSatisfy(\.isListening) }
        fixture.scanner.stop()
    }

    @Test(
        "two adapters that bluetoothd refuses at the same time count as one failure, after which both are tried again"
    )
    func refusedTogether() async throws {
        var timing = BlueZScanner.Timing()
        timing.retry = 600_000
        let fixture = try await BlueZFixture({ $0.adapters["/org/bluez/hci1"] = .init(number: 1) }, timing: timing)
        fixture.service.refusing = ["/org/bluez/hci0", "/org/bluez/hci1"]
        fixture.scanner.scan(.performance)
        await fixture.service.wait(for: "StopDiscovery hci0")
        await fixture.service.wait(for: "StopDiscovery hci1")
        #expect(fixture.scanner.failures == 1)
        fixture.scanner.stop()
    }

    @Test("a radio with which bluetoothd refuses to scan does not count as listening in the pauses of power saving")
    func refusedWithPauses() async throws {
        var timing = BlueZScanner.Timing()
        (timing.retry, timing.on, timing.off) = (1, 1, 1)
        let fixture = try await BlueZFixture({ $0.refusing = ["/org/bluez/hci0"] }, timing: timing)
        fixture.scanner.scan(.powerSaving)
        await fixture.observer.wait { $0.status.fault != nil }
        // Long enough for some pauses.
        await fixture.service.wait(for: "StartDiscovery hci0", times: 30)
        #expect(!fixture.observer.listening.contains(true))
        fixture.scanner.stop()
    }

    @Test("a scan waits for bluetoothd")
    func late() async throws {
        let bus = try await PrivateBus.start()
        let (scanner, observer) = (BlueZScanner(address: bus.address), RecordingObserver())
        scanner.observer = observer
        scanner.scan(.performance)
        await observer.wait { $0.status.fault?.kind == .service }
        let service = try await FakeBlueZ(bus.address)
        await observer.wait { $0.status.isListening }
        #expect(service.calls.contains("StartDiscovery hci0"))
        scanner.stop()
    }

    @Test("the discovery has pauses in power saving and none in performance")
    func dutyCycle() async throws {
        var timing = BlueZScanner.Timing()
        (timing.on, timing.off) = (5, 5)
        let fixture = try await BlueZFixture(timing: timing)
        await fixture.listen(.powerSaving)
        await fixture.observer.wait { $0.status.isPausing }
        await fixture.observer.wait { !$0.status.isPausing }
        await fixture.service.wait(for: "StopDiscovery hci0", times: 2)
        await fixture.service.wait(for: "StartDiscovery hci0", times: 3)
        fixture.scanner.scan(.performance)
        // After this round trip no message from before the change is outstanding.
        fixture.service.found(BlueZFixture.door, FakeBlueZ.seos("C0:00:00:00:00:01", -50))
        await fixture.observer.wait { !$0.advertisements.isEmpty && $0.status.isListening }
    }

    @Test("the radio counts as listening in the pauses of power saving and when the discovery starts again")
    func steady() async throws {
        var timing = BlueZScanner.Timing()
        (timing.on, timing.off) = (20, 20)
        let fixture = try await BlueZFixture(timing: timing)
        await fixture.listen(.performance)
        fixture.scanner.scan(.powerSaving)
        await fixture.service.wait(for: "StartDiscovery hci0", times: 4)
        #expect(!fixture.observer.listening.drop { !$0 }.contains(false))
        fixture.scanner.stop()
    }

    @Test("a probe is a discovery without a filter, and afterwards the filter is set again")
    func probe() async throws {
        var timing = BlueZScanner.Timing()
        timing.probe = 1
        let fixture = try await BlueZFixture(timing: timing)
        await fixture.listen(.performance)
        #expect(fixture.scanner.recover(.probe, adapter: nil))
        await fixture.service.wait(for: "SetDiscoveryFilter hci0", times: 3)
        #expect(fixture.service.filters.map(\.count) == [3, 0, 3])
    }

    @Test("a probe ends the pause of power saving")
    func probeInPause() async throws {
        var timing = BlueZScanner.Timing()
        (timing.on, timing.off) = (1, 600_000)
        let fixture = try await BlueZFixture(timing: timing)
        await fixture.listen(.powerSaving)
        await fixture.service.wait(for: "StopDiscovery hci0")
        #expect(fixture.scanner.recover(.probe, adapter: nil))
        await fixture.service.wait(for: "StartDiscovery hci0", times: 2)
    }

    @Test("a scan that starts after one has ended in its pause discovers at once")
    func stopInPause() async throws {
        var timing = BlueZScanner.Timing()
        (timing.on, timing.off) = (1, 600_000)
        let fixture = try await BlueZFixture(timing: timing)
        await fixture.listen(.powerSaving)
        await fixture.service.wait(for: "StopDiscovery hci0")
        fixture.scanner.stop()
        let count = fixture.service.calls.filter { $0 == "StartDiscovery hci0" }.count
        await fixture.listen(.powerSaving)
        await fixture.service.wait(for: "StartDiscovery hci0", times: count + 1)
    }

    @Test("an adapter with connections is switched off and on where this is configured")
    func mayDisconnect() async throws {
        let connected: (BusMessage) -> Void = { message in
            message.property("Connected", "b") { message.append(true) }
        }
        let fixture = try await BlueZFixture({ $0.devices[BlueZFixture.door] = connected }, mayDisconnect: true)
        await fixture.listen(.performance)
        #expect(fixture.scanner.recover(.powerCycle, adapter: nil))
        await fixture.service.wait(for: "Set hci0", times: 2)
    }

    @Test(
        "UUIDs in text are encoded as in advertising data",
        arguments: [
            ("0000fff0-0000-1000-8000-00805f9b34fb", [0xF0, 0xFF]),
            ("0000FFF0-0000-1000-8000-00805F9B34FB", [0xF0, 0xFF]),
            (
                "00009800-0000-1000-8000-00177a000002",
                [0x02, 0, 0, 0x7A, 0x17, 0, 0, 0x80, 0, 0x10, 0, 0, 0, 0x98, 0, 0]
            ),
            ("00009800-0000-1000-8000-00177a00000", nil), ("", nil), ("----", nil),
            ("0000980g-0000-1000-8000-00177a000002", nil), ("fff0", nil),
        ] as [(String, [UInt8]?)]
    )
    func uuids(text: String, bytes: [UInt8]?) { #expect(BlueZDevice.bytes(text) == bytes) }
}
