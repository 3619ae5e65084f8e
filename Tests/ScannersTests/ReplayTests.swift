// SPDX-License-Identifier: GPL-3.0-or-later
import DoorReaders
import FoundationEssentials
import Glibc
import Loop
import Scanners
import TestSupport
import Testing

@Suite("Replay of captures", .timeLimit(.minutes(5))) struct ReplayTests {
    /// Collects what is heard, and wakes who waits for it.
    @Loop private final class Ear: ScannerObserver {
        var heard: [DeviceAddress] = []
        private var waiter: (count: Int, continuation: CheckedContinuation<Void, Never>)?

        nonisolated init() {}
        func heard(_ report: AdvertisingReport, _ data: Span<UInt8>, adapter: Int) {
            heard.append(report.address)
            if let waiter, heard.count >= waiter.count {
                self.waiter = nil
                waiter.continuation.resume()
            }
        }
        func scannerChanged(_ scanner: any Scanner) {}
        func adapterGone(_ adapter: Int) {}

        func wait(for count: Int) async {
            guard heard.count < count else { return }
            await withCheckedContinuation { waiter = (count, $0) }
        }
    }

    private func file(_ content: [UInt8]) throws -> String {
        let path = "/tmp/badged-replay-\(UUID().uuidString)"
        try Data(content).write(to: URL(filePath: path))
        return path
    }

    @Test("a capture is played in its order, again and again, until it is stopped")
    @Loop func plays() async throws {
        var content = BTSnoop.header
        for number in 0..<3 {
            let address = DeviceAddress(bits: UInt64(number), isRandom: false)
            let event = HCIEvent.event(AdvertisingReport(address: address, rssi: -60), data: [2, 1, 6])
            content += BTSnoop.record(event: event, microseconds: Int64(number) * 2000)
        }
        let path = try file(content)
        defer { unlink(path) }
        let (scanner, ear) = (ReplayScanner(path: path), Ear())
        scanner.observer = ear
        scanner.scan(ScanDemand())
        #expect(scanner.status.isListening)
        await ear.wait(for: 6)
        scanner.stop()
        #expect(ear.heard.prefix(6).map { Int($0.bits) } == [0, 1, 2, 0, 1, 2])
        #expect(!scanner.status.isListening)
    }

    @Test(
        "what cannot be played is said",
        arguments: [([UInt8](), "is no capture file"), (BTSnoop.header, "is empty"), (nil, "cannot read")]
            as [([UInt8]?, String)]
    )
    @Loop func faults(content: [UInt8]?, words: String) throws {
        let path = try content.map(file) ?? "/nonexistent"
        defer { unlink(path) }
        let scanner = ReplayScanner(path: path)
        scanner.scan(ScanDemand())
        #expect(scanner.status.fault?.text.contains(words) == true)
        #expect(!scanner.status.isListening)
    }
}
