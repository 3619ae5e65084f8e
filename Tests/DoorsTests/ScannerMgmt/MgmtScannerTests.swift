// SPDX-License-Identifier: GPL-3.0-or-later
import Concurrency
import DoorReaders
import Scanners
import TestSupport
import Testing
import Text

@testable import Host
@testable import ScannerMgmt

typealias MgmtFixture = ScannerFixture<MgmtScanner, FakeKernel>

extension ScannerFixture where Subject == MgmtScanner, Other == FakeKernel {
    init(
        _ configure: (FakeKernel) -> Void = { _ in },
        mayDisconnect: Bool = false,
        _ configuration: RadioConfiguration = RadioConfiguration(),
        timing: MgmtScanner.Timing = .long
    ) throws {
        var configuration = configuration
        configuration.mayDisconnect = mayDisconnect
        let kernel = try FakeKernel()
        configure(kernel)
        self.init(MgmtScanner(socket: kernel.other, configuration, timing: timing), kernel)
    }

    var kernel: FakeKernel { other }

    static var door: DeviceAddress { DeviceAddress(bits: 0xC000_0000_0001, isRandom: true) }
}

extension MgmtScanner.Timing {
    /// Times that a busy machine does not reach.
    static var long: Self {
        var timing = Self()
        (timing.inspection, timing.answer) = (600_000, 600_000)
        return timing
    }

    /// What is refused is tried again at once.
    static var quick: Self {
        var timing = Self.long
        timing.retry = 1
        return timing
    }
}

@Suite("MgmtScanner with an emulated kernel", .timeLimit(.minutes(5)))
@Loop struct MgmtScannerTests {
    private let fixture: MgmtFixture

    init() throws { fixture = try MgmtFixture() }

    @Test("a monitor with the patterns of all door readers and a discovery start, and reports of both are received")
    func receives() async throws {
        await fixture.listen()
        #expect(Int(fixture.kernel.monitor.first ?? 0) == AdvertisementPattern.doors.count)
        #expect(fixture.kernel.monitor.count == 1 + 34 * AdvertisementPattern.doors.count)
        #expect(fixture.observer.status.adapters.map(\.name) == ["hci0"])
        #expect(fixture.observer.status.adapters.map(\.address) == ["00:11:22:33:44:55"])
        await fixture.kernel.wait(for: "23 hci0")
        fixture.kernel.report(MgmtFixture.door, -60, [2, 1, 6])
        fixture.kernel.report(DeviceAddress(bits: 1, isRandom: false), -61, [], byMonitor: false)
        fixture.kernel.report(MgmtFixture.door, 127, [2, 1, 6])
        await fixture.observer.wait { $0.advertisements.count == 3 }
        #expect(fixture.observer.advertisements.map(\.report.rssi) == [-60, -61, nil])
        #expect(fixture.observer.advertisements.map(\.data) == [[2, 1, 6], [], [2, 1, 6]])
        #expect(fixture.observer.advertisements.map(\.report.address.kind) == [.static, .public, .static])
    }

    @Test("a monitor that bluetoothd removes is added again")
    func removed() async throws {
        await fixture.listen()
        fixture.kernel.removeMonitors(0)
        await fixture.kernel.wait(for: "52 hci0", times: 2)
        await fixture.observer.wait { $0.status.isListening }
        fixture.kernel.removeMonitors(0, handle: 2)
        await fixture.kernel.wait(for: "52 hci0", times: 3)
        // A monitor of another program.
        fixture.kernel.removeMonitors(0, handle: 77)
        fixture.kernel.report(MgmtFixture.door, -60, [])
        await fixture.observer.wait { !$0.advertisements.isEmpty }
        #expect(fixture.kernel.count("52 hci0") == 3)
    }

    @Test(
        "stopping removes the monitor, ends the discovery and stops reading, and a new scan receives only new reports"
    )
    func stops() async throws {
        await fixture.listen()
        await fixture.kernel.wait(for: "23 hci0")
        fixture.kernel.report(MgmtFixture.door, -60, [])
        await fixture.observer.wait { !$0.advertisements.isEmpty }
        fixture.scanner.stop()
        await fixture.kernel.wait(for: "53 hci0")
        #expect(fixture.kernel.count("24 hci0") == 1)
        fixture.kernel.report(MgmtFixture.door, -1, [])
        await fixture.listen()
        fixture.kernel.report(MgmtFixture.door, -61, [])
        await fixture.observer.wait { $0.advertisements.count == 2 }
        #expect(fixture.observer.advertisements.map(\.report.rssi) == [-60, -61])
    }

    @Test("windows of discovery open and close in turns")
    func windows() async throws {
        var timing = MgmtScanner.Timing.long
        timing.performance = (2, 2)
        let fixture = try MgmtFixture(timing: timing)
        await fixture.listen(ScanDemand(mode: .performance))
        await fixture.kernel.wait(for: "24 hci0", times: 3)
        let turns = fixture.kernel.commands.filter { $0 == "23 hci0" || $0 == "24 hci0" }
        #expect(turns.first == "23 hci0")
        #expect(zip(turns, turns.dropFirst()).allSatisfy { $0 != $1 })
    }

    @Test("scan responses are requested by a window of discovery, not more often than every ten seconds")
    func scanResponses() async throws {
        var timing = MgmtScanner.Timing.long
        timing.powerSaving = (1, 600_000)
        let fixture = try MgmtFixture(timing: timing)
        await fixture.listen()
        await fixture.kernel.wait(for: "24 hci0")
        fixture.scanner.requestScanResponses()
        await fixture.kernel.wait(for: "24 hci0", times: 2)
        fixture.scanner.requestScanResponses()
        fixture.kernel.report(MgmtFixture.door, -60, [])
        await fixture.observer.wait { !$0.advertisements.isEmpty }
        #expect(fixture.kernel.count("23 hci0") == 2)
    }

    @Test("adapters may be added, removed, and switched off and on")
    func adapters() async throws {
        let fixture = try MgmtFixture { $0.adapters = [:] }
        fixture.scanner.scan(ScanDemand())
        await fixture.observer.wait { $0.status.fault?.text.contains("no Bluetooth adapter") == true }
        fixture.kernel.add(3)
        await fixture.observer.wait { $0.status.isListening && $0.status.fault == nil }
        fixture.kernel.set(3, isPowered: false)
        await fixture.observer.wait { $0.status.fault?.text.contains("switched off") == true && !$0.status.isListening }
        fixture.kernel.set(3, isPowered: true)
        await fixture.observer.wait { $0.status.isListening && $0.status.fault == nil }
        fixture.kernel.remove(3)
        await fixture.observer.wait { $0.removedAdapters == [3] && $0.status.adapters.isEmpty }
    }

    @Test(
        "a refusal that cannot change is a permanent fault",
        arguments: [(UInt8(0x14), ScannerFault.Kind.access), (0x01, .scan), (0x0C, .scan)]
    )
    func permanent(status: UInt8, kind: ScannerFault.Kind) async throws {
        let fixture = try MgmtFixture { $0.refusals[0x52] = [status] }
        fixture.scanner.scan(ScanDemand())
        await fixture.observer.wait { $0.status.fault != nil }
        #expect(fixture.observer.status.fault?.kind == kind)
        #expect(fixture.observer.status.fault?.isPermanent == true)
    }

    @Test("without a socket there is a permanent fault at once")
    func noSocket() {
        let scanner = MgmtScanner(socket: nil)
        scanner.scan(ScanDemand())
        #expect(scanner.status.fault?.isPermanent == true)
    }

    @Test("a monitor that is refused three times is a fault until one is added, and a refused discovery is none")
    func refused() async throws {
        let fixture = try MgmtFixture(
            { kernel in
                kernel.refusals[0x52] = [0x0A, 0x03, 0x0A]
                kernel.refusals[0x23] = [0x0A]
            },
            timing: .quick
        )
        fixture.scanner.scan(ScanDemand())
        // The fault may be over when this task goes on.
        await fixture.observer.wait { observer in
            guard let fault = observer.status.fault else { return false }
            return fault.kind == .scan && fault.text.contains("monitor to hci0: another command")
        }
        await fixture.observer.wait { $0.status.isListening && $0.status.fault == nil }
        #expect(fixture.kernel.count("52 hci0") == 4)
        fixture.scanner.stop()
        await fixture.kernel.wait(for: "53 hci0")
        #expect(fixture.kernel.count("24 hci0") == 0)
    }

    @Test("while bluetoothd begins to use an adapter, two refusals are no fault, and the radio counts as listening")
    func busy() async throws {
        let fixture = try MgmtFixture(timing: .quick)
        await fixture.listen()
        fixture.kernel.refusals[0x52] = [0x0A, 0x0A]
        fixture.kernel.removeMonitors(0)
        for times in 2...4 {
            // The refusals before this command have been read.
            await fixture.kernel.wait(for: "52 hci0", times: times)
            #expect(fixture.observer.status.fault == nil)
        }
        fixture.kernel.report(MgmtFixture.door, -60, [2, 1, 6])
        await fixture.observer.wait { !$0.advertisements.isEmpty }
        #expect(fixture.observer.status.fault == nil)
        #expect(!fixture.observer.listening.drop { !$0 }.contains(false))
    }

    @Test("one of two adapters that the kernel refuses a monitor is named, while the other one listens")
    func oneBusyAdapter() async throws {
        let fixture = try MgmtFixture({ $0.adapters[1] = .init() }, timing: .quick)
        fixture.kernel.busy = [1]
        fixture.scanner.scan(ScanDemand())
        await fixture.observer.wait { $0.status.fault?.text.contains("to hci1:") == true && $0.status.isListening }
        #expect(fixture.observer.status.adapters.map(\.isListening) == [true, false])
        fixture.kernel.busy = []
        await fixture.observer.wait { $0.status.fault == nil && $0.status.adapters.allSatisfy(\.isListening) }
    }

    @Test(
        "an answer of the kernel that is lost delays the scan and does not end it",
        arguments: [
            ManagementCommand.Code.readIndexList, ManagementCommand.Code.readInfo,
            ManagementCommand.Code.addPatternsMonitor, ManagementCommand.Code.startDiscovery,
        ]
    )
    func lostAnswers(_ code: UInt16) async throws {
        var timing = MgmtScanner.Timing.quick
        timing.powerSaving = (1, 1)
        timing.answer = 50
        let fixture = try MgmtFixture({ $0.lost = [code] }, timing: timing)
        await fixture.listen()
        await fixture.kernel.wait(for: "23 hci0", times: 2)
        #expect(fixture.kernel.lost.isEmpty)
    }

    @Test("each recovery step is taken, without a new socket, and without a power cycle when there are connections")
    func recovery() async throws {
        await fixture.listen()
        #expect(fixture.scanner.recover(.renew, adapter: nil))
        await fixture.kernel.wait(for: "52 hci0", times: 2)
        #expect(fixture.kernel.count("53 hci0") == 1)
        // This report follows the answer, before which the monitor is not renewed a second time.
        fixture.kernel.report(MgmtFixture.door, -60, [])
        await fixture.observer.wait { $0.advertisements.count == 1 }
        #expect(fixture.scanner.recover(.restart, adapter: nil))
        await fixture.kernel.wait(for: "52 hci0", times: 3)
        #expect(!fixture.scanner.recover(.reopen, adapter: nil))
        #expect(fixture.scanner.recover(.powerCycle, adapter: nil))
        await fixture.scanner.cycles.waitUntilIdle()
        #expect(fixture.kernel.count("5 hci0") == 2)
        await fixture.observer.wait { $0.status.isListening }

        fixture.kernel.adapters[0]?.connections = 1
        #expect(fixture.scanner.recover(.powerCycle, adapter: nil))
        await fixture.scanner.cycles.waitUntilIdle()
        #expect(fixture.kernel.count("15 hci0") == 2)
        #expect(fixture.kernel.count("5 hci0") == 2)
    }

    @Test("each recovery step can be taken for one adapter without an effect on the other")
    func oneAdapter() async throws {
        var timing = MgmtScanner.Timing.long
        // After the first window, no further one opens except for the probe.
        timing.powerSaving = (1, 600_000)
        timing.probe = 1
        let fixture = try MgmtFixture({ $0.adapters[1] = .init() }, timing: timing)
        await fixture.listen()
        await fixture.observer.wait { $0.status.adapters.filter(\.isListening).count == 2 }
        for index in 0...1 { await fixture.kernel.wait(for: "24 hci\(index)") }
        // The windows of both adapters open and close together.
        func commands() -> [String] {
            fixture.kernel.commands.filter { $0.hasSuffix("hci0") && !["23 hci0", "24 hci0"].contains($0) }
        }
        let (before, windows) = (commands(), fixture.kernel.count("24 hci1"))
        #expect(fixture.scanner.recover(.probe, adapter: 1))
        await fixture.kernel.wait(for: "24 hci1", times: windows + 1)
        #expect(fixture.scanner.recover(.renew, adapter: 1))
        await fixture.kernel.wait(for: "52 hci1", times: 2)
        #expect(fixture.scanner.recover(.powerCycle, adapter: 1))
        await fixture.kernel.wait(for: "5 hci1", times: 2)
        #expect(!fixture.scanner.recover(.reopen, adapter: 1))
        #expect(!fixture.scanner.recover(.renew, adapter: 7))
        #expect(commands() == before)
    }

    @Test("an adapter with connections is switched off and on where this is configured")
    func mayDisconnect() async throws {
        let fixture = try MgmtFixture({ $0.adapters[0]?.connections = 1 }, mayDisconnect: true)
        await fixture.listen()
        #expect(fixture.scanner.recover(.powerCycle, adapter: nil))
        await fixture.kernel.wait(for: "5 hci0", times: 2)
        #expect(fixture.kernel.isPowered(0) == true)
    }

    @Test("an inspection without a scan reads only the settings of the adapters")
    func inspection() async throws {
        let fixture = try MgmtFixture(timing: .long)
        #expect(await fixture.scanner.inspect().fault == nil)
        #expect(fixture.kernel.commands == ["3", "4 hci0"])
        fixture.kernel.adapters[1] = FakeKernel.Adapter(settings: 0)
        let two = await fixture.scanner.inspect()
        #expect(two.adapters.map(\.isPowered) == [true, false])
        #expect(two.fault == nil)
        fixture.kernel.adapters[0] = nil
        #expect(await fixture.scanner.inspect().fault == .adapterOff)
        fixture.kernel.adapters = [:]
        #expect(await fixture.scanner.inspect().fault == .noAdapter)
        #expect(await MgmtScanner(socket: nil).inspect().fault?.kind == .access)
    }

    @Test("a kernel that does not answer an inspection is a fault of the service")
    func hung() async throws {
        var timing = MgmtScanner.Timing.long
        timing.inspection = 1
        let fixture = try MgmtFixture({ $0.isSilent = true }, timing: timing)
        #expect(await fixture.scanner.inspect().fault?.text == "the kernel's Bluetooth does not answer")
    }

    @Test("a scan that starts during an inspection ends it")
    func inspectionEnds() async throws {
        let fixture = try MgmtFixture({ $0.isSilent = true }, timing: .long)
        async let inspection = fixture.scanner.inspect()
        await fixture.kernel.wait(for: "3")
        fixture.kernel.isSilent = false
        await fixture.listen()
        #expect(await inspection.fault == .noAdapter)
    }

    @Test("a thousand reports in a moment are all received in their order")
    func burst() async throws {
        await fixture.listen()
        for number in 0..<1000 {
            fixture.kernel.report(DeviceAddress(bits: UInt64(number), isRandom: false), -60, [2, 1, 6])
            if number % 40 == 39 { await fixture.observer.wait { $0.advertisements.count == number + 1 } }
        }
        #expect(fixture.observer.advertisements.map { Int($0.report.address.bits) } == Array(0..<1000))
    }

    @Test("the monitor is added again after a suspend")
    func suspend() async throws {
        await fixture.listen()
        fixture.kernel.event(0x002D, 0, [0])
        await fixture.observer.wait { !$0.status.isListening }
        fixture.kernel.event(0x002E, 0, [0] + [UInt8](repeating: 0, count: 7))
        await fixture.kernel.wait(for: "52 hci0", times: 2)
        await fixture.observer.wait { $0.status.isListening }
    }

    @Test("the radio counts as listening while a monitor is replaced by another one")
    func replacement() async throws {
        await fixture.listen()
        fixture.scanner.scan(ScanDemand(profiles: [.seos]))
        await fixture.kernel.wait(for: "52 hci0", times: 2)
        fixture.kernel.removeMonitors(0)
        await fixture.kernel.wait(for: "52 hci0", times: 3)
        fixture.kernel.report(MgmtFixture.door, -60, [2, 1, 6])
        await fixture.observer.wait { !$0.advertisements.isEmpty }
        #expect(!fixture.observer.listening.drop { !$0 }.contains(false))
    }

    @Test("while the radio is left to a connection, no discovery runs, and it starts again afterwards")
    func reservation() async throws {
        await fixture.listen()
        await fixture.kernel.wait(for: "23 hci0")
        fixture.kernel.report(MgmtFixture.door, -60, [2, 1, 6])
        await fixture.observer.wait { !$0.advertisements.isEmpty }
        fixture.scanner.reserve(0, true)
        await fixture.kernel.wait(for: "24 hci0")
        fixture.scanner.openWindow(fixture.scanner.adapters.values, for: 600_000)
        fixture.kernel.report(MgmtFixture.door, -61, [2, 1, 6])
        await fixture.observer.wait { $0.advertisements.count == 2 }
        #expect(fixture.kernel.count("23 hci0") == 1)
        fixture.scanner.reserve(0, false)
        await fixture.kernel.wait(for: "23 hci0", times: 2)
    }

    @Test(
        "only the adapters that badged.conf lets scan are used, by number or address, also when they come later",
        arguments: ["hci1", "01:11:22:33:44:55"]
    )
    func chosenAdapters(_ name: String) async throws {
        let rules = try Configuration(bytes: Array("[ble]\nadapters = \(name), hci0 open".utf8), file: "").radio
        let fixture = try MgmtFixture({ $0.adapters[1] = .init() }, rules)
        await fixture.listen(ScanDemand(mode: .performance))
        await fixture.kernel.wait(for: "23 hci1")
        #expect(fixture.observer.status.adapters.map(\.name) == ["hci1"])
        #expect(fixture.observer.status.unused.map(\.name) == ["hci0"])
        // Another program's discovery on the other adapter.
        fixture.kernel.report(MgmtFixture.door, -50, [2, 1, 6], byMonitor: false)
        fixture.kernel.report(MgmtFixture.door, -60, [2, 1, 6], on: 1)
        await fixture.observer.wait { !$0.advertisements.isEmpty }
        #expect(fixture.observer.advertisements.map(\.adapter) == [1])
        #expect(!fixture.kernel.commands.contains { ["52 hci0", "23 hci0"].contains($0) })
        fixture.kernel.remove(1)
        await fixture.observer.wait { $0.status.fault?.isConfigured == true }
        fixture.kernel.add(1)
        await fixture.observer.wait { $0.status.isListening && $0.status.fault == nil }
        fixture.scanner.stop()
        #expect(await fixture.scanner.inspect().adapters.map(\.name) == ["hci1"])
    }

    /// Whether the adapter has the coded PHY, whether it is selected before, and the PHYs of the scan; nil: it is lacking.
    typealias CodedCase = (supported: UInt32, selected: UInt32, scan: UInt32?)

    @Test(
        "the coded PHY is selected where it is asked for and there is one, and the old PHYs are selected at the end",
        arguments: [(0x7E00, 0x0600, 0x6600), (0x7E00, 0x6600, 0x6600), (0x1E00, 0x0600, nil)] as [CodedCase]
    )
    func codedPHY(_ phys: CodedCase) async throws {
        var configuration = RadioConfiguration()
        configuration.usesCodedPHY = true
        let fixture = try MgmtFixture(
            {
                $0.adapters[0]?.supportedPHYs = phys.supported
                $0.adapters[0]?.selectedPHYs = phys.selected
            },
            configuration
        )
        await fixture.listen()
        await fixture.kernel.wait(for: "44 hci0")
        if let scan = phys.scan, scan != phys.selected {
            await fixture.kernel.wait(for: "45 hci0")
            #expect(fixture.kernel.adapters[0]?.selectedPHYs == scan)
            // The kernel uses the PHY from the next start of its scan on.
            await fixture.kernel.wait(for: "52 hci0", times: 2)
        } else if phys.scan == nil {
            await fixture.observer.wait { $0.status.withoutCodedPHY == ["hci0"] }
        }
        let changes = fixture.kernel.count("45 hci0")
        fixture.scanner.stop()
        await fixture.kernel.wait(for: "53 hci0")
        if changes > 0 { await fixture.kernel.wait(for: "45 hci0", times: 2) }
        #expect(fixture.kernel.count("45 hci0") == 2 * changes)
        #expect(fixture.kernel.adapters[0]?.selectedPHYs == phys.selected)
    }

    @Test("without the setting the PHYs are not looked at; a kernel that refuses is reported")
    func otherPHYs() async throws {
        await fixture.listen()
        await fixture.kernel.wait(for: "23 hci0")
        #expect(fixture.kernel.count("44 hci0") == 0)
        var configuration = RadioConfiguration()
        configuration.usesCodedPHY = true
        for code in [ManagementCommand.Code.getPHY, ManagementCommand.Code.setPHY] {
            let status = ManagementCommand.Status.notSupported
            let other = try MgmtFixture({ $0.refusals[code] = [status] }, configuration)
            await other.listen()
            await other.observer.wait { $0.status.withoutCodedPHY == ["hci0"] }
        }
    }

    @Test("the kernel connects to a device until it shall not any more, and a refusal is reported")
    func connections() async throws {
        #expect(await !fixture.scanner.beginConnection(to: MgmtFixture.door, adapter: 0))
        await fixture.listen()
        #expect(await fixture.scanner.beginConnection(to: MgmtFixture.door, adapter: 0))
        fixture.scanner.endConnection(to: MgmtFixture.door, adapter: 0)
        await fixture.kernel.wait(for: "34 hci0")
        fixture.kernel.refusals[ManagementCommand.Code.addDevice] = [ManagementCommand.Status.permissionDenied]
        #expect(await !fixture.scanner.beginConnection(to: MgmtFixture.door, adapter: 0))
    }

    @Test("a connection that begins while the scan ends does not wait, and leaves no device in the kernel's list")
    func endedConnection() async throws {
        await fixture.listen()
        fixture.kernel.held = [ManagementCommand.Code.addDevice]
        let connection = Task { @Loop in
            await fixture.scanner.beginConnection(to: MgmtFixture.door, adapter: 0)
        }
        await fixture.kernel.wait(for: "33 hci0")
        fixture.scanner.stop()
        #expect(await !connection.value)
        await fixture.kernel.wait(for: "34 hci0")
    }

    @Test("the monitor has the patterns of beacons when a client wants beacons")
    func beacons() async throws {
        await fixture.listen()
        fixture.scanner.scan(ScanDemand(profiles: [.seos, .ibeacon]))
        await fixture.kernel.wait(for: "52 hci0", times: 2)
        #expect(Int(fixture.kernel.monitor.first ?? 0) == AdvertisementPattern.patterns(for: [.ibeacon]).count)
        #expect(AdvertisementPattern.patterns(for: Set(ReaderProfile.allCases)).count <= 16)
    }

    @Test("packets that are too short, too long or unknown are counted and ignored")
    func malformed() async throws {
        await fixture.listen()
        for packet in [[0x12, 0, 0], [0x12, 0, 0, 0, 9, 0], [0x12, 0, 0, 0, 0, 0], [0xFF, 0xFF, 0, 0, 0, 0]]
            as [[UInt8]]
        {
            fixture.kernel.send(packet)
        }
        fixture.kernel.event(0x0001, 0, [])
        fixture.kernel.event(0x0006, 0, [1])
        fixture.kernel.event(0x002C, 0, [1])
        fixture.kernel.event(0x0001, 9, [0x04, 0, 0, 1, 2, 3])
        fixture.kernel.report(MgmtFixture.door, -60, [2, 1, 6])
        await fixture.observer.wait { !$0.advertisements.isEmpty }
        #expect(fixture.observer.advertisements.count == 1)
        #expect(fixture.scanner.status.malformed == 6)
        // The end of the socket is a fault.
        fixture.kernel.close()
        await fixture.observer.wait { $0.status.fault?.kind == .service }
    }

    @Test("an event of any length is decoded, or refused when it is cut")
    func lengths() {
        for code in [1, 2, 4, 5, 6, 0x12, 0x2C, 0x2D, 0x2E, 0x2F] as [UInt8] {
            for length in 0..<64 {
                let packet = [code, 0, 0, 0, UInt8(length), 0] + [UInt8](repeating: 0x10, count: length)
                _ = ManagementEvent(packet.span)
                for cut in [1, 6] { #expect(ManagementEvent(Array(packet.dropLast(cut)).span) == nil) }
            }
        }
    }
}
