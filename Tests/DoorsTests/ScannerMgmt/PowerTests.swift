// SPDX-License-Identifier: GPL-3.0-or-later
import Concurrency
import DoorReaders
import Scanners
import TestSupport
import Testing

@testable import ScannerMgmt

@Suite("Power cycles of MgmtScanner with an emulated kernel", .timeLimit(.minutes(5)))
struct PowerTests {
    /// A scan whose adapter is being switched off; the kernel has not answered yet.
    @Loop private func switchingOff(
        _ timing: MgmtScanner.Timing = .long,
        mayDisconnect: Bool = false
    ) async throws -> MgmtFixture {
        let fixture = try MgmtFixture(mayDisconnect: mayDisconnect, timing: timing)
        await fixture.listen()
        fixture.kernel.held = [ManagementCommand.Code.setPowered]
        #expect(fixture.scanner.recover(.powerCycle, adapter: nil))
        await fixture.kernel.wait(for: "5 hci0")
        return fixture
    }

    @Test("when a scan ends while an adapter is off, the adapter is switched on and reading stops")
    @Loop func stop() async throws {
        let fixture = try await switchingOff()
        #expect(fixture.kernel.isPowered(0) == false)
        fixture.scanner.stop()
        fixture.kernel.report(MgmtFixture.door, -1, [])
        fixture.kernel.release()
        await fixture.scanner.restorePower()
        #expect(fixture.kernel.isPowered(0) == true)
        #expect(fixture.kernel.count("5 hci0") == 2)
        await fixture.scanner.cycles.waitUntilIdle()
        fixture.kernel.report(MgmtFixture.door, -2, [])
        await fixture.listen()
        fixture.kernel.report(MgmtFixture.door, -60, [])
        await fixture.observer.wait { !$0.advertisements.isEmpty }
        #expect(fixture.observer.advertisements.map(\.report.rssi) == [-60])
    }

    @Test("a scan that starts while the adapter is off continues when it is on")
    @Loop func stopAndScan() async throws {
        let fixture = try await switchingOff()
        fixture.scanner.stop()
        fixture.scanner.scan(ScanDemand())
        await fixture.observer.wait { $0.status.fault == .adapterOff }
        fixture.kernel.release()
        await fixture.observer.wait { $0.status.isListening && $0.status.fault == nil }
        #expect(fixture.kernel.isPowered(0) == true)
    }

    @Test("an inspection during a power cycle reports that the adapter is off")
    @Loop func inspection() async throws {
        let fixture = try await switchingOff()
        fixture.scanner.stop()
        #expect(await fixture.scanner.inspect().fault == .adapterOff)
        fixture.kernel.release()
        await fixture.scanner.cycles.waitUntilIdle()
        let fault = await fixture.scanner.inspect().fault
        #expect(fault == nil)
    }

    @Test("a scan that continues starts the discovery again after a power cycle")
    @Loop func continues() async throws {
        let fixture = try await switchingOff()
        let windows = fixture.kernel.count("23 hci0")
        fixture.kernel.release()
        await fixture.kernel.wait(for: "23 hci0", times: windows + 1)
        await fixture.observer.wait { $0.status.isListening }
        #expect(fixture.kernel.isPowered(0) == true)
    }

    @Test("a refused switching on is repeated, and until then the fault is that the adapter is off")
    @Loop func refused() async throws {
        var timing = MgmtScanner.Timing.long
        timing.cycles.pause = 1
        let fixture = try await switchingOff(timing)
        fixture.kernel.refusals[ManagementCommand.Code.setPowered] = [
            ManagementCommand.Status.busy, ManagementCommand.Status.blocked,
        ]
        fixture.kernel.release()
        await fixture.observer.wait { $0.status.fault == .adapterOff }
        await fixture.observer.wait { $0.status.isListening && $0.status.fault == nil }
        #expect(fixture.kernel.isPowered(0) == true)
        #expect(fixture.kernel.count("5 hci0") == 4)
    }

    @Test("the adapter is switched on even when an answer is lost")
    @Loop func lostAnswer() async throws {
        var timing = MgmtScanner.Timing.long
        timing.answer = 100
        timing.cycles.pause = 1
        // With mayDisconnect no other command is sent that could be late.
        let fixture = try await switchingOff(timing, mayDisconnect: true)
        fixture.scanner.stop()
        await fixture.kernel.wait(for: "5 hci0", times: 2)
        fixture.kernel.release()
        await fixture.scanner.restorePower()
        #expect(fixture.kernel.isPowered(0) == true)
    }

    @Test("a late answer to switching off does not count as one to switching on")
    @Loop func lateAnswer() async throws {
        let kernel = try FakeKernel()
        kernel.held = [ManagementCommand.Code.setPowered]
        let power = ManagementPower(kernel.other, timeout: 600_000)
        let outcome = Task { @Loop in await power.power(of: 0).setPower(true) }
        await kernel.wait(for: "5 hci0")
        // Powered is bit 0.
        power.answered(ManagementCommand.Code.setPowered, 0, ManagementCommand.Status.success, [0x80, 0x02, 0, 0])
        #expect(await outcome.value == .failed)
    }

    @Test("a power cycle ends when the adapter is removed")
    @Loop func removed() async throws {
        let fixture = try await switchingOff()
        fixture.kernel.remove(0)
        fixture.kernel.release()
        await fixture.scanner.restorePower()
        #expect(fixture.kernel.count("5 hci0") == 2)
    }

    @Test("when a scan ends before the power cycle, the adapter is not switched off")
    @Loop func early() async throws {
        let fixture = try MgmtFixture()
        await fixture.listen()
        fixture.kernel.held = [ManagementCommand.Code.getConnections]
        #expect(fixture.scanner.recover(.powerCycle, adapter: nil))
        await fixture.kernel.wait(for: "15 hci0")
        fixture.scanner.stop()
        fixture.kernel.release()
        await fixture.scanner.cycles.waitUntilIdle()
        #expect(fixture.kernel.count("5 hci0") == 0)
    }

    @Test("a monitor that is being added when the scan ends is removed")
    @Loop func unwantedMonitor() async throws {
        let fixture = try MgmtFixture { $0.held = [ManagementCommand.Code.addPatternsMonitor] }
        fixture.scanner.scan(ScanDemand())
        await fixture.kernel.wait(for: "52 hci0")
        fixture.scanner.stop()
        async let inspection = fixture.scanner.inspect()
        fixture.kernel.release()
        await fixture.scanner.restorePower()
        await fixture.kernel.wait(for: "53 hci0")
        #expect(await inspection.fault == nil)
    }

    @Test("waiting for the answer to a monitor ends after the timeout")
    @Loop func lostMonitor() async throws {
        var timing = MgmtScanner.Timing.long
        timing.answer = 1
        let fixture = try MgmtFixture({ $0.held = [ManagementCommand.Code.addPatternsMonitor] }, timing: timing)
        fixture.scanner.scan(ScanDemand())
        await fixture.kernel.wait(for: "52 hci0")
        fixture.scanner.stop()
        await fixture.scanner.restorePower()
        #expect(fixture.kernel.count("53 hci0") == 0)
    }
}
