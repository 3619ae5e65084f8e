// SPDX-License-Identifier: GPL-3.0-or-later
import DoorReaders
import Testing

@testable import ScannerMgmt

@Suite("ContinuationFilter", .timeLimit(.minutes(5))) struct ContinuationFilterTests {
    private static let flags: [UInt8] = [2, 1, 6]
    private static let name: [UInt8] = [3, 9, 0x41, 0x42]

    private final class Run {
        var filter = ContinuationFilter()

        func isContinuation(
            _ data: [UInt8],
            from number: UInt64 = 1,
            adapter: Int = 0,
            isScanResponse: Bool = false,
            at now: Milliseconds
        ) -> Bool {
            let address = DeviceAddress(bits: number, isRandom: false)
            let report = AdvertisingReport(address: address, rssi: -60, isScanResponse: isScanResponse)
            return filter.isContinuation(report, data.span, adapter: adapter, at: now)
        }
    }

    @Test("a report with another beginning right after the first one is a later fragment, in each advertisement")
    func fragments() {
        let run = Run()
        for start in stride(from: Milliseconds(0), to: 1000, by: 100) {
            #expect(!run.isContinuation(Self.flags, at: start))
            #expect(run.isContinuation(Self.name, at: start))
            #expect(run.isContinuation([], at: start + 15))
        }
    }

    @Test("repeated advertisements, scan responses, other senders and other adapters are no later fragments")
    func others() {
        let run = Run()
        #expect(!run.isContinuation(Self.flags, at: 0))
        #expect(!run.isContinuation(Self.flags + Self.name, at: 1))
        #expect(!run.isContinuation(Self.name, isScanResponse: true, at: 2))
        #expect(!run.isContinuation(Self.name, from: 2, at: 3))
        #expect(!run.isContinuation(Self.name, adapter: 1, at: 4))
        #expect(!run.isContinuation(Self.name, at: 31))
    }

    @Test("a sender with changing data that advertises every 20 ms is not taken for fragments all the time")
    func fast() {
        let run = Run()
        let results = (0..<10).map { run.isContinuation([2, 10, UInt8($0)], at: Milliseconds($0) * 20) }
        #expect(results.filter { !$0 }.count == 5)
    }

    @Test("the memory is bounded")
    func bounded() {
        let run = Run()
        #expect(!run.isContinuation(Self.flags, at: 0))
        for number in UInt64(100)..<200 { #expect(!run.isContinuation(Self.flags, from: number, at: 0)) }
        #expect(!run.isContinuation(Self.name, at: 0))
    }
}
