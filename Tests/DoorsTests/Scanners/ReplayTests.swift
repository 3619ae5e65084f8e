// SPDX-License-Identifier: GPL-3.0-or-later
import Concurrency
import DoorReaders
import Scanners
import TestSupport
import Testing

@Suite("ReplayScanner", .timeLimit(.minutes(5))) struct ReplayTests {
    @Test("a capture is replayed in its order and in a loop until the scan stops")
    @Loop func plays() async throws {
        var content = BTSnoop.header
        for number in 0..<3 {
            let address = DeviceAddress(bits: UInt64(number), isRandom: false)
            let event = HCIEvent.event(AdvertisingReport(address: address, rssi: -60), data: [2, 1, 6])
            content += BTSnoop.record(event: event, microseconds: Int64(number) * 2000)
        }
        let folder = try TemporaryFolder()
        let (scanner, observer) = (ReplayScanner(path: try folder.write("capture", content)), RecordingObserver())
        scanner.observer = observer
        scanner.scan(ScanDemand())
        #expect(scanner.status.isListening)
        await observer.wait { $0.advertisements.count >= 6 }
        scanner.stop()
        #expect(observer.advertisements.prefix(6).map { Int($0.report.address.bits) } == [0, 1, 2, 0, 1, 2])
        #expect(!scanner.status.isListening)
    }

    @Test(
        "a file that cannot be replayed is a fault",
        arguments: [([UInt8](), "is not a capture file"), (BTSnoop.header, "has no records"), (nil, "cannot read")]
            as [([UInt8]?, String)]
    )
    @Loop func faults(content: [UInt8]?, words: String) throws {
        let folder = try TemporaryFolder()
        let scanner = ReplayScanner(path: try content.map { try folder.write("capture", $0) } ?? "/nonexistent")
        scanner.scan(ScanDemand())
        #expect(scanner.status.fault?.text.contains(words) == true)
        #expect(!scanner.status.isListening)
    }
}
