// SPDX-License-Identifier: GPL-3.0-or-later
import Concurrency
import DoorReaders
import Scanners
import TestSupport
import Testing

@testable import ScannerMgmt

@Suite("Power of the kernel's adapters (a fake kernel)", .timeLimit(.minutes(5)))
struct PowerTests {
    /// A scan whose adapter is being switched off; the kernel has not said yet that it is.
    @Loop private func offStage(
        _ timing: MgmtScanner.Timing = .patient,
        mayDisconnect: Bool = false
    ) async throws -> MgmtStage {
        let stage = try MgmtStage(mayDisconnect: mayDisconnect, timing: timing)
        await stage.listen()
        stage.kernel.held = [ManagementCommand.Code.setPowered]
        #expect(stage.scanner.recover(.powerCycle, adapter: nil))
        await stage.kernel.wait(for: "5 hci0")
        return stage
    }

    @Test("a scan that ends while an adapter is off leaves it on, and then reads no more")
    @Loop func stop() async throws {
        let stage = try await offStage()
        #expect(stage.kernel.isPowered(0) == false)
        stage.scanner.stop()
        stage.kernel.found(MgmtStage.door, -1, [])
        stage.kernel.release()
        await stage.scanner.restorePower()
        #expect(stage.kernel.isPowered(0) == true)
        #expect(stage.kernel.count("5 hci0") == 2)
        await stage.scanner.cycles.waitUntilIdle()
        stage.kernel.found(MgmtStage.door, -2, [])
        await stage.listen()
        stage.kernel.found(MgmtStage.door, -60, [])
        await stage.observer.wait { !$0.advertisements.isEmpty }
        #expect(stage.observer.advertisements.map(\.report.rssi) == [-60])
    }

    @Test("the next scan finds the adapter on, also when it begins while the adapter is off")
    @Loop func stopAndScan() async throws {
        let stage = try await offStage()
        stage.scanner.stop()
        stage.scanner.scan(ScanDemand())
        await stage.observer.wait { $0.status.fault == .adapterOff }
        stage.kernel.release()
        await stage.observer.wait { $0.status.isListening && $0.status.fault == nil }
        #expect(stage.kernel.isPowered(0) == true)
    }

    @Test("while the adapter is off that is what a look says")
    @Loop func look() async throws {
        let stage = try await offStage()
        stage.scanner.stop()
        #expect(await stage.scanner.inspect().fault == .adapterOff)
        stage.kernel.release()
        await stage.scanner.cycles.waitUntilIdle()
        let fault = await stage.scanner.inspect().fault
        #expect(fault == nil)
    }

    @Test("a scan that goes on hears of the power, and asks for discovery anew")
    @Loop func goesOn() async throws {
        let stage = try await offStage()
        let windows = stage.kernel.count("23 hci0")
        stage.kernel.release()
        await stage.kernel.wait(for: "23 hci0", times: windows + 1)
        await stage.observer.wait { $0.status.isListening }
        #expect(stage.kernel.isPowered(0) == true)
    }

    @Test("switching on that is refused is tried again until it succeeds, and meanwhile the adapter is said to be off")
    @Loop func refused() async throws {
        var timing = MgmtScanner.Timing.patient
        timing.cycles.pause = 1
        let stage = try await offStage(timing)
        stage.kernel.refusals[ManagementCommand.Code.setPowered] = [
            ManagementCommand.Status.busy, ManagementCommand.Status.blocked,
        ]
        stage.kernel.release()
        await stage.observer.wait { $0.status.fault == .adapterOff }
        await stage.observer.wait { $0.status.isListening && $0.status.fault == nil }
        #expect(stage.kernel.isPowered(0) == true)
        #expect(stage.kernel.count("5 hci0") == 4)
    }

    @Test("an answer that is lost keeps no adapter off")
    @Loop func lostAnswer() async throws {
        var timing = MgmtScanner.Timing.patient
        timing.answer = 100
        timing.cycles.pause = 1
        // So nothing else is asked that could be late, too.
        let stage = try await offStage(timing, mayDisconnect: true)
        stage.scanner.stop()
        await stage.kernel.wait(for: "5 hci0", times: 2)
        stage.kernel.release()
        await stage.scanner.restorePower()
        #expect(stage.kernel.isPowered(0) == true)
    }

    @Test("the late answer to switching off is not taken for that to switching on")
    @Loop func lateAnswer() async throws {
        let kernel = try FakeKernel()
        kernel.held = [ManagementCommand.Code.setPowered]
        let power = ManagementPower(kernel.other, patience: 60_000)
        let outcome = Task { @Loop in await power.power(of: 0).setPower(true) }
        await kernel.wait(for: "5 hci0")
        // Powered is bit 0.
        power.answered(ManagementCommand.Code.setPowered, 0, ManagementCommand.Status.success, [0x80, 0x02, 0, 0])
        #expect(await outcome.value == .failed)
    }

    @Test("an adapter that is pulled out while it is off is nobody's business any more")
    @Loop func pulled() async throws {
        let stage = try await offStage()
        stage.kernel.remove(0)
        stage.kernel.release()
        await stage.scanner.restorePower()
        #expect(stage.kernel.count("5 hci0") == 2)
    }

    @Test("a scan that ends before anything is switched leaves the adapter alone")
    @Loop func early() async throws {
        let stage = try MgmtStage()
        await stage.listen()
        stage.kernel.held = [ManagementCommand.Code.getConnections]
        #expect(stage.scanner.recover(.powerCycle, adapter: nil))
        await stage.kernel.wait(for: "15 hci0")
        stage.scanner.stop()
        stage.kernel.release()
        await stage.scanner.cycles.waitUntilIdle()
        #expect(stage.kernel.count("5 hci0") == 0)
    }

    @Test("a monitor that is still being added when the scan ends is removed all the same")
    @Loop func unwantedMonitor() async throws {
        let stage = try MgmtStage { $0.held = [ManagementCommand.Code.addPatternsMonitor] }
        stage.scanner.scan(ScanDemand())
        await stage.kernel.wait(for: "52 hci0")
        stage.scanner.stop()
        async let look = stage.scanner.inspect()
        stage.kernel.release()
        await stage.scanner.restorePower()
        await stage.kernel.wait(for: "53 hci0")
        #expect(await look.fault == nil)
    }

    @Test("and one whose answer is lost is not waited for for ever")
    @Loop func lostMonitor() async throws {
        var timing = MgmtScanner.Timing.patient
        timing.answer = 1
        let stage = try MgmtStage({ $0.held = [ManagementCommand.Code.addPatternsMonitor] }, timing: timing)
        stage.scanner.scan(ScanDemand())
        await stage.kernel.wait(for: "52 hci0")
        stage.scanner.stop()
        await stage.scanner.restorePower()
        #expect(stage.kernel.count("53 hci0") == 0)
    }
}
