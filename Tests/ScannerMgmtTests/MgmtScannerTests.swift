// SPDX-License-Identifier: GPL-3.0-or-later
import Concurrency
import DoorReaders
import Scanners
import TestSupport
import Testing

@testable import ScannerMgmt

typealias MgmtStage = ScannerFixture<MgmtScanner, FakeKernel>

extension ScannerFixture where Subject == MgmtScanner, Other == FakeKernel {
    init(
        _ configure: (FakeKernel) -> Void = { _ in },
        mayDisconnect: Bool = false,
        timing: MgmtScanner.Timing = .patient
    ) throws {
        let kernel = try FakeKernel()
        configure(kernel)
        self.init(MgmtScanner(socket: kernel.other, mayDisconnect: mayDisconnect, timing: timing), kernel)
    }

    var kernel: FakeKernel { other }

    static var door: DeviceAddress { DeviceAddress(bits: 0xC000_0000_0001, isRandom: true) }
}

extension MgmtScanner.Timing {
    /// For a machine that is busy with other tests.
    static var patient: Self {
        var timing = Self()
        (timing.look, timing.answer) = (60_000, 60_000)
        return timing
    }
}

@Suite("Scanning through the kernel's management socket (a fake kernel)", .timeLimit(.minutes(5)))
struct MgmtScannerTests {
    @Test("a monitor with the marks of all doors is added, a window of discovery opened, and both are heard")
    @Loop func hears() async throws {
        let stage = try MgmtStage()
        await stage.listen()
        #expect(Int(stage.kernel.monitor.first ?? 0) == AdvertisementPattern.doors.count)
        #expect(stage.kernel.monitor.count == 1 + 34 * AdvertisementPattern.doors.count)
        #expect(stage.observer.status.adapters.map(\.name) == ["hci0"])
        #expect(stage.observer.status.adapters.map(\.address) == ["00:11:22:33:44:55"])
        await stage.kernel.wait(for: "23 hci0")
        stage.kernel.found(MgmtStage.door, -60, [2, 1, 6])
        stage.kernel.found(DeviceAddress(bits: 1, isRandom: false), -61, [], byMonitor: false)
        stage.kernel.found(MgmtStage.door, 127, [2, 1, 6])
        await stage.observer.wait { $0.advertisements.count == 3 }
        #expect(stage.observer.advertisements.map(\.report.rssi) == [-60, -61, nil])
        #expect(stage.observer.advertisements.map(\.data) == [[2, 1, 6], [], [2, 1, 6]])
        #expect(stage.observer.advertisements.map(\.report.address.kind) == [.static, .public, .static])
    }

    @Test("monitors that bluetoothd removes are added again")
    @Loop func removed() async throws {
        let stage = try MgmtStage()
        await stage.listen()
        stage.kernel.removeMonitors(0)
        await stage.kernel.wait(for: "52 hci0", times: 2)
        await stage.observer.wait { $0.status.isListening }
        stage.kernel.removeMonitors(0, handle: 2)
        await stage.kernel.wait(for: "52 hci0", times: 3)
        // That of somebody else is none of ours.
        stage.kernel.removeMonitors(0, handle: 77)
        stage.kernel.found(MgmtStage.door, -60, [])
        await stage.observer.wait { !$0.advertisements.isEmpty }
        #expect(stage.kernel.count("52 hci0") == 3)
    }

    @Test("stopping removes the monitor, ends the discovery, and nothing is read any more; a new scan begins afresh")
    @Loop func stops() async throws {
        let stage = try MgmtStage()
        await stage.listen()
        await stage.kernel.wait(for: "23 hci0")
        stage.kernel.found(MgmtStage.door, -60, [])
        await stage.observer.wait { !$0.advertisements.isEmpty }
        stage.scanner.stop()
        await stage.kernel.wait(for: "53 hci0")
        #expect(stage.kernel.count("24 hci0") == 1)
        stage.kernel.found(MgmtStage.door, -1, [])
        await stage.listen()
        stage.kernel.found(MgmtStage.door, -61, [])
        await stage.observer.wait { $0.advertisements.count == 2 }
        #expect(stage.observer.advertisements.map(\.report.rssi) == [-60, -61])
    }

    @Test("windows of discovery open and close")
    @Loop func windows() async throws {
        var timing = MgmtScanner.Timing.patient
        timing.performance = (2, 2)
        let stage = try MgmtStage(timing: timing)
        await stage.listen(ScanDemand(mode: .performance))
        await stage.kernel.wait(for: "24 hci0", times: 3)
        let turns = stage.kernel.commands.filter { $0 == "23 hci0" || $0 == "24 hci0" }
        #expect(turns.first == "23 hci0")
        #expect(zip(turns, turns.dropFirst()).allSatisfy { $0 != $1 })
    }

    @Test("adapters that come, go, and are switched")
    @Loop func adapters() async throws {
        let stage = try MgmtStage { $0.adapters = [:] }
        stage.scanner.scan(ScanDemand())
        await stage.observer.wait { $0.status.fault?.text.contains("no Bluetooth adapter") == true }
        stage.kernel.add(3)
        await stage.observer.wait { $0.status.isListening && $0.status.fault == nil }
        stage.kernel.set(3, isPowered: false)
        await stage.observer.wait { $0.status.fault?.text.contains("switched off") == true && !$0.status.isListening }
        stage.kernel.set(3, isPowered: true)
        await stage.observer.wait { $0.status.isListening && $0.status.fault == nil }
        stage.kernel.remove(3)
        await stage.observer.wait { $0.removedAdapters == [3] && $0.status.adapters.isEmpty }
    }

    @Test(
        "what will never work here is said to be final",
        arguments: [(UInt8(0x14), ScannerFault.Kind.access), (0x01, .scan), (0x0C, .scan)]
    )
    @Loop func final(status: UInt8, kind: ScannerFault.Kind) async throws {
        let stage = try MgmtStage { $0.refusals[0x52] = [status] }
        stage.scanner.scan(ScanDemand())
        await stage.observer.wait { $0.status.fault != nil }
        #expect(stage.observer.status.fault?.kind == kind)
        #expect(stage.observer.status.fault?.isPermanent == true)
    }

    @Test("without a socket it is final at once")
    @Loop func noSocket() {
        let scanner = MgmtScanner(socket: nil)
        scanner.scan(ScanDemand())
        #expect(scanner.status.fault?.isPermanent == true)
    }

    @Test("what is refused for the moment is tried again; a discovery of others is as good as ours")
    @Loop func busy() async throws {
        var timing = MgmtScanner.Timing.patient
        timing.retry = 1
        let stage = try MgmtStage(
            { kernel in
                kernel.refusals[0x52] = [0x0A, 0x03]
                kernel.refusals[0x23] = [0x0A]
            },
            timing: timing
        )
        stage.scanner.scan(ScanDemand())
        await stage.observer.wait { $0.status.fault?.kind == .scan }
        await stage.observer.wait { $0.status.isListening && $0.status.fault == nil }
        #expect(stage.kernel.count("52 hci0") == 3)
        stage.scanner.stop()
        await stage.kernel.wait(for: "53 hci0")
        #expect(stage.kernel.count("24 hci0") == 0)
    }

    @Test("the ladder: monitor anew, discovery anew, no new socket, and power only where nobody is connected")
    @Loop func ladder() async throws {
        let stage = try MgmtStage()
        await stage.listen()
        #expect(stage.scanner.recover(.renew, adapter: nil))
        await stage.kernel.wait(for: "52 hci0", times: 2)
        #expect(stage.kernel.count("53 hci0") == 1)
        // What is heard now comes behind the answer; while that is on its way nothing is renewed once more.
        stage.kernel.found(MgmtStage.door, -60, [])
        await stage.observer.wait { $0.advertisements.count == 1 }
        #expect(stage.scanner.recover(.restart, adapter: nil))
        await stage.kernel.wait(for: "52 hci0", times: 3)
        #expect(!stage.scanner.recover(.reopen, adapter: nil))
        #expect(stage.scanner.recover(.powerCycle, adapter: nil))
        await stage.scanner.cycles.waitUntilIdle()
        #expect(stage.kernel.count("5 hci0") == 2)
        await stage.observer.wait { $0.status.isListening }

        stage.kernel.adapters[0]?.connections = 1
        #expect(stage.scanner.recover(.powerCycle, adapter: nil))
        await stage.scanner.cycles.waitUntilIdle()
        #expect(stage.kernel.count("15 hci0") == 2)
        #expect(stage.kernel.count("5 hci0") == 2)
    }

    @Test("each step can be taken on one adapter, and leaves the other alone")
    @Loop func oneAdapter() async throws {
        var timing = MgmtScanner.Timing.patient
        // The window that opens with the scan is over, and no other one opens but that of the probe.
        timing.powerSaving = (1, 600_000)
        timing.probe = 1
        let stage = try MgmtStage({ $0.adapters[1] = .init() }, timing: timing)
        await stage.listen()
        await stage.observer.wait { $0.status.adapters.filter(\.isListening).count == 2 }
        for index in 0...1 { await stage.kernel.wait(for: "24 hci\(index)") }
        // The windows of both turn together.
        func commands() -> [String] {
            stage.kernel.commands.filter { $0.hasSuffix("hci0") && !["23 hci0", "24 hci0"].contains($0) }
        }
        let (before, windows) = (commands(), stage.kernel.count("24 hci1"))
        #expect(stage.scanner.recover(.probe, adapter: 1))
        await stage.kernel.wait(for: "24 hci1", times: windows + 1)
        #expect(stage.scanner.recover(.renew, adapter: 1))
        await stage.kernel.wait(for: "52 hci1", times: 2)
        #expect(stage.scanner.recover(.powerCycle, adapter: 1))
        await stage.kernel.wait(for: "5 hci1", times: 2)
        #expect(!stage.scanner.recover(.reopen, adapter: 1))
        #expect(!stage.scanner.recover(.renew, adapter: 7))
        #expect(commands() == before)
    }

    @Test("an adapter with connections of others is switched off and on where that is configured")
    @Loop func mayDisconnect() async throws {
        let stage = try MgmtStage({ $0.adapters[0]?.connections = 1 }, mayDisconnect: true)
        await stage.listen()
        #expect(stage.scanner.recover(.powerCycle, adapter: nil))
        await stage.kernel.wait(for: "5 hci0", times: 2)
        #expect(stage.kernel.isPowered(0) == true)
    }

    @Test("a look while nobody scans: adapters, none, off; nothing but their settings is asked for")
    @Loop func look() async throws {
        // As long as the test: on a busy machine its own half of the socket pair may be late.
        let stage = try MgmtStage(timing: .patient)
        #expect(await stage.scanner.inspect().fault == nil)
        #expect(stage.kernel.commands == ["3", "4 hci0"])
        stage.kernel.adapters[1] = FakeKernel.Adapter(settings: 0)
        let two = await stage.scanner.inspect()
        #expect(two.adapters.map(\.isPowered) == [true, false])
        #expect(two.fault == nil)
        stage.kernel.adapters[0] = nil
        #expect(await stage.scanner.inspect().fault == .adapterOff)
        stage.kernel.adapters = [:]
        #expect(await stage.scanner.inspect().fault == .noAdapter)
        #expect(await MgmtScanner(socket: nil).inspect().fault?.kind == .access)
    }

    @Test("a kernel that does not answer a look is said to be hung; it is not said to have no adapter")
    @Loop func hung() async throws {
        var timing = MgmtScanner.Timing.patient
        timing.look = 1
        let stage = try MgmtStage({ $0.isSilent = true }, timing: timing)
        #expect(await stage.scanner.inspect().fault?.text == "the kernel's Bluetooth does not answer")
    }

    @Test("a scan that begins meanwhile ends the look")
    @Loop func lookEnds() async throws {
        let stage = try MgmtStage({ $0.isSilent = true }, timing: .patient)
        async let look = stage.scanner.inspect()
        await stage.kernel.wait(for: "3")
        stage.kernel.isSilent = false
        await stage.listen()
        #expect(await look.fault == .noAdapter)
    }

    @Test("while many packets come they are fetched in pauses, while few come at once")
    func pace() {
        var pace = FetchPace()
        for now in stride(from: Int64(0), through: 1000, by: 20) { pace.fetched(1, at: now) }
        #expect(!pace.isResting)
        for now in stride(from: Int64(1000), through: 2000, by: 10) { pace.fetched(3, at: now) }
        #expect(pace.isResting)
        for now in stride(from: Int64(2000), through: 2100, by: 10) { pace.fetched(0, at: now) }
        #expect(!pace.isResting)
    }

    @Test("a thousand advertisements in a moment are all heard, in their order")
    @Loop func burst() async throws {
        let stage = try MgmtStage()
        await stage.listen()
        for number in 0..<1000 {
            stage.kernel.found(DeviceAddress(bits: UInt64(number), isRandom: false), -60, [2, 1, 6])
            if number % 40 == 39 { await stage.observer.wait { $0.advertisements.count == number + 1 } }
        }
        #expect(stage.observer.advertisements.map { Int($0.report.address.bits) } == Array(0..<1000))
    }

    @Test("after a suspend the monitor is added again")
    @Loop func suspend() async throws {
        let stage = try MgmtStage()
        await stage.listen()
        stage.kernel.event(0x002D, 0, [0])
        await stage.observer.wait { !$0.status.isListening }
        stage.kernel.event(0x002E, 0, [0] + [UInt8](repeating: 0, count: 7))
        await stage.observer.wait { $0.status.isListening }
        #expect(stage.kernel.count("52 hci0") == 2)
    }

    @Test("beacons are listened for when a client asks for them")
    @Loop func beacons() async throws {
        let stage = try MgmtStage()
        await stage.listen()
        stage.scanner.scan(ScanDemand(profiles: [.seos, .ibeacon]))
        await stage.kernel.wait(for: "52 hci0", times: 2)
        #expect(Int(stage.kernel.monitor.first ?? 0) == AdvertisementPattern.patterns(for: [.ibeacon]).count)
        #expect(AdvertisementPattern.patterns(for: Set(ReaderProfile.allCases)).count <= 16)
    }

    @Test("packets that are too short, too long or of unknown codes do no harm")
    @Loop func malformed() async throws {
        let stage = try MgmtStage()
        await stage.listen()
        for packet in [[0x12, 0, 0], [0x12, 0, 0, 0, 9, 0], [0x12, 0, 0, 0, 0, 0], [0xFF, 0xFF, 0, 0, 0, 0]]
            as [[UInt8]]
        {
            stage.kernel.send(packet)
        }
        stage.kernel.event(0x0001, 0, [])
        stage.kernel.event(0x0006, 0, [1])
        stage.kernel.event(0x002C, 0, [1])
        stage.kernel.event(0x0001, 9, [0x04, 0, 0, 1, 2, 3])
        stage.kernel.found(MgmtStage.door, -60, [2, 1, 6])
        await stage.observer.wait { !$0.advertisements.isEmpty }
        #expect(stage.observer.advertisements.count == 1)
        #expect(stage.scanner.status.malformed == 6)
        // The other end goes: said, and no spinning on a dead socket.
        stage.kernel.close()
        await stage.observer.wait { $0.status.fault?.kind == .service }
    }

    @Test("an event of every length is read or refused, never trapped on")
    func lengths() {
        for code in [1, 2, 4, 5, 6, 0x12, 0x2C, 0x2D, 0x2E, 0x2F] as [UInt8] {
            for length in 0..<64 {
                let packet = [code, 0, 0, 0, UInt8(length), 0] + [UInt8](repeating: 0x10, count: length)
                for cut in [0, 1, 6] { _ = ManagementEvent(Array(packet.dropLast(cut)).span) }
            }
        }
    }
}
