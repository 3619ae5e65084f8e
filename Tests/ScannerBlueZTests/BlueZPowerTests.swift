// SPDX-License-Identifier: GPL-3.0-or-later
import Concurrency
import DoorReaders
import Scanners
import TestSupport
import Testing

@testable import ScannerBlueZ

@Suite("Power of bluetoothd's adapters (a fake one on a real bus)", .timeLimit(.minutes(5)))
struct BlueZPowerTests {
    /// No machine that runs the tests has it.
    private static let adapter = "/org/bluez/hci4711"

    /// A scan whose adapter is being switched off; the service has not said yet that it has done so.
    @Loop private func offStage() async throws -> BlueZStage {
        var timing = BlueZScanner.Timing()
        timing.cycles.pause = 1
        let stage = try await BlueZStage({ $0.adapters = [Self.adapter: .init()] }, timing: timing)
        await stage.listen(.performance)
        stage.service.held = ["Set"]
        #expect(stage.scanner.recover(.powerCycle, adapter: nil))
        await stage.service.wait(for: "Set hci4711")
        #expect(stage.service.adapters[Self.adapter]?.isPowered == false)
        return stage
    }

    @Test("a scan that ends while an adapter is off leaves it on")
    @Loop func stop() async throws {
        let stage = try await offStage()
        stage.scanner.stop()
        stage.service.release()
        await stage.scanner.restorePower()
        #expect(stage.service.adapters[Self.adapter]?.isPowered == true)
        #expect(stage.service.calls.filter { $0 == "Set hci4711" }.count == 2)
    }

    @Test("one that connects anew meanwhile does, too, and hears again")
    @Loop func reopen() async throws {
        let stage = try await offStage()
        #expect(stage.scanner.recover(.reopen, adapter: nil))
        stage.service.release()
        await stage.scanner.restorePower()
        #expect(stage.service.adapters[Self.adapter]?.isPowered == true)
        await stage.observer.wait { $0.status.isListening && $0.status.fault == nil }
    }

    @Test("a bluetoothd that ends meanwhile switches the adapter on when it is back")
    @Loop func restart() async throws {
        let stage = try await offStage()
        stage.scanner.stop()
        stage.service.end()
        stage.service.held = []
        try await stage.service.restart()
        await stage.scanner.restorePower()
        #expect(stage.service.adapters[Self.adapter]?.isPowered == true)
    }

    @Test("an adapter that is pulled out while it is off is nobody's business any more")
    @Loop func pulled() async throws {
        let stage = try await offStage()
        stage.service.remove(Self.adapter, "org.bluez.Adapter1")
        stage.service.release()
        await stage.scanner.restorePower()
        #expect(stage.service.calls.filter { $0 == "Set hci4711" }.count == 2)
    }

    @Test("a scan that ends before anything is switched leaves the adapter alone")
    @Loop func early() async throws {
        let stage = try await BlueZStage { $0.adapters = [Self.adapter: .init()] }
        await stage.listen(.performance)
        stage.service.held = ["GetManagedObjects"]
        let asked = stage.service.calls.count
        #expect(stage.scanner.recover(.powerCycle, adapter: nil))
        await stage.service.wait { stage.service.calls.count > asked }
        stage.scanner.stop()
        stage.service.release()
        await stage.scanner.cycles.waitUntilIdle()
        #expect(!stage.service.calls.contains("Set hci4711"))
    }
}
