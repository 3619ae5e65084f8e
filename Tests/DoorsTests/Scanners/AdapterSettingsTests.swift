// SPDX-License-Identifier: GPL-3.0-or-later
import Concurrency
import DoorReaders
import Scanners
import TestSupport
import Testing
import Text

@testable import Host

@Suite("The settings of single adapters") @Loop struct AdapterSettingsTests {
    private static let first = RadioAdapter(name: "hci0", address: "00:00:00:00:00:01", isPowered: true)
    private static let second = RadioAdapter(name: "hci1", address: "00:00:00:00:00:02", isPowered: true)

    static func configuration(_ lines: String) throws -> RadioConfiguration {
        try Configuration(bytes: Array("[ble]\n\(lines)".utf8), file: "badged.conf").radio
    }

    /// A radio with a scripted scanner whose adapters are those that may scan.
    @Loop private struct Stage: ~Copyable {
        final class Listener: Radio.Listener {
            var demand = ScanDemand(lockServiceCodes: [])
            var raw: [Int8?] = []
            nonisolated init() {}
            func readerChanged(_ change: ReaderTracker.Change, _ reader: DoorReader, at now: Milliseconds) {}
            func received(_ report: AdvertisingReport, _ data: Span<UInt8>, adapter: Int) { raw.append(report.rssi) }
            func radioStateChanged() {}
            var nextDeadline: Milliseconds? { nil }
            func deadlinePassed(at now: Milliseconds) {}
        }

        let scanner = ScriptedScanner()
        let listener = Listener()
        let radio: Radio

        init(_ lines: String, _ present: [RadioAdapter] = [first, second]) throws {
            let configuration = try configuration(lines)
            radio = Radio(scanners: [scanner], clock: ManualClock(), configuration: configuration)
            radio.add(listener)
            var status = ScannerStatus(isListening: true, adapters: present)
            status.choose(configuration.adapters)
            scanner.change(status)
        }

        func reader(_ rssi: Int8 = -60, adapter: Int = 0) throws -> DoorReader {
            scanner.receive(Adverts.seos(), from: .door(1), rssi, adapter: adapter)
            return try #require(radio.tracker.readers.first)
        }
    }

    @Test(
        "the offset of an adapter, by number or address, is added to what it receives, but not to captures",
        arguments: [
            ("", 0, -60), ("adapter_offsets = hci0 -7", 0, -67), ("adapter_offsets = 00:00:00:00:00:02 5", 1, -55),
            ("adapter_offsets = hci1 9", 0, -60), ("adapter_offsets = hci0 30", 0, -30),
        ] as [(String, Int, Int8)]
    )
    func offset(_ line: String, _ adapter: Int, _ expected: Int8) throws {
        let stage = try Stage(line)
        #expect(try stage.reader(adapter: adapter).signal.last == expected)
        #expect(stage.listener.raw == [-60])
    }

    @Test("an offset leaves a value within what a signal strength can be", arguments: [(-120, -30), (10, 30)])
    func clamped(_ rssi: Int8, _ offset: Int) throws {
        let stage = try Stage("adapter_offsets = hci0 \(offset)")
        #expect(try stage.reader(rssi).signal.last == (rssi < 0 ? -127 : 20))
    }

    @Test(
        "the adapter that receives a reader opens it, or another one that may; without one nothing is opened",
        arguments: [
            ("", 1, 1), ("adapters = hci0, hci1", 1, 1), ("adapters = hci0 scan, hci1", 0, 1),
            ("adapters = hci0 scan, 00:00:00:00:00:02 open", 0, 1), ("adapters = hci0", 0, 0),
            ("adapters = hci0 scan", 0, nil), ("adapters = hci0 scan, hci7 open", 0, nil),
        ] as [(String, Int, Int?)]
    )
    func opening(_ line: String, _ heard: Int, _ expected: Int?) throws {
        let stage = try Stage(line)
        #expect(stage.radio.openingAdapter(for: try stage.reader(adapter: heard)) == expected)
    }

    @Test("GET_HEALTH and SCAN name the adapters that badged.conf names and the computer lacks")
    func missing() async throws {
        let partly = try Stage("adapters = hci0, hci7, 00:00:00:00:00:09")
        var check = try #require(await partly.radio.checks().first { $0.name == "bluetoothAdapters" })
        let present = "this computer has hci0 (00:00:00:00:00:01), hci1 (00:00:00:00:00:02)"
        #expect(check.cause == "[ble] adapters names hci7, 00:00:00:00:00:09, but \(present)")
        #expect(partly.radio.state.error == nil)

        let wholly = try Stage("adapters = hci7, hci1 open")
        #expect(
            wholly.radio.state.error?.hasPrefix("[ble] adapters names hci7 for scans, but \(present)") == true
        )
        check = try #require(await wholly.radio.checks().first { $0.name == "bluetoothAdapter" })
        #expect(check.advice?.hasPrefix("correct [ble] adapters") == true)
        #expect(!check.isOptional)
    }

    @Test("GET_HEALTH names the adapters without the coded PHY that is asked for")
    func withoutCodedPHY() async throws {
        let stage = try Stage("coded_phy = yes")
        #expect(await !stage.radio.checks().contains { $0.name == "bluetoothCodedPHY" })
        var status = stage.scanner.status
        status.withoutCodedPHY = ["hci1"]
        stage.scanner.change(status)
        let check = try #require(await stage.radio.checks().first { $0.name == "bluetoothCodedPHY" })
        #expect(check.cause == "hci1 does not receive on the coded PHY")
    }
}
