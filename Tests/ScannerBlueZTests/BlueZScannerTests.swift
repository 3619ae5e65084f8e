// SPDX-License-Identifier: GPL-3.0-or-later
import Concurrency
import DoorReaders
import Scanners
import TestSupport
import Testing

@testable import ScannerBlueZ

/// The fake service on a real dbus-daemon.
@Loop struct PlayedBlueZ {
    let bus: PrivateBus
    let service: FakeBlueZ
}

typealias BlueZStage = ScannerFixture<BlueZScanner, PlayedBlueZ>

extension ScannerFixture where Subject == BlueZScanner, Other == PlayedBlueZ {
    init(
        _ configure: (FakeBlueZ) -> Void = { _ in },
        mayDisconnect: Bool = false,
        timing: BlueZScanner.Timing = .init()
    ) async throws {
        let bus = try await PrivateBus.start()
        let service = try await FakeBlueZ(bus.address)
        configure(service)
        let scanner = BlueZScanner(address: bus.address, mayDisconnect: mayDisconnect, timing: timing)
        self.init(scanner, PlayedBlueZ(bus: bus, service: service))
    }

    var bus: PrivateBus { other.bus }
    var service: FakeBlueZ { other.service }

    static var door: String { "/org/bluez/hci0/dev_C0_00_00_00_00_01" }
}

extension ScanDemand {
    static let performance = ScanDemand(mode: .performance)
    static let powerSaving = ScanDemand(mode: .powerSaving)
}

@Suite("Scanning through bluetoothd (a fake one on a real bus)", .timeLimit(.minutes(5)))
struct BlueZScannerTests {
    @Test("filter and discovery start; a device that is found and its changes of strength are heard as advertisements")
    @Loop func hears() async throws {
        let stage = try await BlueZStage()
        await stage.listen(.performance)
        #expect(stage.service.filter == ["Transport": "le", "RSSI": "-127", "DuplicateData": "true"])
        #expect(
            stage.observer.status.adapters == [
                RadioAdapter(name: "hci0", address: "00:11:22:33:44:55", isPowered: true, isListening: true)
            ]
        )
        stage.service.found(BlueZStage.door, FakeBlueZ.seos("C0:00:00:00:00:01", -60))
        stage.service.changed(BlueZStage.door, FakeBlueZ.strength(-61))
        await stage.observer.wait { $0.advertisements.count == 2 }
        #expect(stage.service.calls.filter { $0.hasPrefix("GetManagedObjects") }.count == 1)
        #expect(stage.observer.advertisements.map(\.report.rssi) == [-60, -61])
        for entry in stage.observer.advertisements {
            #expect(entry.report.address == DeviceAddress("C0:00:00:00:00:01", isRandom: true))
            #expect((entry.facts.profile, entry.facts.lockServiceCode) == (.seos, 2))
            #expect(entry.facts.openingTypes == .motion)
            #expect(entry.facts.limits == .init(proximity: -50, motion: -75, seamless: -70))
            #expect(entry.facts.name != nil)
            #expect(entry.adapter == 0)
        }
        stage.scanner.stop()
    }

    @Test("a device that was there before is no news until its strength changes")
    @Loop func cached() async throws {
        let stage = try await BlueZStage { $0.devices[BlueZStage.door] = FakeBlueZ.seos("C0:00:00:00:00:01", -60) }
        await stage.listen(.performance)
        #expect(stage.observer.advertisements.isEmpty)
        stage.service.changed(BlueZStage.door, FakeBlueZ.strength(-70))
        await stage.observer.wait { !$0.advertisements.isEmpty }
        #expect(stage.observer.advertisements.first?.facts.profile == .seos)
        #expect(stage.observer.advertisements.first?.report.rssi == -70)
    }

    @Test("monitors are registered where the service takes them, and the discovery that began without them begins anew")
    @Loop func monitors() async throws {
        let stage = try await BlueZStage { $0.adapters["/org/bluez/hci0"]?.hasMonitors = true }
        await stage.listen(.performance)
        await stage.service.wait(for: "StartDiscovery hci0", times: 2)
        #expect(stage.service.patterns.values.reduce(0, +) == AdvertisementPattern.doors.count)
        // With eight in one monitor bluetoothd 5.66 ends with a corrupted heap.
        #expect(stage.service.patterns.values.allSatisfy { (1...7).contains($0) })
        #expect(stage.service.calls.filter { $0.hasPrefix("RegisterMonitor") }.count == 1)
        // Beacons have other marks.
        let all = Set(ReaderProfile.allCases)
        stage.scanner.scan(ScanDemand(mode: .performance, profiles: all))
        await stage.service.wait(for: "UnregisterMonitor hci0")
        await stage.service.wait(for: "patterns", times: 2)
        #expect(stage.service.patterns.values.reduce(0, +) == AdvertisementPattern.patterns(for: all).count)
        await stage.service.wait(for: "StartDiscovery hci0", times: 3)
        stage.scanner.stop()
    }

    @Test("InProgress: what hangs is ended, and the start tried again")
    @Loop func inProgress() async throws {
        var timing = BlueZScanner.Timing()
        timing.retry = 1
        let stage = try await BlueZStage(
            { $0.refusals = ["org.bluez.Error.InProgress", "org.bluez.Error.InProgress"] },
            timing: timing
        )
        stage.scanner.scan(.performance)
        await stage.observer.wait { $0.status.fault?.kind == .scan }
        await stage.observer.wait { $0.status.isListening }
        #expect(stage.observer.status.fault == nil)
        let calls = stage.service.calls.filter { $0.contains("Discovery ") }
        #expect(
            calls == [
                "StartDiscovery hci0", "StopDiscovery hci0", "StartDiscovery hci0", "StopDiscovery hci0",
                "StartDiscovery hci0",
            ]
        )
    }

    @Test("an adapter that is switched off, or not there, is named; when it comes the scan goes on")
    @Loop func power() async throws {
        let stage = try await BlueZStage { $0.adapters["/org/bluez/hci0"]?.isPowered = false }
        stage.scanner.scan(ScanDemand())
        await stage.observer.wait { $0.status.fault?.kind == .adapter }
        stage.service.power("/org/bluez/hci0", true)
        await stage.observer.wait { $0.status.isListening && $0.status.fault == nil }
        stage.service.power("/org/bluez/hci0", false)
        await stage.observer.wait { !$0.status.isListening && $0.status.fault?.text.contains("switched off") == true }
        stage.service.remove("/org/bluez/hci0", "org.bluez.Adapter1")
        await stage.observer.wait {
            $0.status.adapters.isEmpty && $0.status.fault?.text.contains("no Bluetooth") == true
        }
        #expect(stage.observer.removedAdapters == [0])
        stage.service.addAdapter("/org/bluez/hci1")
        await stage.observer.wait { $0.status.isListening && $0.status.adapters.map(\.name) == ["hci1"] }
    }

    @Test("bluetoothd ends and comes back: it is said, and the scan goes on with the new one")
    @Loop func restart() async throws {
        let stage = try await BlueZStage()
        await stage.listen(.performance)
        stage.service.end()
        await stage.observer.wait { $0.status.fault?.kind == .service }
        #expect(stage.observer.removedAdapters == [0])
        #expect(!stage.observer.status.isListening)
        try await stage.service.restart()
        await stage.observer.wait { $0.status.isListening && $0.status.fault == nil }
        #expect(stage.service.calls.filter { $0 == "StartDiscovery hci0" }.count == 2)
    }

    @Test("the bus itself ends: it is said, and tried again")
    @Loop func busEnds() async throws {
        let stage = try await BlueZStage()
        await stage.listen(.performance)
        stage.bus.stop()
        await stage.observer.wait { $0.status.fault?.text.contains("D-Bus") == true }
        #expect(!stage.observer.status.isListening)
        stage.scanner.stop()
        #expect(stage.scanner.status == ScannerStatus())
    }

    @Test("no bluetoothd at all, then one")
    @Loop func late() async throws {
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

    @Test("in power saving the discovery has pauses, in performance it has none")
    @Loop func duty() async throws {
        var timing = BlueZScanner.Timing()
        (timing.on, timing.off) = (5, 5)
        let stage = try await BlueZStage(timing: timing)
        await stage.listen(.powerSaving)
        await stage.service.wait(for: "StopDiscovery hci0", times: 2)
        await stage.service.wait(for: "StartDiscovery hci0", times: 3)
        stage.scanner.scan(.performance)
        // After a whole round trip nothing that belongs to the pauses is under way any more.
        stage.service.changed(BlueZStage.door, FakeBlueZ.strength(-50))
        await stage.observer.wait { !$0.advertisements.isEmpty && $0.status.isListening }
    }

    @Test("the ladder: filter anew, restart, reconnect, and power only where nobody is connected")
    @Loop func ladder() async throws {
        let stage = try await BlueZStage()
        await stage.listen(.performance)
        #expect(stage.scanner.recover(.renew, adapter: nil))
        await stage.service.wait(for: "SetDiscoveryFilter hci0", times: 2)
        #expect(stage.scanner.recover(.restart, adapter: nil))
        await stage.service.wait(for: "StartDiscovery hci0", times: 2)
        #expect(stage.scanner.recover(.powerCycle, adapter: nil))
        await stage.scanner.cycles.waitUntilIdle()
        #expect(stage.service.calls.filter { $0 == "Set hci0" }.count == 2)
        await stage.service.wait(for: "StartDiscovery hci0", times: 3)
        #expect(stage.scanner.recover(.reopen, adapter: nil))
        await stage.service.wait(for: "StartDiscovery hci0", times: 4)
        await stage.observer.wait { $0.status.isListening }

        stage.service.devices[BlueZStage.door] = { message in
            message.property("Connected", "b") { message.append(true) }
        }
        #expect(stage.scanner.recover(.powerCycle, adapter: nil))
        await stage.scanner.cycles.waitUntilIdle()
        #expect(stage.service.calls.filter { $0 == "Set hci0" }.count == 2)
    }

    @Test("a probe is a discovery without a filter, after which the filter is back")
    @Loop func probe() async throws {
        var timing = BlueZScanner.Timing()
        timing.probe = 1
        let stage = try await BlueZStage(timing: timing)
        await stage.listen(.performance)
        #expect(stage.scanner.recover(.probe, adapter: nil))
        await stage.service.wait(for: "SetDiscoveryFilter hci0", times: 3)
        #expect(stage.service.filters.map(\.count) == [3, 0, 3])
    }

    @Test("in the pause of power saving a probe discovers at once")
    @Loop func probeInPause() async throws {
        var timing = BlueZScanner.Timing()
        (timing.on, timing.off) = (1, 600_000)
        let stage = try await BlueZStage(timing: timing)
        await stage.listen(.powerSaving)
        await stage.service.wait(for: "StopDiscovery hci0")
        #expect(stage.scanner.recover(.probe, adapter: nil))
        await stage.service.wait(for: "StartDiscovery hci0", times: 2)
    }

    @Test("a scan that begins after one that has ended in its pause discovers at once")
    @Loop func stopInPause() async throws {
        var timing = BlueZScanner.Timing()
        (timing.on, timing.off) = (1, 600_000)
        let stage = try await BlueZStage(timing: timing)
        await stage.listen(.powerSaving)
        await stage.service.wait(for: "StopDiscovery hci0")
        stage.scanner.stop()
        let count = stage.service.calls.filter { $0 == "StartDiscovery hci0" }.count
        await stage.listen(.powerSaving)
        await stage.service.wait(for: "StartDiscovery hci0", times: count + 1)
    }

    @Test("each step can be taken on one adapter, and leaves the other alone")
    @Loop func oneAdapter() async throws {
        let stage = try await BlueZStage { $0.adapters["/org/bluez/hci1"] = .init() }
        await stage.listen(.performance)
        await stage.observer.wait { $0.status.adapters.filter(\.isListening).count == 2 }
        let before = stage.service.calls.filter { $0.hasSuffix("hci0") }
        #expect(stage.scanner.recover(.probe, adapter: 1))
        await stage.service.wait(for: "SetDiscoveryFilter hci1", times: 2)
        #expect(stage.scanner.recover(.restart, adapter: 1))
        await stage.service.wait(for: "StartDiscovery hci1", times: 2)
        #expect(stage.scanner.recover(.powerCycle, adapter: 1))
        await stage.service.wait(for: "Set hci1", times: 2)
        #expect(!stage.scanner.recover(.reopen, adapter: 1))
        #expect(!stage.scanner.recover(.renew, adapter: 7))
        #expect(stage.service.calls.filter { $0.hasSuffix("hci0") } == before)
    }

    @Test("an adapter to which devices are connected is switched off and on where that is configured")
    @Loop func mayDisconnect() async throws {
        let connected: (BusMessage) -> Void = { message in
            message.property("Connected", "b") { message.append(true) }
        }
        let stage = try await BlueZStage({ $0.devices[BlueZStage.door] = connected }, mayDisconnect: true)
        await stage.listen(.performance)
        #expect(stage.scanner.recover(.powerCycle, adapter: nil))
        await stage.service.wait(for: "Set hci0", times: 2)
    }

    @Test("a look while nobody scans: adapters, none, off, no service, no bus; nothing is started and nothing kept")
    @Loop func look() async throws {
        let stage = try await BlueZStage()
        func look(hasAdapter: Bool = true) async -> ScannerStatus {
            await BlueZLook.status(.address(stage.bus.address), hasAdapter: hasAdapter, patience: 30_000)
        }
        #expect(await look().fault == nil)
        #expect(await look().adapters.map(\.name) == ["hci0"])
        stage.service.power("/org/bluez/hci0", false)
        #expect(await look().fault == .adapterOff)
        stage.service.remove("/org/bluez/hci0", "org.bluez.Adapter1")
        #expect(await look().fault == .noAdapter)
        #expect(stage.service.calls.allSatisfy { $0.hasPrefix("GetManagedObjects") })
        stage.service.end()
        // The bus has seen its end when it has answered somebody else.
        let late = try SystemBus(address: stage.bus.address)
        await withCheckedContinuation { continuation in
            late.ask("org.freedesktop.DBus", "/org/freedesktop/DBus", "org.freedesktop.DBus", "GetId") { _ in
                continuation.resume()
            }
        }
        #expect(await look().fault == BlueZFault.noService)
        #expect(await look(hasAdapter: false).fault == .noAdapter)
        stage.bus.stop()
        #expect(await look().fault == BlueZFault.noBus)
    }

    @Test("signals with wrong types and values, and those of others, do no harm")
    @Loop func malformed() async throws {
        let stage = try await BlueZStage()
        await stage.listen(.performance)
        let service = stage.service
        let properties = "org.freedesktop.DBus.Properties"
        service.signal(BlueZStage.door, properties, "PropertiesChanged") { $0.append(UInt32(7), "u") }
        service.signal(BlueZStage.door, properties, "PropertiesChanged") { $0.append("org.bluez.Device1") }
        service.signal("/", "org.freedesktop.DBus.ObjectManager", "InterfacesAdded") { $0.append("not a path") }
        service.signal("/", "org.freedesktop.DBus.ObjectManager", "InterfacesRemoved") { _ in }
        service.changed(BlueZStage.door) { message in
            message.property("RSSI", "s") { message.append("-60") }
            message.property("UUIDs", "s") { message.append("00009800-0000-1000-8000-00177a000002") }
        }
        service.found(BlueZStage.door) { message in
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
        // A stranger says something in the name of the service, to everybody.
        let stranger = try SystemBus(address: stage.bus.address)
        stranger.signal(BlueZStage.door, properties, "PropertiesChanged") { message in
            message.append("org.bluez.Device1")
            message.container("a", "{sv}") { FakeBlueZ.strength(-1)(message) }
            message.container("a", "s") {}
        }
        service.changed("/org/bluez/hci0/dev_C0_00_00_00_00_02", FakeBlueZ.strength(-60))
        await stage.observer.wait { $0.advertisements.last?.report.rssi == -60 }
        #expect(stage.observer.advertisements.map(\.report.rssi) == [-128, -60])
        #expect(stage.observer.advertisements.last?.facts.lockServiceCode == 9)
        #expect(stage.scanner.status.malformed == 4)
    }

    @Test(
        "UUIDs in text become those of the air",
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
