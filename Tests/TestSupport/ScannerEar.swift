// SPDX-License-Identifier: GPL-3.0-or-later
package import Concurrency
package import DoorReaders
package import Scanners

/// Gathers what a scanner says, and wakes who waits for it.
@Loop package final class ScannerEar: ScannerObserver {
    package struct Advertisement {
        package let report: AdvertisingReport
        package let data: [UInt8]
        package let adapter: Int

        /// What badged makes of it.
        package var facts: ReaderFacts { AdvertisementDecoder().facts(in: data.span) }
    }

    package private(set) var heard: [Advertisement] = []
    /// Adapters that have gone.
    package private(set) var gone: [Int] = []
    package private(set) var status = ScannerStatus()
    private let waiters = Waiters()

    package nonisolated init() {}

    package func heard(_ report: AdvertisingReport, _ data: Span<UInt8>, adapter: Int) {
        heard.append(Advertisement(report: report, data: data.indices.map { data[$0] }, adapter: adapter))
        waiters.look()
    }

    package func scannerChanged(_ scanner: any Scanner) {
        status = scanner.status
        waiters.look()
    }

    package func adapterGone(_ adapter: Int) {
        gone.append(adapter)
        waiters.look()
    }

    package func wait(until condition: @escaping (ScannerEar) -> Bool) async {
        await waiters.wait { condition(self) }
    }
}

/// A scanner with an ear at it, and the other side, which the test plays.
@Loop package struct ScannerStage<Subject: Scanner, Other> {
    package let scanner: Subject
    package let ear = ScannerEar()
    package let other: Other

    package init(_ scanner: Subject, _ other: Other) {
        (self.scanner, self.other) = (scanner, other)
        scanner.observer = ear
    }

    /// Scans, and returns when the radio listens.
    package func listen(_ demand: ScanDemand = ScanDemand()) async {
        scanner.scan(demand)
        await ear.wait { $0.status.isListening }
    }
}
