// SPDX-License-Identifier: GPL-3.0-or-later
import Bluetooth
import Concurrency
import DoorReaders
import Testing

@Suite("The owner of the radio")
@Loop struct RadioOwnerTests {
    /// Records what the owner asks of a scan.
    private final class RecordedScan: RadioScan {
        var calls: [String] = []

        func reserve(_ adapter: Int, _ isReserved: Bool) {
            calls.append("hci\(adapter) \(isReserved ? "left" : "taken")")
        }
        func waitUntilLeft(_ adapter: Int, within limit: Milliseconds) async { calls.append("hci\(adapter) is left") }
        var readsDevices = false
        func searches(_ adapter: Int) -> Bool { true }
        func beginConnection(to address: DeviceAddress, adapter: Int) async -> Bool { true }
        func endConnection(to address: DeviceAddress, adapter: Int) { calls.append("end") }
    }

    private let owner = RadioOwner()
    private let scan = RecordedScan()

    init() { owner.scan = scan }

    @Test(
        "an adapter serves one opening or session at a time, and says which",
        arguments: [RadioOwner.Use.opening, .session],
        [RadioOwner.Use.opening, .session]
    )
    func oneUse(_ first: RadioOwner.Use, _ second: RadioOwner.Use) {
        #expect(owner.begin(first, on: 0) == nil)
        #expect(owner.begin(second, on: 0) == first)
        #expect(owner.begin(second, on: 1) == nil)
        owner.end(on: 0)
        #expect(owner.begin(second, on: 0) == nil)
    }

    @Test("who waits for an adapter gets the first that is free, in line, and can leave the line")
    func line() async {
        #expect(await owner.wait(for: .session, onOneOf: [0, 1], within: 3_600_000) == 0)
        #expect(await owner.wait(for: .session, onOneOf: [0, 1], within: 3_600_000) == 1)
        #expect(await owner.wait(for: .session, onOneOf: [0, 1], within: 0) == nil)
        let waiting = [[1], [0, 1]].map { adapters in
            Task.immediate { @Loop in await owner.wait(for: .session, onOneOf: adapters, within: 3_600_000) }
        }
        let leaver = Task.immediate { @Loop in await owner.wait(for: .session, onOneOf: [0], within: 3_600_000) }
        leaver.cancel()
        #expect(await leaver.value == nil)
        owner.end(on: 1)
        #expect(await waiting[0].value == 1)
        owner.end(on: 0)
        #expect(await waiting[1].value == 0)
    }

    @Test("the scan leaves an adapter to connections that are being established, and takes it back after the last one")
    func reservations() {
        #expect(owner.searches(0))
        owner.reserve(0)
        owner.reserve(0)
        #expect(!owner.searches(0))
        #expect(owner.searches(1))
        owner.release(0)
        #expect(scan.calls == ["hci0 left"])
        owner.release(0)
        owner.release(0)
        #expect(scan.calls == ["hci0 left", "hci0 taken"])
        #expect(owner.searches(0))
    }

    @Test("recovery learns which adapters are in use")
    func inUse() {
        #expect(!owner.isInUse(nil))
        _ = owner.begin(.session, on: 1)
        #expect(owner.isInUse(nil))
        #expect(owner.isInUse(1))
        #expect(!owner.isInUse(0))
        owner.end(on: 1)
        owner.reserve(0)
        #expect(owner.isInUse(0))
    }

    @Test("without a scan nobody connects for bluetoothd")
    func withoutScan() async {
        owner.scan = nil
        let address = DeviceAddress(bits: 1, isRandom: false)
        #expect(await !owner.beginConnection(to: address, adapter: 0))
        #expect(!owner.searches(0))
    }
}
