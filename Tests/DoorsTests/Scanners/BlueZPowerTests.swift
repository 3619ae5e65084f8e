// SPDX-License-Identifier: GPL-3.0-or-later
import Concurrency
import DoorReaders
import TestSupport
import Testing

@testable import Bluetooth
@testable import Scanners

@Suite("Power cycles of BlueZScanner with an emulated bluetoothd", .timeLimit(.minutes(5)))
struct BlueZPowerTests {
    /// No host has an adapter with this number.
    private static let adapter = "/org/bluez/hci4711"

    /// A scan whose adapter is being switched off; the service has not answered yet.
    @Loop private func switchingOff() async throws -> BlueZFixture {
        var timing = BlueZScanner.Timing()
        timing.cycles.pause = 1
        let fixture = try await BlueZFixture({ $0.adapters = [Self.adapter: .init()] }, timing: timing)
        await fixture.listen(.performance)
        fixture.service.held = ["Set"]
        #expect(fixture.scanner.recover(.powerCycle, adapter: nil))
        await fixture.service.wait(for: "Set hci4711")
        #expect(fixture.service.adapters[Self.adapter]?.isPowered == false)
        return fixture
    }

    @Test("when a scan ends while an adapter is off, the adapter is switched on")
    @Loop func stop() async throws {
        let fixture = try await switchingOff()
        fixture.scanner.stop()
        fixture.service.release()
        await fixture.scanner.restorePower()
        #expect(fixture.service.adapters[Self.adapter]?.isPowered == true)
        #expect(fixture.service.calls.filter { $0 == "Set hci4711" }.count == 2)
    }

    @Test("when a scan connects again while an adapter is off, the adapter is switched on and the scan continues")
    @Loop func reopen() async throws {
        let fixture = try await switchingOff()
        #expect(fixture.scanner.recover(.reopen, adapter: nil))
        fixture.service.release()
        await fixture.scanner.restorePower()
        #expect(fixture.service.adapters[Self.adapter]?.isPowered == true)
        await fixture.observer.wait { $0.status.isListening && $0.status.fault == nil }
    }

    @Test("when bluetoothd ends while an adapter is off, the adapter is switched on after its new start")
    @Loop func restart() async throws {
        let fixture = try await switchingOff()
        fixture.scanner.stop()
        fixture.service.end()
        fixture.service.held = []
        try await fixture.service.restart()
        await fixture.scanner.restorePower()
        #expect(fixture.service.adapters[Self.adapter]?.isPowered == true)
    }

    @Test("a power cycle ends when the adapter is removed")
    @Loop func removed() async throws {
        let fixture = try await switchingOff()
        fixture.service.remove(Self.adapter, "org.bluez.Adapter1")
        fixture.service.release()
        await fixture.scanner.restorePower()
        #expect(fixture.service.calls.filter { $0 == "Set hci4711" }.count == 2)
    }

    @Test("when a scan ends before the power cycle, the adapter is not switched off")
    @Loop func early() async throws {
        let fixture = try await BlueZFixture { $0.adapters = [Self.adapter: .init()] }
        await fixture.listen(.performance)
        fixture.service.held = ["GetManagedObjects"]
        let count = fixture.service.calls.count
        #expect(fixture.scanner.recover(.powerCycle, adapter: nil))
        await fixture.service.wait { fixture.service.calls.count > count }
        fixture.scanner.stop()
        fixture.service.release()
        await fixture.scanner.cycles.waitUntilIdle()
        #expect(!fixture.service.calls.contains("Set hci4711"))
    }
}
