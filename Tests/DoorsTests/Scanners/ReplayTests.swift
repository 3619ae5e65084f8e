// SPDX-License-Identifier: GPL-3.0-or-later
import Concurrency
import DoorReaders
import Glibc
import Host
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

    /// The first and the last time of a capture.
    private static let ends = [Int64.min, Int64.max - 0x00DC_DDB3_0F2F_8000]

    @Test("a capture is replayed whatever its times are", arguments: [ends, ends.reversed()])
    @Loop func times(_ times: [Int64]) async throws {
        let report = AdvertisingReport(address: DeviceAddress(bits: 1, isRandom: false), rssi: -60)
        let event = HCIEvent.event(report, data: [2, 1, 6])
        let content = times.map { BTSnoop.record(event: event, microseconds: $0) }.joined()
        let folder = try TemporaryFolder()
        let path = try folder.write("capture", BTSnoop.header + content)
        let (scanner, observer) = (ReplayScanner(path: path), RecordingObserver())
        scanner.observer = observer
        scanner.scan(ScanDemand())
        await observer.wait { !$0.advertisements.isEmpty }
        #expect(scanner.status.isListening)
        scanner.stop()
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

    @Test("a large capture is judged by its beginning, and read on if that has no event of the radio")
    func large() throws {
        let folder = try TemporaryFolder()
        let report = AdvertisingReport(address: DeviceAddress(bits: 1, isRandom: false), rssi: -60)
        let record = BTSnoop.record(event: HCIEvent.event(report, data: []), microseconds: 0)
        // Data, and no event.
        var other = BTSnoop.record(event: [UInt8](repeating: 0, count: 60_000), microseconds: 0)
        other[24] = 2
        let silence = [[UInt8]](repeating: other, count: (1 << 20) / other.count + 1).flatMap(\.self)
        try ReplayScanner.check(try folder.write("late", BTSnoop.header + silence + record))
        #expect(throws: ScannerFault.self) {
            try ReplayScanner.check(try folder.write("never", BTSnoop.header + silence))
        }
        // Such a size is in memory only if it is read.
        let path = try folder.write("large", BTSnoop.header + record)
        #expect(truncate(path, 200 << 20) == 0)
        let descriptor = open(path, O_RDONLY)
        defer { close(descriptor) }
        #expect(PlainFile.beginning(descriptor, count: 20) == .bytes(Array((BTSnoop.header + record).prefix(20))))
        try ReplayScanner.check(path)
    }
}
