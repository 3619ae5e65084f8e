// SPDX-License-Identifier: GPL-3.0-or-later
package import Concurrency
package import DoorReaders
package import Scanners

/// Records what a scanner reports, and resumes the tests that wait for a report.
@Loop package final class RecordingObserver: ScannerObserver {
    package struct Advertisement {
        package let report: AdvertisingReport
        package let data: [UInt8]
        package let adapter: Int

        /// The decoded advertisement.
        package var facts: DecodedAdvertisement { AdvertisementDecoder().decode(data.span) }
    }

    package private(set) var advertisements: [Advertisement] = []
    /// The numbers of the removed adapters.
    package private(set) var removedAdapters: [Int] = []
    package private(set) var status = ScannerStatus()
    /// Whether the radio listened, in each status.
    package private(set) var listening: [Bool] = []
    /// The fault of each status that had one.
    package private(set) var faults: [ScannerFault] = []
    private let waiters = Waiters()

    package nonisolated init() {}

    package func received(_ report: AdvertisingReport, _ data: Span<UInt8>, adapter: Int) {
        advertisements.append(Advertisement(report: report, data: data.indices.map { data[$0] }, adapter: adapter))
        waiters.check()
    }

    package func scannerChanged(_ scanner: any Scanner) {
        status = scanner.status
        listening.append(status.isListening)
        if let fault = status.fault { faults.append(fault) }
        waiters.check()
    }

    package func adapterRemoved(_ adapter: Int) {
        removedAdapters.append(adapter)
        waiters.check()
    }

    package func wait(until condition: @escaping (RecordingObserver) -> Bool) async {
        await waiters.wait { condition(self) }
    }
}

/// A scanner with a recording observer and a fake of its service.
@Loop package struct ScannerFixture<Subject: Scanner, Other> {
    package let scanner: Subject
    package let observer = RecordingObserver()
    package let other: Other

    package init(_ scanner: Subject, _ other: Other) {
        (self.scanner, self.other) = (scanner, other)
        scanner.observer = observer
    }

    /// Starts a scan and returns when the radio listens.
    package func listen(_ demand: ScanDemand = ScanDemand()) async {
        scanner.scan(demand)
        await observer.wait { $0.status.isListening }
    }
}
